// Moves 16 bytes per thread between memories, or single elements where vectors do not fit. Used from rung 3 on.
#pragma once

#include "kernels/cp_async.cuh"
#include "kernels/gemm/ladder/index.h"
#include "kernels/types.cuh"

namespace kbench::cuda::ladder {

/// A vector from `from`, of which `left` elements exist; the rest is zero.
template <class T>
__device__ Vector<T, vector_width<T>> load_or_zero(const T* from, int left, bool whole_vectors) {
    constexpr int width = vector_width<T>;
    if (whole_vectors && left >= width) return Vector<T, width>::load(from);
    Vector<T, width> vector;
#pragma unroll
    for (int i = 0; i < width; ++i) vector.elements[i] = i < left ? from[i] : T(0.0f);
    return vector;
}

/// Stores the elements of `vector` (at most 16 bytes), of which `left` have a place in `to`.
template <class T, int width>
__device__ void store_inside(T* to, const Vector<T, width>& vector, int left, bool whole_vectors) {
    if (whole_vectors && left >= width) return vector.store(to);
#pragma unroll
    for (int i = 0; i < width; ++i)
        if (i < left) to[i] = vector.elements[i];
}

/// A matrix in global memory, from a tile's first element on: the distance between its rows and between its columns,
/// and how many of each are left.
template <class T>
struct Source {
    const T* from;
    std::int64_t row, column;
    int rows_left, columns_left;
    bool whole_vectors;  ///< column distance 1, rows at multiples of 16 bytes
};

/// Copies `rows` x `columns` elements into a swizzled tile, by `threads` threads together, with zeros past the matrix.
/// It copies whole vectors by cp.async (wait for them), else element by element. A tile inside the matrix, as most are,
/// is copied without checks of its edges.
template <int rows, int columns, int threads, class Swizzle, class T>
__device__ void copy_tile(T* tile, const Source<T>& source, int thread) {
    constexpr int width = vector_width<T>, chunks = columns / width, rows_at_once = threads / chunks;
    static_assert(threads % chunks == 0 && rows % rows_at_once == 0, "each thread copies equally many vectors");
    const int first_row = static_cast<unsigned>(thread) / chunks,
              column = static_cast<unsigned>(thread) % chunks * width;
    const T* from = source.from + first_row * source.row + column * source.column;
    if (source.whole_vectors && source.rows_left >= rows && source.columns_left >= columns) {
#pragma unroll
        for (int row = 0; row < rows; row += rows_at_once) {
            cp_async_16(tile + swizzled<Swizzle, columns, width>(first_row + row, column), from);
            from += rows_at_once * source.row;
        }
        return;
    }
    const int columns_left = min(max(source.columns_left - column, 0), width);
#pragma unroll 1
    for (int row = first_row; row < rows; row += rows_at_once, from += rows_at_once * source.row) {
        T* const to = tile + swizzled<Swizzle, columns, width>(row, column);
        const int left = row < source.rows_left ? columns_left : 0;
        if (source.whole_vectors) {
            cp_async_16(to, from, left * static_cast<int>(sizeof(T)));
        } else {
            Vector<T, width> vector;
#pragma unroll
            for (int i = 0; i < width; ++i) vector.elements[i] = i < left ? from[i * source.column] : T(0.0f);
            vector.store(to);
        }
    }
}

/// One thread's share in copying consecutive tiles of a matrix of whole vectors (rows start at multiples of 16 bytes
/// and have such lengths), vector by vector, so that a kernel can spread the copies over its arithmetic. It has no
/// branches: past the matrix, a copy reads nothing and writes zeros.
template <int rows, int columns, int threads, class Swizzle, class T>
struct VectorCopies {
    static constexpr int width = vector_width<T>, chunks = columns / width, rows_at_once = threads / chunks;
    static constexpr int count = rows / rows_at_once;  ///< vectors per tile
    static_assert(threads % chunks == 0 && rows % rows_at_once == 0, "each thread copies equally many vectors");

    int row, column;  ///< place of the thread's first vector in a tile
    const T* from;    ///< its next vector
    std::int64_t step;
    int rows_left, columns_left;  ///< how many the matrix has, from the thread's first vector in this tile on

    __device__ VectorCopies(const Source<T>& source, int thread)
        : row(static_cast<unsigned>(thread) / chunks),
          column(static_cast<unsigned>(thread) % chunks * width),
          from(source.from + row * source.row + column),
          step(rows_at_once * source.row),
          rows_left(source.columns_left > column ? source.rows_left - row : 0),
          columns_left(source.columns_left - column) {}

    /// Starts the copy of vector i of a tile. Call it for 0 to count - 1 in turn.
    __device__ void copy(T* tile, int i) {
        cp_async_if<16>(tile + swizzled<Swizzle, columns, width>(row + i * rows_at_once, column), from,
                        i * rows_at_once < rows_left);
        from += step;
    }
    /// Move to the tile below (a tile's last copy left `from` there), and to the tile on the right.
    __device__ void move_down() { rows_left -= rows; }
    __device__ void move_right() {
        columns_left -= columns;
        if (columns_left <= 0) rows_left = 0;
        from += columns - count * step;
    }
};

}  // namespace kbench::cuda::ladder
