// What is said of a program: each planted fault is named, and without one nothing is.
#include "analysis/explain/program_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain/explain.h"
#include "analysis/explain/in_short.h"
#include "tests/analysis/example_program.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A result and the explanation of its point, which points into it.
struct Explained {
    explicit Explained(Result of) : result(std::move(of)), explanation(explain(result, result.points.front())) {}
    explicit Explained(const example::Planted& planted) : Explained(example::program(planted)) {}
    Explained(const Explained&) = delete;
    Explained& operator=(const Explained&) = delete;
    Result result;
    Explanation explanation;
};

TEST(ProgramFindings, OfAProgramWithoutAFaultAreNone) {
    const Explained plain{example::Planted{}};
    EXPECT_EQ(plain.explanation.program.host_wait, "");
    EXPECT_THAT(plain.explanation.program.sentences, IsEmpty());
    EXPECT_NE(plain.explanation.verdicts.model.bound, Bound::launch);
    EXPECT_FALSE(plain.explanation.verdicts.kernels);
}

TEST(ProgramFindings, OfKbenchsOwnModelAreNone) {
    const Explained own(example::profiled_result());
    EXPECT_EQ(own.explanation.program.host_wait, "");
    EXPECT_THAT(own.explanation.program.sentences, IsEmpty());
    EXPECT_EQ(host_wait_us(own.explanation.facts).high, 0);
}

TEST(ProgramFindings, AnswerWithTheHostFirstWhereTheGpuWaitsForIt) {
    const Explained host{example::Planted{.host_wait_us = 420}};
    EXPECT_THAT(host.explanation.answer.front(),
                StartsWith("launch-bound: the GPU waits for the host for 0.42 ms of 1.04 ms (40 %); CUDA graphs, "
                           "torch.compile, larger batches or a faster host would shorten that"));
    const Verdict& verdict = host.explanation.verdicts.model;
    EXPECT_EQ(verdict.bound, Bound::launch);
    EXPECT_EQ(verdict.rule, "host-wait");
    EXPECT_THAT(verdict.evidence.front(), HasSubstr("(40 %) (measured)"));
    EXPECT_THAT(what_would_help(host.explanation), HasSubstr("another GPU hardly"));
}

TEST(ProgramFindings, JudgeTheKernelsApartFromTheHost) {
    const Explained plain{example::Planted{}}, host{example::Planted{.host_wait_us = 420}};
    ASSERT_TRUE(host.explanation.verdicts.kernels);
    EXPECT_EQ(host.explanation.verdicts.kernels->bound, plain.explanation.verdicts.model.bound);
    EXPECT_NE(host.explanation.verdicts.kernels->rule, "model-gaps");
}

TEST(ProgramFindings, SayLaunchBoundFromAFifthOfTheTime) {
    const auto rule_at = [](double share) {
        const double rest_us = 600 + 6 + 2 + 12;
        const Explained one{example::Planted{.host_wait_us = share / (1 - share) * rest_us}};
        return one.explanation.verdicts.model.rule;
    };
    EXPECT_NE(rule_at(0.19), "host-wait");
    EXPECT_EQ(rule_at(0.21), "host-wait");
}

TEST(ProgramFindings, NameTorchCompileOnlyToAPythonProgram) {
    ProgramRun run;
    run.command = "./simulate";
    EXPECT_EQ(quicker_launches(run), "CUDA graphs, larger batches or a faster host");
}

/// Waits for the host that records may have made are not held against the program.
TEST(ProgramFindings, TakeWhatRecordsAddOffTheWaits) {
    const Explained host{example::Planted{.host_wait_us = 420, .records_us = 200}};
    EXPECT_THAT(host.explanation.program.host_wait,
                StartsWith("launch-bound: the GPU waits for the host for at least 220 us of 840 us (26 %)"));
    EXPECT_THAT(host.explanation.program.sentences,
                ElementsAre(AllOf(HasSubstr("between 220 us and 420 us"), HasSubstr("(estimated)"))));
    EXPECT_THAT(host.explanation.answer, Contains(HasSubstr("add up to 1.04 ms in the run with records, 23.9 % more, "
                                                            "where 2 % is the goal")));
}

