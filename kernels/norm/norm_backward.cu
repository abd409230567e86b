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

/// What each row of a turn has: the means of x, of g = dy weight, of (x - mean)^2 and of g (x - mean).
template <typename A, int together>
struct Means {
    A mean[together], mean_g[together], squares[together], products[together];
};

/// The coefficients of each row of a turn: dx = rstd g + slope (x - mean) + constant.
template <typename A, int together>
struct Line {
    A rstd[together], slope[together], constant[together];
    int vectors[together];  ///< that exist
};

/// The stages of norm_backward_kernel, and what a thread needs in all of them. Loops with arrays of their own stay in
/// the kernel: in a stage, nvcc would give them other registers.
template <typename T, int N, int vectors, int together, bool staged, bool centred, bool added>
struct Stages {
    using A = Arithmetic<T>;
    using Bits = typename Vector<T, N>::Bits;
    using Unit = Vector<A, unit<A, N>>;
    static constexpr int planes = N / unit<A, N>, per_warp = 2 * together * vectors * warp;
    static constexpr int kinds = centred ? 4 : 2;          ///< sums over a row
    static constexpr int kinds_of_sums = centred ? 2 : 1;  ///< over the rows
    static_assert(staged ? sizeof(Bits) == 16 : together == 1);

    const T *const x, *const dy, *const weight, *const past;
    const std::int64_t rows;
    const int width;
    const A part_of_mean = A{1} / static_cast<A>(width);
    const int row_vectors = width / N;
    // Shared memory has the weight in the computing type, followed by zeros; then slots of x and dy for two turns. A
    // thread reads only those slots that it has filled itself, so they need no barrier.
    const int padded = staged ? vectors * static_cast<int>(blockDim.x) : 0;
    A* const weights;

    __forceinline__ __device__ Stages(const T* x, const T* dy, const T* weight, const T* past, std::int64_t rows,
                                      int width, unsigned char* shared)
        : x(x), dy(dy), weight(weight), past(past), rows(rows), width(width), weights(reinterpret_cast<A*>(shared)) {}

    static __forceinline__ __device__ int vector_of(int i) { return static_cast<int>(i * blockDim.x + threadIdx.x); }
    __forceinline__ __device__ bool inside(int i) const { return vector_of(i) < row_vectors; }
    __forceinline__ __device__ bool exists(std::int64_t row, int r) const { return r == 0 || row + r < rows; }
    /// The offset of the thread's other elements in a turn from its first one.
    __forceinline__ __device__ int from_first(int r, int i) const {
        return r * width + i * static_cast<int>(blockDim.x) * N;
    }
    /// The slot of a vector of x (array 0) or dy (array 1), counted from the thread's first slot of a turn.
    static __forceinline__ __device__ int slot_of(int array, int r, int i) {
        return ((array * together + r) * vectors + i) * warp;
    }

