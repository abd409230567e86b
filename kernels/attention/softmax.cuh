// Online softmax (Milakov and Gimelshein, 2018) over scores that the threads of a warp hold in registers, and the merge
// of two partial results. It does not matter who computed the scores: a thread holds `rows` rows of a score tile, and
// each row is spread over `lanes` neighbouring lanes.
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda::attention {

template <class Scalar>
inline constexpr Scalar infinity = Scalar(__builtin_huge_val());

/// 2^x for x <= 0, ex2.approx: 2 ulp.
__device__ inline float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/// Polynomial of 2^x on [-1/2, 1/2], highest power first, from Chebyshev nodes: relative error 4e-18 before rounding.
/// It lies in constant memory, from where an FMA takes operands directly; literals would take two moves each.
__constant__ const double power_of_two_coefficients[] = {
    0x1.e9ec1fcb69a7fp-32, 0x1.e6228acd1c6e5p-28, 0x1.b524ebd13a55fp-24, 0x1.62bfc2c86d700p-20,
    0x1.ffcbfc6da6ed1p-17, 0x1.430913112c61bp-13, 0x1.5d87fe78a3f9cp-10, 0x1.3b2ab6fb9f1a5p-7,
    0x1.c6b08d704a0c6p-5,  0x1.ebfbdff82c5aep-3,  0x1.62e42fefa39efp-1,  1.0};

/// 2^x for x <= 0, and 0 where the result would not be a normal number. A mask makes that 0: a choice between doubles
/// would become a branch around each polynomial, and the polynomials would no longer overlap.
__device__ inline double power_of_two(double x) {
    constexpr double to_integer = 0x1.8p52;  // adding it rounds to an integer, which is then in the low word
    const double shifted = x + to_integer;
    const double fraction = x - (shifted - to_integer);
    double y = power_of_two_coefficients[0];
#pragma unroll
    for (int i = 1; i < 12; ++i) y = fma(y, fraction, power_of_two_coefficients[i]);
    const int high = __double2hiint(y) + (__double2loint(shifted) << 20);
    const int mask = x < -1022.0 ? 0 : -1;
    return __hiloint2double(high & mask, __double2loint(y) & mask);
}

template <int lanes, class Scalar>
__device__ Scalar lanes_max(Scalar value) {
#pragma unroll
    for (int mask = 1; mask < lanes; mask *= 2) value = max(value, __shfl_xor_sync(0xffffffffu, value, mask));
    return value;
}

template <int lanes, class Scalar>
__device__ Scalar lanes_sum(Scalar value) {
#pragma unroll
    for (int mask = 1; mask < lanes; mask *= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
}

/// A thread's part of the output rows, not yet divided by the row sums.
template <class Scalar, int rows, int columns>
struct Accumulator {
    Scalar out[rows][columns] = {};
    Scalar maximum[rows];           ///< largest raw score of the row so far; the same in all its lanes
    Scalar partial_sum[rows] = {};  ///< sum of this thread's probabilities

    __device__ Accumulator() {
#pragma unroll
        for (int r = 0; r < rows; ++r) maximum[r] = -infinity<Scalar>;
    }
};

/// 2^(scale (score - maximum)). Subtracting first makes a row's largest score give exactly 1 at any scale.
template <class Scalar>
__device__ Scalar probability(Scalar score, Scalar maximum, Scalar scale) {
    return power_of_two((score - maximum) * scale);
}

/// The maximum to subtract: 0 for a row without any key so far, whose -infinity would give NaN.
template <class Scalar>
__device__ Scalar finite(Scalar maximum) {
    return maximum == -infinity<Scalar> ? Scalar(0) : maximum;
}

/// Turns a tile of raw scores (-infinity where masked) into probabilities and rescales what was accumulated so far.
/// `round` turns a probability into the factor of v. The sum adds the rounded ones, so that they sum to one: the output
/// is then a mean of v, and in backward a part of dP that all keys share still cancels against D.
template <int lanes, class Scalar, int rows, int keys, int columns, class Round>
__device__ void online_softmax(Scalar (&scores)[rows][keys], Accumulator<Scalar, rows, columns>& accumulator,
                               Scalar scale, Round round) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        Scalar maximum = scores[r][0];
#pragma unroll
        for (int c = 1; c < keys; ++c) maximum = max(maximum, scores[r][c]);
        maximum = max(accumulator.maximum[r], lanes_max<lanes>(maximum));
        const Scalar rescale = probability(accumulator.maximum[r], finite(maximum), scale);
        accumulator.maximum[r] = maximum;
        Scalar sum = 0;
#pragma unroll
        for (int c = 0; c < keys; ++c) sum += scores[r][c] = round(probability(scores[r][c], finite(maximum), scale));
        accumulator.partial_sum[r] = accumulator.partial_sum[r] * rescale + sum;
#pragma unroll
        for (int c = 0; c < columns; ++c) accumulator.out[r][c] *= rescale;
    }
}
/// The same, where probabilities are multiplied as they are or the caller rounds them.
template <int lanes, class Scalar, int rows, int keys, int columns>
__device__ void online_softmax(Scalar (&scores)[rows][keys], Accumulator<Scalar, rows, columns>& accumulator,
                               Scalar scale) {
    online_softmax<lanes>(scores, accumulator, scale, [](Scalar p) { return p; });
}

