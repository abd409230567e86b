// The products that a warp of dw's kernels sums: dy times x over positions, both in the layout of layout.cuh. Internal
// to kernels/convolution/.
#pragma once

#include "kernels/convolution/layout.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::convolution::wgrad {

/// Positions per stage, and filters per block.
inline constexpr int depth = 64, filters = 32, dy_bytes = depth * row_bytes;

/// A warp's sums of 32 filters x a group of channels for each of `rows` filter rows, `step` positions at a time.
/// read_dy reads tiles [groups of filters][positions]; add reads the tile of one filter row, from the warp's tap s on.
template <class Type, int filter_rows>
struct Mma16 {
    using T = Type;
    static constexpr int rows = filter_rows, step = 16, stages = 4, unroll = 2;
    float sums[rows][2][4][4] = {};
    unsigned a[2][4];
    int dy_at, x_at[2];

    __device__ Mma16(int s, int lane) {
        dy_at = swizzled(lane / 16 * 8 + lane % 8, lane / 8 % 2);
        x_at[0] = swizzled(s + lane % 16, lane / 16);
        x_at[1] = x_at[0] ^ 32;  // two chunks further on
    }
    __device__ void read_dy(const unsigned char* tiles, int at) {
        ldmatrix_x4_transposed(a[0], tiles + at * row_bytes + dy_at);
        ldmatrix_x4_transposed(a[1], tiles + at * row_bytes + (dy_at ^ 32));
    }
    __device__ void add(int row, const unsigned char* tile, int at) {
        unsigned b[2][4];
#pragma unroll
        for (int half = 0; half < 2; ++half) ldmatrix_x4_transposed(b[half], tile + at * row_bytes + x_at[half]);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                float(&c)[4] = sums[row][m][n];
                Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
            }
    }
    /// store(row, filter, channel, two neighbouring channels' sums)
    template <class Store>
    __device__ void for_each_pair(int lane, Store store) const {
#pragma unroll
        for (int row = 0; row < rows; ++row)
#pragma unroll
            for (int m = 0; m < 2; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n)
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        store(row, m * 16 + e * 8 + lane / 4, n * 8 + lane % 4 * 2, sums[row][m][n] + 2 * e);
    }
};

/// tf32 and fp64. The order of positions is free, and a lane's are chosen so that the four rows of half a warp lie in
/// different banks.
template <class Type, int filter_rows>
struct Mma8 {
    using T = Type;
    static constexpr int rows = filter_rows, step = 8, stages = 3, unroll = 2, blocks = group<T> / 8,
                         per_chunk = 16 / int{sizeof(T)};
    T sums[rows][2][blocks][4] = {};
    T a[2][4];
    int dy_at[2], x_at[2];

    __device__ Mma8(int s, int lane) {
        const int g = lane / 4, t = lane % 4, position = t % 2 + t / 2 * 4;
        for (int e = 0; e < 2; ++e) {
            dy_at[e] = swizzled(position + 2 * e, g / per_chunk) + g % per_chunk * int{sizeof(T)};
            x_at[e] = swizzled(s + position + 2 * e, g / per_chunk) + g % per_chunk * int{sizeof(T)};
        }
    }
    static __device__ T load(const unsigned char* at) { return *reinterpret_cast<const T*>(at); }
    /// The place of eight filters or channels further on: two chunks in 32 bits, the next tile in fp64.
    static __device__ int next_eight(int at, int eights) {
        return blocks == 2 ? (at ^ (eights % 2 * 32)) + eights / 2 * dy_bytes : at + eights * dy_bytes;
    }
    __device__ void read_dy(const unsigned char* tiles, int at) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                a[m][e] = load(tiles + at * row_bytes + next_eight(dy_at[e / 2], m * 2 + e % 2));
    }
    __device__ void add(int row, const unsigned char* tile, int at) {
        T b[blocks][2];
#pragma unroll
        for (int n = 0; n < blocks; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) b[n][e] = load(tile + at * row_bytes + (x_at[e] ^ n * 32));
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int n = 0; n < blocks; ++n) {
                T(&c)[4] = sums[row][m][n];
                mma_16x8x8(c[0], c[1], c[2], c[3], a[m], b[n][0], b[n][1]);
            }
    }
    template <class Store>
    __device__ void for_each_pair(int lane, Store store) const {
#pragma unroll
        for (int row = 0; row < rows; ++row)
#pragma unroll
            for (int m = 0; m < 2; ++m)
#pragma unroll
                for (int n = 0; n < blocks; ++n)
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        store(row, m * 16 + e * 8 + lane / 4, n * 8 + lane % 4 * 2, sums[row][m][n] + 2 * e);
    }
};

