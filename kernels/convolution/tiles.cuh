// Implicit GEMMs of any shape: threads gather tiles of rows and columns element by element, and the warps of a block
// multiply them. Shared memory holds 64 bytes of each row and column at a pitch of 80 bytes, so that the same 16-byte
// chunk of eight neighbouring rows lies in different banks.
#pragma once

#include "kernels/mma.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda::convolution {

inline constexpr int threads = 256, tile_columns = 128, pitch_bytes = 80, tile_chunks = 4;

/// A warp's sums of `rows` x `columns` elements: how lanes share them and how a tile's products are added.
/// row_of(..) and position_of(..) say which filter and position sums[i].. belong to.
template <class T, int rows, int columns>
struct Mma16 {
    static constexpr int row_blocks = rows / 16, column_blocks = columns / 8, per_lane = row_blocks * column_blocks * 4;
    float sums[per_lane] = {};

    /// a, b: the warp's first row in each tile.
    __device__ void add(const unsigned char* a, const unsigned char* b, int lane) {
#pragma unroll
        for (int step = 0; step < tile_chunks / 2; ++step) {
            unsigned x[row_blocks][4], w[column_blocks][2];
#pragma unroll
            for (int i = 0; i < row_blocks; ++i)
                ldmatrix_x4(x[i], a + (i * 16 + lane % 16) * pitch_bytes + step * 32 + lane / 16 * 16);
#pragma unroll
            for (int i = 0; i < column_blocks; i += 2) {
                unsigned both[4];
                ldmatrix_x4(both, b + (i * 8 + lane / 16 * 8 + lane % 8) * pitch_bytes + step * 32 + lane / 8 % 2 * 16);
#pragma unroll
                for (int j = 0; j < 4; ++j) w[i + j / 2][j % 2] = both[j];
            }
#pragma unroll
            for (int i = 0; i < row_blocks; ++i)
#pragma unroll
                for (int j = 0; j < column_blocks; ++j) {
                    float* const c = sums + (i * column_blocks + j) * 4;
                    Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], x[i], w[j][0], w[j][1]);
                }
        }
    }
    static __device__ int row_of(int i, int lane) { return i / 4 / column_blocks * 16 + i % 4 / 2 * 8 + lane / 4; }
    static __device__ int column_of(int i, int lane) { return i / 4 % column_blocks * 8 + lane % 4 * 2 + i % 2; }
};

/// tf32 and fp64: products of 16 x 8 x 8.
template <class T, int rows, int columns>
struct Mma8 {
    static constexpr int row_blocks = rows / 16, column_blocks = columns / 8, per_lane = row_blocks * column_blocks * 4;
    static constexpr int depth = tile_chunks * 16 / static_cast<int>(sizeof(T));
    T sums[per_lane] = {};

    __device__ void add(const unsigned char* a, const unsigned char* b, int lane) {
        const auto at = [](const unsigned char* tile, int row, int k) {
            return *reinterpret_cast<const T*>(tile + row * pitch_bytes + k * static_cast<int>(sizeof(T)));
        };
        const int g = lane / 4, t = lane % 4;
#pragma unroll
        for (int k = 0; k < depth; k += 8) {
            T x[row_blocks][4], w[column_blocks][2];
#pragma unroll
            for (int i = 0; i < row_blocks; ++i)
#pragma unroll
                for (int e = 0; e < 4; ++e) x[i][e] = at(a, i * 16 + g + e % 2 * 8, k + t + e / 2 * 4);
#pragma unroll
            for (int j = 0; j < column_blocks; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e) w[j][e] = at(b, j * 8 + g, k + t + e * 4);
#pragma unroll
            for (int i = 0; i < row_blocks; ++i)
#pragma unroll
                for (int j = 0; j < column_blocks; ++j) {
                    T* const c = sums + (i * column_blocks + j) * 4;
                    mma_16x8x8(c[0], c[1], c[2], c[3], x[i], w[j][0], w[j][1]);
                }
        }
    }
    static __device__ int row_of(int i, int lane) { return Mma16<__half, rows, columns>::row_of(i, lane); }
    static __device__ int column_of(int i, int lane) { return Mma16<__half, rows, columns>::column_of(i, lane); }
};

/// fp32: a lane has 1 / 8 of the warp's rows and 1 / 4 of its columns.
template <class T, int rows, int columns>
struct Plain {
    static constexpr int lane_rows = 8, lane_columns = 4, of_rows = rows / lane_rows,
                         of_columns = columns / lane_columns;
    static constexpr int per_lane = of_rows * of_columns;
    float sums[per_lane] = {};

    __device__ void add(const unsigned char* a, const unsigned char* b, int lane) {
#pragma unroll
        for (int chunk = 0; chunk < tile_chunks; ++chunk) {
            float4 x[of_rows], w[of_columns];
#pragma unroll
            for (int i = 0; i < of_rows; ++i)
                x[i] = *reinterpret_cast<const float4*>(a + row_of(i * of_columns, lane) * pitch_bytes + chunk * 16);
#pragma unroll
            for (int j = 0; j < of_columns; ++j)
                w[j] = *reinterpret_cast<const float4*>(b + column_of(j, lane) * pitch_bytes + chunk * 16);
#pragma unroll
            for (int i = 0; i < of_rows; ++i)
#pragma unroll
                for (int j = 0; j < of_columns; ++j) {
                    float& c = sums[i * of_columns + j];
                    c += x[i].x * w[j].x;
                    c += x[i].y * w[j].y;
                    c += x[i].z * w[j].z;
                    c += x[i].w * w[j].w;
                }
        }
    }
    static __device__ int row_of(int i, int lane) { return i / of_columns * lane_rows + lane / lane_columns; }
    static __device__ int column_of(int i, int lane) { return i % of_columns * lane_columns + lane % lane_columns; }
};

