// The streams' loops in the widest instructions available, one whole cache line per round.
#include "cpu/probe/streams.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "cpu/probe/on_threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kbench::cpu {
namespace {

/// Parts are multiples of this many elements: eight lines, which is what the read loop takes per round.
constexpr std::int64_t grain = 64;

#if defined(__x86_64__)

/// A macro, because a template cannot be given a target. Eight sums: one would wait for the adder, not for memory.
#define KBENCH_STREAM_LOOPS(suffix, target_isa, Vector, load, stream, set1, add, multiply, zero)                 \
    [[gnu::target(target_isa)]] double read_##suffix(const double* x, std::int64_t count) {                      \
        constexpr std::int64_t lanes = sizeof(Vector) / sizeof(double);                                          \
        Vector sums[8];                                                                                          \
        for (Vector & sum : sums) sum = zero();                                                                  \
        for (std::int64_t i = 0; i < count; i += 8 * lanes) {                                                    \
            _Pragma("GCC unroll 8") for (int k = 0; k < 8; ++k) sums[k] = add(sums[k], load(x + i + k * lanes)); \
        }                                                                                                        \
        double total = 0;                                                                                        \
        for (const Vector& sum : sums)                                                                           \
            for (int lane = 0; lane < lanes; ++lane) total += sum[lane];                                         \
        return total;                                                                                            \
    }                                                                                                            \
    [[gnu::target(target_isa)]] void triad_##suffix(double* a, const double* b, const double* c, double s,       \
                                                    std::int64_t count) {                                        \
        constexpr std::int64_t lanes = sizeof(Vector) / sizeof(double);                                          \
        const Vector factor = set1(s);                                                                           \
        for (std::int64_t i = 0; i < count; i += 8) {                                                            \
            _Pragma("GCC unroll 4") for (std::int64_t k = 0; k < 8; k += lanes)                                  \
                stream(a + i + k, add(load(b + i + k), multiply(factor, load(c + i + k))));                      \
        }                                                                                                        \
        _mm_sfence();                                                                                            \
    }

KBENCH_STREAM_LOOPS(avx512, "avx512f", __m512d, _mm512_load_pd, _mm512_stream_pd, _mm512_set1_pd, _mm512_add_pd,
                    _mm512_mul_pd, _mm512_setzero_pd)
KBENCH_STREAM_LOOPS(avx2, "avx2", __m256d, _mm256_load_pd, _mm256_stream_pd, _mm256_set1_pd, _mm256_add_pd,
                    _mm256_mul_pd, _mm256_setzero_pd)
KBENCH_STREAM_LOOPS(sse2, "sse2", __m128d, _mm_load_pd, _mm_stream_pd, _mm_set1_pd, _mm_add_pd, _mm_mul_pd,
                    _mm_setzero_pd)

#undef KBENCH_STREAM_LOOPS

struct Loops {
    double (*read)(const double* x, std::int64_t count);
    void (*triad)(double* a, const double* b, const double* c, double s, std::int64_t count);
};

const Loops& loops(VectorIsa isa) {
    static constexpr Loops avx512{read_avx512, triad_avx512}, avx2{read_avx2, triad_avx2}, sse2{read_sse2, triad_sse2};
    switch (isa) {
        case VectorIsa::avx512: return avx512;
        case VectorIsa::avx2: return avx2;
        case VectorIsa::x86_64: break;
    }
    return sse2;
}

#endif

}  // namespace

std::string Streams::unavailable() {
#if defined(__x86_64__)
    return {};
#else
    return "kbench has loops for x86-64 only";
#endif
}

void Streams::Free::operator()(double* memory) const { std::free(memory); }

Streams::Array Streams::allocate(std::int64_t elements) {
    // Uses 2 MiB pages where the system gives them, because TLB misses are not what is measured.
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    const std::size_t bytes =
        (static_cast<std::size_t>(elements) * sizeof(double) + huge_page - 1) / huge_page * huge_page;
    void* memory = std::aligned_alloc(huge_page, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);
    return Array(static_cast<double*>(memory));
}

Streams::Streams(std::int64_t bytes, int threads, VectorIsa isa)
    : elements_(bytes / static_cast<std::int64_t>(3 * sizeof(double)) / grain * grain),
      threads_(threads),
      isa_(isa),
      a_(allocate(elements_)),
      b_(allocate(elements_)),
      c_(allocate(elements_)) {
    const auto touch = [this](int thread) {
        for (std::int64_t i = begin(thread); i < begin(thread + 1); ++i) {
            a_[static_cast<std::size_t>(i)] = 0;
            b_[static_cast<std::size_t>(i)] = static_cast<double>(i % 7);
            c_[static_cast<std::size_t>(i)] = static_cast<double>(i % 5);
        }
    };
    on_threads(threads_, touch);
}

std::int64_t Streams::begin(int thread) const { return elements_ / grain * thread / threads_ * grain; }

#if defined(__x86_64__)

double Streams::read(int thread) const {
    const std::int64_t first = begin(thread), count = begin(thread + 1) - first;
    return loops(isa_).read(a() + first, count) + loops(isa_).read(b() + first, count) +
           loops(isa_).read(c() + first, count);
}

void Streams::triad(int thread, double s) {
    const std::int64_t first = begin(thread), count = begin(thread + 1) - first;
    loops(isa_).triad(a_.get() + first, b() + first, c() + first, s, count);
}

#else

double Streams::read(int) const { return 0; }
void Streams::triad(int, double) {}

#endif

}  // namespace kbench::cpu
