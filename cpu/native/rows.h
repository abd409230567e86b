// What the loops over rows share: prefetching the next row, and summing a row in vectors.
// Internal to cpu/native/; all of it is inlined into the calls of `vectorised`.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kbench::cpu {

/// Blocks of rows whose sums over rows are added up together. Their number does not depend on the threads, so that it
/// does not matter which thread adds which.
struct RowBlocks {
    static constexpr std::int64_t most = 64;
    std::int64_t rows, rows_each = (rows + most - 1) / most, count = (rows + rows_each - 1) / rows_each;

    explicit RowBlocks(std::int64_t all) : rows(all) {}
    std::int64_t begin(std::int64_t block) const { return std::min(rows, block * rows_each); }
};

/// Prefetches a row before its turn, into L2, because L1 is full of the current row.
template <class T>
void prefetch(std::int64_t width, const T* row) {
    constexpr std::int64_t cache_line = 64 / sizeof(T);
    for (std::int64_t c = 0; c < width; c += cache_line) __builtin_prefetch(row + c, 0, 2);
}

/// The sum of term(c) for c in [0, width), in 256 bytes of partial sums (AVX2: eight registers) that are added
/// pairwise. A plain reduction has one register, where each addition waits for the last, and adds its lanes up one
/// by one.
template <class C, class Term>
C sum_over(std::int64_t width, const Term& term) {
    constexpr std::int64_t lanes = 256 / sizeof(C);
    C sums[lanes] = {};
    const std::int64_t whole = width / lanes * lanes;
    for (std::int64_t begin = 0; begin < whole; begin += lanes) {
#pragma omp simd
        for (std::int64_t i = 0; i < lanes; ++i) sums[i] += term(begin + i);
    }
#pragma omp simd
    for (std::int64_t c = whole; c < width; ++c) sums[c - whole] += term(c);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
#pragma omp simd
        for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
}

}  // namespace kbench::cpu
