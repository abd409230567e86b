// Products of few rows. Each SM has a block that makes tiles of 8 columns one after another. Its warps part the rows of
// the weight among them. Each lane copies what it will multiply to places of its own in shared memory, far ahead: as
// no other thread reads them, no barrier is needed. A lane's 16 bytes are fragments of tensor cores as they are: in
// which order k is summed does not matter as long as x has the same. The weight depends on no kernel, so that its
// copies start before the kernel waits for the one that makes x.
#include "kernels/gemm/gemv.h"

#include <algorithm>
#include <type_traits>

#include "kbench/error.h"
#include "kernels/activation.cuh"
#include "kernels/attention/operand.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"
#include "kernels/multiprocessors.h"
#include "kernels/programmatic.cuh"
#include "kernels/shared_memory.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, warps = 8, threads = warps * warp;
/// Columns that a warp multiplies at once, and lanes that have neighbouring vectors of one.
constexpr int tile_columns = 8, lanes_of_column = warp / tile_columns;
/// 16-byte vectors that a lane has under way. With the sums of tiles that are not finished they leave room for the next
/// kernel's block on an SM of an H100.
constexpr int slots = 20;
constexpr int ring_bytes = slots * threads * 16, most_sums_bytes = 8192;
static_assert(ring_bytes + most_sums_bytes <= least_shared_bytes);

template <typename T>
struct Problem {
    const T *x, *w, *bias, *residual;
    T* out;
    std::int64_t ld_out;
    int m, n, k;
    int turns;       ///< a tile is made in: each lane waits for a group of vectors in each
    int unfinished;  ///< tiles whose sums are kept before they are finished together
    bool is_activated;
    Activation activation;

    __device__ int tile_sums() const { return m * tile_columns; }
};

/// Multiplies on tensor cores. Lane 4 g + t has vectors of row g (and g + 8) of x, and of column g of the weight.
template <typename T, bool rounds_to_tf32, int rows>
struct TensorCore {
    using Element = T;
    using A = Arithmetic<T>;
    static constexpr int N = vector_width<T>, halves = rows / 8;

    /// Vectors of x that a lane loads at once, of the `group` of a turn.
    template <int group>
    static constexpr int ahead = group;

    A sums[2][4] = {};  ///< added up at the end: two chains of products, each of half the length

    struct X {
        Vector<T, N> half[2];
    };
    static __device__ X load(const Problem<T>& problem, int at) {
        X x{};
        const int row = static_cast<int>(threadIdx.x) % warp / lanes_of_column;
#pragma unroll
        for (int h = 0; h < halves; ++h)
            if (row + 8 * h < problem.m && at < problem.k)
                x.half[h] = Vector<T, N>::load(problem.x + std::int64_t{row + 8 * h} * problem.k + at);
        return x;
    }
    __device__ void add(const X& x, const Vector<T, N>& w) {
        if constexpr (sizeof(T) == 8) {
            const double a[4] = {x.half[0].elements[0], x.half[1].elements[0], x.half[0].elements[1],
                                 x.half[1].elements[1]};
            mma_16x8x8(sums[0][0], sums[0][1], sums[0][2], sums[0][3], a, w.elements[0], w.elements[1]);
        } else {
            unsigned low[4], high[4], columns[4];
            words(x.half[0], low);
            words(x.half[1], high);
            words(w, columns);
#pragma unroll
            for (int i = 0; i < 4; i += 2)
                mma_words<T>(sums[i / 2], {low[i], high[i], low[i + 1], high[i + 1]}, {columns[i], columns[i + 1]});
        }
    }
    /// Leaves the warp's sums of a tile, `m` rows of 8 columns, at `to`.
    __device__ void store(A* to, int m) const {
        const int lane = static_cast<int>(threadIdx.x) % warp, row = lane / 4, column = lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 2 * halves; ++i)
            if (row + i / 2 * 8 < m) to[(row + i / 2 * 8) * tile_columns + column + i % 2] = sums[0][i] + sums[1][i];
    }

  private:
    static __device__ void words(const Vector<T, N>& vector, unsigned (&to)[4]) {
        memcpy(to, vector.elements, sizeof to);
        if constexpr (rounds_to_tf32) {
#pragma unroll
            for (unsigned& word : to) word = __float_as_uint(attention::operand(__uint_as_float(word)));
        }
    }
};

/// Multiplies on the plain cores, for fp32: a lane has its part of one column's sums for all rows.
template <int rows>
struct PlainCore {
    using Element = float;
    using A = float;
    static constexpr int N = vector_width<float>;

    template <int group>
    static constexpr int ahead = rows == 1 ? group : 1;  // more do not fit into registers

    float sums[rows] = {};

