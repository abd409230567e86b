// What the probe kernels share: the span of a block, and sums that keep loads from being optimised away.
#pragma once

#include <cstdint>

#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

/// The GPU's timer, which all SMs share.
__device__ inline std::uint64_t now_ns() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/// Measures a span; it starts on construction.
class Stopwatch {
  public:
    __device__ Stopwatch() {
        cycles_ = clock64();
        ns_ = now_ns();
    }
    /// Every thread of the grid calls it; the first one writes. `span` may be null.
    __device__ void stop(Span* span) const {
        if (span == nullptr || blockIdx.x != 0 || threadIdx.x != 0) return;
        span->cycles = static_cast<std::uint64_t>(clock64() - cycles_);
        span->ns = now_ns() - ns_;
    }

  private:
    long long cycles_;
    std::uint64_t ns_;
};

/// A load past L1 that no compiler drops or keeps.
__device__ inline uint4 load_l2(const uint4* address) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}

__device__ inline std::uint32_t total(uint4 v) { return v.x + v.y + v.z + v.w; }
__device__ inline std::uint32_t total(uint2 v) { return v.x + v.y; }
__device__ inline std::uint32_t total(std::uint32_t v) { return v; }

/// Number of places for block sums: enough that atomics of different blocks rarely collide.
inline constexpr unsigned sum_slots = 1024;

/// Adds the block's sum of `mine` to its slot, modulo 2^32. Every thread of a block of `threads` must call it.
template <int threads>
__device__ void add_block_sum(std::uint32_t mine, std::uint32_t* sums) {
    __shared__ std::uint32_t warps[threads / 32];
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x != 0) return;
    std::uint32_t sum = 0;
#pragma unroll
    for (int w = 0; w < threads / 32; ++w) sum += warps[w];
    atomicAdd(&sums[blockIdx.x % sum_slots], sum);
}

}  // namespace kbench::cuda::probe
