// Published figures against physics: the arithmetic, and what is said of it.
#include "analysis/compare/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>

#include "analysis/report/claim.h"
#include "analysis/report/render/render.h"
#include "kbench/error.h"
#include "models/backward.h"
#include "models/problem.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::HasSubstr;

Model gpt2_large() { return find_model("gpt2-large").build({{{"seq", 1024}}}); }

const ClaimFloor& of(const Claim& claim, Precision precision) { return claim.floor(precision); }

/// One forward of `model` in `seconds`.
Claim check_claim(Model model, const MachineFile& machine, double seconds, std::optional<Precision> precision = {},
                  int devices = 1) {
    return check_claim({.what = model.name,
                        .model = [&](Precision) { return model; },
                        .seconds = [=](double) { return seconds; },
                        .devices = devices,
                        .precision = precision},
                       machine);
}

std::string verdicts(const Claim& claim) {
    std::string text;
    for (const ClaimFloor& floor : claim.floors) text += claim.is_possible(floor) ? 'p' : 'i';
    return text;
}

/// By hand: 36 blocks of 12 width^2 weights and a head of width x vocabulary, 2 FLOPs each a token, and 4 width FLOPs
/// for each of the token's pairs: 1.68 TFLOP. 774 million weights, and 1024 rows of logits.
TEST(Claim, ThirtyOneMillisecondsOnAnA100AreNoFp32) {
    const Claim claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 31e-3);
    EXPECT_NEAR(claim.flops, 1.68e12, 0.02e12);
    EXPECT_EQ(verdicts(claim), "pppii") << "fp16, bf16, tf32 possible; fp32, fp64 not";
    const ClaimFloor& fp32 = of(claim, Precision::fp32);
    EXPECT_NEAR(fp32.flops_s, 1.68e12 / 19.5e12, 0.01 * fp32.flops_s);
    EXPECT_NEAR(fp32.flops_s / claim.latency_s, 2.8, 0.05);
    EXPECT_EQ(fp32.ceiling, "fp32_plain");
    EXPECT_EQ(of(claim, Precision::fp16).ceiling, "fp16_tensor");
    EXPECT_GT(of(claim, Precision::fp16).compulsory_s, 0);
    EXPECT_NEAR(fp32.compulsory_bytes, 4 * (774.0e6 + 1024 * 50257.0), 0.01e9);
    EXPECT_NEAR(of(claim, Precision::fp16).compulsory_bytes, 1.65e9, 0.01e9);
    EXPECT_NEAR(of(claim, Precision::tf32).compulsory_s / claim.latency_s, 0.052, 0.001);
    const Claim smaller = check_claim(gpt2_large(), machine("a100-sxm4-40gb"), 31e-3);
    EXPECT_NEAR(of(smaller, Precision::tf32).compulsory_s / smaller.latency_s, 0.068, 0.002);
    const Claim xeon = check_claim(gpt2_large(), machine("xeon-cascade-lake"), 2.1);
    EXPECT_EQ(verdicts(xeon), "ppppp");
    EXPECT_NEAR(of(xeon, Precision::fp32).compulsory_s / xeon.latency_s, 0.011, 0.001);
}

TEST(Claim, WhatIsJustBelowTheFloorIsImpossibleAndJustAbovePossible) {
    const MachineFile& a100 = machine("a100-sxm4-80gb");
    for (const Precision precision : all_precisions) {
        const double floor_s = of(check_claim(gpt2_large(), a100, 1), precision).floor_s();
        const Claim under = check_claim(gpt2_large(), a100, floor_s / (impossible_share + 0.001)),
                    over = check_claim(gpt2_large(), a100, floor_s / (impossible_share - 0.001));
        EXPECT_FALSE(under.is_possible(of(under, precision))) << name(precision);
        EXPECT_TRUE(over.is_possible(of(over, precision))) << name(precision);
    }
}

TEST(Claim, WhereMemoryBindsTheFloorIsItsBandwidth) {
    MachineFile slow = machine("a100-sxm4-80gb");
    for (MachineFile::RoofValue& roof : slow.roofs)
        if (roof.ceiling == "dram_read") roof.value = 20;
    const Claim claim = check_claim(gpt2_large(), slow, 31e-3);
    EXPECT_EQ(verdicts(claim), "iiiii");
    EXPECT_THAT(render_terminal(claim_document(claim), 100), HasSubstr("100  impossible")) << "nothing explains more";
    EXPECT_THAT(render_terminal(claim_document(claim), 100), HasSubstr("nothing explains this time"));
    EXPECT_EQ(of(claim, Precision::fp16).floor_s(), of(claim, Precision::fp16).compulsory_s);
}

