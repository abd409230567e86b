// Which output rows a kernel's blocks have, and sums that several blocks make parts of, where whole blocks would leave
// SMs idle at the end. Internal to kernels/convolution/.
#pragma once

#include "kernels/convolution/conv2d.h"

namespace kbench::cuda::convolution {

/// What a kernel's blocks are like when none is cut.
struct Blocks {
    int out_rows;         ///< of a block
    std::int64_t of_row;  ///< blocks that have the same output rows: tiles of all images
    int resident;         ///< blocks that run at once
    double us;            ///< what a block takes among them when all its taps meet x
    int most_parts;
    std::size_t sum_bytes;
};

/// The blocks of a grid, row of blocks by row from the middle of the image outwards: rows at the edges meet padding and
/// take less long, so they come last and fill the gaps at the end. Blocks of the outermost rows are cut into parts.
struct Grid {
    int rows = 0, of_row = 0;
    int whole = 0;  ///< of the rows of blocks, in that order, so many are not cut
    int parts = 1;  ///< of each other block

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
    /// Rows of blocks from here to there are not cut.
    __host__ __device__ int whole_begin() const { return rows / 2 - whole / 2; }
    __host__ __device__ int whole_end() const { return rows / 2 + (whole + 1) / 2; }
};

/// Without parts.
Grid whole_grid(int rows, std::int64_t of_row);

/// With the parts that let the whole end soonest. Parts leave sums that combine_parts adds up.
Grid best_grid(const Conv2d& op, const Blocks& blocks);

/// " in 6 parts", or " in 6 parts behind 16 rows" of blocks that are not cut, for names of kernels; nothing where none
/// is cut.
std::string of_parts(const Grid& grid);

/// Bytes of the parts' sums; none where there are none.
std::size_t parts_bytes(const Conv2d& op, const Blocks& blocks, const Grid& grid);

/// out = epilogue(sum over parts of sums [parts][elements of out]), in their order, in the rows of blocks that are cut.
/// sums: Arithmetic<type of out>.
void combine_parts(const Conv2d& op, DataType type, const Grid& grid, int out_rows, const void* sums, void* out,
                   const Conv2dEpilogue& epilogue, cudaStream_t stream);

}  // namespace kbench::cuda::convolution
