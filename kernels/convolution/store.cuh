// How convolutions on mma.sync store sums that lie across the lanes with filters side by side.
#pragma once

#include "kernels/convolution/epilogue.cuh"

namespace kbench::cuda::convolution {

/// Positions of an output row per warp, in blocks of 16: sums of two rows and 32 filters take 128 registers.
template <class T>
inline constexpr int position_blocks = sizeof(T) == 8 ? 2 : 4;

/// A warp's sums of one output row: blocks of 16 positions x 32 filters, as products of 16 x 8.
template <class T>
using WarpSums = std::conditional_t<sizeof(T) == 8, double[2][4][4], float[4][4][4]>;

/// Bytes of shared memory that a warp needs to store WarpSums as U: 32 rows with 16 bytes of padding each, so that the
/// warp's writes hit each bank once.
template <class U, int blocks>
inline constexpr int staging_pitch = blocks * 16 * static_cast<int>(sizeof(U)) + 16;
inline constexpr int staging_bytes = 32 * staging_pitch<float, 4>;

/// Writes made(sum, filter, column) for each sum to out[filter * plane + column], for columns from `first` to `end`. It
/// goes through `staging`, this warp's own, in whole vectors of 4 where `vectors` says that rows are aligned for them.
template <class A, int blocks, class U, class Made>
__device__ void store_sums(const A (&sums)[blocks][4][4], unsigned char* staging, U* out, std::int64_t plane, int first,
                           int end, bool vectors, int lane, Made made) {
    constexpr int pitch = staging_pitch<U, blocks>, row_lanes = blocks * 4;
    static_assert(32 * pitch <= staging_bytes);
    const int g = lane / 4, t = lane % 4;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int filter = n * 8 + t * 2 + e % 2;
#pragma unroll
            for (int m = 0; m < blocks; ++m) {
                const int column = m * 16 + g + e / 2 * 8;
                *reinterpret_cast<U*>(staging + filter * pitch + column * static_cast<int>(sizeof(U))) =
                    static_cast<U>(made(sums[m][n][e], filter, first + column));
            }
        }
    __syncwarp();
    const int column = lane % row_lanes * 4;
#pragma unroll 4
    for (int filter = lane / row_lanes; filter < 32; filter += 32 / row_lanes) {
        const auto four = Vector<U, 4>::load(
            reinterpret_cast<const U*>(staging + filter * pitch + column * static_cast<int>(sizeof(U))));
        U* const to = out + filter * plane + first + column;
        if (vectors && first + column + 4 <= end)
            four.store(to);
        else
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (first + column + i < end) to[i] = four.elements[i];
    }
}

}  // namespace kbench::cuda::convolution
