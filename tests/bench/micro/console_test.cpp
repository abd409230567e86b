// The console of `kbench micro`: rows while it measures, then skips by reason and the matrix of times.
#include "bench/micro/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::size_t wide = 200;

Point timed(const std::string& name, double us, double relative_ci = 0.01) {
    Point point;
    point.set("model", name);
    point.status = PointStatus::done;
    Summary& ms = point.end_to_end.emplace().latency.summary_ms;
    ms.n = 100;
    ms.independent = 100;
    ms.median = us * 1e-3;
    ms.ci_low = ms.median * (1 - relative_ci);
    ms.ci_high = ms.median * (1 + relative_ci);
    return point;
}

Point not_timed(const std::string& name, PointStatus status, const std::string& reason) {
    Point point;
    point.set("model", name);
    point.status = status;
    point.reason = reason;
    return point;
}

benchmark::BenchmarkReporter::Run row_of(const std::string& name, double us, double tflop_per_s,
                                         const std::string& label = "brg:avx512_core; roof avx512_fp32") {
    benchmark::BenchmarkReporter::Run row;
    row.run_name.function_name = name;
    row.run_name.time_type = "manual_time";
    row.repetitions = 1;
    row.iterations = 4;
    row.time_unit = benchmark::kMicrosecond;
    row.real_accumulated_time = 4e-6 * us;
    row.counters["GB/s"] = 3145.728 / us;
    row.counters["TFLOP/s"] = tflop_per_s;
    if (us < 1e3) row.counters["ci%"] = 1.52286;
    row.counters["roof%"] = 194 * tflop_per_s;
    row.report_label = label;
    return row;
}

/// What is printed of rows and of the points of `result`.
std::string shown(const Result& result, const std::vector<benchmark::BenchmarkReporter::Run>& rows,
                  std::optional<std::size_t> width) {
    std::ostringstream out;
    MicroConsole console(result, {"ci%", "GB/s", "TFLOP/s", "roof%"}, width, &out);
    benchmark::BenchmarkReporter::Context context;
    context.name_field_width = sizeof("gemm/reference/fp32/fwd/m128n768k768/hot/manual_time") - 1;
    console.ReportContext(context);
    for (const auto& row : rows) console.ReportRuns({row});
    console.Finalize();
    return out.str();
}

std::string example(std::optional<std::size_t> width) {
    Result result;
    result.environment.kbench_version = "0.9";
    result.environment.host.cpu = "Intel Xeon Platinum 8481C";
    result.environment.host.physical_cores = result.environment.host.threads = 2;
    std::vector<benchmark::BenchmarkReporter::Run> rows;
    struct Provider {
        std::string name, label;
        double us;
    };
    const Provider providers[] = {{"onednn", "brg:avx512_core; roof avx512_fp32", 330.93},
                                  {"blas", "OpenBLAS 0.3.21 Haswell, 2 threads; roof avx512_fp32", 781.46},
                                  {"reference", "fp64 loops; roof avx512_fp32", 15109.3}};
    for (const int m : {128, 256})
        for (const Provider& provider : providers) {
            const double us = provider.us * m / 128;
            const auto name = [&](const char* precision) {
                return "gemm/" + provider.name + '/' + precision + "/fwd/m" + std::to_string(m) + "n768k768/hot";
            };
            result.points.push_back(timed(name("fp32"), us));
            rows.push_back(row_of(name("fp32"), us, 151 / provider.us, provider.label));
            if (provider.name == "reference") continue;
            result.points.push_back(not_timed(name("bf16"), PointStatus::skipped, provider.name + " has no bf16"));
            rows.emplace_back().run_name.function_name = name("bf16");
        }
    const std::string wrong = "gemm/wrong/fp32/fwd/m128n768k768/hot";
    result.points.push_back(not_timed(wrong, PointStatus::failed, "verification failed: 3 of 4,096 elements"));
    rows.emplace_back().run_name.function_name = wrong;
    return shown(result, rows, width);
}

TEST(MicroConsole, At100Columns) { expect_golden("micro-100.txt", example(100), "bench"); }
TEST(MicroConsole, At60Columns) { expect_golden("micro-60.txt", example(60), "bench"); }

TEST(MicroConsole, NoLineIsWiderThanTheTerminal) {
    for (const std::size_t width : {60U, 80U, 100U, 133U}) {
        std::istringstream lines(example(width));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
    }
}

TEST(MicroConsole, InAFileABenchmarkIsALine) {
    const std::string text = example(std::nullopt);
    EXPECT_THAT(text, HasSubstr("456 GFLOP/s    88.5  brg:avx512_core; roof avx512_fp32\n"));
    EXPECT_EQ(std::ranges::count(text, '\n'), 3 + 7 + 3 + 5) << "header, rows, skips, matrix: " << text;
}

TEST(MicroConsole, GivesTinyRatesInGflop) {
    const auto row = [](double tflop_per_s) { return shown({}, {row_of("a/b/c/d/e/f", 10, tflop_per_s)}, wide); };
    EXPECT_THAT(row(9.99368e-3), HasSubstr("  9.99 GFLOP/s"));
    EXPECT_THAT(row(9.99368e-6), HasSubstr("  0.00999 GFLOP/s"));
    EXPECT_THAT(row(0.9996), HasSubstr("  1.00 TFLOP/s"));
    EXPECT_THAT(row(812.4), HasSubstr("  812 TFLOP/s"));
    EXPECT_THAT(row(0), Not(HasSubstr("FLOP/s  brg"))) << "an op without FLOPs has no rate";
}

