#include "tests/profile/known_kernels.h"

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/device.cuh"

namespace kbench::cuda::known {
namespace {

constexpr int chase_threads = 256;
constexpr std::uint32_t words_a_node = chase_stride_bytes / sizeof(std::uint32_t);

__global__ __launch_bounds__(fma_block_threads) void fma_kernel(int iterations, float* out) {
    const unsigned thread = blockIdx.x * fma_block_threads + threadIdx.x;
    const float m = -1.0f + static_cast<float>(1 + thread % 2) * 0x1p-17f, c = 1.0f + static_cast<float>(thread % 7);
    float x[4] = {c, c + 1, c + 2, c + 3};
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int step = 0; step < 32; ++step)
#pragma unroll
            for (float& chain : x) chain = fmaf(chain, m, c);
    out[thread] = x[0] + x[1] + x[2] + x[3];
}

__device__ void watch_clock(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

/// ptxas cannot join rotations, as it does not know by how many bits they are.
template <int wasted_slots>
__global__ __launch_bounds__(fma_block_threads) void stages_kernel(long long fill_cycles, int iterations,
                                                                   long long epilogue_cycles, float* out) {
    constexpr int steps = 32, rotations = wasted_slots / steps;
    const unsigned thread = blockIdx.x * fma_block_threads + threadIdx.x;
    const float m = -1.0f + static_cast<float>(1 + thread % 2) * 0x1p-17f, c = 1.0f + static_cast<float>(thread % 7);
    float x[4] = {c, c + 1, c + 2, c + 3};
    const unsigned bits = 1 + thread % 5;
    unsigned y[4] = {thread, ~thread, thread + 1, thread + 2};
    watch_clock(fill_cycles);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (float& chain : x) chain = fmaf(chain, m, c);
#pragma unroll
            for (int r = 0; r < rotations; ++r) y[r] = __funnelshift_l(y[r], y[r], bits);
        }
    __syncthreads();
    watch_clock(epilogue_cycles);
    out[thread] = x[0] + x[1] + x[2] + x[3] + static_cast<float>(y[0] + y[1] + y[2] + y[3]);
}

__global__ __launch_bounds__(unit_threads) void dependent_spins_kernel(long long cycles, int time_steps,
                                                                       std::uint32_t* arrivals) {
    for (std::uint32_t step = 1; step <= static_cast<std::uint32_t>(time_steps); ++step) {
        watch_clock(cycles);
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrivals) : "memory");
            std::uint32_t arrived;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(arrivals) : "memory");
            while (arrived < step * gridDim.x);
        }
        __syncthreads();
    }
    // The last block to leave knows that none still watches the counter.
    if (threadIdx.x == 0 && atomicAdd(arrivals + 1, 1u) == gridDim.x - 1) arrivals[0] = arrivals[1] = 0;
}

constexpr unsigned l2_chunks_at_once = 2;

__global__ __launch_bounds__(l2_threads, l2_blocks_per_sm) void read_l2_kernel(const uint4* data,
                                                                               unsigned chunks_of_data, unsigned chunks,
                                                                               std::uint32_t* taken,
                                                                               std::uint32_t* sums) {
    __shared__ unsigned next[2];
    if (threadIdx.x == 0) next[0] = atomicAdd(taken, l2_chunks_at_once);
    __syncthreads();
    std::uint32_t sum = 0;
    uint4 v[l2_loads] = {};
    unsigned chunk = next[0];
    for (int turn = 1; chunk < chunks; ++turn) {
        unsigned ahead = 0;
        if (threadIdx.x == 0) ahead = atomicAdd(taken, l2_chunks_at_once);
#pragma unroll 1
        for (unsigned i = 0; i < l2_chunks_at_once; ++i) {
            const uint4* mine =
                data + std::size_t{(chunk + i) % chunks_of_data} * (l2_threads * l2_loads) + threadIdx.x;
#pragma unroll
            for (int load = 0; load < l2_loads; ++load) {
                sum += probe::total(v[load]);
                v[load] = probe::load_l2(mine + load * l2_threads);
            }
        }
        if (threadIdx.x == 0) next[turn % 2] = ahead;
        __syncthreads();
        chunk = next[turn % 2];
    }
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(taken + 1, 1) == gridDim.x - 1) taken[0] = taken[1] = 0;  // none asks for more
    }
#pragma unroll
    for (int load = 0; load < l2_loads; ++load) sum += probe::total(v[load]);
    probe::add_block_sum<l2_threads>(sum, sums);
}

