// A backward against its forward, on planted training steps: what is slower is said to be, what was not counted or lies
// within the intervals is not.
#include "analysis/explain/directions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Planted {
    std::string layer, op;
    Direction direction;
    double us = 100, megaflops = 0, dram = 0.1;  ///< bytes as a share of DRAM's roof
    std::vector<std::string> absorbs = {};
    double spread = 0.01;  ///< half of the interval of the step run, relative
    bool counted = true;
    double occupancy_pct = 50;
};

void add(Point& point, const Planted& planted) {
    known::Step step{.layer = planted.layer, .op = planted.op, .us = planted.us};
    step.compute = planted.megaflops * 1e6 / (planted.us * known::unit_flops(step));
    step.dram = step.unfused = planted.dram;
    step.counted = planted.counted;
    step.occupancy_pct = planted.occupancy_pct;
    StepResult result = known::make_step(step, static_cast<int>(point.steps.size()));
    result.direction = planted.direction;
    result.absorbs = planted.absorbs;
    if (result.absorbs.empty()) result.absorbs = {planted.layer + ":" + planted.op};
    Summary& samples = result.time_us.emplace();
    samples.n = 20;
    samples.independent = 20;
    samples.median = samples.mean = planted.us;
    samples.ci_low = samples.min = planted.us * (1 - planted.spread);
    samples.ci_high = samples.max = planted.us * (1 + planted.spread);
    point.steps.push_back(std::move(result));
    point.end_to_end->latency.summary_ms.median += planted.us * 1e-3;
}

Result planted(const std::vector<Planted>& steps, std::string_view direction = "train",
               CeilingRun roofs = known::gpu_roofs()) {
    Result result = known::result_of({}, std::move(roofs));
    Point& point = result.points[0];
    point.set("direction", direction);
    for (const Planted& step : steps) add(point, step);
    return result;
}

Directions directions_of(const Result& result) { return directions_of(ExplainedResult(result), 0); }

/// A GELU forward, and its backward of twice the FLOPs.
std::vector<Planted> gelu(double backward_us, double spread = 0.01) {
    return {{.layer = "h.0.act", .op = "gelu", .direction = Direction::fwd, .megaflops = 100, .spread = spread},
            {.layer = "h.0.act",
             .op = "gelu",
             .direction = Direction::bwd,
             .us = backward_us,
             .megaflops = 200,
             .spread = spread}};
}

std::string finding_of(const Directions& directions, std::string_view kind) {
    for (const std::string& finding : directions.findings)
        if (finding.starts_with(std::string(kind) + ":")) return finding;
    return "";
}

TEST(Directions, SayThatABackwardTakesTwiceTheTimeAFlop) {
    const Directions directions = directions_of(planted(gelu(400)));
    ASSERT_EQ(directions.by_op.size(), 1);
    EXPECT_DOUBLE_EQ(directions.by_op[0].time_ratio()->value, 4);
    EXPECT_DOUBLE_EQ(*directions.by_op[0].flop_ratio(), 2);
    EXPECT_THAT(finding_of(directions, "gelu"),
                AllOf(HasSubstr("4.00 [3.92, 4.08] times the time for 2.00 times the FLOPs"),
                      HasSubstr("2.00 [1.96, 2.04] times as long per FLOP: 0.200 ms more than at the forward's pace")));
}

TEST(Directions, SayTheOppositeOfTheOpposite) {
    EXPECT_THAT(finding_of(directions_of(planted(gelu(200))), "gelu"),
                AllOf(HasSubstr("within the intervals as long per FLOP"), Not(HasSubstr("more than"))));
    EXPECT_THAT(finding_of(directions_of(planted(gelu(100))), "gelu"),
                AllOf(HasSubstr("0.50 [0.49, 0.51] times as long per FLOP"), Not(HasSubstr("more than"))));
}

