// Which output rows each block of a kernel has. Where whole blocks would leave SMs idle at the end, the last blocks are
// cut into parts, which share the terms of a sum. Internal to kernels/convolution/.
#pragma once

#include "kernels/convolution/conv2d.h"

namespace kbench::cuda::convolution {

/// Properties of a kernel's blocks when none is cut.
struct Blocks {
    int out_rows;         ///< per block
    std::int64_t of_row;  ///< blocks with the same output rows: tiles of all images
    int resident;         ///< blocks that run at once
    double us;            ///< time of such a block when all its taps meet x
    int most_parts;
    std::size_t sum_bytes;
};

/// The blocks of a grid, ordered by row of blocks from the middle of the image outwards. Rows at the edges meet padding
/// and take less time, so they come last and fill the gaps at the end. The outermost rows' blocks are cut into parts.
struct Grid {
    int rows = 0, of_row = 0;
    int whole = 0;  ///< rows of blocks, the first in that order, that are not cut
    int parts = 1;  ///< parts of each block that is cut

    struct Block {
        int row, of_row, part, parts;
    };
    __host__ __device__ Block block(int index) const {
        Block b{0, 0, 0, 1};
        if (index >= whole * of_row) {
            const int behind = index - whole * of_row;
            b.parts = parts, b.part = behind % parts;
            index = whole * of_row + behind / parts;
        }
        const int order = index / of_row, middle = rows / 2;
        b.of_row = index % of_row;
        b.row = order % 2 ? middle - (order + 1) / 2 : middle + order / 2;
        return b;
    }
    bool is_cut() const { return parts > 1; }
    unsigned blocks() const { return static_cast<unsigned>((whole + (rows - whole) * parts) * of_row); }
    /// Rows of blocks from whole_begin() up to whole_end() are not cut.
    __host__ __device__ int whole_begin() const { return rows / 2 - whole / 2; }
    __host__ __device__ int whole_end() const { return rows / 2 + (whole + 1) / 2; }
};

/// A grid without parts.
Grid whole_grid(int rows, std::int64_t of_row);

/// The grid whose last block ends soonest. Its parts leave sums for combine_parts to add up.
Grid best_grid(const Conv2d& op, const Blocks& blocks);

/// For kernel names: " in 6 parts", or " in 6 parts behind 16 rows" where 16 rows of blocks are not cut; "" where none
/// is cut.
std::string of_parts(const Grid& grid);

/// Bytes of the parts' sums; 0 where there are none.
std::size_t parts_bytes(const Conv2d& op, const Blocks& blocks, const Grid& grid);

/// out = epilogue(sum over parts of sums [parts][elements of out]), in a fixed order, for the rows of blocks that are
/// cut. The type of `sums` is Arithmetic<type of out>.
void combine_parts(const Conv2d& op, DataType type, const Grid& grid, int out_rows, const void* sums, void* out,
                   const Conv2dEpilogue& epilogue, cudaStream_t stream);

}  // namespace kbench::cuda::convolution
