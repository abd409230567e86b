// The norm of all gradients in two stages. There are no atomics, whose order would differ from run to run: a fixed
// number of blocks sum chunks in turn, and one last block adds up their sums. Bound by memory: gradients are read once.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/global_norm.h"
#include "kernels/row.cuh"
#include "kernels/tensor_table.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

/// Blocks of the first stage: twice what the 132 SMs of an H200 run at a time.
constexpr int most_blocks = 2112;
constexpr int threads = 256, chunk = 16384, last_threads = 1024;

using Gradients = TensorTable<1, chunk>;

template <typename T>
__global__ void __launch_bounds__(threads)
    squares_kernel(const __grid_constant__ Gradients table, double* __restrict__ sums) {
    using A = Arithmetic<T>;
    constexpr int N = vector_width<T>;
    __shared__ double scratch[32];
    double total = 0;
    for (int index = static_cast<int>(blockIdx.x); index < table.chunks; index += static_cast<int>(gridDim.x)) {
        const int tensor = table.tensor_of(index);
        const T* const gradient = static_cast<const T*>(table.pointers[0][tensor]);
        const std::int64_t begin = std::int64_t{index - table.first_chunk[tensor]} * chunk;
        const std::int64_t end = min(table.sizes[tensor], begin + chunk);
        const std::int64_t whole = table.is_aligned(tensor) ? begin + (end - begin) / N * N : begin;
        A sum = 0;
#pragma unroll 4
        for (std::int64_t i = begin + std::int64_t{threadIdx.x} * N; i < whole; i += threads * N) {
            const auto vector = Vector<T, N>::load_once(gradient + i);
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const A g = static_cast<A>(vector.elements[j]);
                sum += g * g;
            }
        }
        for (std::int64_t i = whole + threadIdx.x; i < end; i += threads) {
            const A g = static_cast<A>(gradient[i]);
            sum += g * g;
        }
        total += static_cast<double>(sum);
    }
    total = sum_row(total, scratch);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

template <typename A>
__global__ void __launch_bounds__(last_threads) root_kernel(const double* __restrict__ sums, int count, A* norm) {
    __shared__ double scratch[32];
    double total = 0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += last_threads) total += sums[i];
    total = sum_row(total, scratch);
    if (threadIdx.x == 0) *norm = static_cast<A>(sqrt(total));
}

}  // namespace

std::size_t global_norm_workspace(DataType, const GlobalNorm& op) {
    const std::int64_t launches = divide_up(static_cast<std::int64_t>(op.sizes.size()), Gradients::capacity);
    return static_cast<std::size_t>(launches) * most_blocks * sizeof(double);
}

void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm, void* workspace,
                 cudaStream_t stream) {
    auto* const sums = static_cast<double*>(workspace);
    int count = 0;
    dispatch(type, [&]<typename T>() {
        const auto pointer = [&](std::size_t tensor, int) { return gradients[tensor]; };
        for_tensor_tables<1, chunk>(op.sizes, pointer, [&](const Gradients& table) {
            const int blocks = std::min(most_blocks, table.chunks);
            squares_kernel<T><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(table, sums + count);
            KBENCH_CUDA_LAUNCHED("squares_kernel");
            count += blocks;
        });
        root_kernel<<<1, last_threads, 0, stream>>>(sums, count, static_cast<Arithmetic<T>*>(norm));
        KBENCH_CUDA_LAUNCHED("root_kernel");
    });
}

}  // namespace kbench::cuda
