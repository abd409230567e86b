// What --help prints.
#include "bench/command/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "bench/command/options.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::vector<HelpRow> rows(std::size_t count) {
    std::vector<HelpRow> all{{"--batch", "N,...", "sequences at once [1]"}, {"-q,--quiet", "", "show no progress"}};
    while (all.size() < count)
        all.push_back({"--a-rather-long-option", "NAME=FILE", "what takes several words to say and so is wrapped"});
    return all;
}

TEST(Help, FewOptionsAreOneGroup) {
    const CommandText command{"kbench table", "Shows a result.", "RESULT", "a file", {"kbench table x"}};
    EXPECT_EQ(help_text(command, rows(3), 60),
              R"(Shows a result.

usage: kbench table [OPTIONS] RESULT...

  RESULT                  a file

Options:
  --batch N,...           sequences at once [1]
  -q,--quiet              show no progress
  --a-rather-long-option NAME=FILE
                          what takes several words to say
                          and so is wrapped

  -h,--help               this text

Examples:
  kbench table x
)");
}

TEST(Help, ManyOptionsAreInGroups) {
    const std::string text = help_text({"kbench x", "Does."}, rows(20), 80);
    EXPECT_THAT(text, HasSubstr("\nModel:\n  --batch N,..."));
    EXPECT_THAT(text, HasSubstr("\nOutput:\n  -q,--quiet  "));
    EXPECT_THAT(text, HasSubstr("\nOptions:\n  --a-rather-long-option"));
    EXPECT_THAT(text, testing::Not(HasSubstr("Counters")));
}

TEST(Help, OfARunIsWrappedInGroupsWithExamplesThatItTakes) {
    for (const Option& option : run_options()) EXPECT_NE(option_group(option.name), "Options") << option.name;
    const std::string help = parse_run({"--help"}).help;
    for (const char* group : {"Model", "Sweep", "Measure", "Counters", "Output"})
        EXPECT_THAT(help, HasSubstr("\n" + std::string(group) + ":\n"));
    std::istringstream lines(help);
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 80U) << line;
        if (!line.starts_with("  kbench --")) continue;
        std::istringstream words(line.substr(9));
        const std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
        EXPECT_NO_THROW(parse_run(arguments)) << line;
        ++examples;
    }
    EXPECT_EQ(examples, 3);
}

}  // namespace
}  // namespace kbench