/// fp32 without tensor cores: a lane has 8 filters x 2 channels.
template <int filter_rows>
struct Plain {
    using T = float;
    static constexpr int rows = filter_rows, step = 1, stages = 3, unroll = 8;
    float sums[rows][8][2] = {};
    float a[8];
    int filter, channel, tap;

    __device__ Plain(int s, int lane) : filter(lane / 8 * 8), channel(lane % 8 * 2), tap(s) {}
    __device__ void read_dy(const unsigned char* tiles, int at) {
        const unsigned char* const tile = tiles + filter / 16 * dy_bytes;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const auto four =
                Vector<float, 4>::load(reinterpret_cast<const float*>(tile + swizzled(at, filter % 16 / 4 + half)));
#pragma unroll
            for (int e = 0; e < 4; ++e) a[half * 4 + e] = four.elements[e];
        }
    }
    __device__ void add(int row, const unsigned char* tile, int at) {
        const auto pair = Vector<float, 2>::load(
            reinterpret_cast<const float*>(tile + swizzled(at + tap, channel / 4) + channel % 4 * 4));
#pragma unroll
        for (int k = 0; k < 8; ++k)
#pragma unroll
            for (int c = 0; c < 2; ++c) sums[row][k][c] += a[k] * pair.elements[c];
    }
    template <class Store>
    __device__ void for_each_pair(int, Store store) const {
#pragma unroll
        for (int row = 0; row < rows; ++row)
#pragma unroll
            for (int k = 0; k < 8; ++k) store(row, filter + k, channel, sums[row][k]);
    }
};

/// Tiles of dy, one per group of filters.
template <class Core>
inline constexpr int dy_tiles = filters / group<typename Core::T>;

/// Starts to copy dy's tiles of `depth` positions from `first` on. `row` is the output row of the first group; the next
/// group's is `group_stride` rows further on. Past `width` it writes zeros. All `threads` must call it.
template <class Core, int threads>
__device__ void fetch_dy(unsigned char* to, const unsigned char* dy, std::int64_t row, std::int64_t group_stride,
                         int first, int width) {
    for (int i = static_cast<int>(threadIdx.x); i < dy_tiles<Core> * depth * row_chunks; i += threads) {
        const int tile = i / (depth * row_chunks), at = i / row_chunks % depth, chunk = i % row_chunks;
        const int position = first + at;
        const bool inside = position < width;
        cp_async_if<16>(to + tile * dy_bytes + swizzled(at, chunk),
                        dy + ((row + tile * group_stride) * width + (inside ? position : 0)) * row_bytes + chunk * 16,
                        inside);
    }
}

/// Calls f.operator()<Core>() with the core for `precision`: `few` filter rows in 16 bits, else `many`.
template <int few, int many, class F>
auto with_core(Precision precision, F f) {
    switch (precision) {
        case Precision::fp16: return f.template operator()<Mma16<__half, few>>();
        case Precision::bf16: return f.template operator()<Mma16<__nv_bfloat16, few>>();
        case Precision::tf32: return f.template operator()<Mma8<float, many>>();
        case Precision::fp32: return f.template operator()<Plain<many>>();
        case Precision::fp64: break;
    }
    return f.template operator()<Mma8<double, many>>();
}

}  // namespace kbench::cuda::convolution::wgrad
