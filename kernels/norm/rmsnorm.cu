// RMS norm: each element is read once and kept in registers as it is stored. Bound by memory, so a row's shape is
// chosen for bytes in flight: several loads per thread, no lane without one, more than one row at a time on an SM.
#include "kernels/norm/rmsnorm.h"

#include <iterator>
#include <string>

#include "kernels/programmatic.cuh"
#include "kernels/row.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

/// Rows of up to `vectors` vectors, with `per_thread` of them in each thread.
struct RowChoice {
    std::int64_t vectors;
    int per_thread;
};

/// The first choice that fits is taken. A 16-byte vector holds 8, 4 or 2 elements: 1280 columns are 160, 320 or 640
/// vectors. A thread with 4 loads in flight needs no full occupancy.
constexpr RowChoice row_choices[] = {
    {32, 1},     // up to 192 vectors, one warp per row and no barriers: one load per lane,
    {64, 2},     // two,
    {128, 4},    // four,
    {160, 5},    // and for 1280 in 16 bits five: no lane idles; with 8 loads per lane, 3 would be skipped
    {192, 6},    // 1536 in 16 bits, likewise
    {256, 4},    // 2048 in 16 bits: two warps; in one, with 8, bf16 spills 104 bytes at 64 registers
    {320, 5},    // 1280 in fp32: two whole warps
    {512, 4},    // 4096 in 16 bits: four warps
    {640, 5},    // 1280 in fp64, 5120 in 16 bits: four whole warps
    {2048, 4},   // 8192 in fp32: 512 threads, so that other rows run on the SM while one waits at its barrier
    {4096, 8},   // 8192 in fp64: again 512 threads; with 1024 an SM would hold one row and wait with it
    {8192, 8},   // up to 16384 in fp64
    {16384, 16}  // element by element: rows that are not whole vectors
};
static_assert(row_choices[std::size(row_choices) - 1].vectors == rms_norm_max_width);

/// With 1024 threads per block a thread has at most 64 registers; 8 vectors take half of them.
constexpr int most_threads = 1024;

/// The shape for such rows; vectors_per_thread is 0 for a row that is too long.
RowShape shape_of(std::int64_t rows, std::int64_t vectors) {
    constexpr int warp = 32, rows_per_block = 4;
    for (const RowChoice& choice : row_choices) {
        if (vectors > choice.vectors) continue;
        const std::int64_t threads = divide_up(divide_up(vectors, choice.per_thread), warp) * warp;
        const int rows_a_block = threads == warp ? rows_per_block : 1;
        return {dim3(static_cast<unsigned>(divide_up(rows, rows_a_block))),
                dim3(static_cast<unsigned>(threads), rows_a_block), choice.per_thread};
    }
    return {};
}

/// Calls `function.operator()<n>()` for n = `per_thread`, one of the choices for rows of up to `most` vectors. No
/// kernel is compiled for larger ones, whose values would not fit in registers.
template <std::int64_t most, std::size_t choice = 0, typename Function>
void dispatch_choice(int per_thread, Function&& function) {
    if constexpr (row_choices[choice].vectors < most) {
        if (per_thread != row_choices[choice].per_thread)
            return dispatch_choice<most, choice + 1>(per_thread, function);
    }
    function.template operator()<row_choices[choice].per_thread>();
}

/// x and out may be the same: a thread overwrites only what it alone has read.
template <typename T, int N, int vectors>
__global__ void __launch_bounds__(most_threads) rms_norm_kernel(const T* x, const T* __restrict__ weight, T* out,
                                                                std::int64_t rows, int width, Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    __shared__ A scratch[32];
    let_next_launch();
    wait_for_previous();
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const std::int64_t start = row * width;
    const auto column_of = [](int i) { return static_cast<int>(i * blockDim.x + threadIdx.x) * N; };

    Vector<T, N> values[vectors] = {};
#pragma unroll
    for (int i = 0; i < vectors; ++i)
        if (column_of(i) < width) values[i] = Vector<T, N>::load_once(x + start + column_of(i));

    A squares{0};
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        A partial{0};  // one chain of additions per vector: they overlap
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const A value = static_cast<A>(values[i].elements[j]);
            partial += value * value;
        }
        squares += partial;
    }
    const A rstd = A{1} / sqrt(sum_row(squares, scratch) / static_cast<A>(width) + epsilon);

#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        const int column = column_of(i);
        if (column >= width) continue;
        const auto scale = Vector<T, N>::load(weight + column);  // from L1, which x bypasses
        Vector<T, N> output;
#pragma unroll
        for (int j = 0; j < N; ++j)
            output.elements[j] =
                static_cast<T>(static_cast<A>(values[i].elements[j]) * rstd * static_cast<A>(scale.elements[j]));
        output.store(out + start + column);
    }
}

}  // namespace

void rms_norm_forward(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out,
                      cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {x, weight, out}, [&]<int N>() {
            const RowShape shape = shape_of(op.rows, divide_up(op.width, N));
            if (shape.vectors_per_thread == 0 || op.width > rms_norm_max_width)
                throw Unsupported("RMS norm of width " + std::to_string(op.width) +
                                  ": the native kernel keeps a row in registers, up to " +
                                  std::to_string(rms_norm_max_width) + " elements");
            dispatch_choice<rms_norm_max_width / N>(shape.vectors_per_thread, [&]<int vectors>() {
                launch_behind(rms_norm_kernel<T, N, vectors>, shape.grid, shape.block, stream, x, weight, out, op.rows,
                              static_cast<int>(op.width), static_cast<Arithmetic<T>>(op.epsilon));
            });
        });
    });
}

}  // namespace kbench::cuda
