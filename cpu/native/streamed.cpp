// Non-temporal stores of whole lines in the widest instructions available, and the size from which they pay.
#include "cpu/native/streamed.h"

#include <limits>

#include "cpu/threads.h"
#include "cpu/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kbench::cpu {

std::int64_t last_level_cache_bytes() {
    const CpuInfo& cpu = cpu_info();
    const std::int64_t l3 = std::int64_t{cpu.l3_bytes} * cpu.l3_instances;
    const std::int64_t l2 = std::int64_t{cpu.l2_bytes} * cpu.physical_cores;
    if (l3 > 0) return l3;
    return l2 > 0 ? l2 : std::numeric_limits<std::int64_t>::max();
}

#if defined(__x86_64__)

namespace {

/// A macro, because a template cannot be given a target. It copies a line at a time, so that each leaves in one piece.
#define KBENCH_STREAM_LINES(suffix, target_isa, Vector, load, stream)                                                  \
    [[gnu::target(target_isa)]] void stream_lines_##suffix(std::byte* to, const std::byte* from, std::int64_t lines) { \
        constexpr std::int64_t vectors = cache_line_bytes / static_cast<std::int64_t>(sizeof(Vector));                 \
        auto* target = reinterpret_cast<Vector*>(to);                                                                  \
        const auto* source = reinterpret_cast<const Vector*>(from);                                                    \
        for (std::int64_t line = 0; line < lines; ++line, target += vectors, source += vectors) {                      \
            _Pragma("GCC unroll 4") for (std::int64_t i = 0; i < vectors; ++i) stream(target + i, load(source + i));   \
        }                                                                                                              \
    }

KBENCH_STREAM_LINES(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_stream_si512)
KBENCH_STREAM_LINES(avx2, "avx2", __m256i, _mm256_load_si256, _mm256_stream_si256)
KBENCH_STREAM_LINES(sse2, "sse2", __m128i, _mm_load_si128, _mm_stream_si128)

#undef KBENCH_STREAM_LINES

}  // namespace

void stream_lines(std::byte* to, const std::byte* from, std::int64_t lines) {
    switch (vector_isa()) {
        case VectorIsa::avx512: return stream_lines_avx512(to, from, lines);
        case VectorIsa::avx2: return stream_lines_avx2(to, from, lines);
        case VectorIsa::x86_64: return stream_lines_sse2(to, from, lines);
    }
}
void stream_fence() { _mm_sfence(); }

#else

void stream_lines(std::byte* to, const std::byte* from, std::int64_t lines) {
    std::memcpy(to, from, static_cast<std::size_t>(lines * cache_line_bytes));
}
void stream_fence() {}

#endif

}  // namespace kbench::cpu
