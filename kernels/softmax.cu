// The causal mask and the row-wise softmax of unfused attention. Both are bound by memory: scores are read once where a
// row fits in registers, and what the mask hides is never read.
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/check.h"
#include "kernels/row.cuh"
#include "kernels/softmax.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

/// Elements of a row that a thread keeps in registers; a block holds rows of up to 16384.
constexpr int values_per_thread = 32, most_threads = 512;

template <typename A>
constexpr A minus_infinity = -std::numeric_limits<A>::infinity();

template <typename A>
__device__ A larger(A a, A b) {
    return a < b ? b : a;
}

/// What to subtract before exp: the maximum, or 0 for a fully masked row, where -inf - -inf would be NaN.
template <typename A>
__device__ A offset_of(A maximum) {
    return maximum == minus_infinity<A> ? A{0} : maximum;
}

/// A fully masked row sums to 0 and becomes zeros; a NaN in the sum stays.
template <typename A>
__device__ A inverse_of(A sum) {
    return sum == A{0} ? A{0} : A{1} / sum;
}

template <typename T, int N>
__global__ void scale_mask_kernel(T* scores, std::int64_t seq, Arithmetic<T> scale) {
    const std::int64_t row = blockIdx.x, visible = row % seq + 1;
    T* row_scores = scores + row * seq;
    for (std::int64_t column = std::int64_t{threadIdx.x} * N; column < seq; column += std::int64_t{blockDim.x} * N) {
        Vector<T, N> vector = {};
        if (column < visible) vector = Vector<T, N>::load(row_scores + column);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const auto scaled = scale * static_cast<Arithmetic<T>>(vector.elements[i]);
            vector.elements[i] = static_cast<T>(column + i < visible ? scaled : minus_infinity<Arithmetic<T>>);
        }
        vector.store(row_scores + column);
    }
}

/// A row in registers. scores and probabilities may share memory: a thread overwrites only what it alone has read.
template <typename In, typename Out, int N, int vectors>
__global__ void __launch_bounds__(most_threads)
    softmax_kernel(const In* scores, Out* probabilities, std::int64_t rows, int width) {
    using A = Arithmetic<In>;
    __shared__ A scratch[2][32];
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const std::int64_t start = row * width;
    const auto column_of = [](int i) { return static_cast<int>(i * blockDim.x + threadIdx.x) * N; };

    A values[vectors][N];
    A maximum = minus_infinity<A>;
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        const int column = column_of(i);
        Vector<In, N> input;
        if (column < width) input = Vector<In, N>::load(scores + start + column);
#pragma unroll
        for (int j = 0; j < N; ++j) {
            values[i][j] = column < width ? static_cast<A>(input.elements[j]) : minus_infinity<A>;
            maximum = larger(maximum, values[i][j]);
        }
    }
    const A offset = offset_of(reduce_row(
        maximum, minus_infinity<A>, [](A a, A b) { return larger(a, b); }, scratch[0]));
    A sum{0};
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            values[i][j] = exp(values[i][j] - offset);
            sum += values[i][j];
        }
    }
    const A inverse = inverse_of(sum_row(sum, scratch[1]));
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        const int column = column_of(i);
        if (column >= width) continue;
        Vector<Out, N> output;
#pragma unroll
        for (int j = 0; j < N; ++j) output.elements[j] = static_cast<Out>(values[i][j] * inverse);
        output.store(probabilities + start + column);
    }
}

/// Rows too long for registers: three passes, one block per row.
template <typename In, typename Out>
__global__ void softmax_long_kernel(const In* scores, Out* probabilities, std::int64_t width) {
    using A = Arithmetic<In>;
    __shared__ A scratch[2][32];
    const In* row_scores = scores + std::int64_t{blockIdx.x} * width;
    Out* row_probabilities = probabilities + std::int64_t{blockIdx.x} * width;
    A maximum = minus_infinity<A>;
    for (std::int64_t column = threadIdx.x; column < width; column += blockDim.x)
        maximum = larger(maximum, static_cast<A>(row_scores[column]));
    const A offset = offset_of(reduce_row(
        maximum, minus_infinity<A>, [](A a, A b) { return larger(a, b); }, scratch[0]));
    A sum{0};
    for (std::int64_t column = threadIdx.x; column < width; column += blockDim.x)
        sum += exp(static_cast<A>(row_scores[column]) - offset);
    const A inverse = inverse_of(sum_row(sum, scratch[1]));
    for (std::int64_t column = threadIdx.x; column < width; column += blockDim.x)
        row_probabilities[column] = static_cast<Out>(exp(static_cast<A>(row_scores[column]) - offset) * inverse);
}

template <typename In, typename Out>
void launch_softmax(const In* scores, Out* probabilities, std::int64_t rows, std::int64_t width, cudaStream_t stream) {
    static_assert(sizeof(In) >= sizeof(Out));
    dispatch_vector<vector_width<In>>(width, {scores, probabilities}, [&]<int N>() {
        constexpr int most_vectors = values_per_thread / N;
        // Four vectors per thread: rows of 1024 in fp16 then need no barrier and run at 4.1 TB/s on H200, 2.9 with one.
        const RowShape shape = row_shape(rows, divide_up(width, N), {4, most_vectors, most_threads});
        if (shape.vectors_per_thread == 0) {
            softmax_long_kernel<<<static_cast<unsigned>(rows), 1024, 0, stream>>>(scores, probabilities, width);
            return;
        }
        dispatch_power_of_two<most_vectors>(shape.vectors_per_thread, [&]<int vectors>() {
            softmax_kernel<In, Out, N, vectors>
                <<<shape.grid, shape.block, 0, stream>>>(scores, probabilities, rows, static_cast<int>(width));
        });
    });
    KBENCH_CUDA_LAUNCHED("softmax_kernel");
}

}  // namespace

void scale_mask_forward(DataType type, const ScaleMask& op, Out<"scores"> scores, cudaStream_t stream) {
    const std::int64_t rows = op.shape.score_rows(), seq = op.shape.seq;
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(seq, {scores}, [&]<int N>() {
            const auto threads = std::min<std::int64_t>(256, divide_up(divide_up(seq, N), 32) * 32);
            scale_mask_kernel<T, N><<<static_cast<unsigned>(rows), static_cast<unsigned>(threads), 0, stream>>>(
                scores, seq, static_cast<Arithmetic<T>>(op.scale));
        });
    });
    KBENCH_CUDA_LAUNCHED("scale_mask_kernel");
}

void softmax_forward(DataType scores_type, DataType probabilities_type, const Softmax& op, In<"scores"> scores,
                     Out<"probabilities"> probabilities, cudaStream_t stream) {
    dispatch(scores_type, [&]<typename T>() {
        if (scores_type == probabilities_type)
            return launch_softmax<T, T>(scores, probabilities, op.rows, op.width, stream);
        if constexpr (std::is_same_v<T, float>) {
            if (probabilities_type == DataType::fp16)
                return launch_softmax<T, __half>(scores, probabilities, op.rows, op.width, stream);
            if (probabilities_type == DataType::bf16)
                return launch_softmax<T, __nv_bfloat16>(scores, probabilities, op.rows, op.width, stream);
        }
        throw UsageError("softmax from " + std::string(name(scores_type)) + " to " +
                         std::string(name(probabilities_type)) + ": the types must be equal, or fp32 to fp16 or bf16");
    });
}

}  // namespace kbench::cuda
