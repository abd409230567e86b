// Repeated loads of the same bytes. Each is a volatile instruction, so that none is dropped or kept between passes.
#include <string>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/cache.h"
#include "kernels/probe/device.cuh"

namespace kbench::cuda::probe {
namespace {

constexpr int threads = cache_threads;

__device__ void load_l1(uint4& v, const uint4* address) {
    asm volatile("ld.global.ca.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(address));
}
__device__ void load_l1(uint2& v, const uint2* address) {
    asm volatile("ld.global.ca.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(address));
}
__device__ void load_l1(std::uint32_t& v, const std::uint32_t* address) {
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(address));
}

__device__ void load_shared(uint4& v, std::uint32_t address) {
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
}
__device__ void load_shared(uint2& v, std::uint32_t address) {
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address));
}
__device__ void load_shared(std::uint32_t& v, std::uint32_t address) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address));
}

template <int loads>
__global__ __launch_bounds__(threads) void l2_kernel(const uint4* data, unsigned chunks, int steps, std::uint32_t* sums,
                                                     Span* span) {
    const Stopwatch watch;
    unsigned chunk = blockIdx.x % chunks;
    const unsigned stride = gridDim.x % chunks;
    std::uint32_t sum = 0;
    for (int step = 0; step < steps; ++step) {
        const uint4* mine = data + std::size_t{chunk} * (threads * loads) + threadIdx.x;
        uint4 v[loads];
#pragma unroll
        for (int i = 0; i < loads; ++i) v[i] = load_l2(mine + i * threads);
#pragma unroll
        for (int i = 0; i < loads; ++i) sum += total(v[i]);
        chunk += stride;
        if (chunk >= chunks) chunk -= chunks;
    }
    add_block_sum<threads>(sum, sums);
    watch.stop(span);
}

template <NearMemory memory, typename Word>
__global__ __launch_bounds__(threads) void near_kernel(const Word* data, int passes, unsigned turn, std::uint32_t* sums,
                                                       Span* span) {
    extern __shared__ uint4 tile[];
    std::uint32_t shared = 0;
    if constexpr (memory == NearMemory::shared) {
        Word* copy = reinterpret_cast<Word*>(tile);
#pragma unroll
        for (int i = 0; i < near_loads; ++i) copy[threadIdx.x + i * threads] = data[threadIdx.x + i * threads];
        shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(copy));
        __syncthreads();
    }
    constexpr unsigned words = threads * near_loads;
    static_assert((words & (words - 1)) == 0);
    const Stopwatch watch;
    std::uint32_t sum = 0;
    unsigned first = threadIdx.x;
#pragma unroll 4
    for (int pass = 0; pass < passes; ++pass) {
        Word v[near_loads];
#pragma unroll
        for (unsigned i = 0; i < near_loads; ++i) {
            const unsigned word = (first + i * threads) % words;
            if constexpr (memory == NearMemory::l1)
                load_l1(v[i], data + word);
            else
                load_shared(v[i], shared + word * static_cast<unsigned>(sizeof(Word)));
        }
        // Each pass takes the same words in another order, known only to the caller. The assembler merges loads that it
        // can see to have one address, even when PTX says "volatile".
        first += turn;
#pragma unroll
        for (int i = 0; i < near_loads; ++i) sum += total(v[i]);
    }
    add_block_sum<threads>(sum, sums);
    watch.stop(span);
}

template <NearMemory memory, typename Word>
void launch_near(const void* data, int blocks, int passes, std::uint32_t* sums, Span* span, cudaStream_t stream) {
    const auto kernel = near_kernel<memory, Word>;
    const bool l1 = memory == NearMemory::l1;
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     l1 ? cudaSharedmemCarveoutMaxL1 : cudaSharedmemCarveoutMaxShared));
    const std::size_t shared_bytes = l1 ? 0 : static_cast<std::size_t>(near_bytes(sizeof(Word)));
    kernel<<<static_cast<unsigned>(blocks), threads, shared_bytes, stream>>>(static_cast<const Word*>(data), passes,
                                                                             threads, sums, span);
    KBENCH_CUDA_LAUNCHED("near_kernel");
}

template <NearMemory memory>
void launch_near(const void* data, int width, int blocks, int passes, std::uint32_t* sums, Span* span,
                 cudaStream_t stream) {
    switch (width) {
        case 4: return launch_near<memory, std::uint32_t>(data, blocks, passes, sums, span, stream);
        case 8: return launch_near<memory, uint2>(data, blocks, passes, sums, span, stream);
        case 16: return launch_near<memory, uint4>(data, blocks, passes, sums, span, stream);
        default: throw UsageError("a load has 4, 8 or 16 bytes, not " + std::to_string(width));
    }
}

}  // namespace

void read_l2(const void* data, std::int64_t bytes, int loads, int blocks, int steps, std::uint32_t* sums, Span* span,
             cudaStream_t stream) {
    const auto* vectors = static_cast<const uint4*>(data);
    const auto chunks = static_cast<unsigned>(bytes / l2_chunk_bytes(loads));
    const auto grid = static_cast<unsigned>(blocks);
    switch (loads) {
        case 2: l2_kernel<2><<<grid, threads, 0, stream>>>(vectors, chunks, steps, sums, span); break;
        case 4: l2_kernel<4><<<grid, threads, 0, stream>>>(vectors, chunks, steps, sums, span); break;
        case 8: l2_kernel<8><<<grid, threads, 0, stream>>>(vectors, chunks, steps, sums, span); break;
        default: throw UsageError("a probe of L2 has 2, 4 or 8 loads in flight, not " + std::to_string(loads));
    }
    KBENCH_CUDA_LAUNCHED("l2_kernel");
}

void read_near(NearMemory memory, const void* data, int width, int blocks, int passes, std::uint32_t* sums, Span* span,
               cudaStream_t stream) {
    if (memory == NearMemory::l1) return launch_near<NearMemory::l1>(data, width, blocks, passes, sums, span, stream);
    launch_near<NearMemory::shared>(data, width, blocks, passes, sums, span, stream);
}

}  // namespace kbench::cuda::probe
