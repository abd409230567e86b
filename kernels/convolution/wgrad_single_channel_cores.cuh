// The products that a warp sums for dw of one channel at stride 2: a row of dy with the rows of x that its taps meet,
// both in shared memory. Internal to kernels/convolution/.
//
// Shared memory is counted in words of 4 bytes: one 32-bit element or two neighbouring 16-bit ones. Position q of a
// tile meets, at tap place 2 d + c, column c of pair q + d in a row of x. So what a thread has read for one d also
// serves the other d, at other positions. Each core says where it wants the words to lie.
#pragma once

#include "kernels/mma.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda::convolution::wgrad_single {

/// Filters per block, and kernel rows per block.
inline constexpr int filters = 32, block_rows = 48;
template <class T>
inline constexpr int per_word = 4 / static_cast<int>(sizeof(T));
/// Words that a tile has of a row of dy. Of a row of x it has twice as many in 32 bits, plus those that the last
/// position's taps reach.
inline constexpr int dy_words = 64;

/// Word `word` of a tile's row of dy or x, and its place: within the tile of dy, or within the row of x.
struct DyWord {
    int filter, word, place;
};
struct XWord {
    int word, place;
};

/// The place of rows of x in a ring: `rows` of them from slot `base` on, in `ring` slots.
struct Rows {
    int rows, ring, base;
    __device__ int slot(int row) const {
        const int at = base + (row < rows ? row : rows - 1);  // rows past the last are read but their sums not stored
        return at < ring ? at : at - ring;
    }
};

/// The filter, kernel row and tap place of one of a thread's sums, within its block.
struct Place {
    int filter, row, tap;
};

/// 16 bits and tf32, on tensor cores: products of 16 filters and 8 columns. The columns are four kernel rows x both
/// columns of a pair. A warp has 32 filters x 12 rows.
///
/// A product is as deep as two words of a lane. One is from the tile's first half and one from its second, half a tile
/// apart. Shared memory stores such two next to each other; those of dy also next to the filter 8 further on. So each
/// 16-byte load is one fragment of dy or two of x, and none has to be assembled from registers. The halves of x
/// overlap, and the overlap is stored twice.
template <class Type>
struct Mma {
    using T = Type;
    static constexpr bool of_16_bits = sizeof(T) == 2;
    static constexpr int quads = 3, warps = block_rows / 4 / quads, shifts = 6;
    /// Words of half a tile's row of dy per step: of a lane, and of a warp.
    static constexpr int lane_words = 2, step = 4 * lane_words, end = dy_words / 2;
    /// Pairs of words of x that a lane reads, and that half a tile has (in 32 bits, per column).
    static constexpr int lane_pairs = of_16_bits ? 9 : 8, half_pairs = of_16_bits ? 70 : 40;
    static constexpr int half_words = of_16_bits ? half_pairs : 2 * half_pairs, x_words = 2 * half_words;
    /// Pitches without bank conflicts when eight lanes read two rows: 4 over a multiple of 8 in 16 bits and for dy,
    /// where a row's vectors are 8 words apart; else 16 over a multiple of 32.
    static constexpr int x_pitch = of_16_bits ? 140 : 176, dy_pitch = 132, dy_tile = filters / 2 * dy_pitch;
    static constexpr int per_thread = quads * shifts * 2 * 4;
    float sums[per_thread] = {};
    int first_row, of_quad_row, column, t, dy_at, in_use = 0, x_at[quads] = {};

