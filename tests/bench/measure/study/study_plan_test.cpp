// Which points a study measures, and what a budget leaves out of them.
#include "bench/measure/study/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "analysis/study/tasks.h"
#include "analysis/study/throttling.h"
#include "bench/measure/study/budget.h"
#include "bench/profile/machine_state.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunOptions options() {
    RunOptions run;
    run.model = usual_model();
    return run;
}

StudyBase base(std::int64_t batch = 8, Precision precision = Precision::bf16) {
    StudyBase fixed;
    fixed.batch = batch;
    fixed.precision = precision;
    return fixed;
}

std::vector<std::int64_t> batches_of(const std::vector<StudyPoint>& points) {
    std::vector<std::int64_t> batches;
    for (const StudyPoint& point : points)
        if (std::ranges::find(point.tasks, batch_task) != point.tasks.end())
            batches.push_back(*point.spec.axes.count("batch"));
    return batches;
}

TEST(StudyPlan, BeginsWithThePointOfAllQuestionsAndTheTrainingStep) {
    const std::vector<StudyPoint> points = plan_study(options(), base(), 64, true);
    EXPECT_THAT(points[0].tasks, ElementsAre("bottlenecks", "batch", "precision", "directions"));
    EXPECT_EQ(points[0].spec.axes.count("batch"), 8);
    EXPECT_EQ(points[1].spec.axes.text("direction"), "train");
    EXPECT_EQ(points[1].spec.axes.text("optimizer"), "adamw");
    EXPECT_THAT(points[1].tasks, ElementsAre("directions"));
}

TEST(StudyPlan, HasEachPointOnceAndEachPrecision) {
    const std::vector<StudyPoint> points = plan_study(options(), base(), 64, true);
    std::set<std::string> names, precisions;
    for (const StudyPoint& point : points) {
        EXPECT_TRUE(names.insert(point.spec.name()).second) << point.spec.name();
        precisions.insert(point.spec.axes.text("precision"));
    }
    EXPECT_EQ(precisions.size(), all_precisions.size());
}

TEST(StudyPlan, BatchesByPowersOfFourThenTheLargestThenWhatLiesBetween) {
    EXPECT_THAT(batches_of(plan_study(options(), base(), 100, false)), ElementsAre(8, 1, 4, 16, 64, max_batch, 2, 32));
    EXPECT_THAT(batches_of(plan_study(options(), base(1), 64, false)), ElementsAre(1, 4, 16, max_batch, 2, 8, 32))
        << "the largest is not there twice";
}

TEST(StudyPlan, TakesTheBatchesThatWereAskedFor) {
    StudyBase fixed = base();
    fixed.batches = {3, max_batch};
    EXPECT_THAT(batches_of(plan_study(options(), fixed, 100, false)), ElementsAre(8, 3, max_batch));
}

TEST(StudyPlan, AModelWithoutALossHasNoTrainingStep) {
    for (const StudyPoint& point : plan_study(options(), base(), 64, false))
        EXPECT_EQ(point.spec.axes.text("direction"), "fwd");
}

TEST(StudyPlan, OptionsOfTrainingStayWithTheTrainingStep) {
    RunOptions run = options();
    run.values["optimizer"] = {std::string("none")};
    const std::vector<StudyPoint> points = plan_study(run, base(), 4, true);
    EXPECT_EQ(points[0].spec.axes.find("optimizer"), nullptr);
    EXPECT_EQ(points[1].spec.axes.text("optimizer"), "none");
}

TEST(PointTimes, KnowNothingBeforeTheFirstPoint) { EXPECT_EQ(PointTimes().expected_s(1), std::nullopt); }

TEST(PointTimes, GrowWithTheRunAndKeepWhatIsBesides) {
    PointTimes times;
    times.add(1, 0.004, 20);  // 4 ms a run, 20 s a point: nearly all of it is besides
    const double expected = times.expected_s(1000).value();
    EXPECT_NEAR(expected, 20 + 40 * 4, 1);
    times.add(1000, 4.5, 194);
    EXPECT_NEAR(times.expected_s(1000).value(), 194, 10) << "what was measured comes out again";
}