TEST(Claim, AFormatWithoutAUnitIsAtMostAsFastAsFp32AndSaysSo) {
    const Claim claim = check_claim(gpt2_large(), machine("xeon-cascade-lake"), 2.1);
    EXPECT_EQ(of(claim, Precision::bf16).flops_s, of(claim, Precision::fp32).flops_s);
    EXPECT_EQ(of(claim, Precision::bf16).remark, "no bf16 unit is stated: at most as fast as avx512_fp32");
    EXPECT_EQ(of(claim, Precision::fp32).remark, "");
    EXPECT_LT(of(claim, Precision::bf16).compulsory_bytes, of(claim, Precision::fp32).compulsory_bytes);
}

TEST(Claim, EachPrecisionHasALineThatEndsInItsVerdict) {
    Claim claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 31e-3);
    for (const std::size_t width : {80u, 120u}) {
        std::stringstream lines(render_terminal(claim_document(claim), width));
        std::string found;
        for (std::string line; std::getline(lines, line);) {
            std::smatch parts;
            if (std::regex_match(line, parts, std::regex("(fp16|bf16|tf32|fp32|fp64) .* (possible|impossible)")))
                found += parts[1].str() + " " + parts[2].str() + "; ";
        }
        EXPECT_EQ(found, "fp16 possible; bf16 possible; tf32 possible; fp32 impossible; fp64 impossible; ") << width;
    }
    const std::string text = render_terminal(claim_document(claim), 100);
    EXPECT_THAT(text, HasSubstr("Impossible in fp32, fp64."));
    EXPECT_THAT(text, HasSubstr("In tf32 (likely, since fp32 is impossible)"));
    EXPECT_THAT(text, HasSubstr(" 54.")) << "1.68 TFLOP in 31 ms are 54 TFLOP/s";
    EXPECT_THAT(text, HasSubstr("Bandwidth-bound? no:\nDRAM explains 5.2 to 22 % of the time"));
    claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 1);
    EXPECT_THAT(render_terminal(claim_document(claim), 100), HasSubstr("In fp32 (the usual one)"));
}

TEST(Claim, JsonHasTheSameFiguresInFullPrecision) {
    const Claim claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 31e-3);
    const nlohmann::json json = nlohmann::json::parse(claim_json(claim));
    EXPECT_EQ(json.at("schema"), "kbench.claim/2");
    ASSERT_EQ(json.at("precisions").size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
        const nlohmann::json& row = json.at("precisions").at(i);
        EXPECT_EQ(row.at("precision"), name(claim.floors[i].precision));
        EXPECT_EQ(row.at("compulsory_bytes"), claim.floors[i].compulsory_bytes);
        EXPECT_EQ(row.at("bandwidth_share").at(1), claim.floors[i].unfused_s / claim.latency_s);
        EXPECT_EQ(row.at("verdict"), claim.is_possible(claim.floors[i]) ? "possible" : "impossible");
    }
}

Model codeparrot(const char* attention) {
    return find_model("gpt2-large-codeparrot").build({{{"seq", 1024}}, {{"attention", attention}}});
}

/// By hand: 36 blocks move 20.9 to 26.9 GB where scores of 20 x 1024 x 1024 fp32 values, 84 MB, are moved four or six
/// times and each layer's activations once in and once out. Biases, GELU and residuals by themselves move some more.
TEST(Claim, UnfusedAttentionRaisesTheMostThatBandwidthExplainsAndNotTheLeast) {
    const MachineFile& a100 = machine("a100-sxm4-40gb");
    const Claim fused = check_claim(codeparrot("fused"), a100, 31.09e-3),
                unfused = check_claim(codeparrot("unfused"), a100, 31.09e-3);
    const ClaimFloor &one = of(fused, Precision::tf32), &apart = of(unfused, Precision::tf32);
    EXPECT_NEAR(apart.compulsory_bytes, one.compulsory_bytes, 1e-3 * one.compulsory_bytes);
    EXPECT_GT(apart.unfused_bytes, 1.5 * one.unfused_bytes);
    EXPECT_GT(apart.unfused_bytes, 26.9e9);
    EXPECT_LT(apart.unfused_bytes, 1.25 * 26.9e9);
    EXPECT_LT(one.compulsory_bytes, one.unfused_bytes);
    EXPECT_DOUBLE_EQ(apart.unfused_s, apart.unfused_bytes / unfused.bytes_per_s);
}

