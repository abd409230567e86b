// The index arithmetic of the GEMM ladder: which tile a block computes, where an element of a tile lies in shared
// memory, which stage a copy goes to. It is plain constexpr C++, so that it is tested without a device.
#pragma once

namespace kbench::cuda::ladder {

struct TilePosition {
    int row, column;  ///< in tiles
    bool operator==(const TilePosition&) const = default;
};

/// The tile of `block` when `tile_rows` x `tile_columns` tiles are numbered in strips of `strip` tile rows, column by
/// column within a strip. Blocks that run at the same time then cover a compact rectangle instead of a few long rows:
/// together they read less of x and w, and one block's reads hit what another brought into L2.
constexpr TilePosition tile_of_block(int block, int tile_rows, int tile_columns, int strip) {
    const int strip_tiles = strip * tile_columns;
    const int first_row = block / strip_tiles * strip, in_strip = block % strip_tiles;
    const int rows = tile_rows - first_row < strip ? tile_rows - first_row : strip;
    return {first_row + in_strip % rows, in_strip / rows};
}

/// The 16-byte chunk of its row at which chunk `chunk` of row `row` is stored (a swizzle). Shared memory has 8 groups
/// of banks, each 16 bytes wide, and 8 lanes read 16 bytes each at a time. When rows are multiples of 128 bytes, the
/// same chunk of all rows would fall on one group. An exclusive or permutes chunks for reads of `rows` rows, `row_step`
/// apart, of 8 / rows neighbouring chunks: these then fall on 8 groups.
template <int rows, int row_step = 1>
struct Swizzle {
    static_assert(rows == 2 || rows == 4 || rows == 8);
    static constexpr unsigned chunk(unsigned row, unsigned chunk) {
        return chunk ^ (row / row_step % rows * (8 / rows));
    }
};

/// Offset in elements of (row, column) in a tile with rows of `columns` elements and `vector` elements per chunk.
/// Unsigned, because a signed division by a power of two takes three more instructions.
template <class Swizzle, unsigned columns, unsigned vector>
constexpr unsigned swizzled(unsigned row, unsigned column) {
    return row * columns + Swizzle::chunk(row, column / vector) * vector + column % vector;
}

/// A ring of `stages` buffers between copies and arithmetic. While tile i is computed, copies of tiles up to i + ahead
/// are in flight; each tile's copies are one group.
template <int stages>
struct Ring {
    static_assert(stages >= 2);
    static constexpr int ahead = stages - 1;
    /// Groups that may still be in flight when tile i + 1 is about to be read and tile i + ahead was the last started.
    static constexpr int may_be_pending = ahead - 1;
    static constexpr int next(int stage) { return stage + 1 == stages ? 0 : stage + 1; }
};

}  // namespace kbench::cuda::ladder
