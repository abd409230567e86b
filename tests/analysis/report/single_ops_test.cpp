// The report of single ops: the fastest of each problem first, ties named, and no page of prose for each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

/// One op of the example under that name, as `kbench micro` writes it.
Point benchmark(const std::string& name, double ms) {
    const example::Machine h200{"cublaslt", "flash_wgmma_64", 17.9, 17.6, 9.0, 25.1, 21.2, 3.6, 175};
    Point point = example::gpu_point(1, h200, ms);
    point.set("model", name);
    point.steps = {point.steps[2]};
    point.steps[0].layer = "micro";
    point.cost = point.steps[0].cost;
    return point;
}

Result benchmarks() {
    Result result = example::profiled_result();
    result.points = {benchmark("gemm/native/fp16/fwd/m64n64k64/hot", 2),
                     benchmark("gemm/blas/fp16/fwd/m64n64k64/hot", 1), benchmark("gemm/blas/fp32/fwd/m64n64k64/hot", 4),
                     benchmark("gemm/native/fp32/fwd/m64n64k64/hot", 4)};
    return result;
}

TEST(SingleOps, BeginWithTheFastestOfEachProblem) {
    const std::string text = write_markdown(benchmarks());
    EXPECT_THAT(text, testing::StartsWith(
                          "# 4 benchmarks of gemm on NVIDIA H200\n\n## Fastest by problem\n\nFastest: blas in 1 of 2 "
                          "problems, blas or native in 1.\n\nThe highest rate is"));
    EXPECT_THAT(text, HasSubstr("| `gemm fp16 fwd m64n64k64 hot` | blas | 0.9995 |"));
    EXPECT_THAT(text, HasSubstr("| native | 2.00 |")) << "the next takes twice as long";
    EXPECT_THAT(text, HasSubstr("| gemm | native | fp16 | fwd | m64n64k64 | hot |"));
    EXPECT_THAT(text, Not(HasSubstr("Why it takes this long"))) << "which a page has, of the benchmark that is chosen";
    const nlohmann::ordered_json page = document_json(report_of(ExplainedResult(benchmarks())));
    EXPECT_THAT(page.dump(), HasSubstr("Why it takes this long"));
    EXPECT_THAT(page.dump(), Not(HasSubstr("What the points say"))) << "they are no repeats of each other";
}

TEST(SingleOps, WithoutIntervalsSamplesThatOverlapAreATie) {
    Result result = benchmarks();
    for (Point& point : result.points) {
        Summary& ms = point.end_to_end->latency.summary_ms;
        ms.n = 3;
        ms.independent = 3;
        ms.min = 0.98 * ms.median;
        ms.max = 1.02 * ms.median;
    }
    Summary& slower = result.points[3].end_to_end->latency.summary_ms;
    slower.median *= 1.01;
    EXPECT_THAT(write_markdown(result), HasSubstr("blas or native in 1"));
    slower.min = 1.05 * slower.median;
    EXPECT_THAT(write_markdown(result), HasSubstr("Fastest: blas in 2 of 2 problems."));
}

TEST(SingleOps, AModelIsNone) {
    EXPECT_FALSE(is_of_single_ops(example::profiled_result()));
    Result result = benchmarks();
    result.points.push_back(example::skipped_point());
    EXPECT_TRUE(is_of_single_ops(result)) << "what was skipped has no steps";
    result.points.resize(1);
    EXPECT_FALSE(is_of_single_ops(result)) << "one alone is told whole";
}

}  // namespace
}  // namespace kbench
