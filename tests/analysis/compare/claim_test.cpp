// Published figures against physics: the arithmetic, and what is said of it.
#include "analysis/compare/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "analysis/report/claim.h"
#include "analysis/report/render/render.h"
#include "kbench/error.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::HasSubstr;

Model gpt2_large() { return find_model("gpt2-large").build({{{"seq", 1024}}}); }

const ClaimFloor& of(const Claim& claim, Precision precision) {
    return *std::ranges::find(claim.floors, precision, &ClaimFloor::precision);
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
    EXPECT_NEAR(fp32.compulsory_bytes, 4 * (774.0e6 + 1024 * 50257.0), 0.01e9);
    EXPECT_NEAR(of(claim, Precision::fp16).compulsory_bytes, 1.65e9, 0.01e9);
    EXPECT_NEAR(of(claim, Precision::tf32).bytes_s / claim.latency_s, 0.052, 0.001);
    const Claim smaller = check_claim(gpt2_large(), machine("a100-sxm4-40gb"), 31e-3);
    EXPECT_NEAR(of(smaller, Precision::tf32).bytes_s / smaller.latency_s, 0.068, 0.002);
    const Claim xeon = check_claim(gpt2_large(), machine("xeon-cascade-lake"), 2.1);
    EXPECT_EQ(verdicts(xeon), "ppppp");
    EXPECT_NEAR(of(xeon, Precision::fp32).bytes_s / xeon.latency_s, 0.011, 0.001);
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
    EXPECT_THAT(render_terminal(claim_document(claim), 100), HasSubstr("nothing explains this time"));
    EXPECT_EQ(of(claim, Precision::fp16).floor_s(), of(claim, Precision::fp16).bytes_s);
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
    EXPECT_THAT(text, HasSubstr("likely tf32"));
    EXPECT_THAT(text, HasSubstr(" 54.")) << "1.68 TFLOP in 31 ms are 54 TFLOP/s";
    EXPECT_THAT(text, HasSubstr("bandwidth explains at most 5.2 %"));
    claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 1);
    EXPECT_THAT(render_terminal(claim_document(claim), 100), testing::Not(HasSubstr("likely tf32")));
}

TEST(Claim, JsonHasTheSameFiguresInFullPrecision) {
    const Claim claim = check_claim(gpt2_large(), machine("a100-sxm4-80gb"), 31e-3);
    const nlohmann::json json = nlohmann::json::parse(claim_json(claim));
    EXPECT_EQ(json.at("schema"), "kbench.claim/1");
    ASSERT_EQ(json.at("precisions").size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
        const nlohmann::json& row = json.at("precisions").at(i);
        EXPECT_EQ(row.at("precision"), name(claim.floors[i].precision));
        EXPECT_EQ(row.at("compulsory_bytes"), claim.floors[i].compulsory_bytes);
        EXPECT_EQ(row.at("verdict"), claim.is_possible(claim.floors[i]) ? "possible" : "impossible");
    }
}

TEST(Claim, AMachineThatStatesTooLittleAndATimeThatIsNoneAreRefused) {
    MachineFile bare = machine("a100-sxm4-80gb");
    std::erase_if(bare.roofs, [](const auto& roof) { return roof.ceiling == "dram_read"; });
    EXPECT_THROW(check_claim(gpt2_large(), bare, 1), UsageError);
    bare = machine("a100-sxm4-80gb");
    std::erase_if(bare.roofs, [](const auto& roof) { return roof.ceiling != "dram_read"; });
    EXPECT_THROW(check_claim(gpt2_large(), bare, 1), UsageError);
    for (const double latency : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_THROW(check_claim(gpt2_large(), machine("a100-sxm4-80gb"), latency), UsageError);
}

}  // namespace
}  // namespace kbench
