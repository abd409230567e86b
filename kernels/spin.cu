// A kernel that waits: one block per SM, and every thread watches its own SM's clock.
#include "kernels/check.h"
#include "kernels/spin.h"

namespace kbench::cuda {
namespace {

__global__ void spin_kernel(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

}  // namespace

cudaError_t load_spin() {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, spin_kernel);
}

void spin(std::int64_t cycles, int multiprocessors, cudaStream_t stream) {
    constexpr unsigned threads = 128;
    spin_kernel<<<static_cast<unsigned>(multiprocessors), threads, 0, stream>>>(cycles);
    KBENCH_CUDA_LAUNCHED("spin_kernel");
}

}  // namespace kbench::cuda
