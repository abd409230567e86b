// Sums of products of rows with rows, in registers: a [m, k] times the transpose of b [n, k], for convolutions by
// im2col and recurrent steps. Internal to cpu/native/; all of it is inlined into the calls of `vectorised`.
#pragma once

#include <cstdint>

namespace kbench::cpu {

/// sums[i][j] for the rows of a from `a` on and those of b from `b` on, `lda` and `ldb` elements apart.
template <int rows, int columns, class C>
inline void tile_of_products(std::int64_t depth, const C* a, std::int64_t lda, const C* b, std::int64_t ldb,
                             C (&sums)[rows][columns]) {
    static_assert((rows == 4 && columns == 2) || (rows == 1 && columns == 1));
    if constexpr (rows == 1) {
        C sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t k = 0; k < depth; ++k) sum += a[k] * b[k];
        sums[0][0] = sum;
    } else {
        // Eight sums, because an addition takes four cycles and two start in each.
        C s00 = 0, s10 = 0, s20 = 0, s30 = 0, s01 = 0, s11 = 0, s21 = 0, s31 = 0;
        const C *a1 = a + lda, *a2 = a1 + lda, *a3 = a2 + lda, *b1 = b + ldb;
#pragma omp simd reduction(+ : s00, s10, s20, s30, s01, s11, s21, s31)
        for (std::int64_t k = 0; k < depth; ++k) {
            const C x = b[k], y = b1[k];
            s00 += a[k] * x, s01 += a[k] * y;
            s10 += a1[k] * x, s11 += a1[k] * y;
            s20 += a2[k] * x, s21 += a2[k] * y;
            s30 += a3[k] * x, s31 += a3[k] * y;
        }
        sums[0][0] = s00, sums[1][0] = s10, sums[2][0] = s20, sums[3][0] = s30;
        sums[0][1] = s01, sums[1][1] = s11, sums[2][1] = s21, sums[3][1] = s31;
    }
}

/// out[i * ldo + j] += sum over k of a[i, k] b[j, k].
template <class C>
inline void add_products(std::int64_t m, std::int64_t n, std::int64_t depth, const C* a, std::int64_t lda, const C* b,
                         std::int64_t ldb, C* out, std::int64_t ldo) {
    const std::int64_t whole_m = m / 4 * 4, whole_n = n / 2 * 2;
    for (std::int64_t i = 0; i < whole_m; i += 4)
        for (std::int64_t j = 0; j < whole_n; j += 2) {
            C sums[4][2];
            tile_of_products<4, 2>(depth, a + i * lda, lda, b + j * ldb, ldb, sums);
            for (int r = 0; r < 4; ++r)
                for (int c = 0; c < 2; ++c) out[(i + r) * ldo + j + c] += sums[r][c];
        }
    for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = i < whole_m ? whole_n : 0; j < n; ++j) {
            C sum[1][1];
            tile_of_products<1, 1>(depth, a + i * lda, lda, b + j * ldb, ldb, sum);
            out[i * ldo + j] += sum[0][0];
        }
}

}  // namespace kbench::cpu
