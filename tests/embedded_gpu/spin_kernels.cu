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

}  // namespace

void spin(double us, std::uint64_t* spun_ns, cudaStream_t stream) {
    spin_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(1e3 * us), spun_ns);
}

}  // namespace kbench::spinning
