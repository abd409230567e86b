// How warps sum dx of one channel at stride 2 along the width: products of a row of dy of some filters with a row of
// their taps, both in shared memory. Internal to kernels/convolution/.
//
// A tile has `tile` neighbouring columns q of a row of dy. Tap 2 d + c of column q meets column c of pair q + d in a
// row of dx. So a tile makes both columns of each of its pairs but the first `halo`, which also need columns of the
// tile before. A unit is `rows` rows of dx, stride_h apart; each meets a row of dy with a different row of taps.
#pragma once

#include "kernels/mma.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda::convolution::dgrad_single {

inline constexpr int tile = 256, halo = 8, most_taps = 11, shifts = most_taps / 2 + 1;
static_assert(shifts - 1 <= halo);

/// The filter and the tap that an element of the packed weights holds, within a block of filters.
struct WeightPlace {
    int filter, tap;
};

/// 16 bits and tf32, on tensor cores: products of 16 taps and 8 columns, summed over 16 or 8 filters. A sum belongs to
/// one tap and one column; the taps of a pair are added up once, at the end.
template <class Type>
struct Mma {
    using T = Type;
    static constexpr bool of_16_bits = sizeof(T) == 2;
    /// Rows of dx per unit, warps per unit, most and fewest units per block.
    static constexpr int rows = 4, warps = 8, most_units = 2, least_units = 1, blocks_per_sm = 1;
    /// Filters that one instruction sums over, and filters in shared memory at a time.
    static constexpr int depth = of_16_bits ? 16 : 8, filters = 2 * depth, stages = 3;
    /// Pitch of a row of dy in shared memory: 16-byte chunks of eight neighbouring rows (16 bits), or 8 words of four
    /// rows (tf32), lie in different banks.
    static constexpr int pitch = tile * static_cast<int>(sizeof(T)) + (of_16_bits ? 16 : 32);
    /// A row of taps of `depth` filters: one fragment, 16 bytes per lane, lane after lane.
    static constexpr int row_elements = 16 * depth;
    static constexpr int warp_columns = tile / warps, column_blocks = warp_columns / 8;
    static constexpr int sums_pitch = tile + 4;
    float sums[rows][column_blocks][4] = {};
    int part, lane, dy_at;

    __device__ Mma(int warp_of_unit, int lane_of_warp)
        : part(warp_of_unit),
          lane(lane_of_warp),
          dy_at(of_16_bits ? lane % 16 * pitch + (part * warp_columns + lane / 16 * 8) * 2
                           : lane % 4 * pitch + (part * warp_columns + lane / 4) * 4) {}

    static constexpr __device__ int place_of(int column) { return column * static_cast<int>(sizeof(T)); }
    static __host__ __device__ WeightPlace weight(int element) {
        constexpr int per_word = 4 / static_cast<int>(sizeof(T));
        const int word = element / per_word % 4, of_lane = element / per_word / 4;
        return {of_lane % 4 * per_word + element % per_word + word / 2 * (depth / 2), of_lane / 4 + word % 2 * 8};
    }

    /// Adds products over `blocks` times `depth` filters. at[i]: where the taps for row i of dx begin; negative where
    /// no tap meets it. `all`: none is negative, which spares branches.
    template <bool all>
    __device__ void add(const unsigned char* dy, const unsigned char* weights, const int (&at)[rows], int blocks,
                        int block_bytes) {
#pragma unroll 1
        for (int block = 0; block < blocks; ++block) {
            unsigned b[column_blocks][2];
            read(b, dy + dy_at + block * depth * pitch);
#pragma unroll
            for (int i = 0; i < rows; ++i) {
                if (!all && at[i] < 0) continue;
                const auto a = Vector<unsigned, 4>::load(
                    reinterpret_cast<const unsigned*>(weights + block * block_bytes + at[i] + lane * 16));
#pragma unroll
                for (int j = 0; j < column_blocks; ++j) mma_words<T>(sums[i][j], a.elements, b[j]);
            }
        }
    }

    /// Calls store(i, column, sum) for each of the 2 * tile columns of row i of the unit, starting at the tile's first
    /// pair. `smem` has finish_bytes per unit. All threads of a block must call it.
    static constexpr int finish_bytes = most_taps * sums_pitch * 4;
    template <class Store>
    __device__ void finish(unsigned char* smem, int unit, int kernel_w, Store store) {
        auto* const of_unit = reinterpret_cast<float*>(smem + unit * finish_bytes);
        const int g = lane / 4, t = lane % 4;
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            __syncthreads();  // all warps are done with what was there
#pragma unroll
            for (int j = 0; j < column_blocks; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const int tap = g + e / 2 * 8, column = part * warp_columns + j * 8 + 2 * t + e % 2;
                    if (tap < kernel_w) of_unit[tap * sums_pitch + column] = sums[i][j][e];
                }
            __syncthreads();
#pragma unroll
            for (int first = 0; first < 2 * tile; first += warps * 32) {
                const int column = first + part * 32 + lane, pair = column / 2;
                float sum = 0;
#pragma unroll
                for (int d = 0; d < shifts; ++d)
                    if (const int tap = 2 * d + column % 2; tap < kernel_w && pair >= d)
                        sum += of_unit[tap * sums_pitch + pair - d];
                store(i, column, sum);
            }
        }
    }

  private:
    /// Reads the fragments of `depth` filters at the warp's columns.
    static __device__ void read(unsigned (&b)[column_blocks][2], const unsigned char* dy) {
        if constexpr (of_16_bits) {
#pragma unroll
            for (int j = 0; j < column_blocks; j += 2) {
                unsigned both[4];
                ldmatrix_x4_transposed(both, dy + j * 16);
#pragma unroll
                for (int e = 0; e < 4; ++e) b[j + e / 2][e % 2] = both[e];
            }
        } else {
#pragma unroll
            for (int j = 0; j < column_blocks; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e) b[j][e] = *reinterpret_cast<const unsigned*>(dy + e * 4 * pitch + j * 32);
        }
    }
};

