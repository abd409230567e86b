// Empty kernels and grid barriers, the simplest correct ones: an atomic releases, the watching load acquires.
#include "kernels/check.h"
#include "kernels/probe/latency.h"

namespace kbench::cuda::probe {
namespace {

constexpr int threads = 128;

__global__ void empty_kernel() {}

__device__ void arrive(std::uint32_t* counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ std::uint32_t load(const std::uint32_t* counter) {
    std::uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}

__global__ __launch_bounds__(threads) void barrier_kernel(int barriers, BarrierState* state, std::uint32_t* rounds) {
    for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(barriers); ++round) {
        if (rounds != nullptr && threadIdx.x == 0) *static_cast<volatile std::uint32_t*>(&rounds[blockIdx.x]) = round;
        __syncthreads();
        if (threadIdx.x == 0) {
            arrive(&state->arrivals);
            while (load(&state->arrivals) < round * gridDim.x) {
            }
        }
        __syncthreads();
        if (rounds != nullptr && threadIdx.x == 0) {
            const auto* next = static_cast<volatile std::uint32_t*>(&rounds[(blockIdx.x + 1) % gridDim.x]);
            if (*next < round) atomicAdd(&state->violations, 1u);
        }
    }
}

}  // namespace

void empty(cudaStream_t stream) {
    empty_kernel<<<1, 32, 0, stream>>>();
    KBENCH_CUDA_LAUNCHED("empty_kernel");
}

void grid_barriers(int blocks, int barriers, BarrierState* state, std::uint32_t* rounds, cudaStream_t stream) {
    KBENCH_CUDA(cudaMemsetAsync(state, 0, sizeof(BarrierState), stream));
    void* arguments[] = {&barriers, &state, &rounds};
    KBENCH_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(barrier_kernel),
                                            dim3(static_cast<unsigned>(blocks)), dim3(threads), arguments, 0, stream));
}

}  // namespace kbench::cuda::probe
