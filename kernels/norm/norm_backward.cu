// The backward of layer norm and RMS norm: one kernel, and a second one that adds up the SMs' sums over the rows.
// Bound by memory: x and dy are read once, dx is written once. One block per SM walks over its rows, each row with one
// or a few whole warps, and keeps the sums over the rows in registers. That leaves 132 partial sums on an H200, 1.3 MB
// for 1280 columns; one block per few rows would write more than dx.
// A warp copies its next rows to shared memory while it works on the current ones: for 1280 columns in 16 bits, 80 KB
// are in flight per SM, where 30 would cover DRAM's latency. Only the sums over the rows stay in registers; for dx, a
// row is read again from shared memory. So a warp can take two rows at once, whose dependent instructions overlap and
// which share the weight. An element takes 20 instructions, 45 % of what an SM could issue in DRAM's time.
#include "kernels/norm/norm_backward.h"

#include <algorithm>
#include <span>
#include <string>

#include "kernels/check.h"
#include "kernels/column_sums.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/programmatic.cuh"
#include "kernels/shared_memory.h"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, most_warps = 16;

/// A thread has `vectors` vectors of each of `rows` rows; a block has up to `threads` threads. `staged`: rows and
/// weight pass through shared memory; otherwise they are read from L2, once for the statistics and once for dx.
struct Choice {
    int vectors, rows, threads;
    bool staged;
};

/// A thread needs two fp32 registers per element; with 256 or 512 threads per block it may have 255 or 128. The last
/// choice of each list takes every row of up to 16384 elements that fits at all; in fp64, some of its sums lie in local
/// memory.
constexpr bool two_rows_a_warp = true;  ///< false: twice as many warps with one row each, which spill 56 bytes
constexpr Choice of_16_bit[] = {{3, 2, 256, true},
                                {4, 2, 256, true},
                                {5, two_rows_a_warp ? 2 : 1, two_rows_a_warp ? 256 : 512, true},
                                {4, 1, 512, false}};
constexpr Choice of_fp32[] = {{6, 1, 256, true}, {10, 1, 256, true}, {8, 1, 512, false}};
constexpr Choice of_fp64[] = {{10, 1, 256, true}, {16, 1, 512, false}};
constexpr Choice element_by_element[] = {{32, 1, 512, false}};

template <typename T, int N>
constexpr std::span<const Choice> choices() {
    if (N == 1) return element_by_element;
    if (sizeof(T) == 2) return of_16_bit;
    if (sizeof(T) == 4) return of_fp32;
    return of_fp64;
}

/// N neighbours, in the computing type, are stored as units of up to 16 bytes. The first plane holds the first unit of
/// every vector, the second plane the second: so a warp's accesses to a plane have no bank conflicts.
template <typename A, int N>
inline constexpr int unit = N * sizeof(A) >= 16 ? 16 / static_cast<int>(sizeof(A)) : N;

/// Sums `values` over the threads that share a row; all of them get the sums. Every second call may reuse `scratch`: a
/// warp that writes it again has passed a barrier with the others in between.
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
    // One barrier per row of the block; number 0 is that of __syncthreads.
    asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "r"(blockDim.x) : "memory");
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = lane < warps ? scratch[i][first + lane] : A{0};
    sum_warp();
}

__device__ inline float reciprocal_root(float x) { return rsqrtf(x); }
__device__ inline double reciprocal_root(double x) { return 1 / sqrt(x); }