/// Bytes of shared memory that merge_groups needs for `groups` groups of `threads` threads.
template <class Scalar, int rows, int columns>
constexpr int merge_bytes(int groups, int threads) {
    return groups / 2 * rows * (columns + 2) * threads * static_cast<int>(sizeof(Scalar));
}

/// Adds up the partial results of the block's groups (a power of two) in group 0, by repeated halving through `smem`.
template <int groups, int threads, class Scalar, int rows, int columns>
__device__ void merge_groups(Accumulator<Scalar, rows, columns>& accumulator, Scalar scale, Scalar* smem, int group,
                             int thread) {
    constexpr int row_pitch = (columns + 2) * threads;
#pragma unroll
    for (int half = groups / 2; half >= 1; half /= 2) {
        __syncthreads();  // no one reads what `smem` held before
        Scalar* row = smem + group % half * rows * row_pitch + thread;
        if (group >= half && group < 2 * half) {
#pragma unroll
            for (int r = 0; r < rows; ++r, row += row_pitch) {
                row[0] = accumulator.maximum[r];
                row[threads] = accumulator.partial_sum[r];
#pragma unroll
                for (int c = 0; c < columns; ++c) row[(c + 2) * threads] = accumulator.out[r][c];
            }
        }
        __syncthreads();
        if (group >= half) continue;
#pragma unroll
        for (int r = 0; r < rows; ++r, row += row_pitch) {
            const Scalar maximum = max(accumulator.maximum[r], row[0]);
            const Scalar own = probability(accumulator.maximum[r], finite(maximum), scale);
            const Scalar other = probability(row[0], finite(maximum), scale);
            accumulator.maximum[r] = maximum;
            accumulator.partial_sum[r] = accumulator.partial_sum[r] * own + row[threads] * other;
#pragma unroll
            for (int c = 0; c < columns; ++c)
                accumulator.out[r][c] = accumulator.out[r][c] * own + row[(c + 2) * threads] * other;
        }
    }
}

/// Divides every row by its sum.
template <int lanes, class Scalar, int rows, int columns>
__device__ void normalise(Accumulator<Scalar, rows, columns>& accumulator) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const Scalar reciprocal = Scalar(1) / lanes_sum<lanes>(accumulator.partial_sum[r]);
#pragma unroll
        for (int c = 0; c < columns; ++c) accumulator.out[r][c] *= reciprocal;
    }
}

/// Natural logarithm of the sum of e^(scale score) over a row's keys.
template <int lanes, class Scalar, int rows, int columns>
__device__ Scalar log_sum_exp(const Accumulator<Scalar, rows, columns>& accumulator, int row, Scalar scale_log2) {
    constexpr Scalar ln_2 = Scalar(0.693147180559945309417232121458176568);
    return (accumulator.maximum[row] * scale_log2 + log2(lanes_sum<lanes>(accumulator.partial_sum[row]))) * ln_2;
}

/// Stores that of a lane's rows, which lie `apart` from `row` on, where there are so many: of the `lanes` that share a
/// row, the first stores it. `lse` is the sequence's.
template <int lanes, int apart, class Scalar, int rows, int columns>
__device__ __forceinline__ void store_log_sum_exp(Scalar* lse, int seq,
                                                  const Accumulator<Scalar, rows, columns>& accumulator, int row,
                                                  int lane, Scalar scale_log2) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const Scalar value = log_sum_exp<lanes>(accumulator, r, scale_log2);
        if (lane == 0 && row + apart * r < seq) lse[row + apart * r] = value;
    }
}

}  // namespace kbench::cuda::attention