    /// Stores N values as the units of vector v; each plane has `units` units.
    static __forceinline__ __device__ void store_planes(const A (&values)[N], A* to, int v, int units) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
            Unit part;
            memcpy(&part, values + p * unit<A, N>, sizeof part);
            part.store(to + (p * units + v) * unit<A, N>);
        }
    }

    /// Loads the weight of a vector of the thread.
    __forceinline__ __device__ void load_weight(A (&values)[N], int i) const {
        if constexpr (staged) {
#pragma unroll
            for (int p = 0; p < planes; ++p) {
                const auto part = Unit::load(weights + (p * padded + vector_of(i)) * unit<A, N>);
                memcpy(values + p * unit<A, N>, &part, sizeof part);
            }
        } else {
            widen(inside(i) ? Vector<T, N>::load(weight + vector_of(i) * N) : Vector<T, N>{}, values);
        }
    }

    /// Starts to copy a turn's x and dy. Columns past the row are zero. For a row past the last, x is the row before
    /// and dy is 0, so it adds nothing.
    __forceinline__ __device__ void fetch(std::int64_t row, std::int64_t first, Bits* to) const {
        asm volatile("" ::: "memory");  // after reads of what lies there
#pragma unroll
        for (int r = 0; r < together; ++r) {
            const bool is_row = exists(row, r);
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                cp_async_if<16>(to + slot_of(0, r, i), x + first + from_first(is_row ? r : 0, i), inside(i));
                cp_async_if<16>(to + slot_of(1, r, i), dy + first + from_first(r, i), inside(i) && is_row);
            }
        }
    }

    /// Loads a vector of x (array 0) or dy (array 1) from the turn's slots or from L2.
    __forceinline__ __device__ void load_row(A (&values)[N], int array, std::int64_t first, const Bits* here, int r,
                                             int i) const {
        Vector<T, N> stored = {};
        if constexpr (staged) {
            const Bits bits = here[slot_of(array, r, i)];
            memcpy(&stored, &bits, sizeof bits);
        } else if (inside(i)) {
            stored = Vector<T, N>::load_once((array == 0 ? x : dy) + first + from_first(r, i));
        }
        widen(stored, values);
    }

    /// Loads a vector of x and the same one of dy.
    __forceinline__ __device__ void load(A (&value)[N], A (&incoming)[N], std::int64_t first, const Bits* here, int r,
                                         int i) const {
        load_row(value, 0, first, here, r, i);
        load_row(incoming, 1, first, here, r, i);
    }

    /// Loads what is added to dx, where the turn's vectors exist.
    template <int rows_of_past, int vectors_of_past>
    __forceinline__ __device__ void load_past(Vector<T, N> (&values)[rows_of_past][vectors_of_past], std::int64_t row,
                                              std::int64_t first) const {
#pragma unroll
        for (int r = 0; r < together; ++r)
#pragma unroll
            for (int i = 0; i < vectors; ++i)
                if (inside(i) && exists(row, r))
                    values[r][i] = Vector<T, N>::load_once(past + first + from_first(r, i));
    }

    /// Adds a vector to the sums over row r: of g x and x^2, and for layer norm also of g and x.
    static __forceinline__ __device__ void add_vector(A (&sums)[together * kinds], const A (&value)[N],
                                                      const A (&incoming)[N], const A (&scale)[N], int r) {
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

    /// Computes the means from the sums over each row. Returns whether a mean is so far from zero that a second pass is
    /// needed.
    __forceinline__ __device__ bool find_means(Means<A, together>& means, const A (&sums)[together * kinds]) const {
        auto& [mean, mean_g, squares, products] = means;
        // The squares around the mean are E[x^2] - E[x]^2, which multiplies the error of E[x^2] by E[x^2] / variance.
        // Up to 4 that is less than the error that a row's fp32 sum has anyway; beyond it, a second pass is made.
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
        return is_far;
    }

    /// Adds a vector to the second pass's sums over row r: of (x - mean)^2 and g (x - mean).
    static __forceinline__ __device__ void add_again(A (&sums)[2 * together], const A (&value)[N],
                                                     const A (&incoming)[N], const A (&scale)[N],
                                                     const Means<A, together>& means, int r) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const A difference = value[j] - means.mean[r];
            sums[2 * r] += difference * difference;
            sums[2 * r + 1] += incoming[j] * scale[j] * difference;
        }
    }

    /// Replaces the means of (x - mean)^2 and g (x - mean) by those of the second pass.
    __forceinline__ __device__ void find_means_again(Means<A, together>& means, const A (&sums)[2 * together]) const {
#pragma unroll
        for (int r = 0; r < together; ++r) {
            means.squares[r] = sums[2 * r] * part_of_mean;
            means.products[r] = sums[2 * r + 1] * part_of_mean;
        }
    }

    /// Computes the coefficients of dx = rstd g - rstd mean(g) - (x - mean) rstd^3 mean(g (x - mean)).
    __forceinline__ __device__ void find_line(Line<A, together>& line, const Means<A, together>& means, A epsilon,
                                              std::int64_t row) const {
#pragma unroll
        for (int r = 0; r < together; ++r) {
            line.vectors[r] = exists(row, r) ? row_vectors : 0;
            line.rstd[r] = reciprocal_root(means.squares[r] + epsilon);
            line.constant[r] = -line.rstd[r] * means.mean_g[r];
            line.slope[r] = -(means.products[r] * line.rstd[r] * line.rstd[r]) * line.rstd[r];
        }
    }

    /// Computes a vector of dx, and adds the vector to the sums over the rows. `beside` is added to dx.
    static __forceinline__ __device__ void find_dx(Vector<T, N>& dx, Vector<A, N>& weight_sums, Vector<A, N>& bias_sums,
                                                   const A (&value)[N], const A (&incoming)[N], const A (&scale)[N],
                                                   const A (&beside)[N], A mean, A rstd, A slope, A constant) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
            const A difference = centred ? value[j] - mean : value[j], times = incoming[j] * rstd;
            weight_sums.elements[j] += times * difference;
            if constexpr (centred) bias_sums.elements[j] += incoming[j];
            A rest = slope * difference;
            if constexpr (centred) rest = slope * difference + constant;
            if constexpr (added) rest += beside[j];
            dx.elements[j] = static_cast<T>(times * scale[j] + rest);
        }
    }

    /// Writes the sums over the rows of a block that has one group.
    __forceinline__ __device__ void write_sums(A* own_partial, const Vector<A, N> (&weight_sums)[vectors],
                                               const Vector<A, N> (&bias_sums)[vectors]) const {
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            if (!inside(i)) continue;
            weight_sums[i].store_whole(own_partial + vector_of(i) * N);
            if constexpr (centred) bias_sums[i].store_whole(own_partial + width + vector_of(i) * N);
        }
    }

    /// Stores the thread's sums over the rows in shared memory, where each group has `all` of them.
    __forceinline__ __device__ void share_sums(A* gathered, int all, const Vector<A, N> (&weight_sums)[vectors],
                                               const Vector<A, N> (&bias_sums)[vectors]) const {
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            if (!inside(i)) continue;
            A* const to = gathered + static_cast<int>(threadIdx.y) * all;
            store_planes(weight_sums[i].elements, to, vector_of(i), row_vectors);
            if constexpr (centred) store_planes(bias_sums[i].elements, to + width, vector_of(i), row_vectors);
        }
    }
};