/// Row blockIdx.x of `partial` [blocks, 2 width] (RMS norm: [blocks, width]) becomes the sums of dy n, then those of
/// dy, over the block's rows. blockDim.x threads, in whole warps, share `together` rows at a time; a block has
/// blockDim.y such groups. `centred`: layer norm. `past` is read where `added`. dx may be dy or past, because the same
/// thread reads and writes an element.
template <typename T, int N, int vectors, int together, int threads, bool staged, bool centred, bool added>
__global__ void __launch_bounds__(threads, 1)
    norm_backward_kernel(const T* x, const T* dy, const T* __restrict__ weight, const T* past, T* dx,
                         Arithmetic<T>* __restrict__ partial, std::int64_t rows, int width, Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    using Bits = typename Vector<T, N>::Bits;
    using Unit = Vector<A, unit<A, N>>;
    constexpr int planes = N / unit<A, N>, per_warp = 2 * together * vectors * warp;
    static_assert(staged ? sizeof(Bits) == 16 : together == 1);
    extern __shared__ __align__(16) unsigned char shared[];
    constexpr int kinds = centred ? 4 : 2;
    __shared__ A scratch[2][together * kinds][most_warps], again_scratch[2 * together][most_warps];

    const A part_of_mean = A{1} / static_cast<A>(width);
    const auto vector_of = [](int i) { return static_cast<int>(i * blockDim.x + threadIdx.x); };
    const int row_vectors = width / N;
    const auto inside = [&](int i) { return vector_of(i) < row_vectors; };

    // The weight in the computing type, followed by zeros; then slots of x and dy for two turns. A thread reads only
    // what it has copied itself, so neither needs a barrier.
    const int padded = staged ? vectors * static_cast<int>(blockDim.x) : 0;
    A* const weights = reinterpret_cast<A*>(shared);
    Bits* const slots = reinterpret_cast<Bits*>(weights + padded * N) +
                        (threadIdx.y * blockDim.x + threadIdx.x) / warp * (2 * per_warp) + threadIdx.x % warp;
    const auto slot_of = [](int array, int r, int i) { return ((array * together + r) * vectors + i) * warp; };
    if constexpr (staged) {
        for (int v = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); v < padded;
             v += static_cast<int>(blockDim.x * blockDim.y)) {
            Vector<T, N> stored = {};
            if (v * N < width) stored = Vector<T, N>::load(weight + v * N);
            A values[N];
            widen(stored, values);
#pragma unroll
            for (int p = 0; p < planes; ++p) {
                Unit part;
                memcpy(&part, values + p * unit<A, N>, sizeof part);
                part.store(weights + (p * padded + v) * unit<A, N>);
            }
        }
        __syncthreads();
    }
    const auto load_weight = [&](int i, A(&values)[N]) {
        if constexpr (staged) {
#pragma unroll
            for (int p = 0; p < planes; ++p) {
                const auto part = Unit::load(weights + (p * padded + vector_of(i)) * unit<A, N>);
                memcpy(values + p * unit<A, N>, &part, sizeof part);
            }
        } else {
            widen(inside(i) ? Vector<T, N>::load(weight + vector_of(i) * N) : Vector<T, N>{}, values);
        }
    };

    // The thread's first element of row `row`, and the offset of its others in this turn.
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y * together;
    std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y) * together;
    std::int64_t first = row * width + static_cast<int>(threadIdx.x) * N;
    const auto from_first = [&](int r, int i) { return r * width + i * static_cast<int>(blockDim.x) * N; };
    // Columns past the row are zero. For a row past the last, x is the row before and dy is 0, so it adds nothing.
    const auto fetch = [&](std::int64_t row, std::int64_t first, Bits* to) {
        asm volatile("" ::: "memory");  // after reads of what lies there
#pragma unroll
        for (int r = 0; r < together; ++r) {
            const bool exists = r == 0 || row + r < rows;
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                cp_async_if<16>(to + slot_of(0, r, i), x + first + from_first(exists ? r : 0, i), inside(i));
                cp_async_if<16>(to + slot_of(1, r, i), dy + first + from_first(r, i), inside(i) && exists);
            }
        }
    };

    Vector<A, N> weight_sums[vectors] = {}, bias_sums[vectors] = {};
    if (staged && row < rows) fetch(row, first, slots);
    if (staged) cp_async_commit();
    int odd = 0;
    for (; row < rows; row += step, first += step * width, odd ^= 1) {
        const Bits* const here = slots + odd * per_warp;
        if constexpr (staged) {
            if (row + step < rows) fetch(row + step, first + step * width, slots + (odd ^ 1) * per_warp);
            cp_async_commit();
            cp_async_wait<1>();
        }
        const auto exists = [&](int r) { return r == 0 || row + r < rows; };
        const auto load_row = [&](int array, int r, int i, A(&values)[N]) {
            Vector<T, N> stored = {};
            if constexpr (staged) {
                const Bits bits = here[slot_of(array, r, i)];
                memcpy(&stored, &bits, sizeof bits);
            } else if (inside(i)) {
                stored = Vector<T, N>::load_once((array == 0 ? x : dy) + first + from_first(r, i));
            }
            widen(stored, values);
        };
        // Loaded early: after the first store to dx, which may be the same memory, each load would wait for DRAM.
        Vector<T, N> past_values[added ? together : 1][added ? vectors : 1] = {};
        if constexpr (added) {
#pragma unroll
            for (int r = 0; r < together; ++r)
#pragma unroll
                for (int i = 0; i < vectors; ++i)
                    if (inside(i) && exists(r))
                        past_values[r][i] = Vector<T, N>::load_once(past + first + from_first(r, i));
        }

        // Sums over each row: of g x and x^2, and for layer norm also of g and x.
        A sums[together * kinds] = {};
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            A scale[N];
            load_weight(i, scale);
#pragma unroll
            for (int r = 0; r < together; ++r) {
                A value[N], incoming[N];
                load_row(0, r, i, value);
                load_row(1, r, i, incoming);
#pragma unroll
                for (int j = 0; j < N; ++j) {
                    const A g = incoming[j] * scale[j];
                    sums[r * kinds] += g * value[j];
                    sums[r * kinds + 1] += value[j] * value[j];
                    if constexpr (centred) {
                        sums[r * kinds + 2] += g;
                        sums[r * kinds + 3] += value[j];
                    }
                }
            }
        }
        sum_over_row(sums, scratch[odd]);

        // The squares around the mean are E[x^2] - E[x]^2, which multiplies the error of E[x^2] by E[x^2] / variance.
        // Up to 4 that is less than the error that a row's fp32 sum has anyway; beyond it, a second pass is made.
        A mean[together], mean_g[together], squares[together], products[together];
        bool is_far = false;
