// What stands beside what: points by what was run, steps by the ops that they compute however they are fused.
#include "analysis/result/match.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/compare/compare_example.h"
#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using compare_example::fused;
using compare_example::point;
using compare_example::run;
using compare_example::step;
using testing::ElementsAre;

NamedResult of_points(const std::string& name, std::vector<Point> points) {
    NamedResult result = run(name, 1, 1, {});
    result.result.points = std::move(points);
    return result;
}

Point with(std::string model, Precision precision, std::int64_t batch) {
    Point result = point({}, 1, 1, 1);
    result.set("model", model);
    result.set("precision", precision);
    result.set("batch", batch);
    return result;
}

std::string refusal(const NamedResult& a, const NamedResult& b) {
    return refusal_of([&] { match_points(a, b); });
}

TEST(MatchPoints, SweepsMeetPointByPointWhateverTheBackend) {
    const NamedResult a = of_points(
        "a", {with("gpt2", Precision::fp16, 1), with("gpt2", Precision::fp16, 4), with("gpt2", Precision::fp32, 1)});
    NamedResult b = of_points(
        "b", {with("gpt2", Precision::fp32, 1), with("gpt2", Precision::fp16, 4), with("gpt2", Precision::bf16, 1)});
    for (Point& other : b.result.points) other.set("backend", "cpu");
    const auto matches = match_points(a, b);
    ASSERT_EQ(matches.size(), 2u);
    EXPECT_EQ(matches[0].first, &a.result.points[1]);
    EXPECT_EQ(matches[0].second, &b.result.points[1]);
    EXPECT_EQ(matches[1].first, &a.result.points[2]);
    EXPECT_EQ(matches[1].second, &b.result.points[0]);
}

TEST(MatchPoints, EveryAxisKeepsPointsApart) {
    const Point base = with("gpt2", Precision::fp16, 1);
    std::vector<Point> others(6, base);
    others[0].set("model", "gpt2-large");
    others[1].set("batch", 2);
    others[2].set("seq", 7);
    others[3].set("precision", Precision::bf16);
    others[4].set("attention", "unfused");
    others[5].set("direction", "train");
    for (const Point& other : others)
        EXPECT_NE(refusal(of_points("a", {base}), of_points("b", {other})), "accepted") << match_title(other);
}

TEST(MatchPoints, ARefusalNamesTheDifference) {
    const NamedResult a = of_points("a", {with("gpt2", Precision::fp16, 1)});
    EXPECT_EQ(refusal(a, of_points("b", {with("gpt2-large", Precision::fp32, 1)})),
              "no point in common: a/result.json is gpt2 fp16 batch 1; b/result.json is gpt2-large fp32 batch 1");
    Point longer = with("gpt2", Precision::fp16, 1), unfused = longer;
    longer.set("seq", 1024);
    unfused.set("attention", "unfused");
    EXPECT_EQ(
        refusal(a, of_points("b", {longer, unfused})),
        "no point in common: a/result.json is gpt2 fp16 batch 1 seq 100 attention fused; b/result.json is gpt2 fp16 batch 1 seq 1024,100 attention fused,unfused");
    std::vector<Point> many;
    for (int i = 0; i < 7; ++i) many.push_back(with(fmt::format("m{}", i), Precision::fp16, 1));
    EXPECT_EQ(
        refusal(a, of_points("b", many)),
        "no point in common: a/result.json is gpt2 fp16 batch 1; b/result.json is m0,m1,m2,m3 (and 3 more) fp16 batch 1");
    EXPECT_EQ(refusal(a, of_points("b", {})), "b/result.json holds no points");
}

TEST(MatchPoints, WhatWasSkippedIsNotComparedAndSaysWhy) {
    const NamedResult a = of_points("a", {with("gpt2", Precision::fp16, 1)});
    Point skipped = with("gpt2", Precision::fp16, 1);
    skipped.status = PointStatus::skipped;
    skipped.end_to_end.reset();
    skipped.reason = "fp16 needs AVX512_FP16";
    const NamedResult b = of_points("b", {skipped});
    const std::string line =
        "no point was measured in both: gpt2 fp16 batch 1 seq 100 was skipped in b/result.json: fp16 needs AVX512_FP16";
    EXPECT_EQ(refusal(a, b), line);
    EXPECT_EQ(refusal(b, a), line);
}