TEST(Directions, DecideNothingWithinTheIntervals) {
    EXPECT_THAT(finding_of(directions_of(planted(gelu(400, 0.4))), "gelu"), HasSubstr("within the intervals as long"));
    Result once = planted(gelu(400));
    for (StepResult& step : once.points[0].steps) step.time_us.reset();
    const Directions directions = directions_of(once);
    EXPECT_THAT(finding_of(directions, "gelu"),
                AllOf(HasSubstr("gelu: 4.00 times the time"), HasSubstr("too few samples to tell")));
}

TEST(Directions, OfOneSampleHaveNoInterval) {
    Result result = planted(gelu(400));
    result.points[0].steps[1].time_us->n = 1;
    EXPECT_FALSE(directions_of(result).by_op[0].backward.has_interval);
    EXPECT_THAT(finding_of(directions_of(result), "gelu"), HasSubstr("too few samples to tell"));
    result.points[0].steps[1].time_us->n = 2;
    EXPECT_TRUE(directions_of(result).by_op[0].backward.has_interval);
}

TEST(Directions, ABackwardOfLessWorkThanItsForwardIsSlowerAFlop) {
    std::vector<Planted> steps = gelu(200);
    steps[1].megaflops = 50;
    EXPECT_THAT(finding_of(directions_of(planted(steps)), "gelu"),
                AllOf(HasSubstr("for 0.50 times the FLOPs"), HasSubstr("4.00 [3.92, 4.08] times as long per FLOP: "),
                      HasSubstr("0.150 ms more")));
}

TEST(Directions, KindsWithAFiftiethOfTheBackwardAreTold) {
    const auto told = [](double us) {
        std::vector<Planted> steps = gelu(400);
        steps[1].us = 1000 - us;
        steps.push_back({.layer = "h.0.b", .op = "bias", .direction = Direction::fwd, .us = us});
        steps.push_back({.layer = "h.0.b", .op = "bias", .direction = Direction::bwd, .us = us});
        return !finding_of(directions_of(planted(steps)), "bias").empty();
    };
    EXPECT_TRUE(told(20.5));
    EXPECT_FALSE(told(19.5));
}

TEST(Directions, WhatHasNoTimeStandsLast) {
    std::vector<Planted> steps = gelu(0.2);
    steps[0].us = 0.2;
    steps.push_back({.layer = "h.0.b", .op = "bias", .direction = Direction::bwd});
    Result result = planted(steps);
    result.points[0].steps[2].time_us.reset();
    result.points[0].steps[2].kernels.clear();
    const Directions directions = directions_of(result);
    ASSERT_EQ(directions.by_op.size(), 2);
    EXPECT_EQ(directions.by_op[0].name, "gelu");
    EXPECT_FALSE(directions.by_op[1].backward.time_us);
}

TEST(Directions, RatiosAreOfTheBackwardAndNoneWhereEitherHasNothing) {
    DirectionPair pair;
    pair.forward.steps = {0};
    pair.forward.time_us = Interval{0.5, 0.25, 1};
    pair.forward.flops = pair.forward.bytes = 0.5;
    pair.backward = pair.forward;
    pair.backward.time_us = Interval{2, 1, 3};
    pair.backward.flops = 1.5;
    pair.backward.bytes = 0.25;
    EXPECT_EQ(pair.time_ratio(), (Interval{4, 1, 12}));
    EXPECT_EQ(pair.flop_ratio(), 3);
    EXPECT_EQ(pair.byte_ratio(), 0.5);
    for (double DirectionWork::*figure : {&DirectionWork::flops, &DirectionWork::bytes}) {
        DirectionPair none = pair;
        none.forward.*figure = 0;
        EXPECT_EQ(figure == &DirectionWork::flops ? none.flop_ratio() : none.byte_ratio(), std::nullopt);
    }
    for (DirectionWork DirectionPair::*side : {&DirectionPair::forward, &DirectionPair::backward}) {
        DirectionPair none = pair;
        (none.*side).time_us.reset();
        none.forward.has_interval = none.backward.has_interval = true;
        EXPECT_FALSE(none.time_ratio());
        none = pair;
        (none.*side).steps.clear();
        EXPECT_FALSE(none.time_ratio() || none.flop_ratio() || none.byte_ratio());
    }
    pair.backward.flops = 0;
    EXPECT_FALSE(pair.flop_ratio());
    pair.backward.is_counted = !pair.backward.is_counted;
    EXPECT_FALSE(pair.byte_ratio()) << "of bytes of two origins";
}