TEST(Claim, BandwidthIsTheAnswerWhereTheLeastTrafficTakesHalfOfTheTimeAndMoreThanTheFlops) {
    MachineFile machine_file = machine("a100-sxm4-80gb");
    double* bandwidth = nullptr;
    for (MachineFile::RoofValue& roof : machine_file.roofs)
        if (roof.ceiling == "dram_read") bandwidth = &roof.value;
    const auto answer = [&](double gb_per_s, double seconds) {
        *bandwidth = gb_per_s;
        const Claim claim = check_claim(gpt2_large(), machine_file, seconds, Precision::fp16);
        return claim.is_bandwidth_bound(of(claim, Precision::fp16));
    };
    EXPECT_EQ(answer(100, 20e-3), BandwidthAnswer::yes) << "1.65 GB need 16.5 ms, FLOPs 5.4";
    EXPECT_EQ(answer(100, 40e-3), BandwidthAnswer::cannot_tell) << "unfused traffic may take longer";
    EXPECT_EQ(answer(2039, 31e-3), BandwidthAnswer::no) << "even that takes less than half";
    EXPECT_EQ(answer(4000, 5.4e-3), BandwidthAnswer::no) << "FLOPs alone need longer than unfused traffic";
}

/// By hand, in bf16: 774 million weights of 2 bytes, of which position embeddings give one row, and 1023 tokens' keys
/// and values of 36 layers and 1280 columns. One more token needs 2 FLOPs a weight.
TEST(Claim, ADecodeStepIsBandwidthBoundWhateverTheProgramAndAForwardIsNot) {
    const auto fastest = [](const ModelPoint& at) {
        const Model model = find_model("gpt2-large").build(at);
        return check_claim({.what = model.name, .model = [&](Precision) { return model; }}, machine("a100-sxm4-40gb"));
    };
    const Claim decode = fastest({.counts = {{"past", 1023}}, .words = {{"phase", "decode"}}}), forward = fastest({});
    const ClaimFloor& bf16 = of(decode, Precision::bf16);
    EXPECT_NEAR(bf16.compulsory_bytes, 2 * (774.0e6 - 1023 * 1280 + 2 * 1023 * 36 * 1280), 0.005 * 1.73e9);
    EXPECT_LT(bf16.flops_s, 0.01 * bf16.compulsory_s);
    for (const Precision precision : all_precisions) {
        EXPECT_EQ(decode.is_bandwidth_bound(of(decode, precision)), BandwidthAnswer::yes) << name(precision);
        EXPECT_EQ(decode.seconds(of(decode, precision)), of(decode, precision).compulsory_s);
        EXPECT_NE(forward.is_bandwidth_bound(of(forward, precision)), BandwidthAnswer::yes) << name(precision);
    }
    EXPECT_EQ(forward.is_bandwidth_bound(of(forward, Precision::fp32)), BandwidthAnswer::no);
    EXPECT_EQ(decode.headline(), Precision::fp32);
    EXPECT_EQ(decode.latency_s, of(decode, Precision::fp32).compulsory_s);
}

TEST(Claim, TheHeadlineIsForThePrecisionClaimedElseTheUsualOneThatIsPossible) {
    const auto headline = [](double seconds, std::optional<Precision> precision = {}) {
        return check_claim(gpt2_large(), machine("a100-sxm4-80gb"), seconds, precision).headline();
    };
    EXPECT_EQ(headline(31e-3), Precision::tf32);
    EXPECT_EQ(headline(1), Precision::fp32) << "and not fp64, though its traffic explains more";
    EXPECT_EQ(headline(7e-3), Precision::fp16);
    EXPECT_EQ(headline(1e-3), std::nullopt);
    EXPECT_EQ(headline(31e-3, Precision::fp32), Precision::fp32);
    const auto text = [](double seconds, Precision precision) {
        return render_terminal(claim_document(check_claim(gpt2_large(), machine("a100-sxm4-80gb"), seconds, precision)),
                               100);
    };
    EXPECT_THAT(text(31e-3, Precision::fp32), HasSubstr("In fp32 (as claimed) this time is impossible"));
    EXPECT_THAT(text(31e-3, Precision::bf16), HasSubstr("In bf16 (as claimed) this time is 17.4 % of the peak"));
    EXPECT_THAT(text(31e-3, Precision::bf16), HasSubstr("at the power limit of 400 W large products run below them"));
}