#pragma unroll
        for (int r = 0; r < together; ++r) {
            products[r] = sums[r * kinds] * part_of_mean;
            squares[r] = sums[r * kinds + 1] * part_of_mean;
            mean[r] = mean_g[r] = 0;
            if constexpr (centred) {
                mean_g[r] = sums[r * kinds + 2] * part_of_mean;
                mean[r] = sums[r * kinds + 3] * part_of_mean;
                const A variance = squares[r] - mean[r] * mean[r];
                is_far |= !(squares[r] <= 4 * variance);
                products[r] -= mean_g[r] * mean[r];
                squares[r] = variance;
            }
        }
        if (centred && is_far) {
            A again[2 * together] = {};
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                A scale[N];
                load_weight(i, scale);
#pragma unroll
                for (int r = 0; r < together; ++r) {
                    A value[N], incoming[N];
                    load_row(0, r, i, value);
                    load_row(1, r, i, incoming);
                    if (!inside(i)) continue;
#pragma unroll
                    for (int j = 0; j < N; ++j) {
                        const A difference = value[j] - mean[r];
                        again[2 * r] += difference * difference;
                        again[2 * r + 1] += incoming[j] * scale[j] * difference;
                    }
                }
            }
            sum_over_row(again, again_scratch);
#pragma unroll
            for (int r = 0; r < together; ++r) {
                squares[r] = again[2 * r] * part_of_mean;
                products[r] = again[2 * r + 1] * part_of_mean;
            }
        }

        // dx = rstd g - rstd mean(g) - (x - mean) rstd^3 mean(g (x - mean))
        A rstd[together], constant[together], slope[together];
        T* const to = dx + first;
        int vectors_of[together];  // that exist
#pragma unroll
        for (int r = 0; r < together; ++r) {
            vectors_of[r] = exists(r) ? row_vectors : 0;
            rstd[r] = reciprocal_root(squares[r] + epsilon);
            constant[r] = -rstd[r] * mean_g[r];
            slope[r] = -(products[r] * rstd[r] * rstd[r]) * rstd[r];
        }
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            A scale[N];
            load_weight(i, scale);