TEST(Directions, RecordsMakeKernelsLookLonger) {
    Result result = planted(gelu(210));
    result.points[0].activity.runs = 5;
    EXPECT_THAT(finding_of(directions_of(result), "gelu"), HasSubstr("more than"));
    result.points[0].activity.inflation = {{90, 100, 101}, {180, 200, 201}};
    EXPECT_THAT(finding_of(directions_of(result), "gelu"), HasSubstr("within the intervals as long"));
}

TEST(Directions, AreComparedByBytesWhereDramBindsBoth) {
    std::vector<Planted> steps = gelu(200);
    steps[0].dram = steps[1].dram = 0.8;
    steps[1].megaflops = 300;
    EXPECT_THAT(finding_of(directions_of(planted(steps)), "gelu"),
                AllOf(HasSubstr("2.00 times the bytes at DRAM, within the intervals as long per byte"),
                      HasSubstr("both bandwidth-bound (DRAM)")));
    steps[1].dram = 0.1;
    EXPECT_THAT(finding_of(directions_of(planted(steps)), "gelu"),
                AllOf(HasSubstr("times as long per FLOP"), HasSubstr("bandwidth-bound (DRAM) forward")));
}

TEST(Directions, WhatWasNotCountedIsNoVerdict) {
    std::vector<Planted> steps = gelu(400);
    for (Planted& step : steps) step.counted = false;
    const Result result = planted(steps);
    const Directions directions = directions_of(result);
    const DirectionPair& kind = directions.by_op[0];
    EXPECT_FALSE(kind.backward.is_counted);
    EXPECT_DOUBLE_EQ(kind.backward.bytes, 40e6) << "a tenth of DRAM's in 400 us, by the model";
    EXPECT_FALSE(kind.backward.occupancy_pct);
    EXPECT_EQ(kind.backward.verdict.bound, Bound::not_identifiable);
    EXPECT_THAT(finding_of(directions, "gelu"),
                AllOf(HasSubstr("bottleneck unknown in both"), Not(HasSubstr("DRAM")), Not(HasSubstr("occupancy"))));
    EXPECT_THAT(directions.findings, Contains("DRAM bytes and achieved occupancy of the backward: not counted."));
    EXPECT_THAT(write_markdown(result), AllOf(HasSubstr("not counted |"), HasSubstr("GB (model)")));
    EXPECT_THAT(directions_of(planted(gelu(400))).findings, Each(Not(HasSubstr("not counted"))));
}

TEST(Directions, AnEstimateOfDramIsNoCount) {
    Result result = planted(gelu(400));
    EXPECT_TRUE(directions_of(result).by_op[0].backward.is_counted);
    result.points[0].counters.metrics = {{"dram_read_bytes", "byte", "", Origin::estimated, "the cost model's"}};
    EXPECT_FALSE(directions_of(result).by_op[0].backward.is_counted);
    EXPECT_THAT(write_markdown(result), AllOf(HasSubstr("GB (model)"), Not(HasSubstr("GB at DRAM"))));
}

TEST(Directions, ACpuHasNoOccupancyToMiss) {
    Result result = planted(gelu(400), "train", known::cpu_roofs());
    for (StepResult& step : result.points[0].steps) step.counters.clear();
    EXPECT_THAT(directions_of(result).findings, Contains("DRAM bytes of the backward: not counted."));
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("occ %")));
}

