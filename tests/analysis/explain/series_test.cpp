// Series over batches and frames, of points whose figures are known by construction.
#include "analysis/explain/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "analysis/report/writers.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A recurrent layer at one batch, with an L2 roof time of so much of it.
void add_point(
    Result& result, std::int64_t batch, double us, double l2,
    const std::function<void(Point&)>& change = [](Point&) {}) {
    const Step layer{.op = "lstm", .us = us, .l2 = l2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500};
    Result one = known::result_of({layer});
    one.points[0].set("batch", batch);
    one.points[0].set("frames", std::int64_t{1000});
    change(one.points[0]);
    result.ceilings = one.ceilings;
    result.points.push_back(std::move(one.points[0]));
}

TEST(BatchSeries, SaysHowLongADependentStepTakesAndUpToWhichBatchItIsLatency) {
    Result result;
    add_point(result, 32, 2500, 0.58);  // not in the order of batches
    add_point(result, 1, 1250, 0.05);
    add_point(result, 8, 1500, 0.2);
    const std::vector<BatchSeries> all = batch_series(result);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].title, "");
    ASSERT_EQ(all[0].points.size(), 3u);
    EXPECT_EQ(all[0].points[1].batch, 8);
    EXPECT_DOUBLE_EQ(all[0].points[1].steps.us(), 3);
    EXPECT_DOUBLE_EQ(all[0].points[1].us_per_sequence(), 3.0 / 8);
    EXPECT_NEAR(all[0].points[2].steps.together_share(), 0.58, 1e-9);
    EXPECT_EQ(
        all[0].finding,
        "32.0 times the sequences (batch 1 to 32) take 2.00 times as long a time step; time steps are latency-bound up to batch 8, and at 32 occupancy-limited.");
    EXPECT_THAT(write_markdown(result), HasSubstr("\n## A time step by batch\n"));
    EXPECT_THAT(write_markdown(result), HasSubstr("| 32 | 5.00 | 0.156 | 2.90 | 58.0 | L2 2.9 | occupancy-limited |"));
    EXPECT_THAT(write_terminal(result, 120), HasSubstr(all[0].finding.substr(0, 60)));
}

TEST(BatchSeries, SayHowManyTimesTheSequencesWhateverTheFirstBatch) {
    Result result;
    add_point(result, 8, 1500, 0.2);
    add_point(result, 32, 2250, 0.2);
    EXPECT_THAT(batch_series(result).at(0).finding,
                testing::StartsWith("4.00 times the sequences (batch 8 to 32) take 1.50 times as long a time step"));
}

TEST(BatchSeries, SayNothingOfLatencyThatIsNotShown) {
    Result result;
    add_point(result, 1, 1250, 0.9);
    add_point(result, 8, 1500, 0.2);
    EXPECT_THAT(batch_series(result).at(0).finding, Not(HasSubstr("latency"))) << "of a gap there is no 'up to'";
    Result all;
    add_point(all, 1, 1250, 0.1);
    add_point(all, 8, 1500, 0.2);
    EXPECT_THAT(batch_series(all).at(0).finding, HasSubstr("latency-bound at each of these."));
}

TEST(BatchSeries, AreOfPointsThatDifferInTheirBatchAlone) {
    Result result;
    const auto in_fp16 = [](Point& point) { point.set("precision", Precision::fp16); };
    add_point(result, 1, 1000, 0.1);
    add_point(result, 8, 2000, 0.1, in_fp16);
    EXPECT_THAT(batch_series(result), IsEmpty());
    add_point(result, 8, 1500, 0.1);
    add_point(result, 16, 3000, 0.1, in_fp16);
    add_point(result, 8, 9000, 0.1, [](Point& point) { point.set("repeat", std::int64_t{2}); });
    add_point(result, 64, 9000, 0.1, [](Point& point) { point.status = PointStatus::failed; });
    const std::vector<BatchSeries> all = batch_series(result);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_THAT(all[0].title, HasSubstr("fp32"));
    EXPECT_THAT(all[1].title, HasSubstr("fp16"));
    ASSERT_EQ(all[0].points.size(), 2u);
    EXPECT_DOUBLE_EQ(all[0].points[1].steps.us(), 3) << "the first of the repeats";
    EXPECT_DOUBLE_EQ(all[1].points[1].steps.us(), 6);
}

