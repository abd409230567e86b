// Every rung of the GEMM ladder, with every tile that it was built for, against the reference.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>
#include <vector>

#include "kbench/error.h"
#include "kbench/statistics.h"
#include "kernels/check.h"
#include "kernels/gemm/ladder/ladder.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using cuda::GemmProblem;
using cuda::GemmRung;

struct Shape {
    std::int64_t m, n, k;
    bool weight_transposed = false;
    std::int64_t padding = 0;  ///< behind every row, in elements
    std::int64_t offset = 0;   ///< from an aligned address to every operand, in elements
};

GemmProblem problem_of(Precision precision, const Shape& s) {
    GemmProblem p{};
    p.precision = precision;
    p.m = s.m;
    p.n = s.n;
    p.k = s.k;
    p.weight_transposed = s.weight_transposed;
    p.out_type = storage_type(precision);
    p.ld_x = s.k + s.padding;
    p.ld_w = (s.weight_transposed ? s.k : s.n) + s.padding;
    p.ld_out = s.n + s.padding;
    return p;
}

/// Operands whose padding is NaN, so that what is read beyond a row shows in the result.
HostMatrix operand(DataType type, std::int64_t rows, std::int64_t columns, unsigned seed, double deviation,
                   std::int64_t stride) {
    HostMatrix matrix = HostMatrix::normal(type, rows, columns, seed, deviation, 0, stride);
    HostMatrix whole{type, rows, stride, stride};
    whole.bytes = matrix.bytes;
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = columns; column < stride; ++column) whole.set(row, column, std::nan(""));
    matrix.bytes = whole.bytes;
    return matrix;
}

class GemmLadder : public ::testing::TestWithParam<std::tuple<GemmRung, Precision>> {
  protected:
    GemmRung rung() const { return std::get<0>(GetParam()); }
    Precision precision() const { return std::get<1>(GetParam()); }
    std::size_t configurations() const { return cuda::gemm_rung_configurations(rung(), precision()); }

