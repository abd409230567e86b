// The choice among GEMM candidates: the fastest correct one, never a wrong one.
#include <cmath>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/operands.h"
#include "kernels/gemm/tune.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr cuda::GemmProblem problem{.precision = Precision::fp16,
                                    .m = 256,
                                    .n = 512,
                                    .k = 512,
                                    .out_type = DataType::fp16,
                                    .ld_x = 512,
                                    .ld_w = 512,
                                    .ld_out = 512};

/// Candidates are told apart by their number, which stands in the algorithm's first word.
cuda::GemmAlgorithm candidate(std::uint64_t number) {
    cuda::GemmAlgorithm algorithm{};
    algorithm.algorithm.data[0] = number;
    return algorithm;
}

TEST(ProblemToMeasure, HasFewerRowsOnlyWhereTheyAreMany) {
    EXPECT_EQ(cuda::problem_to_measure(problem), problem);
    // GPT-2 large's head in fp16, 1280 and 50304 elements a row: 10,408 rows to the GiB.
    cuda::GemmProblem head = problem;
    head.n = head.ld_out = head.ld_w = 50304;
    head.k = head.ld_x = 1280;
    head.m = 4096;
    EXPECT_EQ(cuda::problem_to_measure(head).m, 4096);
    head.m = 1'000'000;
    cuda::GemmProblem fewer = cuda::problem_to_measure(head);
    EXPECT_EQ(fewer.m, 10 * 1024);
    fewer.m = head.m;
    EXPECT_EQ(fewer, head) << "rows alone";
    head.ld_out = std::int64_t{1} << 30;
    EXPECT_EQ(cuda::problem_to_measure(head).m, 1024);
}

TEST(Tuning, TakesTheFastestThatIsRight) {
    KBENCH_NEEDS_DEVICE();
    enum : std::uint64_t { right, idle, wrong_tail, refused, right_but_slow };
    const cuda::CublasGemm gemm(problem);
    const auto best = cuda::fastest(
        problem,
        {candidate(right_but_slow), candidate(right), candidate(idle), candidate(wrong_tail), candidate(refused)},
        cuda::CublasGemm::workspace_bytes,
        [&](const cuda::GemmAlgorithm& algorithm, const cuda::GemmPointers& pointers, void* workspace,
            cudaStream_t stream) {
            const std::uint64_t number = algorithm.algorithm.data[0];
            if (number == refused) return false;
            if (number == idle) return true;  // fast, but writes nothing
            for (int i = 0; i < (number == right_but_slow ? 16 : 1); ++i) gemm.run(pointers, workspace, stream);
            if (number == wrong_tail) {
                auto* last = static_cast<char*>(pointers.out) + problem.m * problem.n * 2 - 2;
                KBENCH_CUDA(cudaMemsetAsync(last, 0x40, 2, stream));  // 2.1 in fp16
            }
            return true;
        });
    EXPECT_EQ(best.algorithm.data[0], right);
    EXPECT_EQ(best.candidates, 2);
    EXPECT_GT(best.median_us, 0.5);
    EXPECT_LT(best.median_us, 200);
}

TEST(Tuning, SaysSoWhenNothingWorks) {
    KBENCH_NEEDS_DEVICE();
    EXPECT_THROW(
        cuda::fastest(problem, {candidate(0)}, 0, [](const auto&, const auto&, void*, cudaStream_t) { return false; }),
        Unsupported);
}

TEST(Operands, AreNormalAndSeeded) {
    KBENCH_NEEDS_DEVICE();
    for (DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
        constexpr std::int64_t count = 100000;
        const auto first = DeviceMatrix::poisoned(type, 1, count), second = DeviceMatrix::poisoned(type, 1, count);
        cuda::fill_normal(type, first.data(), count, 2, 7, nullptr);
        cuda::fill_normal(type, second.data(), count, 2, 7, nullptr);
        const HostMatrix values = first.download();
        EXPECT_EQ(values.bytes, second.download().bytes);
        cuda::fill_normal(type, second.data(), count, 2, 8, nullptr);
        EXPECT_NE(values.bytes, second.download().bytes);
        double sum = 0, squares = 0, neighbours = 0, beyond_two = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            sum += values(0, i);
            squares += values(0, i) * values(0, i);
            neighbours += values(0, i) * values(0, (i + 1) % count);
            beyond_two += std::abs(values(0, i)) > 4;
        }
        EXPECT_NEAR(sum / count, 0, 0.04);  // six standard errors
        EXPECT_NEAR(squares / count, 4, 0.11);
        EXPECT_NEAR(neighbours / count, 0, 0.08);
        EXPECT_NEAR(beyond_two / count, 0.0455, 0.004);
    }
}

TEST(Operands, LargestDifferenceSeesEveryElementAndNoPadding) {
    KBENCH_NEEDS_DEVICE();
    constexpr std::int64_t rows = 37, columns = 41, ld = 48;
    const auto a = HostMatrix::normal(DataType::fp32, rows, columns, 1, 1, 0, ld);
    auto b = a;
    b.set(rows - 1, columns - 1, a(rows - 1, columns - 1) + 3);
    b.set(0, ld - 1, std::nan(""));  // padding
    double* largest = nullptr;
    KBENCH_CUDA(cudaMalloc(&largest, sizeof *largest));
    const auto difference = [&](const HostMatrix& other) {
        const DeviceMatrix device_a(a), device_b(other);
        cuda::largest_difference(DataType::fp32, device_a.data(), device_b.data(), rows, columns, ld, largest, nullptr);
        double value = -1;
        KBENCH_CUDA(cudaMemcpy(&value, largest, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    };
    EXPECT_EQ(difference(a), 0);
    EXPECT_NEAR(difference(b), 3, 1e-6);
    b.set(5, 5, std::nan(""));
    EXPECT_EQ(difference(b), std::numeric_limits<double>::infinity());
    KBENCH_CUDA(cudaFree(largest));
}

}  // namespace
}  // namespace kbench::test
