// The backward of layer norm and RMS norm in one kernel, and a second one that adds up the SMs' sums over the rows.
// Bound by memory: x and dy are read once, dx is written once. One block a SM goes over its rows, each row with a warp
// or some whole warps, so that the sums over the rows stay in registers: 132 partial sums on H200, 1.3 MB for 1280
// columns, where a block for every few rows would write more than dx. A thread asks for its next row before it works on
// this one, for with so many registers an SM holds 8 to 12 warps: for 1280 columns in 16 bit, 40 KB in flight.
#include "kernels/norm_backward.h"

#include <algorithm>
#include <span>
#include <string>

#include "kernels/check.h"
#include "kernels/column_sums.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, most_warps = 16;

/// A thread holds up to `vectors` vectors of a row, and a block has up to `threads`. `ahead`: the next row is asked for
/// early, for which there are registers.
struct Choice {
    int vectors, threads;
    bool ahead;
};

/// A thread needs five or six fp32 registers for each of its elements, and has 255, 168 or 128 with 256, 384 or 512
/// threads. The last choice of each takes every row of up to 16384 elements, and keeps some of them in local memory.
constexpr Choice of_16_bit[] = {{3, 384, true}, {5, 256, true}, {4, 512, false}};
constexpr Choice of_fp32[] = {{5, 384, true}, {8, 512, false}};
constexpr Choice of_fp64[] = {{5, 384, true}, {16, 512, false}};
constexpr Choice element_by_element[] = {{32, 512, false}};

template <typename T, int N>
constexpr std::span<const Choice> choices() {
    if (N == 1) return element_by_element;
    if (sizeof(T) == 2) return of_16_bit;
    if (sizeof(T) == 4) return of_fp32;
    return of_fp64;
}

/// How a block works: blockDim.x threads on a row, blockDim.y rows at once.
struct Shape {
    std::size_t choice;
    dim3 block;
};

/// The choice with which a block holds most at once; without registers for the next row only where no other takes the
/// row. `sums_bytes` of shared memory are needed where a block has several rows at once.
Shape shape_of(std::span<const Choice> all, std::int64_t vectors, std::int64_t sums_bytes) {
    constexpr std::int64_t most_shared = 47 * 1024;  // 48 KiB without being asked for, less what reductions take
    Shape best{};
    std::int64_t most_held = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::int64_t threads = divide_up(vectors, warp * all[i].vectors) * warp;
        if (threads > all[i].threads || (!all[i].ahead && most_held > 0)) continue;
        const std::int64_t rows = sums_bytes > most_shared ? 1 : all[i].threads / threads;
        if (rows * vectors <= most_held) continue;
        most_held = rows * vectors;
        best = {i, dim3(static_cast<unsigned>(threads), static_cast<unsigned>(rows))};
    }
    return best;
}

/// `values` summed up over the threads that share a row; all of them get the sums. `scratch` is used by every second
/// call: a warp that writes it again has met the others in between.
template <typename A, int count>
__device__ void sum_over_row(A (&values)[count], A (&scratch)[count][most_warps]) {
    const auto sum_warp = [&] {
#pragma unroll
        for (int distance = warp / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int i = 0; i < count; ++i) values[i] += __shfl_xor_sync(0xffffffffu, values[i], distance);
    };
    sum_warp();
    if (blockDim.x == warp) return;
    const unsigned lane = threadIdx.x % warp, warps = blockDim.x / warp, first = threadIdx.y * warps;
    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < count; ++i) scratch[i][first + threadIdx.x / warp] = values[i];
    }
    // A barrier for each row of the block; 0 is that of __syncthreads.
    asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "r"(blockDim.x) : "memory");
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = lane < warps ? scratch[i][first + lane] : A{0};
    sum_warp();
}

