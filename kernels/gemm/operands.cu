// Random operands, and the comparison of outputs. Only GEMM tuning runs these, outside all measurements.
#include <algorithm>
#include <cmath>

#include "kernels/check.h"
#include "kernels/gemm/operands.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads = 256;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): neighbouring counters give unrelated words.
__device__ std::uint64_t mix(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}

template <typename T>
__global__ void fill_normal_kernel(T* data, std::int64_t count, float deviation, std::uint64_t seed) {
    const std::int64_t index = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (index >= count) return;
    const std::uint64_t word = mix(mix(seed) + 0x9e3779b97f4a7c15ull * static_cast<std::uint64_t>(index));
    const float u = (static_cast<float>(word >> 40) + 0.5f) * 0x1p-24f;  // in (0, 1), so that the logarithm is finite
    const float v = static_cast<float>(word & 0xffffffu) * 0x1p-24f;
    data[index] = static_cast<T>(deviation * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));  // Box and Muller, 1958
}

/// Non-negative doubles sort like their bits, so an integer maximum finds the largest.
template <typename T>
__global__ void largest_difference_kernel(const T* a, const T* b, std::int64_t rows, std::int64_t columns,
                                          std::int64_t ld, unsigned long long* largest) {
    double mine = 0;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < rows * columns;
         i += std::int64_t{gridDim.x} * threads) {
        const std::int64_t at = i / columns * ld + i % columns;
        const double difference =
            fabs(static_cast<double>(static_cast<Arithmetic<T>>(a[at])) - static_cast<Arithmetic<T>>(b[at]));
        mine = isfinite(difference) ? fmax(mine, difference) : INFINITY;
    }
    atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(mine)));
}

}  // namespace

void fill_normal(DataType type, void* data, std::int64_t count, double deviation, std::uint64_t seed,
                 cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        fill_normal_kernel<<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, stream>>>(
            static_cast<T*>(data), count, static_cast<float>(deviation), seed);
    });
    KBENCH_CUDA_LAUNCHED("fill_normal_kernel");
}

void largest_difference(DataType type, const void* a, const void* b, std::int64_t rows, std::int64_t columns,
                        std::int64_t ld, double* largest, cudaStream_t stream) {
    static_assert(sizeof(double) == sizeof(unsigned long long));
    KBENCH_CUDA(cudaMemsetAsync(largest, 0, sizeof(double), stream));
    dispatch(type, [&]<typename T>() {
        const auto blocks = std::min<std::int64_t>(2048, divide_up(rows * columns, threads));
        largest_difference_kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
            static_cast<const T*>(a), static_cast<const T*>(b), rows, columns, ld,
            reinterpret_cast<unsigned long long*>(largest));
    });
    KBENCH_CUDA_LAUNCHED("largest_difference_kernel");
}

}  // namespace kbench::cuda