/// A launch-bound program stays so in each iteration: few samples do not hide that.
TEST(ProgramFindings, SayLaunchBoundOfFewSamplesWhereEachShowsIt) {
    const auto with_samples = [](const std::vector<double>& samples_ms) {
        Result result = example::program({.host_wait_us = 420});
        Timing& latency = result.points.front().end_to_end->latency;
        latency.samples_ms = samples_ms;
        latency.summary_ms.n = static_cast<std::int64_t>(samples_ms.size());
        latency.summary_ms.independent = 2;
        result.points.front().end_to_end->counted_independent = true;
        return explain(result, result.points.front());
    };
    const Explanation each = with_samples({1.04, 1.03, 1.05});
    ASSERT_FALSE(each.missing.empty());
    EXPECT_THAT(each.answer.front(), StartsWith("launch-bound: the GPU waits for the host"));
    EXPECT_THAT(each.answer,
                Contains(StartsWith("What binds its kernels is not said: of 3 samples 2 are independent")));
    EXPECT_EQ(each.verdicts.model.bound, Bound::launch);
    EXPECT_EQ(each.verdicts.layers.front().bound, Bound::not_identifiable);
    const Explanation not_each = with_samples({1.04, 0.70, 1.05});  // 80 of 700 us would be waits
    EXPECT_EQ(not_each.verdicts.model.bound, Bound::not_identifiable);
    EXPECT_THAT(not_each.answer, Contains(StartsWith("As recorded, the GPU waits for the host")));
}

TEST(ProgramFindings, CannotTellWhereRecordsMayBeWhyItWaits) {
    const Explained maybe{example::Planted{.host_wait_us = 300, .records_us = 200}};
    EXPECT_THAT(maybe.explanation.program.host_wait,
                AllOf(HasSubstr("launch-bound is unknown"), HasSubstr("between 14 % and 42 % of the time")));
    EXPECT_NE(maybe.explanation.verdicts.model.bound, Bound::launch);
}

TEST(ProgramFindings, SayThatAllTimesAreWithRecordsWhereNoOtherWereTaken) {
    Result result = example::program({});
    result.points.front().program->bare_ms = 0;
    result.points.front().activity.unprofiled_ms = 0;
    EXPECT_THAT(Explained(std::move(result)).explanation.program.sentences,
                ElementsAre(StartsWith("No iteration was timed without records")));
}

TEST(ProgramFindings, NameCopiesThatTakeATenthOfTheTime) {
    const Explained copies{example::Planted{.copy_us = 150}};
    EXPECT_THAT(copies.explanation.program.sentences,
                ElementsAre(AllOf(StartsWith("Copies between host and device take 152 us of 764 us (20 %)"),
                                  HasSubstr("pageable"), HasSubstr("4.20 MB"), HasSubstr("pinned memory"))));
}

TEST(ProgramFindings, SayNothingOfCopiesThatTakeLess) {
    const auto sentences_with = [](double copy_us) {
        return Explained{example::Planted{.copy_us = copy_us}}.explanation.program.sentences.size();
    };
    EXPECT_EQ(sentences_with(60), 0u) << "with the fill 62 of 674 us";
    EXPECT_EQ(sentences_with(70), 1u);
}

TEST(ProgramFindings, NameTheLayerThatRunsInFp32) {
    const Explained fp32{example::Planted{.has_fp32_layer = true}};
    EXPECT_THAT(fp32.explanation.program.sentences,
                ElementsAre("fp32 in h.1.mlp: 29 % of the time (by the kernels' names), where 67 % of the products' "
                            "time is fp16."));
}

TEST(ProgramFindings, NameTheKernelThatRunsInFp32WhereNoLayerIsKnown) {
    const Explained fp32{example::Planted{.has_fp32_layer = true, .is_named = false}};
    EXPECT_THAT(fp32.explanation.program.sentences, ElementsAre(StartsWith("fp32 in ampere_sgemm_128x64_tn: 29 %")));
}

TEST(ProgramFindings, SayByCountersThatTensorCoresWereIdle) {
    Result result = example::program({.has_fp32_layer = true});
    for (StepResult& step : result.points.front().steps)
        step.counters = {{"tensor_pipe_active", step.precision == Precision::fp16 ? 60.0 : 0.0}};
    EXPECT_THAT(Explained(std::move(result)).explanation.program.sentences,
                ElementsAre(HasSubstr("fp32 without tensor cores in h.1.mlp: 29 % of the time (by counters)")));
}

TEST(ProgramFindings, FoldModulesOfMoreBlocksThanAreNamed) {
    Result result = example::program({});
    int odd = 0;
    for (StepResult& step : result.points.front().steps) {
        if (step.op != "gemm" || odd == 4) continue;
        step.layer = "h." + std::to_string(10 + odd++) + ".mlp.c_fc";
        step.precision = Precision::fp32;
        step.kernels.front().time_us = 20;
    }
    EXPECT_THAT(Explained(std::move(result)).explanation.program.sentences,
                ElementsAre(StartsWith("fp32 in h.*.mlp: 13 % of the time")));
}