/// Row blockIdx.x of `partial` [blocks, 2 width] (RMS norm: [blocks, width]): the sums of dy n, then those of dy, over
/// the block's rows. `centred`: layer norm. dx may be dy or past: each element is read and written by the same thread.
template <typename T, int N, int vectors, int threads, bool ahead, bool centred>
__global__ void __launch_bounds__(threads, 1)
    norm_backward_kernel(const T* x, const T* dy, const T* __restrict__ weight, const T* past, T* dx,
                         Arithmetic<T>* __restrict__ partial, std::int64_t rows, int width, Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    __shared__ A scratch[2][2][most_warps];
    const auto column_of = [](int i) { return static_cast<int>(i * blockDim.x + threadIdx.x) * N; };
    const A count = static_cast<A>(width);

    Vector<A, N> weight_sums[vectors] = {}, bias_sums[vectors] = {};
    // As loaded, two 16-bit elements a register: across the loop, bf16 would lie in a register each. 0 beyond the row.
    using Bits = typename Vector<T, N>::Bits;
    static_assert(sizeof(Bits) == sizeof(Vector<T, N>));
    Bits next_x[vectors] = {}, next_dy[vectors] = {};
    const auto elements_of = [](const Bits& bits) {
        Vector<T, N> vector;
        memcpy(vector.elements, &bits, sizeof bits);
        return vector;
    };
    const auto fetch = [&](std::int64_t row) {
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            if (column_of(i) >= width) continue;
            next_x[i] = __ldcg(reinterpret_cast<const Bits*>(x + row * width + column_of(i)));
            next_dy[i] = __ldcg(reinterpret_cast<const Bits*>(dy + row * width + column_of(i)));
        }
    };

    std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
    unsigned turn = 0;
    if (ahead && row < rows) fetch(row);
    for (; row < rows; row += step) {
        if (!ahead) fetch(row);
        A values[vectors][N], g[vectors][N];
        Bits gradient[vectors];
        A sums[2] = {A{0}, A{0}};
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            gradient[i] = next_dy[i];
            const Vector<T, N> in = elements_of(next_x[i]), incoming = elements_of(gradient[i]);
            Vector<T, N> scale = {};
            if (column_of(i) < width) scale = Vector<T, N>::load(weight + column_of(i));
            A parts[2] = {A{0}, A{0}};  // chains of additions for each vector: they overlap
#pragma unroll
            for (int j = 0; j < N; ++j) {
                values[i][j] = static_cast<A>(in.elements[j]);
                g[i][j] = static_cast<A>(incoming.elements[j]) * static_cast<A>(scale.elements[j]);
                parts[0] += centred ? values[i][j] : values[i][j] * values[i][j];
                parts[1] += centred ? g[i][j] : g[i][j] * values[i][j];
            }
            sums[0] += parts[0];
            sums[1] += parts[1];
        }
        if (ahead && row + step < rows) fetch(row + step);
        sum_over_row(sums, scratch[turn]);
        turn ^= 1;

        A mean_g{0};
        if constexpr (centred) {
            const A mean = sums[0] / count;
            mean_g = sums[1] / count;
            sums[0] = sums[1] = A{0};
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                if (column_of(i) >= width) continue;
                A parts[2] = {A{0}, A{0}};
#pragma unroll
                for (int j = 0; j < N; ++j) {
                    values[i][j] -= mean;
                    parts[0] += values[i][j] * values[i][j];
                    parts[1] += g[i][j] * values[i][j];
                }
                sums[0] += parts[0];
                sums[1] += parts[1];
            }
            sum_over_row(sums, scratch[turn]);
            turn ^= 1;
        }
        const A rstd = A{1} / sqrt(sums[0] / count + epsilon);
        const A mean_gn = sums[1] * rstd / count;

#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            if (column_of(i) >= width) continue;
            const std::int64_t at = row * width + column_of(i);
            const Vector<T, N> incoming = elements_of(gradient[i]);
            Vector<T, N> added = {};
            if (past) added = Vector<T, N>::load_once(past + at);
            Vector<T, N> out;
#pragma unroll
            for (int j = 0; j < N; ++j) {
                const A n = values[i][j] * rstd, in = static_cast<A>(incoming.elements[j]);
                weight_sums[i].elements[j] += in * n;
                if constexpr (centred) bias_sums[i].elements[j] += in;
                out.elements[j] =
                    static_cast<T>(rstd * (g[i][j] - mean_g - n * mean_gn) + static_cast<A>(added.elements[j]));
            }
            out.store(dx + at);
        }
    }

    // The rows' sums are added up in shared memory, the last row's first; row 0's threads write them.
    A* shared = reinterpret_cast<A*>(shared_bytes);
    A* own_partial = partial + std::int64_t{blockIdx.x} * width * (centred ? 2 : 1);
    const auto pass_on = [&](Vector<A, N>& sums, int column, bool is_last) {
        if (!is_last) {
            const auto others = Vector<A, N>::load(shared + column);
#pragma unroll
            for (int j = 0; j < N; ++j) sums.elements[j] += others.elements[j];
        }
        sums.store((threadIdx.y > 0 ? shared : own_partial) + column);
    };
    for (unsigned y = blockDim.y; y-- > 0;) {
        if (threadIdx.y == y) {
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                if (column_of(i) >= width) continue;
                pass_on(weight_sums[i], column_of(i), y + 1 == blockDim.y);
                if constexpr (centred) pass_on(bias_sums[i], width + column_of(i), y + 1 == blockDim.y);
            }
        }
        __syncthreads();
    }
}