/// 4096 x 4096 weights in bf16 are 33.6 MB, and fp32's do not fit into 50 MB of L2.
TEST(Claim, WhatL2CanHoldFromRunToRunIsNoLeastTraffic) {
    const Claim claim =
        check_claim(make_problem_model(parse_problem("gemm", "m1n4096k4096"), 1, 1), machine("h100-sxm"), 8e-6);
    EXPECT_EQ(of(claim, Precision::bf16).compulsory_s, 0);
    EXPECT_TRUE(claim.is_possible(of(claim, Precision::bf16)));
    EXPECT_THAT(of(claim, Precision::bf16).remark, HasSubstr("L2 can hold"));
    EXPECT_GT(of(claim, Precision::fp32).compulsory_s, 0);
    EXPECT_FALSE(claim.is_possible(of(claim, Precision::fp32)));
    EXPECT_NE(claim.is_bandwidth_bound(of(claim, Precision::bf16)), BandwidthAnswer::yes);
}

/// 500 time steps each read 4 gates of 1024 x 2048 fp32 weights, 33.5 MB, where no cache keeps them.
TEST(Claim, ARecurrentLayerMayReadItsWeightsAtEachTimeStep) {
    const Claim claim =
        check_claim(make_problem_model(parse_problem("lstm", "t500n1h1024"), 1, 1), machine("t4"), 60e-3);
    EXPECT_GT(of(claim, Precision::fp32).unfused_bytes, 500 * 16e6);
    EXPECT_EQ(claim.is_bandwidth_bound(of(claim, Precision::fp32)), BandwidthAnswer::cannot_tell);
}

TEST(Claim, SeveralDevicesShareTheWorkAndEachHasTheWeights) {
    const MachineFile& a100 = machine("a100-sxm4-80gb");
    const Claim one = check_claim(gpt2_large(), a100, 31e-3), eight = check_claim(gpt2_large(), a100, 31e-3, {}, 8);
    EXPECT_DOUBLE_EQ(8 * eight.flop_per_s(), one.flop_per_s());
    for (const ClaimFloor& floor : eight.floors) {
        const ClaimFloor& alone = of(one, floor.precision);
        EXPECT_DOUBLE_EQ(8 * floor.flops_s, alone.flops_s);
        EXPECT_DOUBLE_EQ(8 * floor.compulsory_bytes, alone.compulsory_bytes);
        EXPECT_GT(8 * floor.unfused_bytes, alone.unfused_bytes) << "weights are read by each";
        EXPECT_LT(floor.unfused_bytes, alone.unfused_bytes);
    }
    EXPECT_THAT(render_terminal(claim_document(eight), 100), HasSubstr("8 devices, each NVIDIA A100 SXM4 80 GB"));
}

/// What runs before timing starts is no part of the time: a backward alone has two thirds of a training step's FLOPs.
TEST(Claim, ABackwardAloneIsWithoutTheForwardBeforeIt) {
    const Model forward = gpt2_large();
    const MachineFile& a100 = machine("a100-sxm4-80gb");
    const double all = check_claim(with_backward(forward), a100, 1).flops,
                 bwd = check_claim(backward_alone(forward), a100, 1).flops;
    EXPECT_NEAR(bwd, all - check_claim(forward, a100, 1).flops, 0.001 * all);
    EXPECT_NEAR(bwd / all, 2.0 / 3, 0.02);
}

TEST(Claim, AMachineThatStatesTooLittleAndATimeThatIsNoneAreRefused) {
    MachineFile bare = machine("a100-sxm4-80gb");
    std::erase_if(bare.roofs, [](const auto& roof) { return roof.ceiling == "dram_read"; });
    EXPECT_THROW(check_claim(gpt2_large(), bare, 1), UsageError);
    bare = machine("a100-sxm4-80gb");
    std::erase_if(bare.roofs, [](const auto& roof) { return roof.ceiling != "dram_read"; });
    EXPECT_THROW(check_claim(gpt2_large(), bare, 1), UsageError);
    for (const double latency : {0.0, -1.0, 1e-320, 1e308, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_THROW(check_claim(gpt2_large(), machine("a100-sxm4-80gb"), latency), UsageError);
}

}  // namespace
}  // namespace kbench
