// FFMA, DFMA and HFMA2 in independent chains, so that latency is hidden within a warp too.
#include <cuda_fp16.h>

#include <string>
#include <type_traits>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/fma.h"
#include "kernels/probe/values.h"

namespace kbench::cuda::probe {
namespace {

__device__ float multiply_add(float x, float m, float c) { return fmaf(x, m, c); }
__device__ double multiply_add(double x, double m, double c) { return fma(x, m, c); }
__device__ __half2 multiply_add(__half2 x, __half2 m, __half2 c) { return __hfma2(x, m, c); }

template <typename T>
__device__ T start(unsigned thread, int chain) {
    if constexpr (std::is_same_v<T, __half2>)
        return __floats2half2_rn(operand(thread, 0, chain), operand(thread, 1, chain));
    else
        return operand(thread, 0, chain);
}

/// Both halves of a pair. `one` is 1, which only the caller knows: where the compiler sees that halves are equal, it
/// keeps two operands in one register and makes all steps HFMA2, of one pipe. With whole registers every other step is
/// HFMA2.MMA, of another pipe (compute capability 8.0 and 9.0).
template <typename T>
__device__ T both(float value, float one) {
    if constexpr (std::is_same_v<T, __half2>)
        return __floats2half2_rn(value, value * one);
    else
        return value;
}

template <typename T, int chains>
__global__ __launch_bounds__(fma_threads) void fma_kernel(int iterations, float decay, float one, T* out, Span* span) {
    const unsigned thread = blockIdx.x * fma_threads + threadIdx.x;
    const T m = both<T>(-1.0f + static_cast<float>(1 + thread % 2) * decay, one),
            c = both<T>(operand(thread, 2, 0), one);
    T x[chains];
#pragma unroll
    for (int k = 0; k < chains; ++k) x[k] = start<T>(thread, k);
    const Stopwatch watch;
#pragma unroll 1
    for (int i = 0; i < iterations; ++i) {
#pragma unroll
        for (int s = 0; s < fma_steps; ++s)
#pragma unroll
            for (int k = 0; k < chains; ++k) x[k] = multiply_add(x[k], m, c);
    }
    T sum = x[0];
#pragma unroll
    for (int k = 1; k < chains; ++k) sum = sum + x[k];
    out[thread] = sum;
    watch.stop(span);
}

template <typename T>
void launch(DataType type, int chains, int blocks, int iterations, void* out, Span* span, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(blocks);
    const auto decay = static_cast<float>(fma_decay(type));
    T* sums = static_cast<T*>(out);
    switch (chains) {
        case 4: fma_kernel<T, 4><<<grid, fma_threads, 0, stream>>>(iterations, decay, 1.0f, sums, span); break;
        case 8: fma_kernel<T, 8><<<grid, fma_threads, 0, stream>>>(iterations, decay, 1.0f, sums, span); break;
        case 16: fma_kernel<T, 16><<<grid, fma_threads, 0, stream>>>(iterations, decay, 1.0f, sums, span); break;
        default: throw UsageError("a probe of plain cores has 4, 8 or 16 chains, not " + std::to_string(chains));
    }
    KBENCH_CUDA_LAUNCHED("fma_kernel");
}

}  // namespace

void fma_chains(DataType type, int chains, int blocks, int iterations, void* out, Span* span, cudaStream_t stream) {
    switch (type) {
        case DataType::fp16: return launch<__half2>(type, chains, blocks, iterations, out, span, stream);
        case DataType::fp32: return launch<float>(type, chains, blocks, iterations, out, span, stream);
        case DataType::fp64: return launch<double>(type, chains, blocks, iterations, out, span, stream);
        default: throw UsageError("a probe of plain cores takes fp16, fp32 or fp64, not " + std::string(name(type)));
    }
}

}  // namespace kbench::cuda::probe