TEST(Directions, OneStepThatWasNotCountedLeavesItsKindUncounted) {
    std::vector<Planted> steps = gelu(200);
    steps.push_back({.layer = "h.0.act", .op = "gelu", .direction = Direction::bwd, .counted = false});
    const DirectionPair kind = directions_of(planted(steps)).by_op[0];
    EXPECT_TRUE(kind.forward.is_counted);
    EXPECT_FALSE(kind.backward.is_counted);
    EXPECT_FALSE(kind.byte_ratio()) << "of bytes of two origins";
    EXPECT_FALSE(kind.backward.occupancy_pct);
    EXPECT_TRUE(kind.forward.occupancy_pct);
    EXPECT_THAT(finding_of(directions_of(planted(steps)), "gelu"), Not(HasSubstr("occupancy"))) << "of one side alone";
}

TEST(Directions, OccupancyIsWeightedByTime) {
    std::vector<Planted> steps = gelu(100);
    steps[1].occupancy_pct = 20;
    steps.push_back({.layer = "h.0.act", .op = "gelu", .direction = Direction::bwd, .us = 300, .occupancy_pct = 60});
    EXPECT_DOUBLE_EQ(directions_of(planted(steps)).by_op[0].backward.occupancy_pct.value(), 50);
}

std::vector<Planted> training_step() {
    return {{"h.0.c_fc", "gemm", Direction::fwd, 100, 5000, 0.1, {"h.0.c_fc:gemm", "h.0.c_fc:bias", "h.0.act:gelu"}},
            {"h.0.ln", "layernorm", Direction::fwd, 10, 1, 0.5, {"h.0:residual", "h.0.ln:layernorm"}},
            {"loss", "cross_entropy", Direction::bwd, 20, 10, 0.5},
            {"h.0.ln", "residual", Direction::bwd, 5, 1, 0.5},
            {"h.0.ln", "layernorm", Direction::bwd, 30, 2, 0.5},
            {"h.0.act", "gelu", Direction::bwd, 15, 3, 0.5},
            {"h.0.c_fc", "bias", Direction::bwd, 8, 1, 0.5},
            {"h.0.c_fc", "gemm", Direction::wgrad, 120, 5000, 0.1},
            {"h.0.c_fc", "gemm", Direction::dgrad, 90, 5000, 0.1},
            {"optimizer", "adamw", Direction::fwd, 50, 5, 0.9}};
}

const DirectionPair& called(const std::vector<DirectionPair>& pairs, std::string_view name) {
    return *std::ranges::find(pairs, name, &DirectionPair::name);
}

TEST(Directions, ABackwardStandsWithTheStepThatComputedItsOpForward) {
    const Directions directions = directions_of(planted(training_step()));
    const DirectionPair& layer = called(directions.by_layer, "h.*.c_fc");
    EXPECT_THAT(layer.forward.steps, ElementsAre(0));
    EXPECT_THAT(layer.backward.steps, ElementsAre(5, 6, 7, 8)) << "with the GELU's, which was computed in it";
    EXPECT_THAT(called(directions.by_layer, "h.*.ln").backward.steps, ElementsAre(3, 4));
    EXPECT_EQ(directions.by_layer.size(), 2);
    EXPECT_THAT(called(directions.by_op, "bias").forward_within, ElementsAre("gemm"));
    EXPECT_THAT(called(directions.by_op, "gemm").forward_within, IsEmpty());
    EXPECT_THAT(called(directions.by_op, "gemm").forward.fused, ElementsAre("bias", "gelu"));
    EXPECT_THAT(finding_of(directions, "bias"), HasSubstr("computed within gemm; the backward takes 0.00800 ms"));
}

TEST(Directions, AStepsNamedForwardGoesBeforeItsLayer) {
    Result result = planted(training_step());
    result.points[0].steps[5].forward = "h.0.ln:layernorm";  // the GELU's, whose layer says otherwise
    EXPECT_THAT(called(directions_of(result).by_layer, "h.*.ln").backward.steps, ElementsAre(3, 4, 5));
}

/// A sum of gradients belongs to no op that has a forward, but a fused step computed an op of its layer.
TEST(Directions, WhatHasNoForwardOpStandsWithTheStepThatComputedItsLayer) {
    std::vector<Planted> steps = training_step();
    steps.insert(steps.begin() + 4, {.layer = "h.0", .op = "sum", .direction = Direction::bwd});
    EXPECT_THAT(called(directions_of(planted(steps)).by_layer, "h.*.ln").backward.steps, ElementsAre(3, 4, 5));
}

