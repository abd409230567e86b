// Passes over 16-bit elements: whole vectors first; the last elements are loaded and stored under a mask.
#include "cpu/native/half.h"

#include "cpu/native/rows.h"

#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12 on its own _mm512_undefined_ps (its bug 105593)
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace kbench::cpu {
namespace {

#if defined(__x86_64__)

#define KBENCH_HALF [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]]

constexpr std::int64_t lanes = 16;

/// A mask of the low `count` bits, for a count of 0 to 15.
__mmask16 first(std::int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

KBENCH_HALF inline __m512 widened(__m256i x, Float16) { return _mm512_cvtph_ps(x); }
KBENCH_HALF inline __m512 widened(__m256i x, BFloat16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
KBENCH_HALF inline __m256i rounded(__m512 x, Float16) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
KBENCH_HALF inline __m256i rounded(__m512 x, BFloat16) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)); }

template <class T>
KBENCH_HALF inline __m512 with_squares(__m512 sum, __m256i stored) {
    const __m512 x = widened(stored, T{});
    return _mm512_fmadd_ps(x, x, sum);
}
/// bf16 needs no widening: one instruction adds the products of pairs.
KBENCH_HALF inline __m512 with_squares(__m512 sum, const BFloat16* x) {
    const auto pairs = reinterpret_cast<__m512bh>(_mm512_loadu_si512(x));
    return _mm512_dpbf16_ps(sum, pairs, pairs);
}
KBENCH_HALF inline __m512 with_squares(__m512 sum, const Float16* x) {
    return with_squares<Float16>(sum, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}

template <class T>
KBENCH_HALF float sum_in_vectors(std::int64_t count, const T* x) {
    constexpr int chains = 8;  // an addition takes four to six cycles, and two start in each
    constexpr std::int64_t step = std::is_same_v<T, BFloat16> ? 2 * lanes : lanes;
    __m512 sum[chains];
    for (__m512& chain : sum) chain = _mm512_setzero_ps();
    std::int64_t c = 0;
    for (; c + chains * step <= count; c += chains * step)
#pragma GCC unroll 8
        for (int i = 0; i < chains; ++i) sum[i] = with_squares(sum[i], x + c + i * step);
    for (; c < count; c += lanes) {
        const __mmask16 mask = count - c < lanes ? first(count - c) : static_cast<__mmask16>(-1);
        sum[0] = with_squares<T>(sum[0], _mm256_maskz_loadu_epi16(mask, x + c));
    }
    for (int half = chains / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) sum[i] = _mm512_add_ps(sum[i], sum[i + half]);
    return _mm512_reduce_add_ps(sum[0]);
}

template <class T>
KBENCH_HALF inline __m256i scaled(__m256i x, __m512 factors, __m256i weight) {
    return rounded(_mm512_mul_ps(_mm512_mul_ps(widened(x, T{}), factors), widened(weight, T{})), T{});
}

template <class T>
KBENCH_HALF void scale_in_vectors(std::int64_t count, const T* x, float factor, const T* weight, T* out) {
    const __m512 factors = _mm512_set1_ps(factor);
    std::int64_t c = 0;
    for (; c + lanes <= count; c += lanes)
        _mm256_storeu_epi16(out + c, scaled<T>(_mm256_loadu_epi16(x + c), factors, _mm256_loadu_epi16(weight + c)));
    const __mmask16 rest = first(count - c);
    _mm256_mask_storeu_epi16(
        out + c, rest,
        scaled<T>(_mm256_maskz_loadu_epi16(rest, x + c), factors, _mm256_maskz_loadu_epi16(rest, weight + c)));
}

#endif

template <class T>
float sum_of(std::int64_t count, const T* x) {
#if defined(__x86_64__)
    if (has_bf16_instructions()) return sum_in_vectors(count, x);
#endif
    float sum = 0;
    vectorised([&] { sum = sum_over<float>(count, [x](std::int64_t c) { return load(x[c]) * load(x[c]); }); });
    return sum;
}

template <class T>
void scale_all(std::int64_t count, const T* x, float factor, const T* weight, T* out) {
#if defined(__x86_64__)
    if (has_bf16_instructions()) return scale_in_vectors(count, x, factor, weight, out);
#endif
    vectorised([=] {
#pragma omp simd
        for (std::int64_t c = 0; c < count; ++c) store(out[c], load(x[c]) * factor * load(weight[c]));
    });
}

}  // namespace

bool has_bf16_instructions() {
#if defined(__x86_64__)
    static const bool has = vector_isa() == VectorIsa::avx512 && __builtin_cpu_supports("avx512bf16");
    return has;
#else
    return false;
#endif
}

float sum_of_squares(std::int64_t count, const Float16* x) { return sum_of(count, x); }
float sum_of_squares(std::int64_t count, const BFloat16* x) { return sum_of(count, x); }
void scale(std::int64_t count, const Float16* x, float factor, const Float16* weight, Float16* out) {
    scale_all(count, x, factor, weight, out);
}
void scale(std::int64_t count, const BFloat16* x, float factor, const BFloat16* weight, BFloat16* out) {
    scale_all(count, x, factor, weight, out);
}

}  // namespace kbench::cpu