    struct X {
        Vector<float, N> row[rows];
    };
    static __device__ X load(const Problem<float>& problem, int at) {
        X x{};
#pragma unroll
        for (int r = 0; r < rows; ++r)
            if (r < problem.m && at < problem.k)
                x.row[r] = Vector<float, N>::load(problem.x + std::int64_t{r} * problem.k + at);
        return x;
    }
    __device__ void add(const X& x, const Vector<float, N>& w) {
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int i = 0; i < N; ++i) sums[r] = fma(x.row[r].elements[i], w.elements[i], sums[r]);
    }
    __device__ void store(float* to, int m) const {
        const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
        for (int r = 0; r < rows; ++r) {
            float sum = sums[r];
#pragma unroll
            for (int mask = 1; mask < lanes_of_column; mask *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
            if (lane % lanes_of_column == 0 && r < m) to[r * tile_columns + lane / lanes_of_column] = sum;
        }
    }
};

/// Where a lane is in its vectors: `group` of them in each turn, of one tile after another.
template <int group>
struct Position {
    int tile = static_cast<int>(blockIdx.x), turn = 0;

    /// The first element of k in vector `i` of the turn.
    template <typename T>
    __device__ int at(const Problem<T>& problem, int i) const {
        const int chunk = (static_cast<int>(threadIdx.x) / warp * problem.turns + turn) * group + i;
        return (chunk * lanes_of_column + static_cast<int>(threadIdx.x) % lanes_of_column) * vector_width<T>;
    }
    /// Goes on; whether that was the tile's last turn.
    template <typename T>
    __device__ bool next(const Problem<T>& problem) {
        if (++turn < problem.turns) return false;
        turn = 0;
        tile += static_cast<int>(gridDim.x);
        return true;
    }
};

/// Starts to copy the vectors of a turn, zeros where the weight has none.
template <int group, typename T>
__device__ void copy_turn(const Problem<T>& problem, Position<group>& position, uint4* to) {
    const int column = position.tile * tile_columns + static_cast<int>(threadIdx.x) % warp / lanes_of_column;
    const T* const row = problem.w + std::int64_t{column} * problem.k;
#pragma unroll
    for (int i = 0; i < group; ++i) {
        const int at = position.at(problem, i);
        const bool is_inside = column < problem.n && at < problem.k;
        cp_async_if<16>(to + i * threads, is_inside ? row + at : problem.w, is_inside);
    }
    cp_async_commit();
    position.next(problem);
}

/// What a sum becomes before it is stored.
template <typename T>
__device__ Arithmetic<T> finished(const Problem<T>& problem, Arithmetic<T> sum, int row, int column) {
    using A = Arithmetic<T>;
    if (problem.bias) sum += static_cast<A>(problem.bias[column]);
    if (problem.is_activated) with_activation(problem.activation, [&]<Activation f>() { sum = activated<f, T>(sum); });
    if (problem.residual) sum += static_cast<A>(problem.residual[row * problem.ld_out + column]);
    return sum;
}

/// Adds the warps' sums of `count` tiles from `first` on, in their order, and stores what they become.
template <typename T>
__device__ void finish_tiles(const Problem<T>& problem, const Arithmetic<T>* sums, int first, int count) {
    __syncthreads();
    const int tile_sums = problem.tile_sums();
    for (int i = static_cast<int>(threadIdx.x); i < count * tile_sums; i += threads) {
        const int tile = i / tile_sums, element = i % tile_sums;
        const int row = element / tile_columns,
                  column = (first + tile * static_cast<int>(gridDim.x)) * tile_columns + element % tile_columns;
        if (column >= problem.n) continue;
        Arithmetic<T> sum = 0;
        for (int w = 0; w < warps; ++w) sum += sums[(tile * warps + w) * tile_sums + element];
        problem.out[row * problem.ld_out + column] = static_cast<T>(finished(problem, sum, row, column));
    }
    __syncthreads();
}

/// Its code is short: each launch runs most of it a few times only, and waits for instructions that no cache has.
template <class Core, int group>
__global__ __launch_bounds__(threads, 2) void gemv_kernel(Problem<typename Core::Element> problem) {
    using T = typename Core::Element;
    using A = typename Core::A;
    constexpr int N = vector_width<T>, turns_ahead = slots / group, ahead = Core::template ahead<group>;
    extern __shared__ uint4 shared[];
    uint4* const ring = shared + threadIdx.x;
    A* const sums = reinterpret_cast<A*>(shared + slots * threads);
    let_next_launch();

    const int own_warp = static_cast<int>(threadIdx.x) / warp;
    const int all_tiles = (problem.n + tile_columns - 1) / tile_columns;
    Position<group> copied, made;
#pragma unroll 1
    for (int turn = 0; turn < turns_ahead; ++turn) copy_turn(problem, copied, ring + turn * group * threads);
    wait_for_previous();

    int turn_of_ring = 0;
#pragma unroll 1
    while (made.tile < all_tiles) {
        const int first = made.tile;
        int kept = 0;
#pragma unroll 1
        for (; kept < problem.unfinished && made.tile < all_tiles; ++kept) {
            Core core;
            bool is_whole = false;
#pragma unroll 1
            while (!is_whole) {
                uint4* const place = ring + turn_of_ring * group * threads;
                typename Core::X x[ahead];
                cp_async_wait<turns_ahead - 1>();
#pragma unroll 1
                for (int i = 0; i < group; i += ahead) {
#pragma unroll
                    for (int j = 0; j < ahead; ++j) x[j] = Core::load(problem, made.at(problem, i + j));
#pragma unroll
                    for (int j = 0; j < ahead; ++j) {
                        Vector<T, N> w;
                        memcpy(w.elements, place + (i + j) * threads, sizeof w.elements);
                        core.add(x[j], w);
                    }
                }
                copy_turn(problem, copied, place);
                turn_of_ring = turn_of_ring + 1 < turns_ahead ? turn_of_ring + 1 : 0;
                is_whole = made.next(problem);
            }
            core.store(sums + (kept * warps + own_warp) * problem.tile_sums(), problem.m);
        }
        finish_tiles(problem, sums, first, kept);
    }
    cp_async_wait_all();
}