#pragma unroll
            for (int r = 0; r < together; ++r) {
                A value[N], incoming[N], beside[N];
                load_row(0, r, i, value);
                load_row(1, r, i, incoming);
                if constexpr (added) widen(past_values[r][i], beside);
                Vector<T, N> out;
#pragma unroll
                for (int j = 0; j < N; ++j) {
                    const A difference = centred ? value[j] - mean[r] : value[j], times = incoming[j] * rstd[r];
                    weight_sums[i].elements[j] += times * difference;
                    if constexpr (centred) bias_sums[i].elements[j] += incoming[j];
                    A rest = slope[r] * difference;
                    if constexpr (centred) rest = slope[r] * difference + constant[r];
                    if constexpr (added) rest += beside[j];
                    out.elements[j] = static_cast<T>(times * scale[j] + rest);
                }
                out.store_whole(to + from_first(r, i), vector_of(i) < vectors_of[r]);
            }
        }
    }
    let_next_launch();

    // The groups' sums are added up in shared memory, in a fixed order.
    constexpr int kinds_of_sums = centred ? 2 : 1;
    A* const own_partial = partial + std::int64_t{blockIdx.x} * width * kinds_of_sums;
    const int all = width * kinds_of_sums;
    if (blockDim.y == 1) {
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            if (!inside(i)) continue;
            weight_sums[i].store_whole(own_partial + vector_of(i) * N);
            if constexpr (centred) bias_sums[i].store_whole(own_partial + width + vector_of(i) * N);
        }
        return;
    }
    A* const gathered = reinterpret_cast<A*>(shared);
    const auto store_planes = [&](const Vector<A, N>& sums, A* to, int v) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
            Unit part;
            memcpy(&part, sums.elements + p * unit<A, N>, sizeof part);
            part.store(to + (p * row_vectors + v) * unit<A, N>);
        }
    };
    __syncthreads();
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
        if (!inside(i)) continue;
        A* const to = gathered + static_cast<int>(threadIdx.y) * all;
        store_planes(weight_sums[i], to, vector_of(i));
        if constexpr (centred) store_planes(bias_sums[i], to + width, vector_of(i));
    }
    __syncthreads();
    for (int u = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); u < all / unit<A, N>;
         u += static_cast<int>(blockDim.x * blockDim.y)) {
        Unit sum = Unit::load(gathered + u * unit<A, N>);
        for (unsigned y = 1; y < blockDim.y; ++y) {
            const auto other = Unit::load(gathered + static_cast<int>(y) * all + u * unit<A, N>);
#pragma unroll
            for (int j = 0; j < unit<A, N>; ++j) sum.elements[j] += other.elements[j];
        }
        const int plane = u / row_vectors, v = u % row_vectors;
        sum.store_whole(own_partial + plane / planes * width + v * N + plane % planes * unit<A, N>);
    }
}

/// Properties of the current device.
struct Device {
    std::int64_t multiprocessors, shared;  ///< bytes that a block may have

    Device() {
        int device = 0, count = 0;
        KBENCH_CUDA(cudaGetDevice(&device));
        KBENCH_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
        constexpr int of_reductions = 6 * 1024;
        multiprocessors = count;
        shared = shared_bytes_of_block() - of_reductions;
    }
};

/// The shape of a block: blockDim.x threads per row, blockDim.y groups of them.
struct Shape {
    std::size_t choice;
    dim3 block;
    std::int64_t shared;  ///< bytes
};

/// The choice with which a block holds the most vectors at once; the first of several. `bytes` is the size of a number
/// in the computing type.
Shape shape_of(std::span<const Choice> all, const Device& device, std::int64_t rows, std::int64_t width, std::int64_t N,
               std::int64_t sums, std::int64_t bytes) {
    const std::int64_t vectors = divide_up(width, N);
    Shape best{};
    std::int64_t most_held = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Choice& choice = all[i];
        const std::int64_t threads = divide_up(vectors, warp * choice.vectors) * warp;
        const auto shared = [&](std::int64_t groups) {
            const std::int64_t gathered = groups > 1 ? groups * sums * bytes : 0;
            if (!choice.staged) return gathered;
            const std::int64_t slots = groups * threads * choice.vectors * choice.rows * 2 * 2 * 16;
            return std::max(threads * choice.vectors * N * bytes + slots, gathered);
        };
        std::int64_t groups = choice.threads / threads;
        while (groups > 1 && shared(groups) > device.shared) --groups;
        if (groups == 0 || shared(groups) > device.shared) continue;
        const std::int64_t held = groups * choice.rows * vectors;
        if (held <= most_held || (most_held > 0 && !choice.staged)) continue;
        most_held = held;
        groups = std::min(groups, divide_up(rows, choice.rows * device.multiprocessors));  // few rows, for all SMs
        best = {i, dim3(static_cast<unsigned>(threads), static_cast<unsigned>(groups)), shared(groups)};
    }
    return best;
}

