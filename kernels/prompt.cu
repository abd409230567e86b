// A block copies the row of one token in 16-byte vectors. Both kernels only move numbers.
#include "kernels/prompt.h"

#include "kernels/check.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int token_threads = 256;

struct CacheShape {
    int seq, kv_heads, head_size, qkv_width, first_key_column, capacity;
    __device__ int kv_width() const { return kv_heads * head_size; }
};

template <typename T, int N>
__global__ void __launch_bounds__(token_threads)
    fill_cache_kernel(const T* __restrict__ qkv, T* __restrict__ keys, T* __restrict__ values, CacheShape shape) {
    const int sequence = static_cast<int>(blockIdx.x) / shape.seq, token = static_cast<int>(blockIdx.x) % shape.seq;
    const T* const from = qkv + std::int64_t{blockIdx.x} * shape.qkv_width + shape.first_key_column;
    for (int column = static_cast<int>(threadIdx.x) * N; column < 2 * shape.kv_width(); column += token_threads * N) {
        const bool is_key = column < shape.kv_width();
        const int in_row = is_key ? column : column - shape.kv_width(), kv_head = in_row / shape.head_size;
        const std::int64_t row = (std::int64_t{sequence} * shape.kv_heads + kv_head) * shape.capacity + token;
        Vector<T, N>::load_once(from + column)
            .store((is_key ? keys : values) + row * shape.head_size + in_row % shape.head_size);
    }
}

template <typename T, int N>
__global__ void __launch_bounds__(token_threads)
    last_token_kernel(const T* __restrict__ x, T* __restrict__ out, int seq, int width) {
    const T* const from = x + (std::int64_t{blockIdx.x} * seq + seq - 1) * width;
    T* const to = out + std::int64_t{blockIdx.x} * width;
    for (int column = static_cast<int>(threadIdx.x) * N; column < width; column += token_threads * N)
        Vector<T, N>::load_once(from + column).store(to + column);
}

}  // namespace

void fill_cache(DataType type, const FillCache& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                Out<"value_cache"> value_cache, cudaStream_t stream) {
    const CacheShape shape{.seq = static_cast<int>(op.seq),
                           .kv_heads = static_cast<int>(op.kv_heads),
                           .head_size = static_cast<int>(op.head_size),
                           .qkv_width = static_cast<int>(op.qkv_width()),
                           .first_key_column = static_cast<int>(op.first_key_column()),
                           .capacity = static_cast<int>(op.capacity)};
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.head_size, {qkv, key_cache, value_cache}, [&]<int N>() {
            fill_cache_kernel<T, N><<<static_cast<unsigned>(op.batch * op.seq), token_threads, 0, stream>>>(
                qkv, key_cache, value_cache, shape);
        });
    });
    KBENCH_CUDA_LAUNCHED("fill_cache_kernel");
}

void last_token(DataType type, const LastToken& op, In<"x"> x, Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {x, out}, [&]<int N>() {
            last_token_kernel<T, N><<<static_cast<unsigned>(op.batch), token_threads, 0, stream>>>(
                x, out, static_cast<int>(op.seq), static_cast<int>(op.width));
        });
    });
    KBENCH_CUDA_LAUNCHED("last_token_kernel");
}

}  // namespace kbench::cuda