__global__ void make_chase_kernel(std::uint32_t* chain, std::uint32_t nodes) {
    // Full period: the multiplier is 1 modulo 4 and the increment odd (Knuth, TAOCP 2, theorem 3.2.1.2A).
    const std::uint32_t node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) chain[std::size_t{node} * words_a_node] = (node * 1664525u + 1013904223u) & (nodes - 1);
}

__global__ __launch_bounds__(chase_threads) void chase_kernel(const std::uint32_t* chain, std::uint32_t nodes,
                                                              int loads, std::uint32_t* out) {
    if (threadIdx.x % 32 != 0) return;
    const std::uint32_t warp = (blockIdx.x * chase_threads + threadIdx.x) / 32;
    const std::uint32_t warps = gridDim.x * chase_threads / 32;
    std::uint32_t node = warp * (nodes / warps);
#pragma unroll 1
    for (int i = 0; i < loads; ++i) node = __ldcg(chain + std::size_t{node} * words_a_node);
    out[warp] = node;
}

__global__ __launch_bounds__(unit_threads) void special_functions_kernel(int iterations, float* out) {
    const unsigned thread = blockIdx.x * unit_threads + threadIdx.x;
    float x[4];
#pragma unroll
    for (int chain = 0; chain < 4; ++chain) x[chain] = -0.01f * static_cast<float>(thread % 31 + chain);
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int step = 0; step < 32; ++step)
#pragma unroll
            for (float& chain : x) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(chain));
    out[thread] = x[0] + x[1] + x[2] + x[3];
}

constexpr int conflict_words = 32 * 32 + conflict_loads;

__global__ __launch_bounds__(unit_threads) void bank_conflicts_kernel(int ways, int iterations, std::uint32_t* out) {
    __shared__ std::uint32_t words[conflict_words];
    for (unsigned i = threadIdx.x; i < conflict_words; i += unit_threads) words[i] = i;
    __syncthreads();
    const volatile std::uint32_t* mine = words + threadIdx.x % 32 * static_cast<unsigned>(ways);
    std::uint32_t sum = 0;
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int load = 0; load < conflict_loads; ++load) sum += mine[load];
    out[blockIdx.x * unit_threads + threadIdx.x] = sum;
}

/// Every shuffle takes what the one before it gave, so that none can be left out; lanes change places by different
/// bits, so that two in a row are not the same as none.
__global__ __launch_bounds__(unit_threads) void shuffles_kernel(int iterations, std::uint32_t* out) {
    const unsigned thread = blockIdx.x * unit_threads + threadIdx.x;
    std::uint32_t x[4] = {thread, thread + 1, thread + 2, thread + 3};
#pragma unroll 1
    for (int i = 0; i < iterations; ++i)
#pragma unroll
        for (int step = 0; step < shuffles_an_iteration / 4; ++step)
#pragma unroll
            for (std::uint32_t& chain : x)
                asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(chain) : "r"(1 << step % 5));
    out[thread] = x[0] + x[1] + x[2] + x[3];
}

__global__ __launch_bounds__(unit_threads) void red_adds_kernel(std::uint32_t* words, unsigned chunks, int steps) {
    constexpr int words_a_thread = red_bytes / unit_threads / 4;
    unsigned chunk = blockIdx.x % chunks;
    const unsigned stride = gridDim.x % chunks;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        std::uint32_t* mine = words + std::size_t{chunk} * (words_a_thread * unit_threads) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < words_a_thread; ++i)
            asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(mine + i * unit_threads), "r"(threadIdx.x)
                         : "memory");
        chunk += stride;
        if (chunk >= chunks) chunk -= chunks;
    }
}

__global__ __launch_bounds__(phase_warps * 32) void phases_kernel(long long fma_cycles, long long cycles,
                                                                  const std::uint32_t* chain, std::uint32_t nodes,
                                                                  float* out) {
    const long long start = clock64();
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, warp = thread / 32;
    const float m = -1.0f + static_cast<float>(1 + thread % 2) * 0x1p-17f, c = 1.0f + static_cast<float>(thread % 7);
    float x[4] = {c, c + 1, c + 2, c + 3};
    do {
#pragma unroll
        for (int step = 0; step < 64; ++step)
#pragma unroll
            for (float& fma : x) fma = fmaf(fma, m, c);
    } while (clock64() - start < fma_cycles);
    if (threadIdx.x % 32 != 0) return;
    std::uint32_t node = warp * (nodes / (gridDim.x * phase_warps));
    do {
#pragma unroll
        for (int i = 0; i < 8; ++i) node = __ldcg(chain + std::size_t{node} * words_a_node);
    } while (clock64() - start < cycles);
    out[warp] = x[0] + x[1] + x[2] + x[3] + static_cast<float>(node);
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::int64_t vectors) {
    constexpr int in_flight = 4;
    const std::int64_t threads = blockDim.x, stride = in_flight * threads * gridDim.x;
    std::int64_t first = in_flight * threads * blockIdx.x + threadIdx.x;
#pragma unroll 1
    for (; first + (in_flight - 1) * threads < vectors; first += stride) {
        uint4 v[in_flight];
#pragma unroll
        for (int i = 0; i < in_flight; ++i) v[i] = from[first + i * threads];
#pragma unroll
        for (int i = 0; i < in_flight; ++i) to[first + i * threads] = v[i];
    }
#pragma unroll 1
    for (int i = 0; i < in_flight && first + i * threads < vectors; ++i)
        to[first + i * threads] = from[first + i * threads];
}

