// A program to attach to, of known behaviour: `target MODE ITERATIONS`. An iteration is eight kernels that wait 100 us
// each and one that reads 256 MiB once. plain: launches them one after another; graph: as one graph; sleep: the host
// sleeps 2 ms first; copy: 32 MiB from pageable memory first. collective and stuck: then a kernel that ends once one
// behind it, on another stream, has begun. Only in collective are both called as those of NCCL are.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t read_bytes = std::size_t{256} << 20, copied_bytes = std::size_t{32} << 20;
constexpr int waits = 8;

__device__ unsigned long long now() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void wait_kernel(unsigned ns) {
    const unsigned long long end = now() + ns;
    while (now() < end) {
    }
}

__global__ void read_kernel(const float4* data, std::size_t count, float* sum) {
    float total = 0;
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x)
        total += data[i].x + data[i].y + data[i].z + data[i].w;
    if (total == 12345.0f) *sum = total;  // never: the memory is zero
}

/// Not for ever: a kernel that hangs outlives the program that is killed.
__device__ void wait_for(const volatile unsigned* flag, unsigned value) {
    const unsigned long long end = now() + 60'000'000'000;
    while (*flag < value && now() < end) {
    }
}
__global__ void ncclDevKernel_wait(const unsigned* flag, unsigned value) { wait_for(flag, value); }
__global__ void ncclDevKernel_set(volatile unsigned* flag, unsigned value) { *flag = value; }
__global__ void plain_wait(const unsigned* flag, unsigned value) { wait_for(flag, value); }
__global__ void plain_set(volatile unsigned* flag, unsigned value) { *flag = value; }

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "target: %s\n", cudaGetErrorString(status));
    std::exit(3);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const char* const mode = argv[1];
    const auto is = [mode](const char* name) { return std::strcmp(mode, name) == 0; };
    const int iterations = std::atoi(argv[2]);
    void *data = nullptr, *sum = nullptr, *copied = nullptr;
    check(cudaMalloc(&data, read_bytes));
    check(cudaMalloc(&sum, sizeof(float)));
    check(cudaMalloc(&copied, copied_bytes));
    check(cudaMemset(data, 0, read_bytes));
    cudaStream_t stream = nullptr, other = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    unsigned* flag = nullptr;
    check(cudaMalloc(&flag, sizeof(unsigned)));
    check(cudaMemset(flag, 0, sizeof(unsigned)));
    check(cudaDeviceSynchronize());
    // A kernel's code is loaded at its first launch, which waits for the kernels that run.
    cudaFuncAttributes loaded;
    for (const auto* kernel :
         {reinterpret_cast<const void*>(&ncclDevKernel_set), reinterpret_cast<const void*>(&plain_set),
          reinterpret_cast<const void*>(&read_kernel), reinterpret_cast<const void*>(&wait_kernel)})
        check(cudaFuncGetAttributes(&loaded, kernel));
    const std::vector<char> host(copied_bytes, 1);
    const auto kernels = [&] {
        for (int i = 0; i < waits; ++i) wait_kernel<<<1, 32, 0, stream>>>(100'000);
        read_kernel<<<528, 256, 0, stream>>>(static_cast<const float4*>(data), read_bytes / sizeof(float4),
                                             static_cast<float*>(sum));
    };
    cudaGraphExec_t graph = nullptr;
    if (is("graph")) {
        cudaGraph_t captured = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        kernels();
        check(cudaStreamEndCapture(stream, &captured));
        check(cudaGraphInstantiate(&graph, captured, 0));
    }
    for (int i = 0; i < iterations; ++i) {
        if (is("sleep")) {
            check(cudaStreamSynchronize(stream));
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (is("copy")) check(cudaMemcpyAsync(copied, host.data(), copied_bytes, cudaMemcpyHostToDevice, stream));
        if (graph != nullptr)
            check(cudaGraphLaunch(graph, stream));
        else
            kernels();
        const unsigned value = static_cast<unsigned>(i) + 1;
        if (is("collective")) {
            ncclDevKernel_wait<<<1, 1, 0, stream>>>(flag, value);
            ncclDevKernel_set<<<1, 1, 0, other>>>(flag, value);
        }
        if (is("stuck")) {
            plain_wait<<<1, 1, 0, stream>>>(flag, value);
            plain_set<<<1, 1, 0, other>>>(flag, value);
        }
    }
    check(cudaDeviceSynchronize());
    return 0;
}
