// Measurements that are the same though they ought not to be.
#include "analysis/compare/sweep_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A point on a GPU whose kernels have the names and grids of its precision, batch and length.
Point gpu(Precision precision, std::int64_t batch, std::int64_t seq = 1024) {
    Point point = example::profiled_result().points[0];
    point.set("precision", precision);
    point.set("batch", batch);
    point.set("seq", seq);
    for (StepResult& step : point.steps)
        for (KernelResult& kernel : step.kernels) {
            kernel.name = std::string("void gemm<") + std::string(name(precision)) + ">()";
            kernel.grid = {132, batch * seq / 128, 1};
        }
    for (std::size_t i = 0; i < point.end_to_end->latency.samples_ms.size(); ++i)
        point.end_to_end->latency.samples_ms[i] =
            static_cast<double>(batch * seq) + 0.1 * static_cast<double>(i) + (precision == Precision::fp16 ? 0 : 1);
    return point;
}

/// The same without kernels, as a CPU's.
Point cpu(Precision precision, std::int64_t batch, const std::string& implementation) {
    Point point = gpu(precision, batch);
    point.set("backend", "cpu");
    for (StepResult& step : point.steps) {
        step.kernels.clear();
        step.implementation = implementation;
    }
    return point;
}

TEST(SweepFindings, AnHonestSweepHasNone) {
    const std::vector<Point> points{gpu(Precision::fp16, 1), gpu(Precision::fp32, 1), gpu(Precision::fp16, 4),
                                    gpu(Precision::fp32, 4), gpu(Precision::fp16, 1, 512)};
    EXPECT_THAT(sweep_findings(points), IsEmpty());
}

TEST(SweepFindings, PrecisionsThatRanTheSameKernels) {
    std::vector<Point> points{gpu(Precision::fp16, 1), gpu(Precision::fp32, 1), gpu(Precision::bf16, 1)};
    for (std::size_t s = 0; s < points[1].steps.size(); ++s) points[1].steps[s].kernels = points[0].steps[s].kernels;
    EXPECT_THAT(sweep_findings(points),
                ElementsAre(HasSubstr("gpt2-large cuda fused batch 1 seq 1024: fp16 and fp32 executed the same")));
    points[1].steps[2].kernels[0].name += " another";
    EXPECT_THAT(sweep_findings(points), IsEmpty()) << "one step that differs is enough";
}

TEST(SweepFindings, NothingIsSaidOfAGpuWhoseKernelsWereNotRecorded) {
    std::vector<Point> points{gpu(Precision::fp16, 1), gpu(Precision::bf16, 1)};
    for (Point& point : points)
        for (StepResult& step : point.steps) {
            step.kernels.clear();
            step.implementation = "algo 66";
        }
    EXPECT_THAT(sweep_findings(points), IsEmpty());
}

TEST(SweepFindings, PrecisionsThatRanTheSameImplementationsOnACpu) {
    EXPECT_THAT(sweep_findings(std::vector{cpu(Precision::fp16, 1, "brgemm"), cpu(Precision::fp32, 1, "brgemm")}),
                ElementsAre(HasSubstr("fp16 and fp32 executed the same")));
    EXPECT_THAT(sweep_findings(std::vector{cpu(Precision::fp16, 1, "amx"), cpu(Precision::fp32, 1, "brgemm")}),
                IsEmpty());
    EXPECT_THAT(sweep_findings(std::vector{cpu(Precision::fp32, 1, "brgemm"), cpu(Precision::fp32, 2, "brgemm")}),
                IsEmpty())
        << "batches may";
}

TEST(SweepFindings, BatchesAndLengthsWithTheSameGrids) {
    const auto with_grid = [](Point point) {
        for (StepResult& step : point.steps)
            for (KernelResult& kernel : step.kernels) kernel.grid = {7, 7, 7};
        return point;
    };
    EXPECT_THAT(sweep_findings(std::vector{with_grid(gpu(Precision::fp16, 1)), with_grid(gpu(Precision::fp16, 4))}),
                ElementsAre(HasSubstr("seq 1024 fp16: batch 1 and batch 4 launched the same kernels")));
    EXPECT_THAT(
        sweep_findings(std::vector{with_grid(gpu(Precision::fp16, 1)), with_grid(gpu(Precision::fp16, 1, 512))}),
        ElementsAre(HasSubstr("batch 1 fp16: seq 1024 and seq 512 launched the same kernels")));
}

TEST(SweepFindings, BatchesWithTheSameSamples) {
    std::vector<Point> points{cpu(Precision::fp32, 1, "x"), cpu(Precision::fp32, 2, "x")};
    EXPECT_THAT(sweep_findings(points), IsEmpty());
    points[1].end_to_end->latency.samples_ms = points[0].end_to_end->latency.samples_ms;
    EXPECT_THAT(sweep_findings(points), ElementsAre(HasSubstr("batch 1 and batch 2 have identical samples")));
}

TEST(SweepFindings, RepeatsSayItOnceAndUntimedPointsNothing) {
    std::vector<Point> points;
    for (const int repeat : {1, 2})
        for (const Precision precision : {Precision::fp16, Precision::fp32}) {
            points.push_back(cpu(precision, 1, "brgemm"));
            points.back().set("repeat", repeat);
        }
    EXPECT_THAT(sweep_findings(points), testing::SizeIs(1));
    std::vector<Point> others = points;
    for (Point& point : others) point.status = PointStatus::failed;
    EXPECT_THAT(sweep_findings(others), IsEmpty());
    others = points;
    for (Point& point : others) point.steps.clear();
    EXPECT_THAT(sweep_findings(others), IsEmpty()) << "nothing is the same as nothing";
    for (Point& point : points) point.end_to_end.reset();
    EXPECT_THAT(sweep_findings(points), IsEmpty());
}

TEST(SweepFindings, GridsThatDifferInOneOfThreeWaysAreNotTheSame) {
    std::vector<Point> points{gpu(Precision::fp16, 1), gpu(Precision::fp16, 4)};
    for (StepResult& step : points[1].steps)
        for (std::size_t k = 0; k < step.kernels.size(); ++k) step.kernels[k].grid = {132, 8, 1};
    EXPECT_THAT(sweep_findings(points), testing::SizeIs(1));
    for (const std::size_t way : {0u, 1u, 2u}) {
        std::vector<Point> others = points;
        others[1].steps[0].kernels[0].grid[way] += 1;
        EXPECT_THAT(sweep_findings(others), IsEmpty()) << way;
    }
}

TEST(SweepFindings, PointsThatDifferInMoreThanOneWayAreNotSetBesideEachOther) {
    std::vector<Point> points{gpu(Precision::fp16, 1), gpu(Precision::fp32, 4)};
    for (std::size_t s = 0; s < points[1].steps.size(); ++s) points[1].steps[s].kernels = points[0].steps[s].kernels;
    EXPECT_THAT(sweep_findings(points), IsEmpty());
    points[1].set("batch", 1);
    EXPECT_THAT(sweep_findings(points), testing::SizeIs(1));
    points[1].seed = points[0].seed + 1;
    EXPECT_THAT(sweep_findings(points), IsEmpty()) << "of other data";
}

}  // namespace
}  // namespace kbench
