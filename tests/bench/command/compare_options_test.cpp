// The options of `kbench compare`: parsing, mistakes, names, and that docs/compare.md has their table.
#include "bench/command/compare_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

CompareRequest parsed(std::vector<std::string> options) {
    options.insert(options.begin(), {"a", "b"});
    return parse_compare(options).request;
}

std::string refusal(const std::vector<std::string>& options) {
    return refusal_of([&] { parsed(options); });
}

TEST(CompareOptions, ALimitIsAPercentageOrAShare) {
    EXPECT_DOUBLE_EQ(*parsed({"--fail-above", "3%"}).options.fail_above, 0.03);
    EXPECT_DOUBLE_EQ(*parsed({"--fail-above", "0.03"}).options.fail_above, 0.03);
    EXPECT_DOUBLE_EQ(*parsed({"--fail-above", "150%"}).options.fail_above, 1.5);
    EXPECT_FALSE(parsed({}).options.fail_above);
    for (const char* wrong : {"3", "-1%", "%", "", "nan", "inf%", "3 %", "three"})
        EXPECT_EQ(refusal({"--fail-above", wrong}),
                  fmt::format("--fail-above '{}': must be a share such as 3% or 0.03", wrong));
}

TEST(CompareOptions, PricesAreDollarsAnHourByName) {
    EXPECT_THAT(parsed({"--price", "h200=3.5,a=b=0.8"}).options.prices,
                ElementsAre(Pair("a=b", 0.8), Pair("h200", 3.5)));
    for (const char* wrong : {"h200", "h200=", "=3", "h200=cheap", "h200=-1", "h200=inf", "h200=3$"})
        EXPECT_THAT(refusal({"--price", wrong}), HasSubstr("must be NAME=DOLLARS_PER_HOUR")) << wrong;
    EXPECT_THAT(refusal({"--price", ""}), HasSubstr("must be NAME=DOLLARS_PER_HOUR"));
    EXPECT_EQ(refusal({"--price", "a=1,a=2"}), "--price: 'a' has two prices");
}

TEST(CompareOptions, WrongValuesSayWhatWouldBeRight) {
    EXPECT_THAT(refusal({"--by", "kernel"}), HasSubstr("layer, op, step"));
    EXPECT_THAT(refusal({"--format", "csv"}), HasSubstr("text, markdown, html, json"));
    EXPECT_THAT(refusal({"--top", "0"}), HasSubstr("at least 1"));
    EXPECT_EQ(refusal({"--name", "x"}), "--name: 1 names for 2 results");
    EXPECT_EQ(refusal({"--name", "x,x"}), "--name 'x': each result needs a name of its own");
    EXPECT_THAT(refusal_of([] { parse_compare({"a"}); }), HasSubstr("1 result: name two or more"));
    EXPECT_THAT(refusal({"--wide"}), HasSubstr("`kbench compare --help`"));
}

TEST(RunNames, AreTheDirectoriesUnlessTheseAreTheSame) {
    EXPECT_THAT(run_names({"h200/result.json", "/x/xeon/result.json"}), ElementsAre("h200", "xeon"));
    EXPECT_THAT(run_names({"before.json", "x/after.json"}), ElementsAre("before", "after"));
    EXPECT_THAT(run_names({"old/gpu/result.json", "new/gpu/result.json", "cpu/result.json"}),
                ElementsAre("old/gpu/result.json", "new/gpu/result.json", "cpu"));
    EXPECT_THAT(run_names({"a.json", "a.json"}), ElementsAre("a.json", "a.json#2"));
}

TEST(CompareOptions, TheDocumentHasTheirTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/compare.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(compare_options_markdown()));
}

}  // namespace
}  // namespace kbench
