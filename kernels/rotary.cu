// The norm of each head of queries and keys, and their rotation. Both are bound by memory, or by a launch's time where
// there are few tokens: heads are then shared among blocks.
#include "kernels/rotary.h"

#include <algorithm>
#include <string>

#include "kernels/check.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, heads_per_block = 8;

/// A warp a head, which it reads twice: the second time from L1. qkv and out may be the same.
template <typename T, int N>
__global__ void qk_norm_kernel(const T* qkv, const T* __restrict__ q_weight, const T* __restrict__ k_weight, T* out,
                               std::int64_t all, int heads, int kv_heads, int size, Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    const std::int64_t index = std::int64_t{blockIdx.x} * heads_per_block + threadIdx.y;  // among heads of all rows
    if (index >= all) return;
    const int head = static_cast<int>(index % (heads + 2 * kv_heads));
    const T* const from = qkv + index * size;
    T* const to = out + index * size;
    const int first = static_cast<int>(threadIdx.x) * N, step = warp * N;
    if (head >= heads + kv_heads) {
        if (from == to) return;
        for (int column = first; column < size; column += step) Vector<T, N>::load(from + column).store(to + column);
        return;
    }
    A squares{0};
    for (int column = first; column < size; column += step) {
        const auto x = Vector<T, N>::load(from + column);
#pragma unroll
        for (int i = 0; i < N; ++i) squares += static_cast<A>(x.elements[i]) * static_cast<A>(x.elements[i]);
    }
#pragma unroll
    for (int distance = warp / 2; distance > 0; distance /= 2)
        squares += __shfl_xor_sync(0xffffffffu, squares, distance);
    const A rstd = A{1} / sqrt(squares / static_cast<A>(size) + epsilon);
    const T* const weight = head < heads ? q_weight : k_weight;
    for (int column = first; column < size; column += step) {
        auto x = Vector<T, N>::load(from + column);
        const auto scale = Vector<T, N>::load(weight + column);
#pragma unroll
        for (int i = 0; i < N; ++i)
            x.elements[i] = static_cast<T>(static_cast<A>(x.elements[i]) * rstd * static_cast<A>(scale.elements[i]));
        x.store(to + column);
    }
}

struct Frequencies {
    double of[rotary_embedding_max_head_size / 2];
};

/// The cosine and sine of position * frequency. Its product is in fp64, and so is the reduction to half turns: in fp32
/// the angle of token 100000 would be wrong by a hundredth.
template <typename A>
__device__ void find_angle(double position, double frequency, A factor, A& cosine, A& sine) {
    const double angle = position * frequency;
    if constexpr (sizeof(A) == 8) {
        sincos(angle, &sine, &cosine);
    } else {
        constexpr double half_turns = 0.31830988618379067154, turn = 2;  // 1 / pi
        const double turned = angle * half_turns;
        sincospif(static_cast<float>(turned - turn * rint(turned / turn)), &sine, &cosine);
    }
    cosine *= factor;
    sine *= factor;
}

/// Block (r, g) has heads_per_block heads of row r. N elements of a head's first half and as many of its second are a
/// thread's. qkv and out may be the same.
template <typename T, int N>
__global__ void rotary_embedding_kernel(const T* qkv, const std::int32_t* __restrict__ positions, T* out,
                                        std::int64_t queries, int rotated, int all_heads, int half,
                                        const Frequencies frequencies, Arithmetic<T> factor) {
    using A = Arithmetic<T>;
    __shared__ A cosines[rotary_embedding_max_head_size / 2], sines[rotary_embedding_max_head_size / 2];
    const std::int64_t row = blockIdx.x;
    const auto position = static_cast<double>(positions[row / queries] + row % queries);
    for (int i = static_cast<int>(threadIdx.x); i < half; i += static_cast<int>(blockDim.x))
        find_angle(position, frequencies.of[i], factor, cosines[i], sines[i]);
    __syncthreads();

    const int first_head = static_cast<int>(blockIdx.y) * heads_per_block;
    const int vectors = half / N, count = min(heads_per_block, all_heads - first_head) * vectors;
    const std::int64_t start = (row * all_heads + first_head) * 2 * half;
    for (int index = static_cast<int>(threadIdx.x); index < count; index += static_cast<int>(blockDim.x)) {
        const int head = index / vectors, column = index % vectors * N;
        const std::int64_t at = start + std::int64_t{head} * 2 * half + column;
        auto low = Vector<T, N>::load(qkv + at), high = Vector<T, N>::load(qkv + at + half);
        if (first_head + head < rotated) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const A a = static_cast<A>(low.elements[i]), b = static_cast<A>(high.elements[i]);
                const A cosine = cosines[column + i], sine = sines[column + i];
                low.elements[i] = static_cast<T>(a * cosine - b * sine);
                high.elements[i] = static_cast<T>(b * cosine + a * sine);
            }
        }
        low.store(out + at);
        high.store(out + at + half);
    }
}

}  // namespace

void qk_norm(DataType type, const QkNorm& op, In<"qkv"> qkv, In<"q_weight"> q_weight, In<"k_weight"> k_weight,
             Out<"out"> out, cudaStream_t stream) {
    const std::int64_t all = op.rows * op.all_heads();
    dispatch(type, [&]<typename T>() {
        dispatch_vector<
            vector_width<T>>(op.head_size, {qkv.data(), q_weight.data(), k_weight.data(), out.data()}, [&]<int N>() {
            qk_norm_kernel<T, N>
                <<<static_cast<unsigned>(divide_up(all, heads_per_block)), dim3(warp, heads_per_block), 0, stream>>>(
                    qkv, q_weight, k_weight, out, all, static_cast<int>(op.heads), static_cast<int>(op.kv_heads),
                    static_cast<int>(op.head_size), static_cast<Arithmetic<T>>(op.epsilon));
        });
    });
    KBENCH_CUDA_LAUNCHED("qk_norm_kernel");
}

void rotary_embedding(DataType type, const RotaryEmbedding& op, In<"qkv"> qkv, In<"positions", std::int32_t> positions,
                      Out<"out"> out, cudaStream_t stream) {
    if (op.head_size > rotary_embedding_max_head_size)
        throw Unsupported("rotary embedding of head size " + std::to_string(op.head_size) + ": the native kernel has " +
                          std::to_string(rotary_embedding_max_head_size) + " at the most");
    Frequencies frequencies{};
    std::copy(op.frequencies.begin(), op.frequencies.end(), frequencies.of);
    const std::int64_t half = op.head_size / 2;
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(half, {qkv.data(), out.data()}, [&]<int N>() {
            constexpr std::int64_t most_threads = 256;
            const auto threads = std::min(most_threads, divide_up(heads_per_block * half / N, warp) * warp);
            const dim3 grid(static_cast<unsigned>(op.rows()),
                            static_cast<unsigned>(divide_up(op.all_heads(), heads_per_block)));
            rotary_embedding_kernel<T, N><<<grid, static_cast<unsigned>(threads), 0, stream>>>(
                qkv, positions, out, op.queries, static_cast<int>(op.heads + op.kv_heads),
                static_cast<int>(op.all_heads()), static_cast<int>(half), frequencies,
                static_cast<Arithmetic<T>>(op.factor));
        });
    });
    KBENCH_CUDA_LAUNCHED("rotary_embedding_kernel");
}

}  // namespace kbench::cuda
