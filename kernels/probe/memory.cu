// Streams through device memory: blocks take chunks in turn, and each thread has `loads` 16-byte accesses in flight.
#include <string>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"
#include "kernels/probe/memory.h"
#include "kernels/probe/values.h"

namespace kbench::cuda::probe {
namespace {

constexpr int threads = 256;
static_assert(memory_sums == sum_slots);

template <Hint hint>
__device__ uint4 load(const uint4* address) {
    if constexpr (hint == Hint::none) return *address;
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
    return v;
}

template <Hint hint>
__device__ void store(uint4* address, uint4 v) {
    if constexpr (hint == Hint::streaming) return __stcs(address, v);
    *address = v;
}

__device__ std::uint32_t triad(std::uint32_t b, std::uint32_t c) {
    return __float_as_uint(fmaf(triad_factor, __uint_as_float(c), __uint_as_float(b)));
}

template <Traffic traffic, Hint hint, int loads>
__global__ __launch_bounds__(threads) void memory_kernel(uint4* a, const uint4* b, const uint4* c, std::int64_t chunks,
                                                         std::uint32_t seed, std::uint32_t* sums, Span* span) {
    const Stopwatch watch;
    std::uint32_t sum = 0;
    for (std::int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const std::int64_t first = chunk * (threads * loads) + threadIdx.x;
        uint4 from_b[loads], from_c[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            if constexpr (traffic != Traffic::write) from_b[i] = load<hint>(b + first + i * threads);
            if constexpr (traffic == Traffic::triad) from_c[i] = load<hint>(c + first + i * threads);
        }
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const std::int64_t at = first + i * threads;
            if constexpr (traffic == Traffic::read) sum += total(from_b[i]);
            if constexpr (traffic == Traffic::write) {
                const auto v = static_cast<std::uint32_t>(at);
                store<hint>(a + at, make_uint4(buffer_word(seed, v, 0), buffer_word(seed, v, 1),
                                               buffer_word(seed, v, 2), buffer_word(seed, v, 3)));
            }
            if constexpr (traffic == Traffic::copy) store<hint>(a + at, from_b[i]);
            if constexpr (traffic == Traffic::triad)
                store<hint>(a + at, make_uint4(triad(from_b[i].x, from_c[i].x), triad(from_b[i].y, from_c[i].y),
                                               triad(from_b[i].z, from_c[i].z), triad(from_b[i].w, from_c[i].w)));
        }
    }
    if constexpr (traffic == Traffic::read) add_block_sum<threads>(sum, sums);
    watch.stop(span);
}

using Kernel = void (*)(uint4*, const uint4*, const uint4*, std::int64_t, std::uint32_t, std::uint32_t*, Span*);

template <Traffic traffic, Hint hint>
Kernel kernel_of(int loads) {
    switch (loads) {
        case 1: return memory_kernel<traffic, hint, 1>;
        case 2: return memory_kernel<traffic, hint, 2>;
        case 4: return memory_kernel<traffic, hint, 4>;
        case 8: return memory_kernel<traffic, hint, 8>;
        default: throw UsageError("a probe of memory has 1, 2, 4 or 8 loads in flight, not " + std::to_string(loads));
    }
}

template <Traffic traffic>
Kernel kernel_of(const MemoryVariant& variant) {
    switch (variant.hint) {
        case Hint::none: return kernel_of<traffic, Hint::none>(variant.loads);
        case Hint::no_allocate: return kernel_of<traffic, Hint::no_allocate>(variant.loads);
        case Hint::streaming: return kernel_of<traffic, Hint::streaming>(variant.loads);
    }
    return nullptr;
}

Kernel kernel_of(Traffic traffic, const MemoryVariant& variant) {
    switch (traffic) {
        case Traffic::read: return kernel_of<Traffic::read>(variant);
        case Traffic::write: return kernel_of<Traffic::write>(variant);
        case Traffic::copy: return kernel_of<Traffic::copy>(variant);
        case Traffic::triad: return kernel_of<Traffic::triad>(variant);
    }
    return nullptr;
}

}  // namespace

void stream_memory(Traffic traffic, const MemoryVariant& variant, const MemoryBuffers& buffers, std::uint32_t seed,
                   int multiprocessors, Span* span, cudaStream_t stream) {
    if (buffers.bytes % memory_chunk_bytes != 0)
        throw UsageError("a probe of memory takes multiples of " + std::to_string(memory_chunk_bytes) + " bytes, not " +
                         std::to_string(buffers.bytes));
    const std::int64_t chunks = buffers.bytes / (std::int64_t{threads} * 16 * variant.loads);
    const std::int64_t blocks = variant.blocks_per_sm == 0 ? chunks : variant.blocks_per_sm * multiprocessors;
    kernel_of(traffic, variant)<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
        static_cast<uint4*>(buffers.a), static_cast<const uint4*>(buffers.b), static_cast<const uint4*>(buffers.c),
        chunks, seed, buffers.sums, span);
    KBENCH_CUDA_LAUNCHED("memory_kernel");
}

}  // namespace kbench::cuda::probe
