// Tokens as people have them, given to the built program: uint16, raw, JSON, and from a pipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

class TokenCases : public Program {
  protected:
    static std::filesystem::path files() {
        return std::filesystem::path(KBENCH_SOURCE_DIR) / "tests/bench/cases/tokens-uint16";
    }
    /// After `--tokens`.
    std::string run(const std::string& tokens) {
        std::filesystem::remove_all(directory_ / "run");
        return "--config " + (files() / "config.json").string() +
               " --seq 8 --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none --out " +
               (directory_ / "run").string() + " --tokens " + tokens;
    }
    /// As a shell runs it that knows <( ).
    Outcome bash(const std::string& before, const std::string& tokens, const std::string& after = "") {
        const std::string script = directory_.write("script", before + KBENCH_BINARY " " + run(tokens) + after + "\n");
        return shell("KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " bash " + script);
    }
    std::string recorded() { return read_text(directory_ / "run/result.json"); }
};

TEST_F(TokenCases, UnsignedIntegersOfSixteenBitsAreRead) {
    const Outcome outcome = kbench(run((files() / "ids.npy").string()));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(TokenCases, RawTokensAreReadWithTheirType) {
    const std::string raw = directory_.write("train.bin", std::string("\1\0\2\0\3\0\4\0\5\0\6\0\7\0\x08\0", 16));
    EXPECT_EQ(kbench(run(raw + ":uint16")).exit_code, 0);
    EXPECT_THAT(recorded(), HasSubstr("train.bin:uint16, FNV-1a"));
    expect_refusal(run(raw), "name it behind a colon, as train.bin:uint16");
    expect_refusal(run(raw + ":uint32"), "4 tokens; batch 1 and sequence length 8 need 8");
    expect_refusal(run(raw + ":uint16 --dump-logits " + raw), "is the file of --input tokens=" + raw + " too");
    const Outcome trained = kbench("train --config " + (files() / "config.json").string() +
                                   " --seq 4 --steps 1 --backend cpu --data " + raw + ":uint16");
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_THAT(trained.out, HasSubstr("8 of a file"));
}

TEST_F(TokenCases, JsonAsTokenizersGiveItIsRead) {
    const std::string json =
        directory_.write("ids.json", R"({"input_ids": [[1, 2, 3, 4, 5, 6, 7, 8]], "attention_mask": [[1]]})");
    EXPECT_EQ(kbench(run(json)).exit_code, 0);
    expect_refusal(run(directory_.write("rows.json", "[[1, 2, 3], [4, 5, 6]]").string()), "has shape (2, 3)");
    expect_refusal(run(directory_.write("big.json", "[1, 2, 3, 4, 5, 6, 7, 61]").string()),
                   "token 7 is 61; it should be in [0, 61)");
}

TEST_F(TokenCases, APipeIsMeasuredAndRecordedAsAFileIs) {
    const Outcome piped = bash("", "<(echo 1 2 3 4 5 6 7 8)");
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_THAT(recorded(), HasSubstr("FNV-1a"));
    const Outcome typed = bash("printf '\\1\\0\\2\\0\\3\\0\\4\\0\\5\\0\\6\\0\\7\\0\\10\\0' | ", "-:uint16");
    EXPECT_EQ(typed.exit_code, 0) << typed.err;
    const Outcome stdin_of_shell = bash("echo 1 2 3 4 5 6 7 8 | ", "/dev/stdin", " --batch 1,2");
    EXPECT_EQ(stdin_of_shell.exit_code, 0) << "a sweep reads it at every point: " << stdin_of_shell.err;
}

TEST_F(TokenCases, APipeThatNobodyWritesToIsToldOfAndEndsBySigterm) {
    const std::string pipe = directory_ / "pipe";
    ASSERT_EQ(shell("mkfifo " + pipe).exit_code, 0);
    const Outcome outcome = bash("timeout --signal TERM 4 ", pipe);
    EXPECT_EQ(outcome.exit_code, 124) << "ended by the signal";
    EXPECT_THAT(outcome.err, HasSubstr("pipe: waits for somebody to write into it"));
}

}  // namespace
}  // namespace kbench