TEST(ShortTitles, SayWhatDiffers) {
    const Point a = with("gpt2", Precision::fp16, 1), b = with("gpt2", Precision::fp32, 4);
    EXPECT_THAT(short_titles({&a, &b}), ElementsAre("fp16 batch 1", "fp32 batch 4"));
    EXPECT_THAT(short_titles({&a}), ElementsAre(""));
}

std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> layers(const std::vector<StepMatch>& all) {
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> names;
    for (const StepMatch& match : all) {
        names.emplace_back();
        for (const StepResult* s : match.a) names.back().first.push_back(s->layer);
        for (const StepResult* s : match.b) names.back().second.push_back(s->layer);
    }
    return names;
}

using Names = std::vector<std::string>;

/// A block's two residual additions have one name: in the layer norms of one plan, in the GEMMs of the other.
TEST(MatchSteps, FusedDifferentlyTheSmallestSetsThatComputeTheSameOps) {
    const Point a =
        point({step("h.0.attn.c_proj", "gemm", 1, 1, 1),
               fused(step("h.0.ln_2", "layernorm", 1, 1, 1), {"h.0:residual"}), step("h.0.mlp.c_fc", "gemm", 1, 1, 1),
               step("h.0.mlp.c_proj", "gemm", 1, 1, 1), fused(step("ln_f", "layernorm", 1, 1, 1), {"h.0:residual"})},
              1, 1, 1);
    const Point b =
        point({fused(step("h.0.attn.c_proj", "gemm", 1, 1, 1), {"h.0:residual"}),
               step("h.0.ln_2", "layernorm", 1, 1, 1), step("h.0.mlp.c_fc", "gemm", 1, 1, 1),
               fused(step("h.0.mlp.c_proj", "gemm", 1, 1, 1), {"h.0:residual"}), step("ln_f", "layernorm", 1, 1, 1)},
              1, 1, 1);
    const Names attention{"h.0.attn.c_proj", "h.0.ln_2"}, c_fc{"h.0.mlp.c_fc"}, mlp{"h.0.mlp.c_proj", "ln_f"};
    EXPECT_THAT(layers(match_steps(a, b)),
                ElementsAre(std::pair(attention, attention), std::pair(c_fc, c_fc), std::pair(mlp, mlp)));
}

TEST(MatchSteps, OneStepMayBeSeveralOfTheOther) {
    const Point a = point({fused(step("x", "gemm", 1, 1, 1), {"x:bias", "x.act:gelu"})}, 1, 1, 1);
    const Point b =
        point({step("x", "gemm", 1, 1, 1), step("x", "bias", 1, 1, 1), step("x.act", "gelu", 1, 1, 1)}, 1, 1, 1);
    EXPECT_THAT(layers(match_steps(a, b)), ElementsAre(std::pair(Names{"x"}, Names{"x", "x", "x.act"})));
}

TEST(MatchSteps, WhatGoesAlongWithAGradientIsTheBackwardOfItsOwn) {
    const auto backward = [](StepResult s, Direction direction) {
        s.direction = direction;
        return s;
    };
    const StepResult bias = backward(step("x", "bias", 1, 1, 1), Direction::bwd),
                     gelu = backward(step("x.act", "gelu", 1, 1, 1), Direction::bwd),
                     wgrad = backward(step("x", "gemm", 1, 1, 1), Direction::wgrad),
                     dgrad = backward(step("y", "gemm", 1, 1, 1), Direction::dgrad);
    const Point a = point({fused(wgrad, {"x:bias"}), fused(dgrad, {"x.act:gelu"})}, 1, 1, 1);
    const Point b = point({bias, wgrad, dgrad, gelu}, 1, 1, 1);
    EXPECT_THAT(layers(match_steps(a, b)),
                ElementsAre(std::pair(Names{"x"}, Names{"x", "x"}), std::pair(Names{"y"}, Names{"y", "x.act"})));
}

TEST(MatchSteps, OpsOfOnePlanAloneHaveNoCounterpart) {
    const Point a = point({step("x", "gemm", 1, 1, 1), step("y", "gelu", 1, 1, 1)}, 1, 1, 1);
    Point b = point({step("z", "gelu", 1, 1, 1), step("x", "gemm", 1, 1, 1)}, 1, 1, 1);
    EXPECT_THAT(layers(match_steps(a, b)), ElementsAre(std::pair(Names{"x"}, Names{"x"}),
                                                       std::pair(Names{"y"}, Names{}), std::pair(Names{}, Names{"z"})));
    b.steps[1].direction = Direction::wgrad;
    EXPECT_EQ(match_steps(a, b).size(), 4u) << "a gradient is another op";
}

}  // namespace
}  // namespace kbench