__global__ void note_sms_kernel(unsigned* seen) {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    // Long enough that no SM could take the blocks of others.
    const long long begin = clock64();
    while (clock64() - begin < 20000) {
    }
    if (threadIdx.x == 0) seen[id] = 1;
}

__global__ __launch_bounds__(unit_threads) void fma_over_l2_kernel(const float4* data, unsigned chunks, int steps,
                                                                   int rounds_256ths, float* out) {
    const unsigned thread = blockIdx.x * unit_threads + threadIdx.x;
    const float m = -1.0f + static_cast<float>(1 + thread % 2) * 0x1p-17f, c = 1.0f + static_cast<float>(thread % 7);
    float x[8];
#pragma unroll
    for (int chain = 0; chain < 8; ++chain) x[chain] = c + static_cast<float>(chain);
    unsigned chunk = blockIdx.x % chunks;
    const unsigned stride = gridDim.x % chunks;
    int due = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const float4* mine = data + std::size_t{chunk} * (tied_bytes / sizeof(float4)) + threadIdx.x;
        float4 v[tied_loads];
#pragma unroll
        for (int i = 0; i < tied_loads; ++i) v[i] = __ldcg(mine + i * unit_threads);
        due += rounds_256ths;
#pragma unroll 1
        for (; due >= 256; due -= 256)
#pragma unroll
            for (int i = 0; i < tied_round / 8; ++i)
#pragma unroll
                for (float& chain : x) chain = fmaf(chain, m, c);
#pragma unroll
        for (int i = 0; i < tied_loads; ++i) {
            const int chain = 4 * (i % 2);
            x[chain] = fmaf(x[chain], m, v[i].x);
            x[chain + 1] = fmaf(x[chain + 1], m, v[i].y);
            x[chain + 2] = fmaf(x[chain + 2], m, v[i].z);
            x[chain + 3] = fmaf(x[chain + 3], m, v[i].w);
        }
        chunk += stride;
        if (chunk >= chunks) chunk -= chunks;
    }
    float sum = 0;
#pragma unroll
    for (const float chain : x) sum += chain;
    out[thread] = sum;
}

int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

/// Dynamic shared memory of which an SM cannot hold two blocks' worth.
int more_than_half_of_shared(const void* kernel) {
    const int bytes = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 + 1024;
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    return bytes;
}

int chase_blocks() {
    return attribute(cudaDevAttrMultiProcessorCount) * attribute(cudaDevAttrMaxThreadsPerMultiProcessor) /
           chase_threads;
}

}  // namespace

void fma_blocks(int blocks, int iterations, float* out, cudaStream_t stream) {
    const int more_than_half = more_than_half_of_shared(reinterpret_cast<const void*>(fma_kernel));
    fma_kernel<<<static_cast<unsigned>(blocks), fma_block_threads, static_cast<std::size_t>(more_than_half), stream>>>(
        iterations, out);
    KBENCH_CUDA_LAUNCHED("fma_kernel");
}

void stages(const Stages& stages, int blocks, float* out, cudaStream_t stream) {
    const auto kernel = stages.wasted_slots == 0    ? stages_kernel<0>
                        : stages.wasted_slots == 64 ? stages_kernel<64>
                        : stages.wasted_slots == 96 ? stages_kernel<96>
                                                    : nullptr;
    if (kernel == nullptr) throw UsageError("stages waste 0, 64 or 96 issue slots");
    const int more_than_half = more_than_half_of_shared(reinterpret_cast<const void*>(kernel));
    kernel<<<static_cast<unsigned>(blocks), fma_block_threads, static_cast<std::size_t>(more_than_half), stream>>>(
        stages.fill_cycles, stages.iterations, stages.epilogue_cycles, out);
    KBENCH_CUDA_LAUNCHED("stages_kernel");
}

