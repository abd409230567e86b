// Powers of two and shuffles, in independent chains, so that latency is hidden within a warp too.
#include <string>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/unit.h"
#include "kernels/probe/values.h"

namespace kbench::cuda::probe {
namespace {

template <int chains>
__global__ __launch_bounds__(unit_threads) void power_kernel(int iterations, float* out, Span* span) {
    const unsigned thread = blockIdx.x * unit_threads + threadIdx.x;
    float x[chains];
#pragma unroll
    for (int k = 0; k < chains; ++k) x[k] = fabsf(operand(thread, 0, k));
    const Stopwatch watch;
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int s = 0; s < unit_steps; ++s)
#pragma unroll
            for (int k = 0; k < chains; ++k)
                asm volatile("{ .reg .f32 y; neg.ftz.f32 y, %0; ex2.approx.ftz.f32 %0, y; }" : "+f"(x[k]));
    float sum = x[0];
#pragma unroll
    for (int k = 1; k < chains; ++k) sum += x[k];
    out[thread] = sum;
    __syncthreads();  // the first warp has priority, and would finish long before the others
    watch.stop(span);
}

template <int chains>
__global__ __launch_bounds__(unit_threads) void shuffle_kernel(int iterations, std::uint32_t* out, Span* span) {
    const unsigned thread = blockIdx.x * unit_threads + threadIdx.x;
    std::uint32_t x[chains];
#pragma unroll
    for (int k = 0; k < chains; ++k) x[k] = scramble(thread) + static_cast<std::uint32_t>(k);
    const Stopwatch watch;
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int s = 0; s < unit_steps; ++s)
#pragma unroll
            for (int k = 0; k < chains; ++k) x[k] = __shfl_xor_sync(0xffffffffu, x[k], shuffle_mask(s));
    std::uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < chains; ++k) sum += x[k];
    out[thread] = sum;
    __syncthreads();  // the first warp has priority, and would finish in an eighth of the time
    watch.stop(span);
}

}  // namespace

void power_chains(int chains, int blocks, int iterations, float* out, Span* span, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(blocks);
    switch (chains) {
        case 2: power_kernel<2><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        case 4: power_kernel<4><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        case 8: power_kernel<8><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        default: throw UsageError("a probe of a unit has 2, 4 or 8 chains, not " + std::to_string(chains));
    }
    KBENCH_CUDA_LAUNCHED("power_kernel");
}

void shuffle_chains(int chains, int blocks, int iterations, std::uint32_t* out, Span* span, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(blocks);
    switch (chains) {
        case 2: shuffle_kernel<2><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        case 4: shuffle_kernel<4><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        case 8: shuffle_kernel<8><<<grid, unit_threads, 0, stream>>>(iterations, out, span); break;
        default: throw UsageError("a probe of a unit has 2, 4 or 8 chains, not " + std::to_string(chains));
    }
    KBENCH_CUDA_LAUNCHED("shuffle_kernel");
}

}  // namespace kbench::cuda::probe
