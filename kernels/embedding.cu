// Token and position embedding: two gathered rows added. Bound by memory: each row of the output is written once.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/embedding.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

template <typename T, int N>
__global__ void embedding_kernel(const std::int32_t* __restrict__ tokens, const T* __restrict__ wte,
                                 const T* __restrict__ wpe, T* __restrict__ out, std::int64_t seq, std::int64_t width) {
    const std::int64_t row = blockIdx.x;
    const T* token_row = wte + std::int64_t{tokens[row]} * width;
    const T* position_row = wpe + row % seq * width;
    for (std::int64_t column = std::int64_t{threadIdx.x} * N; column < width; column += std::int64_t{blockDim.x} * N) {
        auto sum = Vector<T, N>::load(token_row + column);
        const auto position = Vector<T, N>::load(position_row + column);
#pragma unroll
        for (int i = 0; i < N; ++i)
            sum.elements[i] = static_cast<T>(static_cast<Arithmetic<T>>(sum.elements[i]) +
                                             static_cast<Arithmetic<T>>(position.elements[i]));
        sum.store(out + row * width + column);
    }
}

}  // namespace

void embedding_forward(DataType type, const std::int32_t* tokens, const void* wte, const void* wpe, void* out,
                       std::int64_t rows, std::int64_t seq, std::int64_t width, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(width, {wte, wpe, out}, [&]<int N>() {
            const auto threads = std::min<std::int64_t>(256, divide_up(divide_up(width, N), 32) * 32);
            embedding_kernel<T, N><<<static_cast<unsigned>(rows), static_cast<unsigned>(threads), 0, stream>>>(
                tokens, static_cast<const T*>(wte), static_cast<const T*>(wpe), static_cast<T*>(out), seq, width);
        });
    });
    KBENCH_CUDA_LAUNCHED("embedding_kernel");
}

}  // namespace kbench::cuda
