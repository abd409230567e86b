// Layer norm fused with the bias and the residual addition before it: each element is read once and kept in registers.
#include <cuda_runtime.h>

#include <string>

#include "kernels/norm/layernorm.h"
#include "kernels/programmatic.cuh"
#include "kernels/row.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

/// Elements of a row that a thread keeps in registers.
constexpr int values_per_thread = 16, most_threads = 1024;
static_assert(values_per_thread * most_threads == layer_norm_max_width);

/// sum_out may be residual or x, so no pointer to activations is __restrict__; the same thread reads and writes an
/// element.
template <typename T, int N, int vectors>
__global__ void __launch_bounds__(most_threads)
    layer_norm_kernel(const T* x, const T* __restrict__ pre_bias, const T* residual, const T* __restrict__ weight,
                      const T* __restrict__ bias, T* sum_out, T* out, std::int64_t rows, int width,
                      Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    __shared__ A scratch[2][32];
    let_next_launch();
    wait_for_previous();
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const std::int64_t start = row * width;
    const auto column_of = [](int i) { return static_cast<int>(i * blockDim.x + threadIdx.x) * N; };

    A values[vectors][N] = {};
    A sum{0};
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        const int column = column_of(i);
        if (column >= width) continue;
        const auto input = Vector<T, N>::load(x + start + column);
#pragma unroll
        for (int j = 0; j < N; ++j) values[i][j] = static_cast<A>(input.elements[j]);
        if (pre_bias) {
            const auto addend = Vector<T, N>::load(pre_bias + column);
#pragma unroll
            for (int j = 0; j < N; ++j) values[i][j] += static_cast<A>(addend.elements[j]);
        }
        if (residual) {
            const auto addend = Vector<T, N>::load(residual + start + column);
#pragma unroll
            for (int j = 0; j < N; ++j) values[i][j] += static_cast<A>(addend.elements[j]);
        }
#pragma unroll
        for (int j = 0; j < N; ++j) sum += values[i][j];
    }
    if (sum_out) {
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            const int column = column_of(i);
            if (column >= width) continue;
            Vector<T, N> output;
#pragma unroll
            for (int j = 0; j < N; ++j) output.elements[j] = static_cast<T>(values[i][j]);
            output.store(sum_out + start + column);
        }
    }
    const A mean = sum_row(sum, scratch[0]) / static_cast<A>(width);

    A squares{0};
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        if (column_of(i) >= width) continue;
#pragma unroll
        for (int j = 0; j < N; ++j) squares += (values[i][j] - mean) * (values[i][j] - mean);
    }
    const A rstd = A{1} / sqrt(sum_row(squares, scratch[1]) / static_cast<A>(width) + epsilon);

#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        const int column = column_of(i);
        if (column >= width) continue;
        const auto scale = Vector<T, N>::load(weight + column);
        const auto shift = Vector<T, N>::load(bias + column);
        Vector<T, N> output;
#pragma unroll
        for (int j = 0; j < N; ++j)
            output.elements[j] = static_cast<T>((values[i][j] - mean) * rstd * static_cast<A>(scale.elements[j]) +
                                                static_cast<A>(shift.elements[j]));
        output.store(out + start + column);
    }
}

}  // namespace

void layer_norm_forward(DataType type, const LayerNorm& op, In<"x"> x, In<"pre_bias?"> pre_bias,
                        In<"residual?"> residual, In<"weight"> weight, In<"bias"> bias, Out<"sum?"> sum_out,
                        Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {x, pre_bias, residual, weight, bias, sum_out, out}, [&]<int N>() {
            constexpr int most_vectors = values_per_thread / N;
            // One vector per thread: [1024, 1280] in fp16 takes 3.2 us on an H200; with a warp per row it takes 4.4.
            const RowShape shape = row_shape(op.rows, divide_up(op.width, N), {1, most_vectors, most_threads});
            if (shape.vectors_per_thread == 0)
                throw Unsupported("layer norm of width " + std::to_string(op.width) +
                                  ": the native kernel keeps a row in registers, up to " +
                                  std::to_string(layer_norm_max_width) + " elements");
            dispatch_power_of_two<most_vectors>(shape.vectors_per_thread, [&]<int vectors>() {
                launch_behind(layer_norm_kernel<T, N, vectors>, shape.grid, shape.block, stream, x, pre_bias, residual,
                              weight, bias, sum_out, out, op.rows, static_cast<int>(op.width),
                              static_cast<Arithmetic<T>>(op.epsilon));
            });
        });
    });
}

}  // namespace kbench::cuda