/// Rows that the kernel for `m` of them is built for. Tensor cores take 8 at once.
int rows_for(std::int64_t m, Precision precision) {
    int rows = precision == Precision::fp32 ? 1 : 8;
    while (rows < m) rows *= 2;
    return rows;
}

template <class Core, int group>
void launch_group(Problem<typename Core::Element> problem, int steps, cudaStream_t stream) {
    const std::int64_t tiles = divide_up(problem.n, tile_columns);
    const int tile_bytes = warps * problem.m * tile_columns * static_cast<int>(sizeof(typename Core::A));
    problem.turns = static_cast<int>(divide_up(steps, group));
    problem.unfinished = std::max(1, most_sums_bytes / tile_bytes);
    const int bytes = ring_bytes + problem.unfinished * tile_bytes;
    allow_shared_memory(gemv_kernel<Core, group>, bytes);
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, multiprocessors_of(stream)));
    launch_behind(gemv_kernel<Core, group>, dim3(blocks), dim3(threads), {.smem_bytes = bytes}, stream, problem);
}

/// By groups of 4 or 5 vectors, whichever leaves fewer places of a tile's last turn without one.
template <class Core>
void launch(const Problem<typename Core::Element>& problem, cudaStream_t stream) {
    const auto steps = static_cast<int>(divide_up(divide_up(problem.k, lanes_of_column * Core::N), warps));
    if (divide_up(steps, 5) * 5 <= divide_up(steps, 4) * 4) return launch_group<Core, 5>(problem, steps, stream);
    launch_group<Core, 4>(problem, steps, stream);
}

template <typename T, bool rounds_to_tf32>
void launch_on_tensor_cores(int rows, const Problem<T>& problem, cudaStream_t stream) {
    if (rows == 8) return launch<TensorCore<T, rounds_to_tf32, 8>>(problem, stream);
    launch<TensorCore<T, rounds_to_tf32, 16>>(problem, stream);
}

template <int rows = 1>
void launch_on_plain_cores(int wanted, const Problem<float>& problem, cudaStream_t stream) {
    if constexpr (rows < gemv_most_rows)
        if (wanted > rows) return launch_on_plain_cores<2 * rows>(wanted, problem, stream);
    launch<PlainCore<rows>>(problem, stream);
}

}  // namespace

std::string gemv_unsupported(const GemvProblem& problem) {
    if (problem.m > gemv_most_rows)
        return std::to_string(problem.m) + " rows are over its limit of " + std::to_string(gemv_most_rows);
    if (problem.k * static_cast<std::int64_t>(size_of(storage_type(problem.precision))) % 16 != 0)
        return "rows of " + std::to_string(problem.k) + " elements are no whole 16-byte vectors";
    return "";
}

std::string gemv_kernel_name(const GemvProblem& problem) {
    return "gemv<" + std::string(name(problem.precision)) + ", " +
           std::to_string(rows_for(problem.m, problem.precision)) + " rows>";
}

void gemv(const GemvProblem& problem, In<"x"> x, In<"w"> w, In<"bias?"> bias, In<"residual?"> residual, Out<"out"> out,
          cudaStream_t stream) {
    if (const std::string why = gemv_unsupported(problem); !why.empty()) throw Unsupported("gemv: " + why);
    const int rows = rows_for(problem.m, problem.precision);
    dispatch(storage_type(problem.precision), [&]<typename T>() {
        Problem<T> made{};
        made.x = x;
        made.w = w;
        made.bias = bias;
        made.residual = residual;
        made.out = out;
        made.ld_out = problem.ld_out;
        made.m = static_cast<int>(problem.m);
        made.n = static_cast<int>(problem.n);
        made.k = static_cast<int>(problem.k);
        made.is_activated = problem.activation.has_value();
        made.activation = problem.activation.value_or(Activation{});
        if constexpr (std::is_same_v<T, float>) {
            if (problem.precision == Precision::fp32) return launch_on_plain_cores(rows, made, stream);
            launch_on_tensor_cores<T, true>(rows, made, stream);
        } else {
            launch_on_tensor_cores<T, false>(rows, made, stream);
        }
    });
}

}  // namespace kbench::cuda
