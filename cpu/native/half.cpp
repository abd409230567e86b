// One function an instruction set; the rest of a chunk that fills no vector goes the plain way.
#include "cpu/native/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kbench::cpu {
namespace {

void plain_to_floats(const Float16* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = load(from[i]);
}
void plain_to_halves(const float* from, Float16* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) store(to[i], from[i]);
}

#if defined(__x86_64__)

[[gnu::target("avx512f")]] std::int64_t to_floats_avx512(const Float16* from, float* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
    return i;
}
[[gnu::target("avx512f")]] std::int64_t to_halves_avx512(const float* from, Float16* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
[[gnu::target("avx2,f16c")]] std::int64_t to_floats_f16c(const Float16* from, float* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    return i;
}
[[gnu::target("avx2,f16c")]] std::int64_t to_halves_f16c(const float* from, Float16* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

bool has_f16c() {
    static const bool has = vector_isa() != VectorIsa::x86_64 && __builtin_cpu_supports("f16c");
    return has;
}

#endif

}  // namespace

void halves_to_floats(const Float16* from, float* to, std::int64_t count) {
    std::int64_t done = 0;
#if defined(__x86_64__)
    if (vector_isa() == VectorIsa::avx512)
        done = to_floats_avx512(from, to, count);
    else if (has_f16c())
        done = to_floats_f16c(from, to, count);
#endif
    plain_to_floats(from + done, to + done, count - done);
}

void floats_to_halves(const float* from, Float16* to, std::int64_t count) {
    std::int64_t done = 0;
#if defined(__x86_64__)
    if (vector_isa() == VectorIsa::avx512)
        done = to_halves_avx512(from, to, count);
    else if (has_f16c())
        done = to_halves_f16c(from, to, count);
#endif
    plain_to_halves(from + done, to + done, count - done);
}

}  // namespace kbench::cpu