TEST(PointTimes, NoPointRunsItsModelMoreOftenThanItHadTimeFor) {
    PointTimes times;
    times.add(1, 1.0, 10);
    EXPECT_NEAR(times.expected_s(2).value(), 20, 1e-9);
}

/// A gate whose clock stands still until it is told.
class Gate : public testing::Test {
  protected:
    Gate() {
        const std::vector<StudyPoint> points = plan_study(options(), base(1), 64, false);
        for (const StudyPoint& point : points) specs_.push_back(point.spec);
        plan_.budget_s = 100;
        plan_.points.resize(points.size());
        gate_ = std::make_unique<StudyGate>(
            points, plan_,
            [](const PointSpec& spec) {
                return static_cast<double>(std::max<std::int64_t>(1, *spec.axes.count("batch")));
            },
            now_, [this](const std::string& text) { told_.push_back(text); }, [this] { return now_; });
    }
    void pass(double seconds) {
        now_ += std::chrono::duration_cast<StudyGate::Clock::duration>(std::chrono::duration<double>(seconds));
    }
    static Point finished(double ms) {
        Point point;
        point.end_to_end.emplace();
        point.end_to_end->latency.summary_ms.median = ms;
        return point;
    }
    const PointSpec& of_batch(std::int64_t batch) const {
        return *std::ranges::find_if(specs_, [&](const PointSpec& spec) {
            return *spec.axes.count("batch") == batch && spec.axes.text("precision") == "bf16";
        });
    }

    StudyGate::Clock::time_point now_{};
    StudyPlan plan_;
    std::vector<PointSpec> specs_;
    std::vector<std::string> told_;
    std::unique_ptr<StudyGate> gate_;
};

TEST_F(Gate, MeasuresTheFirstPointWhateverTheBudget) {
    plan_.budget_s = 1;
    EXPECT_EQ(gate_->leave_out(specs_.front()), "");
}

TEST_F(Gate, LeavesOutWhatWouldNotFitAndSaysWhyInThePlan) {
    plan_.budget_s = 120;
    for (const PointSpec& spec : {of_batch(1), specs_[1]}) {  // the latter in another precision
        ASSERT_EQ(gate_->leave_out(spec), "");
        pass(20);
        gate_->finished(spec, finished(1000));  // 20 s besides nothing: 20 runs of a second
    }
    EXPECT_EQ(gate_->leave_out(of_batch(4)), "") << "80 s of the 80 that are left";
    EXPECT_THAT(gate_->leave_out(of_batch(16)), HasSubstr("it would have taken about 5 min, and 80 s"));
    const auto at = std::ranges::find(specs_, of_batch(16)) - specs_.begin();
    EXPECT_THAT(plan_.points[static_cast<std::size_t>(at)].left_out, HasSubstr("5 min"));
    pass(90);
    EXPECT_EQ(gate_->leave_out(of_batch(2)), "the budget was used up");
}

TEST_F(Gate, ExpectsNoForwardToTakeWhatATrainingStepDid) {
    PointSpec step = of_batch(4);
    step.axes.set("direction", std::string("train"));
    std::vector<StudyPoint> points;
    for (const PointSpec& spec : {of_batch(1), step, of_batch(2), of_batch(16)}) points.push_back({spec, {}});
    plan_.points.resize(points.size());
    StudyGate gate(
        points, plan_, [](const PointSpec&) { return 1.0; }, now_, [](const std::string&) {}, [this] { return now_; });
    const auto measured = [&](const PointSpec& spec, double seconds) {
        EXPECT_EQ(gate.leave_out(spec), "");
        pass(seconds);
        gate.finished(spec, finished(1));
    };
    measured(of_batch(1), 20);
    measured(step, 50);
    measured(of_batch(2), 20);
    EXPECT_THAT(gate.leave_out(of_batch(16)), HasSubstr("about 20 s, and 10 s"));
}