/// The sums of a block, `rows` x tile_columns; each warp has 32 rows. It adds products at depths [begin, end); begin is
/// a multiple of the tile's depth. gather_row(row, at, chunk) and gather_column(at, chunk) fill 16 bytes from depth
/// `at` on, with zeros from `end` on; the column is threadIdx.x % tile_columns. The next tile is gathered
/// into registers while this one is multiplied.
template <class T, int rows, template <class, int, int> class Core>
struct BlockSums {
    static constexpr int per_chunk = 16 / static_cast<int>(sizeof(T)), depth = tile_chunks * per_chunk;
    static constexpr int row_warps = rows / 32, warp_columns = tile_columns / (threads / 32 / row_warps);
    using Chunk = Vector<T, per_chunk>;
    using WarpCore = Core<T, 32, warp_columns>;
    WarpCore core;

    template <class GatherRow, class GatherColumn>
    __device__ void add(int begin, int end, GatherRow gather_row, GatherColumn gather_column) {
        constexpr int column_chunks = tile_columns * tile_chunks / threads;
        constexpr int row_chunks = (rows * tile_chunks + threads - 1) / threads;
        __shared__ __align__(16) unsigned char column_tiles[2][tile_columns * pitch_bytes];
        __shared__ __align__(16) unsigned char row_tiles[2][rows * pitch_bytes];
        const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
        Chunk columns_now[column_chunks], rows_now[row_chunks];
        const auto load = [&](int at) {
#pragma unroll
            for (int i = 0; i < column_chunks; ++i)
                gather_column(at + (thread / tile_columns + i * (threads / tile_columns)) * per_chunk, columns_now[i]);
#pragma unroll
            for (int i = 0; i < row_chunks; ++i)
                if (const int index = thread + i * threads; index < rows * tile_chunks)
                    gather_row(index / tile_chunks, at + index % tile_chunks * per_chunk, rows_now[i]);
        };
        const auto keep = [&](int buffer) {
#pragma unroll
            for (int i = 0; i < column_chunks; ++i)
                columns_now[i].store(reinterpret_cast<T*>(column_tiles[buffer] + thread % tile_columns * pitch_bytes +
                                                          (thread / tile_columns + i * (threads / tile_columns)) * 16));
#pragma unroll
            for (int i = 0; i < row_chunks; ++i)
                if (const int index = thread + i * threads; index < rows * tile_chunks)
                    rows_now[i].store(reinterpret_cast<T*>(row_tiles[buffer] + index / tile_chunks * pitch_bytes +
                                                           index % tile_chunks * 16));
        };
        if (begin >= end) return;  // for the whole block
        load(begin);
        keep(0);
        __syncthreads();
        int buffer = 0;
        for (int at = begin; at < end; at += depth, buffer ^= 1) {
            const bool more = at + depth < end;
            if (more) load(at + depth);
            core.add(row_tiles[buffer] + first_row() * pitch_bytes, column_tiles[buffer] + first_column() * pitch_bytes,
                     lane);
            if (more) keep(buffer ^ 1);  // all warps were done with it at the last barrier
            __syncthreads();
        }
    }

    /// Calls f(row, column, sum) for each sum that this thread holds.
    template <class F>
    __device__ void for_each(F f) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
        for (int i = 0; i < WarpCore::per_lane; ++i)
            f(first_row() + WarpCore::row_of(i, lane), first_column() + WarpCore::column_of(i, lane), core.sums[i]);
    }

  private:
    static __device__ int first_row() { return static_cast<int>(threadIdx.x) / 32 % row_warps * 32; }
    static __device__ int first_column() { return static_cast<int>(threadIdx.x) / 32 / row_warps * warp_columns; }
};

/// Launch::run<T, rows, Core>(...) with the core for `precision`; rows is 32 where 64 would be half empty.
template <class Launch, class... Arguments>
void launch_with_core(Precision precision, std::int64_t rows, const Arguments&... arguments) {
    const bool few = rows <= 32;
    switch (precision) {
        case Precision::fp16:
            return few ? Launch::template run<__half, 32, Mma16>(arguments...)
                       : Launch::template run<__half, 64, Mma16>(arguments...);
        case Precision::bf16:
            return few ? Launch::template run<__nv_bfloat16, 32, Mma16>(arguments...)
                       : Launch::template run<__nv_bfloat16, 64, Mma16>(arguments...);
        case Precision::tf32:
            return few ? Launch::template run<float, 32, Mma8>(arguments...)
                       : Launch::template run<float, 64, Mma8>(arguments...);
        case Precision::fp32:
            return few ? Launch::template run<float, 32, Plain>(arguments...)
                       : Launch::template run<float, 64, Plain>(arguments...);
        case Precision::fp64:
            return few ? Launch::template run<double, 32, Mma8>(arguments...)
                       : Launch::template run<double, 64, Mma8>(arguments...);
    }
}

}  // namespace kbench::cuda::convolution
