#include "tests/embedded_gpu/spin_kernels.h"

namespace kbench::spinning {
namespace {

__device__ std::uint64_t now_ns() {
    std::uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void spin_kernel(std::uint64_t ns, std::uint64_t* spun_ns) {
    const std::uint64_t start = now_ns();
    std::uint64_t end = start;
    while (end - start < ns) end = now_ns();
    *spun_ns += end - start;
}

__global__ void step_kernel(std::uint64_t* step_ns) {
    std::uint64_t before = now_ns(), after = before;
    while (after == before) after = now_ns();
    for (before = after; after == before;) after = now_ns();
    *step_ns = after - before;
}

}  // namespace

void spin(double us, std::uint64_t* spun_ns, cudaStream_t stream) {
    spin_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(1e3 * us), spun_ns);
}

std::uint64_t timer_step_ns() {
    std::uint64_t *on_device = nullptr, step_ns = 0;
    cudaMalloc(&on_device, sizeof step_ns);
    step_kernel<<<1, 1>>>(on_device);
    cudaMemcpy(&step_ns, on_device, sizeof step_ns, cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    return step_ns;
}

}  // namespace kbench::spinning