    /// Every configuration that fits the device, and the one that the table's rule chooses.
    void check_all(const Shape& shape) {
        const GemmProblem p = problem_of(precision(), shape);
        const DataType type = storage_type(precision());
        const HostMatrix x = operand(type, p.m, p.k, 1, 1, p.ld_x);
        const HostMatrix w =
            p.weight_transposed ? operand(type, p.n, p.k, 2, 0.05, p.ld_w) : operand(type, p.k, p.n, 2, 0.05, p.ld_w);
        const DeviceMatrix device_x(x, shape.offset), device_w(w, shape.offset);
        const auto elements = elements_of(p.m, p.n, 500);
        const auto expected =
            reference::gemm({p.m, p.n, p.k, p.weight_transposed}, x.view(), w.view(), {}, std::nullopt, {}, elements);
        int device = 0, smem_bytes = 0;
        KBENCH_CUDA(cudaGetDevice(&device));
        KBENCH_CUDA(cudaDeviceGetAttribute(&smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
        std::vector<std::size_t> list{cuda::chosen_configuration};
        for (std::size_t i = 0; i < configurations(); ++i)
            if (cuda::gemm_rung_smem_bytes(rung(), precision(), i) <= smem_bytes) list.push_back(i);
        for (const std::size_t configuration : list) {
            SCOPED_TRACE(fmt::format("m {} n {} k {}{} padding {} offset {}, {}", shape.m, shape.n, shape.k,
                                     shape.weight_transposed ? " transposed" : "", shape.padding, shape.offset,
                                     cuda::gemm_kernel_name(rung(), p, configuration)));
            const auto out = DeviceMatrix::poisoned(type, p.m, p.n, p.ld_out, shape.offset);
            cuda::gemm(rung(), p, {device_x.data(), device_w.data(), nullptr, out.data()}, nullptr, configuration);
            const HostMatrix result = out.download();
            expect_all_written(result);
            expect_agrees(result, elements, expected, precision());
        }
    }

    static void expect_all_written(const HostMatrix& result) {
        const reference::View whole{result.bytes.data(), result.type, result.rows, result.stride, result.stride};
        std::int64_t unwritten = 0, overwritten = 0;
        for (std::int64_t row = 0; row < result.rows; ++row) {
            for (std::int64_t column = 0; column < result.columns; ++column)
                unwritten += std::isnan(whole(row, column));
            for (std::int64_t column = result.columns; column < result.stride; ++column)
                overwritten += !std::isnan(whole(row, column));
        }
        EXPECT_EQ(unwritten, 0) << "elements not written, or made of what lies beyond a row";
        EXPECT_EQ(overwritten, 0) << "elements of the padding written";
    }
};

#define KBENCH_NEEDS_RUNG()                                                                           \
    KBENCH_NEEDS_DEVICE();                                                                            \
    if (const std::string reason = cuda::gemm_rung_unsupported(rung(), precision()); !reason.empty()) \
    GTEST_SKIP() << reason

TEST_P(GemmLadder, ComputesTheProduct) {
    KBENCH_NEEDS_RUNG();
    for (const Shape& shape : {Shape{1, 1, 1}, {17, 33, 65}, {129, 257, 31}, {128, 256, 64}, {1000, 328, 520}})
        check_all(shape);
}

TEST_P(GemmLadder, ComputesTheProductWithATransposedWeight) {
    KBENCH_NEEDS_RUNG();
    for (const Shape& shape : {Shape{1, 1, 1, true},
                               {17, 33, 65, true},
                               {129, 257, 31, true},
                               {256, 384, 256, true},
                               {1000, 328, 520, true}})
        check_all(shape);
}

TEST_P(GemmLadder, LeavesPaddingAloneAndTakesAnyAlignment) {
    KBENCH_NEEDS_RUNG();
    for (const bool transposed : {false, true}) {
        check_all({130, 264, 104, transposed, 8});
        check_all({130, 264, 104, transposed, 3});
        check_all({64, 256, 128, transposed, 8, 1});
        check_all({129, 250, 99, transposed, 5, 3});
    }
}

TEST_P(GemmLadder, ComputesGpt2sProducts) {
    KBENCH_NEEDS_RUNG();
    check_all({1024, 3840, 1280});
    check_all({1024, 1280, 5120});
    check_all({64, 6336, 1280, true});
}

/// More tiles than one wave of blocks, with strips of tiles that the last does not fill.
TEST_P(GemmLadder, ComputesManyTiles) {
    KBENCH_NEEDS_RUNG();
    check_all({128 * 19, 256 * 3, 128});
}

TEST_P(GemmLadder, CanBeCapturedInAGraph) {
    KBENCH_NEEDS_RUNG();
    const GemmProblem p = problem_of(precision(), {256, 256, 256});
    const DataType type = storage_type(precision());
    const HostMatrix x = HostMatrix::normal(type, 256, 256, 1), w = HostMatrix::normal(type, 256, 256, 2, 0.05);
    const DeviceMatrix device_x(x), device_w(w);
    const auto out = DeviceMatrix::poisoned(type, 256, 256);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    KBENCH_CUDA(cudaStreamCreate(&stream));
    KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cuda::gemm(rung(), p, {device_x.data(), device_w.data(), nullptr, out.data()}, stream);
    KBENCH_CUDA(cudaStreamEndCapture(stream, &graph));
    KBENCH_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    KBENCH_CUDA(cudaGraphLaunch(exec, stream));
    const auto elements = elements_of(256, 256, 500);
    expect_agrees(out.download(), elements,
                  reference::gemm({256, 256, 256, false}, x.view(), w.view(), {}, std::nullopt, {}, elements),
                  precision());
    KBENCH_CUDA(cudaGraphExecDestroy(exec));
    KBENCH_CUDA(cudaGraphDestroy(graph));
    KBENCH_CUDA(cudaStreamDestroy(stream));
}

/// Mean of so many launches in a row, microseconds.
template <class Run>
double microseconds(Run run, std::size_t launches) {
    cudaEvent_t start, stop;
    KBENCH_CUDA(cudaEventCreate(&start));
    KBENCH_CUDA(cudaEventCreate(&stop));
    KBENCH_CUDA(cudaEventRecord(start));
    for (std::size_t i = 0; i < launches; ++i) run();
    KBENCH_CUDA(cudaEventRecord(stop));
    KBENCH_CUDA(cudaEventSynchronize(stop));
    float ms = 0;
    KBENCH_CUDA(cudaEventElapsedTime(&ms, start, stop));
    KBENCH_CUDA(cudaEventDestroy(start));
    KBENCH_CUDA(cudaEventDestroy(stop));
    return ms * 1e3 / static_cast<double>(launches);
}

/// For tuning: what each row of the rung's table does at 8192 x 8192 x 8192 (4096 in fp64 and on rungs 1 and 2), hot,
/// all rows in turn under a load that lasts, so that none has the clocks of a GPU that was idle. `kernels_tests
/// --gtest_also_run_disabled_tests --gtest_filter='*TimesEveryConfiguration*'`
TEST_P(GemmLadder, DISABLED_TimesEveryConfiguration) {
    KBENCH_NEEDS_RUNG();
    using Clock = std::chrono::steady_clock;
    constexpr double warm_up_s = 0.5, seconds_of_row = 0.5;
    const bool slow = precision() == Precision::fp64 || rung() < GemmRung::registers;
    for (const Shape& shape : {slow ? Shape{4096, 4096, 4096} : Shape{8192, 8192, 8192}, Shape{1024, 3840, 1280},
                               Shape{1024, 1280, 1280}, Shape{1024, 1280, 5120}}) {
        const GemmProblem p = problem_of(precision(), shape);
        const DataType type = storage_type(precision());
        const DeviceMatrix x(HostMatrix::normal(type, p.m, p.k, 1)), w(HostMatrix::normal(type, p.k, p.n, 2, 0.05));
        const auto out = DeviceMatrix::poisoned(type, p.m, p.n);
        const auto run = [&](std::size_t row) {
            cuda::gemm(rung(), p, {x.data(), w.data(), nullptr, out.data()}, nullptr, row);
        };
        std::vector<std::size_t> launches;
        for (std::size_t row = 0; row < configurations(); ++row) {
            run(row);
            launches.push_back(
                std::max<std::size_t>(5, static_cast<std::size_t>(2000 / microseconds([&] { run(row); }, 5))));
        }
        std::vector<std::vector<double>> samples(configurations());
        const auto rounds = [&](double seconds, bool keep) {
            const auto start = Clock::now();
            while (std::chrono::duration<double>(Clock::now() - start).count() < seconds)
                for (std::size_t row = 0; row < configurations(); ++row) {
                    const double us = microseconds([&] { run(row); }, launches[row]);
                    if (keep) samples[row].push_back(us);
                }
        };
        rounds(warm_up_s, false);
        rounds(seconds_of_row * static_cast<double>(configurations()), true);
        const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
        for (std::size_t row = 0; row < configurations(); ++row) {
            const Summary us = summarise(samples[row]);
            fmt::print("m{}n{}k{} {} {:.1f} us [{:.1f}, {:.1f}] {:.1f} TFLOP/s\n", p.m, p.n, p.k,
                       cuda::gemm_kernel_name(rung(), p, row), us.median, us.min, us.max, flops / us.median / 1e6);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Rungs, GemmLadder,
                         ::testing::Combine(::testing::Values(GemmRung::naive, GemmRung::tiled, GemmRung::registers,
                                                              GemmRung::async, GemmRung::mma),
                                            ::testing::ValuesIn(all_precisions)),
                         [](const auto& parameter) {
                             const auto rung = static_cast<int>(std::get<0>(parameter.param));
                             return fmt::format("{}_{}", cuda::gemm_rungs[rung], name(std::get<1>(parameter.param)));
                         });

TEST(GemmLadderTable, EveryRungHasTheWholePrecisionsAndSaysWhyNotTheOthers) {
    for (const Precision precision : all_precisions)
        for (std::size_t i = 0; i < cuda::gemm_rungs.size(); ++i) {
            const auto rung = static_cast<GemmRung>(i);
            const bool computes = cuda::gemm_rung_configurations(rung, precision) > 0;
            EXPECT_EQ(computes, rung == GemmRung::mma ? precision != Precision::fp32 : precision != Precision::tf32);
            EXPECT_EQ(computes, cuda::gemm_rung_unsupported(rung, precision).empty());
        }
    for (const Precision precision : all_precisions)
        EXPECT_EQ(cuda::gemm_rung_unsupported(cuda::top_rung(precision), precision), "");
}

TEST(GemmLadderTable, RefusesWhatItCannotComputeBeforeTouchingADevice) {
    const auto run = [](GemmProblem p) { cuda::gemm(GemmRung::naive, p, {}, nullptr); };
    EXPECT_THROW(run(problem_of(Precision::tf32, {8, 8, 8})), Unsupported);
    EXPECT_THROW(run(problem_of(Precision::fp32, {8, 0, 8})), UsageError);
    GemmProblem problem = problem_of(Precision::fp32, {8, 8, 8});
    problem.bias = true;
    EXPECT_THROW(run(problem), Unsupported);
    problem = problem_of(Precision::fp32, {8, 8, 8});
    problem.batch = 2;
    EXPECT_THROW(run(problem), Unsupported);
    problem = problem_of(Precision::fp16, {8, 8, 8});
    problem.out_type = DataType::fp32;
    EXPECT_THROW(run(problem), Unsupported);
    EXPECT_THROW(run(problem_of(Precision::fp32, {std::int64_t{1} << 31, 8, 8})), Unsupported);
}

}  // namespace
}  // namespace kbench::test