int multiprocessors() {
    int device = 0, count = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

std::size_t workspace_bytes(DataType type, std::int64_t rows, std::int64_t sums) {
    const std::size_t arithmetic = type == DataType::fp64 ? sizeof(double) : sizeof(float);
    return arithmetic * static_cast<std::size_t>(std::min<std::int64_t>(rows, multiprocessors()) * sums);
}

/// Calls `function.operator()<index>()` for the `index` that is `chosen` of choices<T, N>().
template <typename T, int N, std::size_t index = 0, typename Function>
void dispatch_choice(std::size_t chosen, Function&& function) {
    if constexpr (index + 1 < choices<T, N>().size()) {
        if (chosen != index) return dispatch_choice<T, N, index + 1>(chosen, function);
    }
    function.template operator()<index>();
}

template <bool centred>
void norm_backward(DataType type, const void* x, const void* dy, const void* weight, const void* past, void* dx,
                   void* dw, void* db, void* workspace, std::int64_t rows, std::int64_t width, double epsilon,
                   cudaStream_t stream, bool accumulates) {
    if (width > norm_backward_max_width)
        throw Unsupported("backward of a norm of width " + std::to_string(width) +
                          ": the native kernel keeps a row in registers, up to " +
                          std::to_string(norm_backward_max_width) + " elements");
    const std::int64_t sums = centred ? 2 * width : width;
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        auto* partial = static_cast<A*>(workspace);
        dispatch_vector<vector_width<T>>(width, {x, dy, weight, past, dx}, [&]<int N>() {
            const std::int64_t sums_bytes = sums * static_cast<std::int64_t>(sizeof(A));
            const Shape shape = shape_of(choices<T, N>(), divide_up(width, N), sums_bytes);
            const std::int64_t blocks = std::min<std::int64_t>(divide_up(rows, shape.block.y), multiprocessors());
            const std::size_t shared = shape.block.y > 1 ? static_cast<std::size_t>(sums_bytes) : 0;
            dispatch_choice<T, N>(shape.choice, [&]<std::size_t chosen>() {
                constexpr Choice choice = choices<T, N>()[chosen];
                norm_backward_kernel<T, N, choice.vectors, choice.threads, choice.ahead, centred>
                    <<<static_cast<unsigned>(blocks), shape.block, shared, stream>>>(
                        static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<const T*>(weight),
                        static_cast<const T*>(past), static_cast<T*>(dx), partial, rows, static_cast<int>(width),
                        static_cast<A>(epsilon));
            });
            KBENCH_CUDA_LAUNCHED("norm_backward_kernel");
            add_parts<T>(partial, blocks, sums, dw, width, db, accumulates, stream);
        });
    });
}

}  // namespace

std::size_t layer_norm_backward_workspace_bytes(DataType type, std::int64_t rows, std::int64_t width) {
    return workspace_bytes(type, rows, 2 * width);
}

std::size_t rms_norm_backward_workspace_bytes(DataType type, std::int64_t rows, std::int64_t width) {
    return workspace_bytes(type, rows, width);
}

void layer_norm_backward(DataType type, const void* x, const void* dy, const void* weight,
                         const void* residual_gradient, void* dx, void* dw, void* db, void* workspace,
                         std::int64_t rows, std::int64_t width, double epsilon, cudaStream_t stream, bool accumulates) {
    norm_backward<true>(type, x, dy, weight, residual_gradient, dx, dw, db, workspace, rows, width, epsilon, stream,
                        accumulates);
}

void rms_norm_backward(DataType type, const void* x, const void* dy, const void* weight, void* dx, void* dw,
                       void* workspace, std::int64_t rows, std::int64_t width, double epsilon, cudaStream_t stream,
                       bool accumulates) {
    norm_backward<false>(type, x, dy, weight, nullptr, dx, dw, nullptr, workspace, rows, width, epsilon, stream,
                         accumulates);
}

}  // namespace kbench::cuda