TEST(ProgramBreakdown, AddsUpWithTwoKindsOfIdleTime) {
    const Explained host{example::Planted{.host_wait_us = 420, .records_us = 200}};
    const TimeBreakdown& breakdown = host.explanation.breakdown;
    EXPECT_NEAR(breakdown.total[Line::kernels], 600, 1e-6);
    EXPECT_NEAR(breakdown.total[Line::copies], 8, 1e-6);
    EXPECT_NEAR(breakdown.total[Line::host_wait], 420, 1e-6);
    EXPECT_NEAR(breakdown.total[Line::queued], 12, 1e-6);
    EXPECT_NEAR(breakdown.total[Line::records], -200, 1e-6);
    EXPECT_NEAR(breakdown.total.total_us(), breakdown.end_to_end_us, 1e-6);
    EXPECT_EQ(breakdown.total[Line::launch] + breakdown.total[Line::dependency], 0);
    EXPECT_TRUE(breakdown.closes());
}

TEST(ProgramBreakdown, DoesNotCloseOnAnythingThatWasNotRecorded) {
    Result result = example::program({});
    result.points.front().steps[3].kernels.front().time_us -= 40;
    EXPECT_FALSE(Explained(std::move(result)).explanation.breakdown.closes());
}

TEST(ProgramBreakdown, CountsWorkOnSeveralStreamsOnce) {
    const Explained overlap{example::Planted{.overlap_us = 60}};
    EXPECT_NEAR(overlap.explanation.breakdown.total[Line::overlap], -60, 1e-6);
    EXPECT_TRUE(overlap.explanation.breakdown.closes());
    Result one_stream = example::program({.overlap_us = 60});
    for (StepResult& step : one_stream.points.front().steps) step.kernels.front().stream = 7;
    EXPECT_NEAR(Explained(std::move(one_stream)).explanation.breakdown.total[Line::overlap], -60, 1e-6);
    Result medians = example::program({});
    medians.points.front().program->busy_ms *= 0.99;
    EXPECT_EQ(Explained(std::move(medians)).explanation.breakdown.total[Line::overlap], 0);
}

TEST(ProgramBreakdown, IsThatOfOtherPointsWhereLaunchCallsAreNotKnown) {
    Result result = example::program({.queued_us = 100});
    for (StepResult& step : result.points.front().steps) step.kernels.front().host_wait_us.reset();
    const Explained unknown(std::move(result));
    const TimeBreakdown& breakdown = unknown.explanation.breakdown;
    EXPECT_NEAR(breakdown.total[Line::launch] + breakdown.total[Line::dependency], 100, 1e-6);
    EXPECT_EQ(breakdown.total[Line::host_wait], 0);
    EXPECT_EQ(unknown.explanation.program.host_wait, "");
}

/// What no cost model knows may be as many bytes as DRAM has time for.
TEST(ProgramBandwidth, IsNotRuledOutByOpsOfUnknownShape) {
    const Explained unnamed{example::Planted{.is_named = false}};
    EXPECT_EQ(bandwidth_bound(unnamed.explanation).answer, BandwidthAnswer::cannot_tell);
    EXPECT_EQ(dram_traffic_text(unnamed.explanation), "");
    EXPECT_THAT(unnamed.explanation.answer, Contains(HasSubstr("the roofs is not known")));
    const Explained named{example::Planted{}};
    EXPECT_THAT(dram_traffic_text(named.explanation), HasSubstr("or more of the time"));
}

TEST(ProgramAnswer, WithTooFewIterationsHasTheFigureWithoutTheConclusion) {
    Result result = example::program({.host_wait_us = 160});
    result.points.front().end_to_end->latency = example::timing(0.78, 5);
    result.points.front().end_to_end->latency.samples_ms.back() = 0.76;  // 140 us of that are waits: under a fifth
    const Explained few(std::move(result));
    EXPECT_THAT(few.explanation.answer, Contains(StartsWith("As recorded, the GPU waits for the host for")));
    EXPECT_THAT(few.explanation.answer, Contains(HasSubstr("let the program run for longer")));
    EXPECT_THAT(few.explanation.answer, Not(Contains(HasSubstr("launch-bound"))));
    EXPECT_THAT(few.explanation.answer, Not(Contains(HasSubstr("--time-budget"))));
    EXPECT_FALSE(few.explanation.verdicts.kernels);
}

TEST(ProgramAnswer, AsksForNothingThatAProgramCannotHave) {
    const Explained plain{example::Planted{}};
    EXPECT_EQ(next_experiment(plain.explanation), "--counters core,tensor,pipes, which counts units that may be it");
}

/// A run of kbench's own model, whose gaps are short, says of itself as a program what it says otherwise.
TEST(ProgramAnswer, OfACommittedRunIsNotLaunchBound) {
    Result result = example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz");
    result.points.front() = example::as_program(result.points.front(), 0.6);
    const Explained run(std::move(result));
    EXPECT_EQ(run.explanation.program.host_wait, "");
    EXPECT_THAT(run.explanation.program.sentences, IsEmpty());
    EXPECT_TRUE(run.explanation.breakdown.closes());
    EXPECT_TRUE(run.explanation.impossible.empty());
}

}  // namespace
}  // namespace kbench
