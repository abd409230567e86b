// How the convolutions on mma.sync store their sums, which lie across the lanes with filters side by side.
#pragma once

#include "kernels/convolution/epilogue.cuh"

namespace kbench::cuda::convolution {

/// The sums of one output row that a warp holds: 64 positions x 32 filters as products of 16 x 8.
using WarpSums = float[4][4][4];

/// Bytes of shared memory that a warp needs to store WarpSums as U: 32 rows, 16 bytes apart more than they are long so
/// that a warp's writes meet each bank once.
template <class U>
inline constexpr int staging_pitch = 64 * static_cast<int>(sizeof(U)) + 16;
inline constexpr int staging_bytes = 32 * staging_pitch<float>;

/// made(sum, filter, column) of each sum to out[filter * plane + column], for columns from `first` to `end`, by way of
/// `staging` (of this warp alone): whole vectors of 4 where `vectors` says that rows are aligned to them.
template <class U, class Made>
__device__ void store_sums(const WarpSums& sums, unsigned char* staging, U* out, std::int64_t plane, int first, int end,
                           bool vectors, int lane, Made made) {
    constexpr int pitch = staging_pitch<U>;
    const int g = lane / 4, t = lane % 4;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int filter = n * 8 + t * 2 + e % 2;
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                const int column = m * 16 + g + e / 2 * 8;
                *reinterpret_cast<U*>(staging + filter * pitch + column * static_cast<int>(sizeof(U))) =
                    static_cast<U>(made(sums[m][n][e], filter, first + column));
            }
        }
    __syncwarp();
    const int column = lane % 16 * 4;
#pragma unroll 4
    for (int filter = lane / 16; filter < 32; filter += 2) {
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