TEST_F(Gate, WithoutABudgetLeavesOutNothing) {
    plan_.budget_s.reset();
    ASSERT_EQ(gate_->leave_out(of_batch(1)), "");
    pass(1e6);
    gate_->finished(of_batch(1), finished(1000));
    EXPECT_EQ(gate_->leave_out(of_batch(16)), "");
}

TEST_F(Gate, SaysTheTaskThePointAndTheTimeLeft) {
    EXPECT_EQ(gate_->label(specs_.front()), "bottlenecks 1/" + std::to_string(specs_.size()));
    ASSERT_EQ(gate_->leave_out(specs_.front()), "");
    pass(20);
    gate_->finished(specs_.front(), finished(1000));
    EXPECT_THAT(gate_->label(specs_[1]), HasSubstr(", about 80 s left")) << "never more than the budget";
}

TEST_F(Gate, ForecastsOnceWhatIsToComeAndWhatOfItFits) {
    ASSERT_EQ(gate_->leave_out(of_batch(1)), "");
    EXPECT_TRUE(told_.empty());
    pass(20);
    gate_->finished(of_batch(1), finished(1000));  // 20 s for each sequence of the batch
    ASSERT_EQ(told_.size(), 1U);
    // Four precisions of 20 s each; batches 4, 16, 64, 2, 8, 32 of them: 80, 320, 1280, 40, 160 and 640 s.
    EXPECT_THAT(told_[0], HasSubstr("10 points to come would take about"));
    EXPECT_THAT(told_[0], HasSubstr("; --budget has time for about"));
    EXPECT_THAT(told_[0], Not(HasSubstr("nothing of"))) << "batch 2 and precisions fit into 80 s";
    pass(20);
    gate_->finished(specs_[1], finished(1000));
    EXPECT_EQ(told_.size(), 1U);
}

TEST_F(Gate, SaysWhichQuestionTheBudgetHasNoTimeFor) {
    plan_.budget_s = 45;
    ASSERT_EQ(gate_->leave_out(of_batch(1)), "");
    pass(20);
    gate_->finished(of_batch(1), finished(1000));
    EXPECT_THAT(told_.at(0), HasSubstr("--budget has time for about 1 of them, and for nothing of batch"));
}

/// A training step that fits and leaves no time for two other questions gives way to them.
TEST_F(Gate, APointThatTakesTheTimeOfTwoQuestionsIsLeftOut) {
    const auto gate_of = [&](double step_work) {
        PointSpec step = of_batch(4), half = of_batch(2);
        step.axes.set("direction", std::string("train"));
        half.axes.set("precision", std::string("fp16"));
        plan_.points.assign(4, {});
        return std::make_unique<StudyGate>(
            std::vector<StudyPoint>{{of_batch(1), {"batch", "precision", "directions"}},
                                    {step, {"directions"}},
                                    {of_batch(2), {"batch"}},
                                    {half, {"precision"}}},
            plan_, [=](const PointSpec& spec) { return spec == step ? step_work : 1.0; }, now_,
            [](const std::string&) {}, [this] { return now_; });
    };
    for (const auto& [work, reason] : {std::pair{3.5, "more of the other questions"}, std::pair{2.0, ""}}) {
        now_ = {};
        const auto gate = gate_of(work);
        ASSERT_EQ(gate->leave_out(of_batch(1)), "");
        pass(20);
        gate->finished(of_batch(1), finished(1000));
        PointSpec step = of_batch(4);
        step.axes.set("direction", std::string("train"));
        const std::string left_out = gate->leave_out(step);
        EXPECT_THAT(left_out, HasSubstr(reason)) << work << " times 20 s of the 80 s that are left";
        EXPECT_EQ(left_out.empty(), std::string(reason).empty());
        EXPECT_EQ(gate->leave_out(of_batch(2)), "");
    }
}

TEST(Throttling, WhatDiscardsSamplesIsWhatSlows) {
    std::vector<std::string_view> discarding;
    for (const ThrottleReason& reason : throttle_reasons)
        if (reason.effect == ThrottleEffect::discards) discarding.push_back(reason.name);
    EXPECT_THAT(discarding, testing::UnorderedElementsAreArray(slowing_reasons));
}

}  // namespace
}  // namespace kbench