std::size_t workspace_bytes(DataType type, std::int64_t rows, std::int64_t sums) {
    const std::size_t arithmetic = type == DataType::fp64 ? sizeof(double) : sizeof(float);
    return arithmetic * static_cast<std::size_t>(std::min<std::int64_t>(rows, Device().multiprocessors) * sums);
}

/// Calls `function.operator()<index>()` where `index` is `chosen`, an index into choices<T, N>().
template <typename T, int N, std::size_t index = 0, typename Function>
void dispatch_choice(std::size_t chosen, Function&& function) {
    if constexpr (index + 1 < choices<T, N>().size()) {
        if (chosen != index) return dispatch_choice<T, N, index + 1>(chosen, function);
    }
    function.template operator()<index>();
}

template <bool centred, class Norm>
void norm_backward(DataType type, const Norm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight, const void* past,
                   Out<"dx"> dx, Out<"dw"> dw, void* db, void* workspace, cudaStream_t stream) {
    const std::int64_t rows = op.rows, width = op.width;
    if (width > norm_backward_max_width)
        throw Unsupported("backward of a norm of width " + std::to_string(width) +
                          ": the native kernel keeps its sums over the rows in registers, up to " +
                          std::to_string(norm_backward_max_width) + " elements");
    const Device device;
    const std::int64_t sums = centred ? 2 * width : width;
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        auto* partial = static_cast<A*>(workspace);
        dispatch_vector<vector_width<T>>(width, {x, dy, weight, past, dx}, [&]<int N>() {
            const Shape shape =
                shape_of(choices<T, N>(), device, rows, width, N, sums, static_cast<std::int64_t>(sizeof(A)));
            dispatch_choice<T, N>(shape.choice, [&]<std::size_t chosen>() {
                constexpr Choice choice = choices<T, N>()[chosen];
                const std::int64_t blocks =
                    std::min(divide_up(rows, choice.rows * shape.block.y), device.multiprocessors);
                auto* const kernel = past != nullptr
                                         ? &norm_backward_kernel<T, N, choice.vectors, choice.rows, choice.threads,
                                                                 choice.staged, centred, centred>
                                         : &norm_backward_kernel<T, N, choice.vectors, choice.rows, choice.threads,
                                                                 choice.staged, centred, false>;
                // Independent of the row, because two threads may launch rows of different lengths at once.
                KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(device.shared)));
                kernel<<<static_cast<unsigned>(blocks), shape.block, static_cast<std::size_t>(shape.shared), stream>>>(
                    x, dy, weight, static_cast<const T*>(past), dx, partial, rows, static_cast<int>(width),
                    static_cast<A>(op.epsilon));
                KBENCH_CUDA_LAUNCHED("norm_backward_kernel");
                add_parts<T>(partial, blocks, sums, dw, width, db, op.accumulates, stream);
            });
        });
    });
}

}  // namespace

std::size_t layer_norm_backward_workspace_bytes(DataType type, const LayerNorm& op) {
    return workspace_bytes(type, op.rows, 2 * op.width);
}

std::size_t rms_norm_backward_workspace_bytes(DataType type, const RmsNorm& op) {
    return workspace_bytes(type, op.rows, op.width);
}

void layer_norm_backward(DataType type, const LayerNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"dy_residual?"> residual_gradient, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db,
                         void* workspace, cudaStream_t stream) {
    norm_backward<true>(type, op, x, dy, weight, residual_gradient, dx, dw, db, workspace, stream);
}

void rms_norm_backward(DataType type, const RmsNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                       Out<"dw"> dw, void* workspace, cudaStream_t stream) {
    norm_backward<false>(type, op, x, dy, weight, nullptr, dx, dw, nullptr, workspace, stream);
}

}  // namespace kbench::cuda
