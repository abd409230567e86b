// Points as commands for a shell.
#include "bench/command/list_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> commands(const std::vector<std::string>& arguments) {
    return point_commands(parse_run(arguments).request);
}

TEST(ListPoints, EachCommandHasOnePointAndAllElseAsGiven) {
    EXPECT_THAT(commands({"--batch=1,max", "--model", "gpt2", "--quick", "--seq", "8", "--counters", "none", "--out",
                          "sweep", "--list-points", "--precision", "fp16"}),
                ElementsAre("kbench run --model gpt2 --counters none --quick --seq 8 --batch 1 --precision fp16 "
                            "--resume --out sweep/points.d/seq8-batch1-fp16",
                            "kbench run --model gpt2 --counters none --quick --seq 8 --batch max --precision fp16 "
                            "--resume --out sweep/points.d/seq8-batchmax-fp16"));
}

TEST(ListPoints, ARepeatKeepsItsNumber) {
    const std::vector<std::string> all =
        commands({"--model", "gpt2", "--seq", "8", "--repeat", "2", "--list-points", "--out", "s"});
    ASSERT_EQ(all.size(), 2u);
    EXPECT_THAT(all[1], HasSubstr("--repeat 2 --only-repeat 2 --resume --out s/points.d/seq8-batch1-fp32-repeat2"));
}

TEST(ListPoints, WhatAShellWouldReadIsQuoted) {
    EXPECT_EQ(shell_quoted("gemm=cublas,a/b.json"), "gemm=cublas,a/b.json");
    EXPECT_EQ(shell_quoted("*=native"), "'*=native'");
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's $HOME"), "'it'\\''s $HOME'");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_THAT(refusal_of([] {
                    commands({"--model", "gpt2", "--list-points", "--out", "a\nb"});
                }),
                HasSubstr("line break"));
}

}  // namespace
}  // namespace kbench