    __device__ Mma(int warp, int lane)
        : first_row(warp * quads * 4),
          of_quad_row(lane / 4 % 4),
          column(lane / 16),
          t(lane % 4),
          dy_at(lane / 4 * dy_pitch + t * lane_words * 4) {}
    /// The filter and word that lane i copies; the words of a warp's lanes lie in different banks.
    static __device__ DyWord dy_word(int i) {
        const int eight = i / 8 % 2, half = i / 16 % 2, word = i / 32 % 4 * 8 + i % 8, row = i / 128;
        return {row / 8 * 16 + eight * 8 + row % 8, half * end + word, row * dy_pitch + word * 4 + half * 2 + eight};
    }
    static __device__ XWord x_word(int i) {
        const int half = i / half_words, word = i % half_words;
        return {half * dy_words + word, of_16_bits ? 2 * word + half : (word % 2 * half_pairs + word / 2) * 2 + half};
    }
    /// Prepares an output row's products.
    __device__ void begin(const Rows& rows) {
        in_use = (rows.rows - first_row + 3) / 4;
#pragma unroll
        for (int quad = 0; quad < quads; ++quad)
            x_at[quad] = rows.slot(first_row + quad * 4 + of_quad_row) * x_pitch +
                         (of_16_bits ? t * lane_words * 4 : column * half_pairs * 2 + t * lane_words * 2);
    }
    /// Adds products of words [at, at + step) of both halves of dy's rows.
    __device__ void add(const unsigned* dy, const unsigned* x, int at) {
        Vector<unsigned, 4> a[lane_words][2];
#pragma unroll
        for (int i = 0; i < lane_words; ++i)
#pragma unroll
            for (int m = 0; m < 2; ++m)
                a[i][m] = Vector<unsigned, 4>::load(dy + dy_at + m * 8 * dy_pitch + (at + i) * 4);
#pragma unroll
        for (int quad = 0; quad < quads; ++quad) {
            if (quad >= in_use) continue;
            unsigned b[8][2];
            read(b, x + x_at[quad] + at * 2 * per_word<T>);
#pragma unroll
            for (int i = 0; i < lane_words; ++i)
#pragma unroll
                for (int shift = 0; shift < shifts; ++shift)
#pragma unroll
                    for (int m = 0; m < 2; ++m)
                        mma_words<T>(sums + ((quad * shifts + shift) * 2 + m) * 4, a[i][m].elements,
                                     b[i * per_word<T> + shift]);
        }
    }
    static __host__ __device__ Place place(int thread, int i) {
        const int lane = thread % 32, column = lane % 4 * 2 + i % 2, quad = i / 4 / 2 / shifts;
        return {i / 4 % 2 * 16 + i % 4 / 2 * 8 + lane / 4, (thread / 32 * quads + quad) * 4 + column % 4,
                i / 4 / 2 % shifts * 2 + column / 4};
    }

  private:
    /// b[i]: this lane's column of pair i in both halves; in 16 bits, of pairs i and i + 1.
    __device__ void read(unsigned (&b)[8][2], const unsigned* x) const {
        unsigned words[lane_pairs][2];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            const auto four = Vector<unsigned, 4>::load(x + i * 2);
#pragma unroll
            for (int e = 0; e < 4; ++e) words[i + e / 2][e % 2] = four.elements[e];
        }
        if constexpr (of_16_bits) {
            const auto two = Vector<unsigned, 2>::load(x + 8 * 2);
            words[8][0] = two.elements[0], words[8][1] = two.elements[1];
        }
        const unsigned both = column == 0 ? 0x5410 : 0x7632;
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                b[i][half] = of_16_bits ? __byte_perm(words[i][half], words[i + 1][half], both) : words[i][half];
    }
};

/// fp32 without tensor cores: a lane has 8 filters x 11 taps of one row, a warp 32 filters x 8 rows.
struct Plain {
    using T = float;
    static constexpr int rows = 8, warps = block_rows / rows, lane_filters = 8, taps = 11, step = 4, end = dy_words;
    /// Pairs of x per tile; a row stores all first columns, then all second ones. Taps reach 5 pairs past the last
    /// position, vectors 7. The pitch puts vectors of eight neighbouring rows into different banks.
    static constexpr int pairs = dy_words + 8, x_words = 2 * pairs, x_pitch = x_words + 4;
    static constexpr int dy_tile = filters * dy_words, per_thread = lane_filters * taps;
    float sums[per_thread] = {};
    int row, dy_at, x_at = 0;

    __device__ Plain(int warp, int lane)
        : row(warp * rows + lane % rows), dy_at(lane / rows * lane_filters * dy_words) {}
    static __device__ DyWord dy_word(int i) { return {i / dy_words, i % dy_words, i}; }
    static __device__ XWord x_word(int i) { return {i, i % 2 * pairs + i / 2}; }
    __device__ void begin(const Rows& of_x) { x_at = of_x.slot(row) * x_pitch; }
    /// Adds products of words [at, at + step).
    __device__ void add(const unsigned* dy, const unsigned* x, int at) {
        const auto four_of = [](const unsigned* from) {
            return Vector<float, 4>::load(reinterpret_cast<const float*>(from));
        };
        float columns[2][12];  // [column][pair, from the first position on]
#pragma unroll
        for (int column = 0; column < 2; ++column)
#pragma unroll
            for (int i = 0; i < 3 - column; ++i) {
                const auto four = four_of(x + x_at + column * pairs + at + i * 4);
#pragma unroll
                for (int e = 0; e < 4; ++e) columns[column][i * 4 + e] = four.elements[e];
            }
#pragma unroll
        for (int k = 0; k < lane_filters; ++k) {
            const auto of_dy = four_of(dy + dy_at + k * dy_words + at);
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int tap = 0; tap < taps; ++tap)
                    sums[k * taps + tap] += of_dy.elements[e] * columns[tap % 2][e + tap / 2];
        }
    }
    static __host__ __device__ Place place(int thread, int i) {
        const int lane = thread % 32;
        return {lane / rows * lane_filters + i / taps, thread / 32 * rows + lane % rows, i % taps};
    }
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

}  // namespace kbench::cuda::convolution::wgrad_single
