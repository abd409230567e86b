// A layout with 64 bytes of channels (a group: 32 in 16 bits, 16 in 32, 8 in fp64) side by side at each position:
// [batch][groups][height][width][64 bytes]. In shared memory the 16-byte chunks of these rows are swizzled by bits 1
// and 2 of the row, so that any eight neighbouring rows lie in different banks.
#pragma once

#include "kernels/types.cuh"

namespace kbench::cuda::convolution {

inline constexpr int row_bytes = 64, row_chunks = row_bytes / 16;
template <class T>
inline constexpr int group = row_bytes / static_cast<int>(sizeof(T));

/// Byte offset of a chunk in rows of 64 bytes. The swizzle repeats every 8 rows.
__device__ inline int swizzled(int row, int chunk) { return row * row_bytes + ((chunk ^ (row >> 1 & 3)) << 4); }

inline constexpr int layout_threads = 256, layout_positions = 128;

/// Number of blocks that lay out images of `rows` = batch * groups * height.
inline std::int64_t layout_blocks(std::int64_t rows, std::int64_t width) {
    return rows * divide_up(width, layout_positions);
}

/// Lays out `layout_positions` positions of one row and group, chosen by `block`. x is [batch, channels, height,
/// width]; channels are a multiple of a group. All layout_threads of a block must call it.
template <class T, int vector>
__device__ __forceinline__ void lay_out_positions(const T* __restrict__ x, T* __restrict__ out, int height, int width,
                                                  unsigned block) {
    constexpr int pitch = group<T> + (sizeof(T) < 4 ? 2 : 1);  // 17 words, or 18
    __shared__ T tile[layout_positions][pitch];
    const int thread = static_cast<int>(threadIdx.x);
    const auto tiles = static_cast<unsigned>((width + layout_positions - 1) / layout_positions);
    const int first = static_cast<int>(block % tiles) * layout_positions;
    const std::int64_t row = block / tiles;  // (n * groups + g) * height + h
    const std::int64_t h = row % height, plane = row / height * group<T>;
    constexpr int vectors = layout_positions / vector;
#pragma unroll 4
    for (int i = thread; i < group<T> * vectors; i += layout_threads) {
        const int c = i / vectors, at = i % vectors * vector;
        if (first + at >= width) continue;
        const auto loaded = Vector<T, vector>::load_once(x + ((plane + c) * height + h) * width + first + at);
#pragma unroll
        for (int e = 0; e < vector; ++e) tile[at + e][c] = loaded.elements[e];
    }
    __syncthreads();
    constexpr int per_chunk = vector_width<T>;
    for (int i = thread; i < layout_positions * row_chunks; i += layout_threads) {
        const int at = i / row_chunks, c = i % row_chunks * per_chunk;
        if (first + at >= width) continue;
        Vector<T, per_chunk> chunk;
#pragma unroll
        for (int e = 0; e < per_chunk; ++e) chunk.elements[e] = tile[at][c + e];
        chunk.store_whole(out + (row * width + first + at) * group<T> + c);
    }
}

}  // namespace kbench::cuda::convolution
