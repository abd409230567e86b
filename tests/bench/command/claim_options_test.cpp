// The command line of `kbench claim`.
#include "bench/command/claim_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/bench/program.h"
#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::string refusal(std::vector<std::string> arguments) {
    return refusal_of([&] { parse_claim(arguments); });
}

TEST(ClaimOptions, ATimeIsWrittenAsInEveryOption) {
    const auto seconds = [](const std::string& text) {
        return parse_claim({"--model", "gpt2", "--machine", "l4", "--latency", text}).request.latency_s;
    };
    EXPECT_DOUBLE_EQ(seconds("31ms"), 0.031);
    EXPECT_DOUBLE_EQ(seconds("2.1s"), 2.1);
    EXPECT_DOUBLE_EQ(seconds("450us"), 450e-6);
    EXPECT_DOUBLE_EQ(seconds("3"), 3);
    for (const char* text : {"", "ms", "-1ms", "0s", "nans", "1e999s", "1 ms", "1min"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--machine", "l4", "--latency", text}), HasSubstr("such as 31ms"));
}

TEST(ClaimOptions, AClaimIsAboutOneModelAtOnePointOfOneMachine) {
    EXPECT_THAT(refusal({"--machine", "l4", "--latency", "1ms"}), HasSubstr("--model is missing"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--latency", "1ms"}), HasSubstr("--machine is missing"));
    for (const char* text : {"1,2", "max"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--batch", text}), HasSubstr("a claim is about one value"));
    const ClaimRequest request = parse_claim({"--model", "gpt2", "--machine", "l4", "--latency", "1ms", "--seq", "128",
                                              "--batch", "4", "--attention", "unfused"})
                                     .request;
    EXPECT_EQ(request.at.count("seq"), 128);
    EXPECT_EQ(request.at.count("batch"), 4);
    EXPECT_EQ(request.at.word("attention"), "unfused");
}

TEST(ClaimOptions, ARateHasItsUnitAndTheWorkHasWhatItCounts) {
    const auto rate = [](const std::string& text) {
        return parse_claim({"--model", "gpt2", "--machine", "l4", "--throughput", text}).request;
    };
    EXPECT_DOUBLE_EQ(rate("38600tokens/s").per_s, 38600);
    EXPECT_EQ(rate("38600tokens/s").rate_of, RateOf::tokens);
    EXPECT_EQ(rate("12sequences/s").rate_of, RateOf::sequences);
    EXPECT_DOUBLE_EQ(rate("763TFLOP/s").per_s, 763e12);
    EXPECT_DOUBLE_EQ(rate("80GFLOP/s").per_s, 80e9);
    for (const char* text : {"", "12", "tokens/s", "-1tokens/s", "12 tokens/s", "12/s", "1e999tokens/s"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--machine", "l4", "--throughput", text}), HasSubstr("with its unit"));
    EXPECT_THAT(refusal({"--model", "deepspeech2", "--machine", "l4", "--throughput", "9tokens/s"}),
                HasSubstr("has no tokens"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--machine", "l4", "--throughput", "9tokens/s", "--latency", "1ms"}),
                HasSubstr("one of them"));
}

TEST(ClaimOptions, APhaseHasItsOwnAxes) {
    const auto of = [](std::vector<std::string> more) {
        more.insert(more.end(), {"--model", "gpt2", "--machine", "l4", "--latency", "1ms"});
        return more;
    };
    const ClaimRequest request = parse_claim(of({"--phase", "decode", "--past", "0", "--batch", "4"})).request;
    EXPECT_EQ(request.at.phase(), "decode");
    EXPECT_EQ(request.at.count("past"), 0);
    EXPECT_EQ(refusal(of({"--past", "7"})), "--past: only --phase decode has one");
    EXPECT_EQ(refusal(of({"--phase", "decode", "--seq", "7"})), "--seq: only --phase forward or prefill has one");
    EXPECT_EQ(refusal(of({"--phase", "decode", "--attention", "fused"})), "--attention: only --phase forward has one");
    EXPECT_EQ(refusal(of({"--phase", "decode", "--direction", "train"})),
              "--direction train: --phase decode has fwd alone");
    EXPECT_EQ(refusal(of({"--past", "-1"})), "--past '-1': must be a whole number of at least 0");
}

TEST(ClaimOptions, AnOpStandsForAModel) {
    const auto op = [](std::vector<std::string> more) {
        std::vector<std::string> all{"--machine", "l4", "--latency", "1ms"};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const ClaimRequest request =
        parse_claim(op({"--op", "gemm", "--shape", "m64n48k32", "--direction", "dgrad"})).request;
    ASSERT_TRUE(request.problem.has_value());
    EXPECT_EQ(request.problem->direction, Direction::dgrad);
    EXPECT_THAT(refusal(op({"--op", "gemm"})), HasSubstr("--shape is missing: the shape of gemm, such as m"));
    EXPECT_THAT(refusal(op({"--shape", "m64n48k32"})), HasSubstr("name it, as in --op gemm"));
    EXPECT_THAT(refusal(op({"--op", "gem", "--shape", "m64n48k32"})), HasSubstr("gemm"));
    EXPECT_THAT(refusal(op({"--op", "gemm", "--shape", "m64n48k32", "--model", "gpt2"})), HasSubstr("one of them"));
    EXPECT_THAT(refusal(op({"--op", "gemm", "--shape", "m64n48k32", "--batch", "4"})), HasSubstr("are a model's"));
    EXPECT_THAT(refusal(op({"--op", "gemm", "--shape", "m64n48k32", "--direction", "train"})),
                HasSubstr("no such direction"));
    EXPECT_THAT(refusal(op({"--model", "gpt2", "--direction", "wgrad"})), HasSubstr("fwd, bwd and train"));
    EXPECT_THAT(refusal({"--op", "gemm", "--shape", "m64n48k32", "--machine", "l4", "--throughput", "9sequences/s"}),
                HasSubstr("is in TFLOP/s"));
}

TEST(ClaimOptions, DevicesAndPrecisionAreOneValue) {
    const std::vector<std::string> all{"--model", "gpt2", "--machine", "l4", "--latency", "1ms"};
    const auto with = [&](const std::string& option, const std::string& value) {
        std::vector<std::string> more = all;
        more.insert(more.end(), {option, value});
        return more;
    };
    EXPECT_EQ(parse_claim(with("--devices", "8")).request.devices, 8);
    EXPECT_EQ(parse_claim(with("--precision", "bf16")).request.precision, Precision::bf16);
    EXPECT_EQ(parse_claim(all).request.precision, std::nullopt);
    for (const char* text : {"0", "-1", "1,2", "x", "100001"})
        EXPECT_THAT(refusal(with("--devices", text)), HasSubstr("--devices"));
    for (const char* text : {"all", "fp16,bf16", "fp8"})
        EXPECT_THAT(refusal(with("--precision", text)), HasSubstr("--precision"));
}

TEST(ClaimOptions, TheReferenceInDocsIsTheTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/claim.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(claim_options_markdown())) << "the table in docs/claim.md must be:\n"
                                                                 << claim_options_markdown();
}

/// What docs/claim.md says of published figures: a row of its table is a command and the answer that kbench prints.
class ClaimDocs : public Program {};

std::string on_one_line(const std::string& text) { return std::regex_replace(text, std::regex("[[:space:]]+"), " "); }

TEST_F(ClaimDocs, EachPublishedFigureHasTheAnswerThatKbenchGives) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/claim.md");
    int rows = 0;
    for (std::string line; std::getline(file, line);) {
        std::smatch row;
        if (!std::regex_match(line, row, std::regex("\\|.*\\| `kbench (claim .*)` \\| (.*) \\|"))) continue;
        const Outcome outcome = kbench(row[1].str());
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_THAT(on_one_line(outcome.out), HasSubstr(row[2].str())) << row[1];
        ++rows;
    }
    EXPECT_GE(rows, 6);
}

/// A step of 4 sequences makes 4 tokens.
TEST_F(ClaimDocs, ADecodeStepMakesATokenOfEachSequence) {
    const std::string step = "claim --model gpt2 --phase decode --past 100 --batch 4 --machine l4 --format json ";
    const auto by_rate = nlohmann::json::parse(kbench(step + "--throughput 800tokens/s").out);
    EXPECT_DOUBLE_EQ(by_rate.at("latency_ms"), 5);
    EXPECT_EQ(by_rate.at("what"), "gpt2, batch 4, past 100, phase decode");
    const auto least = nlohmann::json::parse(kbench(step).out);
    EXPECT_EQ(least.at("is_claimed"), false);
    EXPECT_EQ(least.at("precisions").at(3).at("bandwidth_bound"), "yes");
    EXPECT_EQ(least.at("latency_ms"), least.at("precisions").at(3).at("compulsory_ms"));
}

TEST_F(ClaimDocs, WhatCannotBeIsRefusedInOneLine) {
    expect_refusal("claim --model gpt2 --attention unfused --direction train --machine l4 --latency 1ms",
                   "--direction train: ");
    expect_refusal("claim --model gpt2 --machine l4 --latency 1e-320s", "must be a time of at least 1ns");
    expect_refusal("claim --op time_mask --shape n8r2592t500 --machine l4 --throughput 3TFLOP/s", "has no FLOPs");
}

}  // namespace
}  // namespace kbench