TEST(MicroConsole, GivesACoefficientOfVariationAsAShare) {
    auto row = row_of("a/b/c/d/e/f", 10, 0.0123);
    row.run_type = benchmark::BenchmarkReporter::Run::RT_Aggregate;
    row.aggregate_name = "cv";
    row.aggregate_unit = benchmark::kPercentage;
    row.real_accumulated_time = 0.0234;
    const std::string text = shown({}, {row}, wide);
    EXPECT_THAT(text, HasSubstr("a/b/c/d/e/f_cv"));
    EXPECT_THAT(text, HasSubstr("2.34 %"));
    EXPECT_THAT(text, HasSubstr("1.23 %"));
    EXPECT_THAT(text, HasSubstr("brg:")) << "no row above it says what computes";
}

TEST(MicroConsole, AggregatesDoNotRepeatWhatTheRowsAboveThemSay) {
    const auto single = row_of("a/b/c/d/e/f", 10, 0.0123);
    auto mean = single;
    mean.run_type = benchmark::BenchmarkReporter::Run::RT_Aggregate;
    mean.aggregate_name = "mean";
    const auto labels = [](const std::vector<benchmark::BenchmarkReporter::Run>& rows) {
        const std::string text = shown({}, rows, wide);
        int found = 0;
        for (std::size_t at = 0; (at = text.find("brg:", at)) != std::string::npos; ++at) ++found;
        return found;
    };
    EXPECT_EQ(labels({single, mean, mean}), 1);
    EXPECT_EQ(labels({mean, mean}), 1) << "--benchmark_report_aggregates_only";
    EXPECT_EQ(labels({mean, row_of("a/b/c/d/e/g", 10, 0.0123)}), 2);
}

TEST(MicroSummary, SaysAReasonOnce) {
    const std::vector<Point> points{
        not_timed("gemm/onednn/fp64/fwd/m8n8k8/cold", PointStatus::skipped, "oneDNN has no fp64"),
        not_timed("gemm/blas/bf16/fwd/m8n8k8/cold", PointStatus::skipped, "BLAS computes in fp64 and fp32"),
        not_timed("gemm/onednn/fp64/wgrad/m16n8k8/hot", PointStatus::skipped, "oneDNN has no fp64"),
        not_timed("gemm/blas/fp16/fwd/m8n8k8/hot", PointStatus::skipped, "BLAS computes in fp64 and fp32"),
    };
    EXPECT_EQ(micro_summary(points, wide),
              "\nnot measured: gemm fwd, wgrad by onednn in fp64: oneDNN has no fp64 (2 cases)\n"
              "not measured: gemm m8n8k8 by blas in bf16, fp16: BLAS computes in fp64 and fp32 (2 cases)\n");
}

TEST(MicroSummary, MarksTheFastestOfEachProblem) {
    const std::vector<Point> points{
        timed("gemm/onednn/fp32/fwd/m8n8k8/hot", 10),  timed("gemm/blas/fp32/fwd/m8n8k8/hot", 20),
        timed("gemm/onednn/fp32/fwd/m9n8k8/hot", 30),  timed("gemm/blas/fp32/fwd/m9n8k8/hot", 25),
        timed("gemm/blas/fp32/fwd/m10n8k8/hot", 2500), timed("gemm/onednn/fp32/fwd/m11n8k8/hot", 40, 0.04),
        timed("gemm/blas/fp32/fwd/m11n8k8/hot", 41),
    };  // m10n8k8 has one provider, which is no fastest
    EXPECT_EQ(micro_summary(points, wide),
              "\nMedian time of gemm fp32 fwd hot, * the fastest (several where their 95 % intervals overlap):\n"
              "shape        onednn        blas  fastest\n"
              "m8n8k8   * 10.00 us    20.00 us  onednn\n"
              "m9n8k8     30.00 us  * 25.00 us  blas\n"
              "m10n8k8           -    2.500 ms\n"
              "m11n8k8  * 40.00 us  * 41.00 us  onednn, blas\n");
}

TEST(MicroSummary, ProvidersThatDoNotFitStandBelow) {
    const std::vector<Point> points{timed("gemm/native/fp16/fwd/m8n8k8/hot", 10),
                                    timed("gemm/cublas/fp16/fwd/m8n8k8/hot", 20),
                                    timed("gemm/cublaslt/fp16/fwd/m8n8k8/cold", 5)};
    const std::string text = micro_summary(points, 30);
    EXPECT_THAT(text, HasSubstr("cache      native    cublas\n"));
    EXPECT_THAT(text, HasSubstr("cache  cublaslt  fastest\n"));
}

TEST(MicroSummary, OneProviderIsNotTheFastest) {
    const std::vector<Point> points{timed("gelu/native/fp32/fwd/n8/hot", 10), timed("gelu/native/fp32/fwd/n9/hot", 20)};
    EXPECT_EQ(micro_summary(points, wide),
              "\nMedian time of gelu fp32 fwd hot:\nshape    native\nn8     10.00 us\nn9     20.00 us\n");
    EXPECT_THAT(micro_summary({points.data(), 1}, wide), IsEmpty()) << "nothing to compare";
}

}  // namespace
}  // namespace kbench
