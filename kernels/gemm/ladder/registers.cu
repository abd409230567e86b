// Rung 3, tiles in registers: a thread computes 8 x 8 elements of a 128 x 128 tile, and every access to global and
// shared memory is 16 bytes wide.
//
// Compared with rung 2: 8 + 8 values from shared memory feed 64 products where 2 fed one. Shared memory traffic per
// product falls 8 times, and the FMA pipes become the busiest unit. x is stored transposed, so that the 8 values of a
// column of it are neighbours too. Expect fewer shared-memory wavefronts, far fewer instructions per product, less
// mio_throttle, and lower occupancy, because 64 sums per thread need registers. Global loads still stall all warps
// (long_scoreboard, barrier): the block waits for its tile before it computes.
#include "kernels/gemm/ladder/launch.cuh"
#include "kernels/gemm/ladder/vectors.cuh"

namespace kbench::cuda::ladder {
namespace {

constexpr int threads = 256, side = 128, depth = 16, of_thread = 8;
constexpr Tile tile{.rows = side, .columns = side, .depth = depth, .stages = 1, .strip = 8};

/// Sizes of a tile [depth][side] of x transposed, or of w, and a thread's share in copying it.
template <class T>
struct Layout {
    static constexpr int width = vector_width<T>;
    static constexpr int vectors = side * depth / width / threads;  ///< copied per thread
    static constexpr int deep_vectors = depth / width;              ///< along k
    /// Neighbouring lanes write to different depths when they transpose; rows `width` apart must not share banks.
    using Banks = Swizzle<deep_vectors, width>;
    static constexpr int at(int k, int i) { return swizzled<Banks, side, width>(k, i); }
};

template <class T>
using Vectors = Vector<T, vector_width<T>>[Layout<T>::vectors];

/// Rows along m or n, vectors along k: for x, or a transposed w.
template <class T>
struct Transposed {
    using L = Layout<T>;
    static __device__ int row(int i) { return threadIdx.x / L::deep_vectors + i * (threads / L::deep_vectors); }
    static __device__ int k() { return threadIdx.x % L::deep_vectors * L::width; }
    static __device__ void load(Vectors<T>& vectors, const Source<T>& s) {
#pragma unroll
        for (int i = 0; i < L::vectors; ++i)
            vectors[i] = load_or_zero(s.from + row(i) * s.row + k(), row(i) < s.rows_left ? s.columns_left - k() : 0,
                                      s.whole_vectors);
    }
    static __device__ void store(T* tile, const Vectors<T>& vectors) {
#pragma unroll
        for (int i = 0; i < L::vectors; ++i)
#pragma unroll
            for (int e = 0; e < L::width; ++e) tile[L::at(k() + e, row(i))] = vectors[i].elements[e];
    }
};

/// Rows along k, vectors along n: for w as it is.
template <class T>
struct Plain {
    using L = Layout<T>;
    static constexpr int chunks = side / L::width;
    static __device__ int k(int i) { return threadIdx.x / chunks + i * (threads / chunks); }
    static __device__ int column() { return threadIdx.x % chunks * L::width; }
    static __device__ void load(Vectors<T>& vectors, const Source<T>& s) {
#pragma unroll
        for (int i = 0; i < L::vectors; ++i)
            vectors[i] = load_or_zero(s.from + k(i) * s.row + column(),
                                      k(i) < s.rows_left ? s.columns_left - column() : 0, s.whole_vectors);
    }
    static __device__ void store(T* tile, const Vectors<T>& vectors) {
#pragma unroll
        for (int i = 0; i < L::vectors; ++i) vectors[i].store(tile + L::at(k(i), column()));
    }
};

/// The index of element i of a thread's 8 rows or columns: 16 neighbouring threads have neighbouring vectors.
template <class T>
__device__ int place(int thread, int i) {
    constexpr int width = vector_width<T>;
    return (i / width * 16 + thread) * width + i % width;
}

/// A thread's 8 rows or columns at depth k.
template <class T>
__device__ void read(Arithmetic<T> (&values)[of_thread], const T* tile, int thread, int k) {
    constexpr int width = vector_width<T>;
#pragma unroll
    for (int i = 0; i < of_thread; i += width) {
        const auto vector = Vector<T, width>::load(tile + Layout<T>::at(k, place<T>(thread, i)));
#pragma unroll
        for (int e = 0; e < width; ++e) values[i + e] = static_cast<Arithmetic<T>>(vector.elements[e]);
    }
}

template <class T, class W>
__global__ __launch_bounds__(threads, sizeof(T) == 8 ? 1 : 2) void gemm_register(Operands<T> p) {
    __shared__ __align__(16) T x_tile[depth * side];
    __shared__ __align__(16) T w_tile[depth * side];
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int first_row = position.row * side, first_column = position.column * side;
    const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;
    using Sum = Arithmetic<T>;
    Sum sums[of_thread][of_thread] = {};
    for (int k = 0; k < p.k; k += depth) {
        Vectors<T> x, w;  // all loads before the first store waits for one
        Transposed<T>::load(x, {p.x + first_row * p.ld_x + k, p.ld_x, 1, p.m - first_row, p.k - k, p.vector_x});
        if constexpr (std::is_same_v<W, Plain<T>>)
            W::load(w, {p.w + k * p.ld_w + first_column, p.ld_w, 1, p.k - k, p.n - first_column, p.vector_w});
        else
            W::load(w, {p.w + first_column * p.ld_w + k, p.ld_w, 1, p.n - first_column, p.k - k, p.vector_w});
        Transposed<T>::store(x_tile, x);
        W::store(w_tile, w);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < depth; ++i) {
            Sum rows[of_thread], columns[of_thread];
            read(rows, x_tile, thread_row, i);
            read(columns, w_tile, thread_column, i);
#pragma unroll
            for (int r = 0; r < of_thread; ++r)
#pragma unroll
                for (int c = 0; c < of_thread; ++c) sums[r][c] += rows[r] * columns[c];
        }
        __syncthreads();
    }
    constexpr int width = vector_width<T>;
#pragma unroll
    for (int r = 0; r < of_thread; ++r) {
        const int row = first_row + place<T>(thread_row, r);
        if (row >= p.m) continue;
#pragma unroll
        for (int c = 0; c < of_thread; c += width) {
            const int column = first_column + place<T>(thread_column, c);
            Vector<T, width> vector;
#pragma unroll
            for (int e = 0; e < width; ++e) vector.elements[e] = static_cast<T>(sums[r][c + e]);
            store_inside(p.out + row * p.ld_out + column, vector, p.n - column, p.vector_out);
        }
    }
}

template <class T>
struct Rows {
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        if (problem.weight_transposed)
            launch_tiles<gemm_register<T, Transposed<T>>, T>(tile, threads, 0, problem, pointers, stream);
        else
            launch_tiles<gemm_register<T, Plain<T>>, T>(tile, threads, 0, problem, pointers, stream);
    }
    static Kernels kernels() {
        static constexpr Kernel rows[] = {{"gemm_register", tile, 0, launch}};
        return rows;
    }
};

}  // namespace

Kernels register_kernels(Precision precision) { return plain_core_kernels<Rows>(precision); }

}  // namespace kbench::cuda::ladder
