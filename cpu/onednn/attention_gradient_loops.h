// The vector loops between the matmuls of attention's backward, on buffers of one thread.
// Internal to cpu/onednn/attention_gradient.cpp; call them inside `vectorised`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cpu/onednn/attention_loops.h"

namespace kbench::cpu::onednn {

/// sums[r] = the sum of out * dout over the columns of row r.
template <class T>
void sums_of_products(std::int64_t rows, std::int64_t columns, const T* out, const T* dout, std::int64_t stride,
                      float* sums) {
    for (std::int64_t r = 0; r < rows; ++r) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t c = 0; c < columns; ++c) sum += load(out[r * stride + c]) * load(dout[r * stride + c]);
        sums[r] = sum;
    }
}

/// A block of keys with a range of queries, as matrices [keys, queries]. The first query is `distance` after the first
/// key; a key is seen by the queries from its own position on.
struct KeysOfQueries {
    std::int64_t keys, queries, distance;
};

/// p = 2^(scale * scores - log2_sums), and ds = p * (dp - d) with p before narrowing; 0 where the key is not seen.
/// In place when T is float; else `scores` and `dp` are overwritten, too. `log2_sums` and `d` are per query.
template <class T>
void gradient_exponentials(const KeysOfQueries& of, float scale, const float* log2_sums, const float* d, float* scores,
                           float* dp, T* p, T* ds) {
    for (std::int64_t key = 0; key < of.keys; ++key) {
        float *s = scores + key * of.queries, *g = dp + key * of.queries;
        const std::int64_t unseen = std::clamp<std::int64_t>(key - of.distance, 0, of.queries);
        const std::int64_t begin = unseen / 16 * 16, count = of.queries - begin;
#pragma omp simd
        for (std::int64_t i = begin; i < of.queries; ++i) {
            s[i] = exp2_vector(s[i] * scale - log2_sums[i]);
            g[i] = s[i] * (g[i] - d[i]);
        }
        T *p_row = p + key * of.queries, *ds_row = ds + key * of.queries;
        if constexpr (!std::is_same_v<T, float>) {
            narrow(s + begin, count, p_row + begin);
            narrow(g + begin, count, ds_row + begin);
        }
        std::fill(p_row, p_row + unseen, T{});
        std::fill(ds_row, ds_row + unseen, T{});
    }
}

/// sums += `more`, [count] each.
inline void add(std::int64_t count, const float* more, float* sums) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) sums[i] += more[i];
}

template <class T>
void write_rows(std::int64_t rows, std::int64_t columns, float factor, const float* from, T* to, std::int64_t stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (std::int64_t c = 0; c < columns; ++c) store(to[r * stride + c], from[r * columns + c] * factor);
    }
}

}  // namespace kbench::cpu::onednn