void dependent_spins(std::int64_t cycles, int time_steps, int blocks, std::uint32_t* arrivals, cudaStream_t stream) {
    long long watched = cycles;
    void* arguments[] = {&watched, &time_steps, &arrivals};
    KBENCH_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(dependent_spins_kernel),
                                            dim3(static_cast<unsigned>(blocks)), dim3(unit_threads), arguments, 0,
                                            stream));
}

void special_functions(int blocks, int iterations, float* out, cudaStream_t stream) {
    special_functions_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(iterations, out);
    KBENCH_CUDA_LAUNCHED("special_functions_kernel");
}

void shuffles(int blocks, int iterations, std::uint32_t* out, cudaStream_t stream) {
    shuffles_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(iterations, out);
    KBENCH_CUDA_LAUNCHED("shuffles_kernel");
}

void bank_conflicts(int ways, int blocks, int iterations, std::uint32_t* out, cudaStream_t stream) {
    bank_conflicts_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(ways, iterations, out);
    KBENCH_CUDA_LAUNCHED("bank_conflicts_kernel");
}

void red_adds(std::uint32_t* words, std::int64_t bytes, int blocks, int steps, cudaStream_t stream) {
    red_adds_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(
        words, static_cast<unsigned>(bytes / red_bytes), steps);
    KBENCH_CUDA_LAUNCHED("red_adds_kernel");
}

void read_l2_always(const void* data, std::int64_t bytes, int multiprocessors, int chunks, std::uint32_t* taken,
                    std::uint32_t* sums, cudaStream_t stream) {
    read_l2_kernel<<<static_cast<unsigned>(multiprocessors * l2_blocks_per_sm), l2_threads, 0, stream>>>(
        static_cast<const uint4*>(data), static_cast<unsigned>(bytes / l2_chunk_bytes), static_cast<unsigned>(chunks),
        taken, sums);
    KBENCH_CUDA_LAUNCHED("read_l2_kernel");
}

void make_chase(std::uint32_t* chain, std::uint32_t nodes, cudaStream_t stream) {
    make_chase_kernel<<<(nodes + 255) / 256, 256, 0, stream>>>(chain, nodes);
    KBENCH_CUDA_LAUNCHED("make_chase_kernel");
}

void chase(const std::uint32_t* chain, std::uint32_t nodes, int loads, std::uint32_t* out, cudaStream_t stream) {
    chase_kernel<<<static_cast<unsigned>(chase_blocks()), chase_threads, 0, stream>>>(chain, nodes, loads, out);
    KBENCH_CUDA_LAUNCHED("chase_kernel");
}

void phases(std::int64_t fma_cycles, std::int64_t cycles, const std::uint32_t* chain, std::uint32_t nodes, float* out,
            cudaStream_t stream) {
    const int more_than_half = more_than_half_of_shared(reinterpret_cast<const void*>(phases_kernel));
    phases_kernel<<<static_cast<unsigned>(attribute(cudaDevAttrMultiProcessorCount)), phase_warps * 32,
                    static_cast<std::size_t>(more_than_half), stream>>>(fma_cycles, cycles, chain, nodes, out);
    KBENCH_CUDA_LAUNCHED("phases_kernel");
}

void copy_by_warps(void* to, const void* from, std::int64_t bytes, int warps, cudaStream_t stream) {
    copy_kernel<<<static_cast<unsigned>(attribute(cudaDevAttrMultiProcessorCount)), static_cast<unsigned>(warps) * 32,
                  0, stream>>>(static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / 16);
    KBENCH_CUDA_LAUNCHED("copy_kernel");
}

void fma_over_l2(const void* data, std::int64_t bytes, int blocks, int steps, int rounds_256ths, float* out,
                 cudaStream_t stream) {
    fma_over_l2_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(
        static_cast<const float4*>(data), static_cast<unsigned>(bytes / tied_bytes), steps, rounds_256ths, out);
    KBENCH_CUDA_LAUNCHED("fma_over_l2_kernel");
}

void note_sms(unsigned* seen, int blocks, cudaStream_t stream) {
    note_sms_kernel<<<static_cast<unsigned>(blocks), 64, 0, stream>>>(seen);
    KBENCH_CUDA_LAUNCHED("note_sms_kernel");
}

int chase_warps() { return chase_blocks() * chase_threads / 32; }

}  // namespace kbench::cuda::known