TEST(BatchSeries, TakesLengthsThatWereDrawnForEachBatchTogether) {
    Result result;
    for (const std::int64_t batch : {1, 8})
        add_point(result, batch, 1000, 0.1, [&](Point& point) {
            point.set("lengths", "librispeech-like 0000000" + std::to_string(batch));
            point.set("useful_frames", 700 * batch);
        });
    EXPECT_EQ(batch_series(result).size(), 1u);
    add_point(result, 16, 1000, 0.1);  // full
    EXPECT_EQ(batch_series(result).at(0).points.size(), 2u);
}

TEST(BatchSeries, AreNoneWithoutDependentSteps) {
    Result result;
    for (const std::int64_t batch : {1, 8})
        add_point(result, batch, 1000, 0.1, [](Point& point) { point.steps[0].time_steps.reset(); });
    EXPECT_THAT(batch_series(result), IsEmpty());
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("by batch")));
}

TEST(FramesFit, IsTheLineOfPointsOnALine) {
    const FramesSeries::Point points[] = {{250, 2.5 + 1}, {500, 5 + 1}, {1000, 10 + 1}, {2000, 20 + 1}};
    const FramesFit fit = fit_line(points);
    EXPECT_NEAR(fit.ms_per_frame, 0.01, 1e-12);
    EXPECT_NEAR(fit.constant_ms, 1, 1e-9);
    EXPECT_NEAR(fit.worst_residual, 0, 1e-9);
}

/// (0, 1), (1, 1), (2, 4): slope 3/2, constant 1/2; residuals 1/2, -1, 1/2.
TEST(FramesFit, IsOfLeastSquaresElsewhere) {
    const FramesSeries::Point points[] = {{0, 1}, {1, 1}, {2, 4}};
    const FramesFit fit = fit_line(points);
    EXPECT_NEAR(fit.ms_per_frame, 1.5, 1e-12);
    EXPECT_NEAR(fit.constant_ms, 0.5, 1e-12);
    EXPECT_NEAR(fit.worst_residual, -1, 1e-12) << "of a point of 1 ms";
}

TEST(FramesSeries, NeedsThreePoints) {
    Result result;
    for (const std::int64_t frames : {500, 2000, 1000}) {
        EXPECT_THAT(frames_series(result.points), IsEmpty());
        add_point(result, 8, 1000 + 3.0 * static_cast<double>(frames), 0.1,
                  [&](Point& point) { point.set("frames", frames); });
    }
    const std::vector<FramesSeries> all = frames_series(result.points);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].points[1].frames, 1000);
    EXPECT_NEAR(all[0].fit.ms_per_frame, 0.003, 1e-12);
    EXPECT_NEAR(all[0].fit.constant_ms, 1, 1e-9);
    for (const FramesSeries::Point& point : all[0].points) EXPECT_NEAR(point.residual_ms, 0, 1e-9);
    EXPECT_THAT(write_markdown(result), HasSubstr("## Time by frames\n"));
    EXPECT_THAT(write_terminal(result, 120), HasSubstr("3.00 us a frame and 1.000 ms whatever their number"));
    result.points[2].set("batch", std::int64_t{4});
    EXPECT_THAT(frames_series(result.points), IsEmpty()) << "of another batch";
    result.points[2].set("batch", std::int64_t{8});
    EXPECT_EQ(frames_series(result.points).size(), 1u);
    result.points[2].end_to_end->latency.summary_ms.median = 0;
    EXPECT_THAT(frames_series(result.points), IsEmpty()) << "no time is no point of a line";
}

TEST(FramesSeries, ShowsWhatTheLineDoesNotExplain) {
    Result result;
    for (const auto& [frames, us] : {std::pair(500, 1000.0), {1000, 2400}, {1500, 3200}})
        add_point(result, 8, us, 0.1, [&, frames](Point& point) { point.set("frames", std::int64_t{frames}); });
    const FramesSeries series = frames_series(result.points).at(0);
    EXPECT_NEAR(series.points[1].residual_ms, 0.2, 1e-9);
    EXPECT_NEAR(series.fit.worst_residual, -0.1, 1e-9) << "of the first, 0.1 of 1 ms";
    EXPECT_THAT(write_markdown(result), HasSubstr("| 1000 | 2.400 | 2.200 | \\+8.3 |"));
}

}  // namespace
}  // namespace kbench
