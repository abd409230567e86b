// cuBLASLt's products on parts of a GPU: an algorithm whose clusters of SMs a part does not have cannot be chosen
// there.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "bench/device/device.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/operands.h"

namespace kbench {
namespace {

TEST(GemmOnParts, RunsByAnAlgorithmThatWasMeasuredThere) {
    if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
    const std::unique_ptr<Device> all = make_cuda_device();
    std::vector<int> counts;
    try {
        counts = possible_multiprocessors(*all);
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    constexpr std::int64_t m = 1024, n = 5120, k = 1280;  // GPT-2 large's first of two products in an MLP
    constexpr std::size_t limit = std::size_t{64} << 20;
    for (const Precision precision : {Precision::fp16, Precision::tf32}) {
        const DataType type = storage_type(precision);
        const DeviceBuffer x(*all, m * k * size_of(type)), w(*all, k * n * size_of(type)),
            bias(*all, n * size_of(type)), out(*all, m * n * size_of(type)), expected(*all, m * n * size_of(type)),
            workspace(*all, limit), difference(*all, sizeof(double));
        auto* const stream = static_cast<cudaStream_t>(all->stream());
        cuda::fill_normal(type, x.data(), m * k, 1, 1, stream);
        cuda::fill_normal(type, w.data(), k * n, 0.03, 2, stream);
        cuda::fill_normal(type, bias.data(), n, 1, 3, stream);
        const cuda::GemmProblem problem{.precision = precision,
                                        .m = m,
                                        .n = n,
                                        .k = k,
                                        .bias = true,
                                        .gelu = true,
                                        .out_type = type,
                                        .ld_x = k,
                                        .ld_w = n,
                                        .ld_out = n};
        cuda::AlgorithmCache cache("", false);
        const auto run = [&](Device& on, const DeviceBuffer& to) {
            auto* const stream_of = static_cast<cudaStream_t>(on.stream());
            for (const cuda::LtGemm& gemm : {cuda::LtGemm(problem, limit, stream_of),  // as --deterministic has it
                                             cuda::LtGemm(problem, cache, limit, stream_of)}) {
                on.fill(to.data(), 0xff, to.bytes());
                gemm.run({x.data(), w.data(), bias.data(), to.data()}, workspace.data(), stream_of);
                on.synchronize();
            }
        };
        run(*all, expected);
        for (const int count : counts) {
            if (2 * count < all->multiprocessors() || count == all->multiprocessors()) continue;
            SCOPED_TRACE(testing::Message() << count << " SMs, " << name(precision));
            const std::unique_ptr<Device> part = make_cuda_device(count);
            run(*part, out);
            cuda::largest_difference(type, expected.data(), out.data(), m, n, n,
                                     reinterpret_cast<double*>(difference.data()), stream);
            all->synchronize();
            double largest = 0;
            all->download(&largest, difference.data(), sizeof largest);
            EXPECT_LT(largest, 0.02) << "of sums of 1280 products, which are of order 1";
        }
    }
}

}  // namespace
}  // namespace kbench