/// Row blockIdx.x of `partial` [blocks, 2 width] (RMS norm: [blocks, width]) becomes the sums of dy n, then those of
/// dy, over the block's rows. blockDim.x threads, in whole warps, share `together` rows at a time; a block has
/// blockDim.y such groups. `centred`: layer norm. `past` is read where `added`. dx may be dy or past, because the same
/// thread reads and writes an element.
template <typename T, int N, int vectors, int together, int threads, bool staged, bool centred, bool added>
__global__ void __launch_bounds__(threads, 1)
    norm_backward_kernel(const T* x, const T* dy, const T* __restrict__ weight, const T* past, T* dx,
                         Arithmetic<T>* __restrict__ partial, std::int64_t rows, int width, Arithmetic<T> epsilon) {
    using A = Arithmetic<T>;
    using Its = Stages<T, N, vectors, together, staged, centred, added>;
    using Bits = typename Its::Bits;
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ A scratch[2][together * Its::kinds][most_warps], again_scratch[2 * together][most_warps];

    const Its its(x, dy, weight, past, rows, width, shared);
    Bits* const slots = reinterpret_cast<Bits*>(its.weights + its.padded * N) +
                        (threadIdx.y * blockDim.x + threadIdx.x) / warp * (2 * Its::per_warp) + threadIdx.x % warp;
    if constexpr (staged) {
        for (int v = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); v < its.padded;
             v += static_cast<int>(blockDim.x * blockDim.y)) {
            Vector<T, N> stored = {};
            if (v * N < width) stored = Vector<T, N>::load(weight + v * N);
            A values[N];
            widen(stored, values);
            its.store_planes(values, its.weights, v, its.padded);
        }
        __syncthreads();
    }

    // A turn takes `together` rows from `row` on; the thread's first element there is `first`.
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y * together;
    std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y) * together;
    std::int64_t first = row * width + static_cast<int>(threadIdx.x) * N;
    Vector<A, N> weight_sums[vectors] = {}, bias_sums[vectors] = {};
    if (staged && row < rows) its.fetch(row, first, slots);
    if (staged) cp_async_commit();
    int odd = 0;
    for (; row < rows; row += step, first += step * width, odd ^= 1) {
        const Bits* const here = slots + odd * Its::per_warp;
        if constexpr (staged) {
            if (row + step < rows) its.fetch(row + step, first + step * width, slots + (odd ^ 1) * Its::per_warp);
            cp_async_commit();
            cp_async_wait<1>();
        }
        // Loaded early: after the first store to dx, which may be the same memory, each load would wait for DRAM.
        Vector<T, N> past_values[added ? together : 1][added ? vectors : 1] = {};
        if constexpr (added) its.load_past(past_values, row, first);

        A sums[together * Its::kinds] = {};
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            A scale[N];
            its.load_weight(scale, i);
#pragma unroll
            for (int r = 0; r < together; ++r) {
                A value[N], incoming[N];
                its.load(value, incoming, first, here, r, i);
                its.add_vector(sums, value, incoming, scale, r);
            }
        }
        sum_over_row(sums, scratch[odd]);
        Means<A, together> means;
        if (its.find_means(means, sums) && centred) {  // the second pass
            A again[2 * together] = {};
#pragma unroll
            for (int i = 0; i < vectors; ++i) {
                A scale[N];
                its.load_weight(scale, i);
#pragma unroll
                for (int r = 0; r < together; ++r) {
                    A value[N], incoming[N];
                    its.load(value, incoming, first, here, r, i);
                    if (its.inside(i)) its.add_again(again, value, incoming, scale, means, r);
                }
            }
            sum_over_row(again, again_scratch);
            its.find_means_again(means, again);
        }

        Line<A, together> line;
        T* const to = dx + first;
        its.find_line(line, means, epsilon, row);