/// fp32 without tensor cores: a lane has 8 pairs of each row of a unit, a warp the whole unit. For 176 multiply-adds it
/// reads 16 bytes ten times, six of them the same in all lanes, so FFMA is the bottleneck. With kernels less than 11
/// wide dy must be finite: missing taps are multiplied as 0.
struct Plain {
    using T = float;
    static constexpr int rows = 2, warps = 1, most_units = 8, least_units = 2, blocks_per_sm = 3;
    static constexpr int depth = 1, filters = 16, stages = 2;
    static constexpr int lane_pairs = tile / 32, window = lane_pairs + halo;
    /// Zeros, then the row: the first lane also reads what lies before it.
    static constexpr int pitch = (halo + tile) * 4;
    static constexpr int row_elements = 12;
    float sums[rows][2 * lane_pairs] = {};
    int lane, dy_at[window / 4];

    __device__ Plain(int, int lane_of_warp) : lane(lane_of_warp) {
#pragma unroll
        for (int i = 0; i < window / 4; ++i) dy_at[i] = swizzled(lane * (lane_pairs / 4) + i) * 16;
    }
    static constexpr __device__ int place_of(int column) { return swizzled((halo + column) / 4) * 16 + column % 4 * 4; }
    static __host__ __device__ WeightPlace weight(int element) { return {0, element}; }

    template <bool all>
    __device__ void add(const unsigned char* dy, const unsigned char* weights, const int (&at)[rows], int blocks,
                        int block_bytes) {
        const auto four_of = [](const unsigned char* from) {
            return Vector<float, 4>::load(reinterpret_cast<const float*>(from));
        };
#pragma unroll 1
        for (int k = 0; k < blocks; ++k) {
            float near[window];
#pragma unroll
            for (int i = 0; i < window / 4; ++i) {
                const auto four = four_of(dy + k * pitch + dy_at[i]);
#pragma unroll
                for (int e = 0; e < 4; ++e) near[i * 4 + e] = four.elements[e];
            }
#pragma unroll
            for (int i = 0; i < rows; ++i) {
                if (!all && at[i] < 0) continue;
                float taps[row_elements];
#pragma unroll
                for (int j = 0; j < row_elements / 4; ++j) {
                    const auto four = four_of(weights + k * block_bytes + at[i] + j * 16);
#pragma unroll
                    for (int e = 0; e < 4; ++e) taps[j * 4 + e] = four.elements[e];
                }
#pragma unroll
                for (int tap = 0; tap < most_taps; ++tap)
#pragma unroll
                    for (int pair = 0; pair < lane_pairs; ++pair)
                        sums[i][2 * pair + tap % 2] += taps[tap] * near[pair + halo - tap / 2];
            }
        }
    }

    static constexpr int finish_bytes = 2 * tile * 4;
    template <class Store>
    __device__ void finish(unsigned char* smem, int unit, int, Store store) {
        auto* const of_unit = reinterpret_cast<float*>(smem + unit * finish_bytes);
        __syncthreads();  // all warps are done with what was there
#pragma unroll
        for (int i = 0; i < rows; ++i) {
#pragma unroll
            for (int first = 0; first < 2 * lane_pairs; first += 4)
                *reinterpret_cast<float4*>(of_unit + lane * 2 * lane_pairs + first) =
                    make_float4(sums[i][first], sums[i][first + 1], sums[i][first + 2], sums[i][first + 3]);
            __syncwarp();
#pragma unroll
            for (int first = 0; first < 2 * tile; first += 32) store(i, first + lane, of_unit[first + lane]);
            __syncwarp();
        }
    }

  private:
    /// Neighbouring lanes start two 16-byte chunks apart. Without the swizzle, eight lanes would use only 4 of the 8
    /// groups of banks.
    static constexpr __device__ int swizzled(int chunk) { return chunk ^ (chunk >> 3 & 1); }
};

/// Calls f.operator()<Core>() with the core that multiplies in `precision`, which is not fp64.
template <class F>
auto with_core(Precision precision, F f) {
    switch (precision) {
        case Precision::fp16: return f.template operator()<Mma<__half>>();
        case Precision::bf16: return f.template operator()<Mma<__nv_bfloat16>>();
        case Precision::tf32: return f.template operator()<Mma<float>>();
        case Precision::fp32:
        case Precision::fp64: break;
    }
    return f.template operator()<Plain>();
}

}  // namespace kbench::cuda::convolution::dgrad_single
