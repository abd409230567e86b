// The command line of `kbench ab`.
#include "bench/command/repeated/ab_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(std::vector<std::string> arguments) {
    return refusal_of([&] { parse_ab(arguments); });
}

AbRequest parsed(std::vector<std::string> arguments) { return parse_ab(arguments).request; }

TEST(AbOptions, ASideIsAProgramOptionsOrBoth) {
    const AbRequest options = parsed({"--b", "--provider gemm=native", "--", "--model", "mlp"});
    EXPECT_EQ(options.a_command.program, "");
    EXPECT_THAT(options.a_command.arguments, ElementsAre("run", "--model", "mlp"));
    EXPECT_THAT(options.b_command.arguments, ElementsAre("run", "--model", "mlp", "--provider", "gemm=native"));
    EXPECT_EQ(options.b_command.text(), "kbench run --model mlp --provider gemm=native");

    const AbRequest programs = parsed({"--a", "old/kbench", "--b", "new/kbench run --batch 2", "--", "--model", "mlp"});
    EXPECT_EQ(programs.a_command.text(), "old/kbench run --model mlp");
    EXPECT_EQ(programs.b_command.text(), "new/kbench run --model mlp --batch 2");

    const AbRequest micro = parsed({"--b", "", "--", "micro", "--op", "gemm", "--shape", "m64n64k64"});
    EXPECT_EQ(micro.a_command.text(), micro.b_command.text());
    EXPECT_FALSE(micro.b_command.is_run());
    EXPECT_EQ(parsed({"--b", "micro --op gemm", "--a", "micro"}).a_command.text(), "kbench micro");
}

TEST(AbOptions, WordsAreAShells) {
    EXPECT_THAT(parsed({"--b", "other '--of what' \"a b\"", "--", "--model", "mlp"}).b_command.arguments,
                ElementsAre("run", "--model", "mlp", "--of what", "a b"));
    for (const char* text : {"'open", "$(date)", "a | b"})
        EXPECT_THAT(refusal({"--b", text, "--", "--model", "mlp"}), HasSubstr("words as in a shell")) << text;
}

TEST(AbOptions, ACommandsTextIsReadBackAsItself) {
    const std::vector<std::string> words{"sh", "-c", "print('x: 5')\n	#~[!]`$A", "", "--of=what", "a b"};
    const AbCommand command{words.front(), {words.begin() + 1, words.end()}};
    EXPECT_EQ(command.text().substr(0, 6), "sh -c ");
    const AbCommand again = parsed({"--a", command.text(), "--b", "", "--metric", "wall"}).a_command;
    EXPECT_EQ(again.program, "sh");
    EXPECT_EQ(again.arguments, command.arguments);
}

TEST(AbOptions, MistakesAreFoundBeforeAnythingRuns) {
    EXPECT_THAT(refusal({"--", "--model", "mlp"}), HasSubstr("--b is missing"));
    EXPECT_THAT(refusal({"--b", "", "--fail-below", "-1", "--", "--model", "mlp"}), HasSubstr("--fail-below"));
    EXPECT_THAT(refusal({"--b", "--batch 2", "--", "--model", "mpl"}), HasSubstr("mpl"));
    EXPECT_THAT(refusal({"--b", "--bacht 2", "--", "--model", "mlp"}), HasSubstr("--bacht"));
    EXPECT_THAT(refusal({"--b", "run", "--", "micro", "--op", "gemm"}), HasSubstr("behind -- stands micro"));
    EXPECT_THAT(refusal({"--b", "", "--interval", "wide", "--", "--model", "mlp"}), HasSubstr("--interval"));
    EXPECT_THAT(refusal({"--b", "", "--budget", "nan", "--", "--model", "mlp"}), HasSubstr("--budget"));
    for (const char* text : {"--out x", "--out=x", "--resume", "--format json", "--help"})
        EXPECT_THAT(refusal({"--b", text, "--", "--model", "mlp"}), HasSubstr("keeps the runs itself")) << text;
}

TEST(AbOptions, WithAMetricTheSidesAreAnyCommands) {
    const AbRequest wall =
        parsed({"--a", "sh -c 'exit 0'", "--b", "/bin/true run", "--metric", "wall", "--", "--model", "x"});
    EXPECT_EQ(wall.a_command.program, "sh");
    EXPECT_THAT(wall.a_command.arguments, ElementsAre("-c", "exit 0", "--model", "x"));
    EXPECT_THAT(wall.b_command.arguments, ElementsAre("run", "--model", "x")) << "run is a word as any other";
    const AbRequest same = parsed({"--a", "echo 1", "--b", "", "--metric", "([0-9])"});
    EXPECT_EQ(same.b_command.text(), "echo 1") << "the same as A";
    const AbRequest plain = parsed({"--a", "env A=1", "--b", "", "--metric", "wall", "--", "true"});
    EXPECT_EQ(plain.a_command.text(), "env A=1 true");
    EXPECT_EQ(plain.b_command.text(), "true") << "what both have, and nothing of A's own";
    EXPECT_THAT(refusal({"--b", "true", "--metric", "wall"}), HasSubstr("--a is missing: with --metric"));
    EXPECT_THAT(refusal({"--a", "true", "--metric", "wall"}), HasSubstr("--b is missing"));
    EXPECT_THAT(refusal({"--a", "true", "--b", "no-such-program", "--metric", "wall"}),
                HasSubstr("--b: there is no program 'no-such-program'"));
    EXPECT_THAT(refusal({"--a", "./nothing", "--b", "", "--metric", "wall"}), HasSubstr("--a: there is no program"));
    EXPECT_THAT(refusal({"--a", "true", "--b", "true", "--metric", "time"}), HasSubstr("must have one group"));
    EXPECT_THAT(refusal({"--a", "true", "--b", "A=1 true", "--metric", "wall"}), HasSubstr("as in 'env A=1 ...'"));
    EXPECT_THAT(refusal({"--a", "true", "--b", "true $KBENCH_NO_SUCH_VARIABLE", "--metric", "wall"}),
                HasSubstr("a variable that is not set"));
    for (const char* text : {"/tmp", "''", "/etc/passwd"})
        EXPECT_THAT(refusal({"--a", text, "--b", "true", "--metric", "wall"}), HasSubstr("there is no program"))
            << text;
    const std::vector<std::string> printed{"--a", "true", "--b", "true", "--metric", "([0-9])"};
    std::vector<std::string> below = printed;
    below.insert(below.end(), {"--fail-below", "2%"});
    EXPECT_EQ(parsed(below).fail_below, 0.02);
    below.back() = "100%";
    EXPECT_THAT(refusal(below), HasSubstr("must be below 100%"));
    EXPECT_THAT(refusal({"--a", "true", "--b", "true", "--metric", "wall", "--fail-below", "1%"}),
                HasSubstr("a time should be low"));
    EXPECT_THAT(refusal({"--b", "", "--fail-below", "1%", "--", "--model", "mlp"}), HasSubstr("a time should be low"));
}

TEST(AbOptions, TheReferenceInDocsIsTheTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/ab.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(ab_options_markdown())) << "the table in docs/ab.md must be:\n"
                                                              << ab_options_markdown();
}

}  // namespace
}  // namespace kbench