#pragma unroll
        for (int i = 0; i < vectors; ++i) {
            A scale[N];
            its.load_weight(scale, i);
#pragma unroll
            for (int r = 0; r < together; ++r) {
                A value[N], incoming[N], beside[N];
                its.load(value, incoming, first, here, r, i);
                if constexpr (added) widen(past_values[r][i], beside);
                Vector<T, N> out;
                its.find_dx(out, weight_sums[i], bias_sums[i], value, incoming, scale, beside, means.mean[r],
                            line.rstd[r], line.slope[r], line.constant[r]);
                out.store_whole(to + its.from_first(r, i), its.vector_of(i) < line.vectors[r]);
            }
        }
    }
    let_next_launch();

    A* const own_partial = partial + std::int64_t{blockIdx.x} * width * Its::kinds_of_sums;
    const int all = width * Its::kinds_of_sums;
    if (blockDim.y == 1) {
        its.write_sums(own_partial, weight_sums, bias_sums);
        return;
    }
    // The groups' sums are added up in shared memory, in a fixed order.
    A* const gathered = reinterpret_cast<A*>(shared);
    __syncthreads();
    its.share_sums(gathered, all, weight_sums, bias_sums);
    __syncthreads();
    for (int u = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); u < all / unit<A, N>;
         u += static_cast<int>(blockDim.x * blockDim.y)) {
        auto sum = Its::Unit::load(gathered + u * unit<A, N>);
        for (unsigned y = 1; y < blockDim.y; ++y) {
            const auto other = Its::Unit::load(gathered + static_cast<int>(y) * all + u * unit<A, N>);
#pragma unroll
            for (int j = 0; j < unit<A, N>; ++j) sum.elements[j] += other.elements[j];
        }
        const int plane = u / its.row_vectors, v = u % its.row_vectors;
        sum.store_whole(own_partial + plane / Its::planes * width + v * N + plane % Its::planes * unit<A, N>);
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
