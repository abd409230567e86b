// What a sweep's points say together.
#include "analysis/report/sections/sweep_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// A point of the example at another batch, length and precision, that takes so long.
Point point(std::int64_t batch, std::int64_t seq, const char* precision, double ms) {
    const example::Machine h200{"cublaslt", "flash_wgmma_64", 17.9, 17.6, 9.0, 25.1, 21.2, 3.6, 175};
    Point point = example::gpu_point(1, h200, ms);
    point.set("batch", batch);
    point.set("seq", seq);
    point.set("precision", std::string(precision));
    const double median = point.end_to_end->latency.summary_ms.median;
    point.end_to_end->tokens_per_s = 1e3 * static_cast<double>(batch * seq) / median;
    return point;
}

std::vector<std::string> answer_of(std::vector<Point> points) {
    Result result = example::profiled_result();
    result.points = std::move(points);
    const ExplainedResult explained(std::move(result));
    std::vector<SectionContext> contexts;
    for (std::size_t i = 0; i < explained.points().size(); ++i) contexts.push_back({explained, Depth::full, i});
    return sweep_answer(contexts, differing_axes(contexts));
}

TEST(SweepAnswer, SaysWhatEachAxisDoes) {
    const std::vector<std::string> said =
        answer_of({point(1, 128, "fp16", 2), point(1, 128, "fp32", 8), point(1, 128, "fp64", 16),
                   point(4, 128, "fp16", 4), point(4, 128, "fp32", 24), point(4, 128, "fp64", 48)});
    EXPECT_THAT(said, Contains("fp16 is 4.00 to 6.00, fp64 0.500 times as fast as fp32."));
    EXPECT_THAT(said, Contains("Batch 4 has 1.33 to 2.00 times the tokens/s of batch 1."));
    EXPECT_THAT(said, Contains(HasSubstr("at batch 4, fp16. Shortest run: 2.00 ms at batch 1, fp16.")));
    EXPECT_THAT(said, Each(Not(HasSubstr("seq ")))) << "it is the same in all";
}

TEST(SweepAnswer, TakesTheEndsOfEachCurveWhereTheyDiffer) {
    const std::vector<std::string> said = answer_of(
        {point(1, 128, "fp16", 1), point(8, 128, "fp16", 2), point(1, 128, "fp32", 4), point(4, 128, "fp32", 8)});
    EXPECT_THAT(said, Contains("The largest batch has 2.00 to 4.00 times the tokens/s of the smallest."));
}

TEST(SweepAnswer, RepeatsAreOnePoint) {
    const std::vector<std::string> said = answer_of(
        {point(1, 128, "fp16", 1), point(1, 128, "fp16", 1), point(1, 128, "fp16", 3), point(4, 128, "fp16", 2)});
    EXPECT_THAT(said, Contains("Batch 4 has 2.00 times the tokens/s of batch 1.")) << "by the median of three";
}

TEST(SweepAnswer, RestsOnNoPointWhoseResultsAreWrong) {
    Point wrong = point(8, 128, "fp16", 0.1);
    ASSERT_FALSE(wrong.verification.steps.empty());
    wrong.verification.steps.front().error_over_bound = 2;
    const std::vector<std::string> said = answer_of({point(1, 128, "fp16", 1), wrong, point(4, 128, "fp16", 2)});
    EXPECT_THAT(said, Contains("Batch 4 has 2.00 times the tokens/s of batch 1."));
    EXPECT_THAT(said, Contains("1 of the points is left out of this: its results are wrong."));
    EXPECT_THAT(answer_of({point(1, 128, "fp16", 1), wrong}), testing::IsEmpty()) << "one point is no sweep";
}

TEST(SweepAnswer, CountsTheAnswersAndSaysWhoHasTheRareOnes) {
    const Result sweep = example::committed_result("h200-2026-11-21/sweep/result.json.gz");
    const auto points_at = [&](const std::vector<std::size_t>& places) {
        std::vector<Point> points;
        for (const std::size_t place : places) points.push_back(sweep.points.at(place));
        return points;
    };
    const std::vector<std::string> of_four = answer_of(points_at({0, 5, 7, 9}));
    EXPECT_EQ(of_four[0],
              "Bandwidth-bound? NO at 3 of 4 points (all fp32), CANNOT TELL at 1 (batch 1, seq 128, fp16).");
    EXPECT_EQ(of_four[1],
              "What binds it: compute-bound at 3 of 4 points (all fp32), unknown at 1 (batch 1, seq 128, fp16).");
    EXPECT_EQ(answer_of(points_at({5, 7}))[0], "Bandwidth-bound? NO at all 2 points.");
}

TEST(SweepAnswer, BeginsTheReportAndEndsTheScreen) {
    Result result = example::profiled_result();
    result.points = {point(1, 128, "fp16", 1), point(4, 128, "fp16", 2)};
    const std::string report = write_markdown(result);
    EXPECT_LT(report.find("Batch 4 has 2.00 times"), report.find("## All points"));
    EXPECT_THAT(write_screen(result, 100), HasSubstr("Batch 4 has 2.00 times the tokens/s of batch 1.\n"));
}

}  // namespace
}  // namespace kbench
