#include "tests/profile/known_kernels.h"

#include "kernels/check.h"

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

constexpr int conflict_loads = 8, conflict_words = 32 * 32 + conflict_loads;

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

int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

int chase_blocks() {
    return attribute(cudaDevAttrMultiProcessorCount) * attribute(cudaDevAttrMaxThreadsPerMultiProcessor) /
           chase_threads;
}

}  // namespace

void fma_blocks(int blocks, int iterations, float* out, cudaStream_t stream) {
    const int more_than_half = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 + 1024;
    KBENCH_CUDA(cudaFuncSetAttribute(fma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, more_than_half));
    fma_kernel<<<static_cast<unsigned>(blocks), fma_block_threads, static_cast<std::size_t>(more_than_half), stream>>>(
        iterations, out);
    KBENCH_CUDA_LAUNCHED("fma_kernel");
}

void special_functions(int blocks, int iterations, float* out, cudaStream_t stream) {
    special_functions_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(iterations, out);
    KBENCH_CUDA_LAUNCHED("special_functions_kernel");
}

void bank_conflicts(int ways, int blocks, int iterations, std::uint32_t* out, cudaStream_t stream) {
    bank_conflicts_kernel<<<static_cast<unsigned>(blocks), unit_threads, 0, stream>>>(ways, iterations, out);
    KBENCH_CUDA_LAUNCHED("bank_conflicts_kernel");
}

void make_chase(std::uint32_t* chain, std::uint32_t nodes, cudaStream_t stream) {
    make_chase_kernel<<<(nodes + 255) / 256, 256, 0, stream>>>(chain, nodes);
    KBENCH_CUDA_LAUNCHED("make_chase_kernel");
}

void chase(const std::uint32_t* chain, std::uint32_t nodes, int loads, std::uint32_t* out, cudaStream_t stream) {
    chase_kernel<<<static_cast<unsigned>(chase_blocks()), chase_threads, 0, stream>>>(chain, nodes, loads, out);
    KBENCH_CUDA_LAUNCHED("chase_kernel");
}

int chase_warps() { return chase_blocks() * chase_threads / 32; }

}  // namespace kbench::cuda::known