TEST(Directions, WhatIsComputedAgainIsOfTheBackwardAndNoUsefulWork) {
    Result result = planted(training_step());
    const Directions before = directions_of(result);
    StepResult again = result.points[0].steps[0];
    again.forward = "h.0.c_fc:gemm";
    result.points[0].steps.insert(result.points[0].steps.begin() + 3, again);
    const Directions directions = directions_of(result);
    EXPECT_EQ(directions.whole.forward.flops, before.whole.forward.flops);
    EXPECT_EQ(directions.whole.backward.flops, before.whole.backward.flops);
    EXPECT_DOUBLE_EQ(directions.whole.backward.time_us->value, before.whole.backward.time_us->value + 100);
    EXPECT_THAT(called(directions.by_layer, "h.*.c_fc").backward.steps, testing::SizeIs(5));
}

TEST(Directions, AGemmsProductsStandTogetherAndApart) {
    const Directions directions = directions_of(planted(training_step()));
    const DirectionPair& gemm = called(directions.by_op, "gemm");
    EXPECT_DOUBLE_EQ(gemm.backward.time_us->value, 210);
    EXPECT_DOUBLE_EQ(*gemm.flop_ratio(), 2);
    ASSERT_EQ(gemm.products.size(), 2);
    EXPECT_EQ(gemm.products[0].first, Direction::dgrad);
    EXPECT_DOUBLE_EQ(gemm.products[0].second.time_us->value, 90);
    EXPECT_DOUBLE_EQ(gemm.products[1].second.time_us->value, 120);
    EXPECT_THAT(called(directions.by_op, "layernorm").products, IsEmpty());
}

TEST(Directions, LossAndOptimizerAreOfNeitherDirection) {
    const Directions directions = directions_of(planted(training_step()));
    EXPECT_THAT(directions.loss.steps, ElementsAre(2));
    EXPECT_THAT(directions.optimizer.steps, ElementsAre(9));
    EXPECT_DOUBLE_EQ(directions.whole.forward.time_us->value, 110);
    EXPECT_DOUBLE_EQ(directions.whole.backward.time_us->value, 268);
    EXPECT_DOUBLE_EQ(directions.time_us, 448);
    EXPECT_THAT(
        directions.findings,
        Contains(AllOf(
            HasSubstr(
                "The optimizer takes 0.0500 ms, 11 % of the steps' time, and moves 45.0 MB (at DRAM, counted), 900 GB/s"),
            HasSubstr("bandwidth-bound (DRAM)"))));
}

TEST(Directions, TheOptimizerBeginsBehindTheLastBackward) {
    const std::vector<Planted> steps = training_step();
    const Directions directions = directions_of(planted({steps[5], steps[9]}));
    EXPECT_THAT(directions.whole.backward.steps, ElementsAre(0));
    EXPECT_THAT(directions.optimizer.steps, ElementsAre(1));
}

TEST(Directions, BindAsTheRulesOfLayersSay) {
    const Result result = planted(training_step());
    const Explanation explanation = explain(result, result.points[0]);
    const Directions directions = directions_of(result);
    const auto& layers = explanation.verdicts.layers;
    EXPECT_EQ(verdict_text(directions.optimizer.verdict),
              verdict_text(*std::ranges::find(layers, "optimizer", &Verdict::subject)));
    EXPECT_EQ(verdict_text(directions.loss.verdict),
              verdict_text(*std::ranges::find(layers, "loss", &Verdict::subject)));
}

TEST(Directions, OfAForwardAloneAreNone) {
    const Result result = planted({training_step()[0]}, "fwd");
    EXPECT_TRUE(directions_of(result).empty());
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("Forward against backward")));
}

