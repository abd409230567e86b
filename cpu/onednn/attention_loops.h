// The vector loops between the matmuls of one block of attention, on buffers of one thread.
// Internal to cpu/onednn/; call them inside `vectorised`.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "cpu/vector.h"

namespace kbench::cpu::onednn {

template <class T>
void copy_rows(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t stride, T* to) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, columns, to + r * columns);
}

/// Narrows `count` numbers to the type that the next product reads, with the CPU's conversion instructions. oneDNN
/// computes in these types only where the CPU has them (onednn_unsupported). Rounding by integer operations would
/// double the time of the exponential (0.57 ns per element for bf16, 0.27 for fp32, on a Zen 4 core).
template <class T>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void narrow(const float* from, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const auto mask = static_cast<__mmask16>(count - i < 16 ? (1 << (count - i)) - 1 : 0xffff);
        const __m512 wide = _mm512_maskz_loadu_ps(mask, from + i);
        __m256i narrowed;
        if constexpr (std::is_same_v<T, BFloat16>)
            narrowed = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(wide));
        else
            narrowed = _mm512_maskz_cvtps_ph(mask, wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(to + i, mask, narrowed);
    }
}

/// Some of a block's keys; their scores are a dense matrix [rows, count] that starts at element rows * first.
struct KeyRange {
    std::int64_t first, count;
};

/// Row r sees the first `first_row + r + 1` of `keys` keys. In place, scores become 2^(scale (s - max)) with scale > 0.
/// p [rows, keys] is the same as T, 0 where not seen (p is the one matrix of scores when T is float). inverse_sums[r] =
/// 1 / the row's sum before narrowing. `lse` (or null): the rows' logarithms of sums of e^(scale s / log2(e)).
template <class T>
void exponentials(std::int64_t first_row, std::int64_t rows, std::int64_t keys, float scale,
                  std::span<const KeyRange> ranges, float* scores, T* p, float* inverse_sums, float* lse) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t seen = first_row + r + 1;
        float largest = -infinity;
        for (const KeyRange& range : ranges) {
            float* s = scores + rows * range.first + r * range.count;
            const std::int64_t count = std::clamp<std::int64_t>(seen - range.first, 0, range.count);
            const std::int64_t whole_vectors = std::min((count + 15) / 16 * 16, range.count);
            // Otherwise each row would end with up to 15 scalar exponentials, a tenth of its time at 512 keys.
            std::fill(s + count, s + whole_vectors, -infinity);
#pragma omp simd reduction(max : largest)
            for (std::int64_t k = 0; k < whole_vectors; ++k) largest = larger(s[k], largest);
        }
        float sum = 0;
        for (const KeyRange& range : ranges) {
            float* s = scores + rows * range.first + r * range.count;
            const std::int64_t count = std::clamp<std::int64_t>(seen - range.first, 0, range.count);
            const std::int64_t whole_vectors = std::min((count + 15) / 16 * 16, range.count);
#pragma omp simd reduction(+ : sum)
            for (std::int64_t k = 0; k < whole_vectors; ++k) {
                const float term = exp2_in_range(larger(exp2_lowest<float>, s[k] * scale - largest * scale));
                s[k] = term;
                sum += term;  // for an unseen key 2^-126, which vanishes
            }
            if constexpr (!std::is_same_v<T, float>) narrow(s, count, p + r * keys + range.first);
        }
        inverse_sums[r] = 1 / sum;
        if (lse != nullptr) lse[r] = std::log(sum) + largest * (scale / log2_e<float>);
        std::fill(p + r * keys + seen, p + (r + 1) * keys, T{});
    }
}

template <class T>
void scale_rows(std::int64_t rows, std::int64_t columns, const float* context, const float* factors, T* out,
                std::int64_t stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (std::int64_t c = 0; c < columns; ++c) store(out[r * stride + c], context[r * columns + c] * factors[r]);
    }
}

}  // namespace kbench::cpu::onednn
