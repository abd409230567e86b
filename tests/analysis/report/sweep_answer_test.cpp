// What a sweep's points say together.
#include "analysis/report/sections/sweep_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::AllOf;
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
        answer_of({point(1, 128, "fp16", 20), point(1, 128, "fp32", 80), point(1, 128, "fp64", 160),
                   point(4, 128, "fp16", 40), point(4, 128, "fp32", 240), point(4, 128, "fp64", 480)});
    EXPECT_THAT(said, Contains("fp16 is 4.00 to 6.00, fp64 0.500 times as fast as fp32."));
    EXPECT_THAT(said, Contains("Batch 4 has 1.33 to 2.00 times the tokens/s of batch 1."));
    EXPECT_THAT(said, Contains(HasSubstr("at batch 4, fp16. Shortest run: 20.0 ms at batch 1, fp16.")));
    EXPECT_THAT(said, Each(Not(HasSubstr("seq ")))) << "it is the same in all";
}

TEST(SweepAnswer, NamesTheTimeToTheFirstTokenAndThatOfATokenApart) {
    const auto of_phase = [](const char* phase, std::int64_t batch, double ms, std::int64_t tokens) {
        Point one = point(batch, 992, "fp16", ms);
        one.set("phase", std::string(phase));
        if (tokens == 1) {
            one.axes.erase("seq");
            one.set("past", 992);
        }
        one.end_to_end->tokens_per_s = 1e3 * static_cast<double>(batch * tokens) / ms;
        return one;
    };
    const std::vector<std::string> said = answer_of({of_phase("prefill", 1, 20, 992), of_phase("prefill", 4, 60, 992),
                                                     of_phase("decode", 1, 2, 1), of_phase("decode", 4, 2.5, 1)});
    EXPECT_THAT(said,
                Contains("Prefill: shortest 20.0 ms to the first token at batch 1, most tokens/s 66,133 at batch 4."));
    EXPECT_THAT(said, Contains("Decode step: shortest 2.00 ms a token at batch 1, most tokens/s 1,600 at batch 4."));
    EXPECT_THAT(answer_of({of_phase("prefill", 1, 20, 992), of_phase("decode", 1, 2, 1)}),
                AllOf(Contains("Prefill: 20.0 ms to the first token, 49,600 tokens/s."),
                      Contains("Decode step: 2.00 ms a token, 500 tokens/s.")));
    EXPECT_THAT(said, Each(Not(HasSubstr("times as fast")))) << "phases are other work";
}

TEST(SweepAnswer, TakesTheEndsOfEachCurveWhereTheyDiffer) {
    const std::vector<std::string> said = answer_of(
        {point(1, 128, "fp16", 10), point(8, 128, "fp16", 20), point(1, 128, "fp32", 40), point(4, 128, "fp32", 80)});
    EXPECT_THAT(said, Contains("The largest batch has 2.00 to 4.00 times the tokens/s of the smallest."));
}

TEST(SweepAnswer, RepeatsAreOnePoint) {
    const std::vector<std::string> said = answer_of(
        {point(1, 128, "fp16", 20), point(1, 128, "fp16", 22), point(1, 128, "fp16", 80), point(4, 128, "fp16", 44)});
    EXPECT_THAT(said, Contains("Batch 4 has 2.00 times the tokens/s of batch 1.")) << "by the median of three";
    EXPECT_THAT(said, Contains(HasSubstr("Shortest run: 22.0 ms at batch 1."))) << "not the luckiest";
    EXPECT_THAT(said.front(), HasSubstr("at all 2 points"));
}

TEST(SweepAnswer, HasARateWithoutTokens) {
    std::vector<Point> points{point(1, 128, "fp16", 20), point(4, 128, "fp16", 40)};
    for (Point& one : points) one.end_to_end->tokens_per_s = one.end_to_end->sequences_per_s = std::nullopt;
    const std::vector<std::string> said = answer_of(points);
    EXPECT_THAT(said, Contains("Batch 4 has 2.00 times the sequences/s of batch 1."));
    EXPECT_THAT(said, Contains(HasSubstr("Most sequences/s: 100")));
}

TEST(SweepAnswer, CallsNoDirectionFaster) {
    Point train = point(1, 128, "fp16", 60);
    train.set("direction", std::string("train"));
    const std::vector<std::string> said = answer_of({point(1, 128, "fp16", 20), train});
    EXPECT_THAT(said, Contains("Direction train takes 3.00 times as long as direction fwd."));
}

TEST(SweepAnswer, RestsOnNoPointWhoseResultsAreWrong) {
    Point wrong = point(8, 128, "fp16", 0.1);
    ASSERT_FALSE(wrong.verification.steps.empty());
    wrong.verification.steps.front().error_over_bound = 2;
    const std::vector<std::string> said = answer_of({point(1, 128, "fp16", 10), wrong, point(4, 128, "fp16", 20)});
    EXPECT_THAT(said, Contains("Batch 4 has 2.00 times the tokens/s of batch 1."));
    EXPECT_THAT(said, Contains("1 of the points is left out of this: its results or figures are wrong."));
    EXPECT_THAT(answer_of({point(1, 128, "fp16", 10), wrong}), testing::IsEmpty()) << "one point is no sweep";
    wrong.verification.steps.front().error_over_bound = 0;  // but its time is still impossible
    EXPECT_EQ(answer_of({point(1, 128, "fp16", 10), wrong, point(4, 128, "fp16", 20)}), said);
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
              "Bandwidth-bound? NO at 3 of 4 points (each fp32), CANNOT TELL at 1 (batch 1, seq 128, fp16).");
    EXPECT_EQ(of_four[1],
              "What binds it: compute-bound at 3 of 4 points (each fp32), unknown at 1 (batch 1, seq 128, fp16).");
    EXPECT_EQ(answer_of(points_at({5, 7}))[0], "Bandwidth-bound? NO at all 2 points.");
}

TEST(SweepAnswer, BeginsTheReportAndEndsTheScreen) {
    Result result = example::profiled_result();
    result.points = {point(1, 128, "fp16", 10), point(4, 128, "fp16", 20)};
    const std::string report = write_markdown(result);
    ASSERT_NE(report.find("## All points"), report.npos);
    EXPECT_LT(report.find("Batch 4 has 2.00 times"), report.find("## All points"));
    const std::string screen = write_screen(result, 100);
    ASSERT_NE(screen.find("median ms"), screen.npos);
    EXPECT_GT(screen.find("Batch 4 has 2.00 times the tokens/s of batch 1.\n"), screen.find("median ms"));
    EXPECT_THAT(screen, HasSubstr("Batch 4 has 2.00 times"));
}

}  // namespace
}  // namespace kbench