TEST(Directions, OfABackwardAloneHaveNoRatios) {
    std::vector<Planted> steps = training_step();
    steps = {steps.begin() + 4, steps.end() - 1};
    const Result result = planted(steps, "bwd");
    const Directions directions = directions_of(result);
    EXPECT_FALSE(directions.whole.time_ratio());
    EXPECT_TRUE(directions.loss.empty());
    EXPECT_THAT(directions.by_layer, testing::SizeIs(3)) << "by their own layers";
    EXPECT_THAT(write_markdown(result), HasSubstr("No forward was measured with it"));
}

TEST(Directions, OfASweepMeetWhereAllElseIsEqual) {
    const std::vector<Planted> steps = training_step();
    Result result = planted({steps[0], steps[1]}, "fwd");
    Point backward = planted({steps.begin() + 3, steps.end() - 1}, "bwd").points[0];
    for (Point* point : {&result.points[0], &backward}) point->set("batch", 4);
    result.points.push_back(backward);
    const auto found = [&] { return directions_of(ExplainedResult(result), 1); };
    EXPECT_NEAR(found().whole.time_ratio()->value, 268.0 / 110, 1e-9);
    EXPECT_THAT(called(found().by_layer, "h.*.c_fc").backward.steps, testing::SizeIs(4));
    EXPECT_TRUE(directions_of(ExplainedResult(result), 0).empty());
    EXPECT_THAT(write_markdown(result), HasSubstr("The forward is a point of its own"));
    result.points[0].set("batch", 8);
    EXPECT_FALSE(found().whole.time_ratio());
}

TEST(Directions, SayNothingOfFiguresThatCannotBe) {
    std::vector<Planted> steps = gelu(400);
    EXPECT_THAT(write_markdown(planted(steps)), HasSubstr("What it means"));
    steps[0].dram = 9;
    EXPECT_THAT(write_markdown(planted(steps)),
                AllOf(HasSubstr("Forward against backward"), Not(HasSubstr("What it means"))));
}

TEST(Directions, TellTheLargestBatchOfEach) {
    Result result = planted(gelu(400));
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("Largest batch")));
    result.points[0].largest_batches = {{"fwd", 300, 100000000000, false}, {"train", 0, 100000000000, false}};
    EXPECT_THAT(
        write_markdown(result),
        HasSubstr("Largest batch whose planned memory fits, by direction: fwd 300, train not even 1, in 100 GB."));
}

TEST(Directions, WithoutTimesAreUnavailable) {
    Result result = planted(gelu(400));
    result.points[0].end_to_end.reset();
    EXPECT_EQ(directions_of(result).unavailable, "the point was not timed");
}

TEST(Directions, OfStepsThatWereNotTimedNothingIsSaidButTheLargestBatch) {
    Result result = planted(gelu(400));
    for (StepResult& step : result.points[0].steps) {
        step.time_us.reset();
        step.kernels.clear();
    }
    result.points[0].largest_batches = {{"train", 87, 100000000000, false}};
    const std::string text = write_markdown(result);
    const std::size_t begin = text.find("Forward against backward");
    ASSERT_NE(begin, text.npos);
    const std::string section = text.substr(begin, text.find("\n#", begin) - begin);
    EXPECT_THAT(section, AllOf(HasSubstr("its steps were not timed"), HasSubstr("train 87"),
                               Not(HasSubstr("No forward was measured")), Not(HasSubstr("Times are measured"))));
}

TEST(TimedWords, AreOfTheDirection) {
    Result result = planted(gelu(400), "train", known::cpu_roofs());
    for (StepResult& step : result.points[0].steps) step.kernels.clear();
    EXPECT_THAT(write_terminal(result, 200), AllOf(HasSubstr("of the training step's median"),
                                                   HasSubstr("\n  training step  "), Not(HasSubstr("forward pass"))));
    result.points[0].set("direction", "bwd");
    EXPECT_THAT(write_terminal(result, 200), HasSubstr("of the backward pass's median"));
    result.points[0].set("direction", "fwd");
    EXPECT_THAT(write_terminal(result, 200), HasSubstr("of the forward pass's median"));
}

}  // namespace
}  // namespace kbench
