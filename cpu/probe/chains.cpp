// The chains as intrinsics, with function attributes instead of -m options: see vectorised() in cpu/vector.h.
// Twelve accumulators: an FMA takes 4 or 5 cycles and two start in each (Agner Fog, Instruction tables), and with their
// two operands twelve still fit AVX2's sixteen registers.
#include "cpu/probe/chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cpu/threads.h"
#include "cpu/vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#endif

namespace kbench::cpu {
namespace {

#if defined(__x86_64__)

constexpr int accumulators = 12;

template <class T>
void narrow(const double* from, T* to, int count) {
    for (int i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<T, double>)
            to[i] = from[i];
        else
            store(to[i], static_cast<float>(from[i]));
    }
}

template <class T>
void widen(const T* from, double* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = static_cast<double>(load(from[i]));
}

/// A chain of FMAs. It is a macro, because a template cannot be given a target.
#define KBENCH_FMA_CHAIN(function, target_isa, Element, Vector, load_vector, store_vector, fma)      \
    [[gnu::target(target_isa)]] void function(std::int64_t rounds, const double* a, const double* b, \
                                              const double* start, double* end) {                    \
        constexpr int lanes = static_cast<int>(sizeof(Vector) / sizeof(Element));                    \
        constexpr int count = accumulators * lanes;                                                  \
        Element values[count], multiplier[lanes], addend[lanes];                                     \
        narrow(start, values, count);                                                                \
        narrow(a, multiplier, lanes);                                                                \
        narrow(b, addend, lanes);                                                                    \
        const Vector m = load_vector(&multiplier[0]), c = load_vector(&addend[0]);                   \
        Vector x[accumulators];                                                                      \
        for (int i = 0; i < accumulators; ++i) x[i] = load_vector(&values[i * lanes]);               \
        for (std::int64_t round = 0; round < rounds; ++round) {                                      \
            _Pragma("GCC unroll 12") for (int i = 0; i < accumulators; ++i) x[i] = fma(x[i], m, c);  \
        }                                                                                            \
        for (int i = 0; i < accumulators; ++i) store_vector(&values[i * lanes], x[i]);               \
        widen(values, end, count);                                                                   \
    }

KBENCH_FMA_CHAIN(run_avx2_fp32, "avx2,fma", float, __m256, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps)
KBENCH_FMA_CHAIN(run_avx2_fp64, "avx2,fma", double, __m256d, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd)
KBENCH_FMA_CHAIN(run_avx512_fp32, "avx512f", float, __m512, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps)
KBENCH_FMA_CHAIN(run_avx512_fp64, "avx512f", double, __m512d, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd)
KBENCH_FMA_CHAIN(run_avx512_fp16, "avx512fp16", Float16, __m512h, _mm512_loadu_ph, _mm512_storeu_ph, _mm512_fmadd_ph)

#undef KBENCH_FMA_CHAIN

/// More accumulators than for FMAs: these instructions take up to 8 cycles, and AVX-512 has the registers.
constexpr int dot_accumulators = 20;

[[gnu::target("avx512bf16,avx512f")]] void run_avx512_bf16(std::int64_t rounds, const double* a, const double* b,
                                                           const double* start, double* end) {
    constexpr int lanes = 16;
    float values[dot_accumulators * lanes];
    BFloat16 left[2 * lanes], right[2 * lanes];
    narrow(start, values, dot_accumulators * lanes);
    narrow(a, left, 2 * lanes);
    narrow(b, right, 2 * lanes);
    __m512bh l, r;
    std::memcpy(&l, left, sizeof(l));
    std::memcpy(&r, right, sizeof(r));
    __m512 x[dot_accumulators];
    for (int i = 0; i < dot_accumulators; ++i) x[i] = _mm512_loadu_ps(&values[i * lanes]);
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 20
        for (int i = 0; i < dot_accumulators; ++i) x[i] = _mm512_dpbf16_ps(x[i], l, r);
    }
    for (int i = 0; i < dot_accumulators; ++i) _mm512_storeu_ps(&values[i * lanes], x[i]);
    widen(values, end, dot_accumulators * lanes);
}

/// What LDTILECFG loads (Intel SDM volume 2, LDTILECFG). Palette 1 has 8 tiles of up to 16 rows of 64 bytes.
struct alignas(64) TileConfig {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {};
    std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// Accumulators: two of the eight tiles hold the operands. Six products in flight cover a product's 52 cycles, because
/// one starts every 16 (Intel, Optimization Reference Manual, on AMX).
constexpr int tiles = 6;
constexpr int tile_rows = 16, tile_bytes = 64, tile_columns = 16, tile_depth = 32;
constexpr int tile_elements = tile_rows * tile_columns, tile_operands = tile_rows * tile_depth;

[[gnu::target("amx-tile,amx-bf16")]] void run_amx_bf16(std::int64_t rounds, const double* a, const double* b,
                                                       const double* start, double* end) {
    TileConfig config;
    for (int tile = 0; tile < 8; ++tile) {
        config.row_bytes[tile] = tile_bytes;
        config.rows[tile] = tile_rows;
    }
    alignas(64) float values[tiles][tile_elements];
    alignas(64) BFloat16 left[tile_operands], right[tile_operands];
    narrow(start, &values[0][0], tiles * tile_elements);
    narrow(a, left, tile_operands);
    // A row of B's tile interleaves a pair of rows of B.
    for (int k = 0; k < tile_depth; ++k)
        for (int n = 0; n < tile_columns; ++n)
            store(right[k / 2 * 2 * tile_columns + 2 * n + k % 2], static_cast<float>(b[k * tile_columns + n]));

    // GCC's tile intrinsics do not declare the memory that they read, so everything must be stored before them.
    asm volatile("" : : "r"(&config), "r"(values), "r"(left), "r"(right) : "memory");
    _tile_loadconfig(&config);
    _tile_loadd(0, values[0], tile_bytes);
    _tile_loadd(1, values[1], tile_bytes);
    _tile_loadd(2, values[2], tile_bytes);
    _tile_loadd(3, values[3], tile_bytes);
    _tile_loadd(4, values[4], tile_bytes);
    _tile_loadd(5, values[5], tile_bytes);
    _tile_loadd(6, left, tile_bytes);
    _tile_loadd(7, right, tile_bytes);
    for (std::int64_t round = 0; round < rounds; ++round) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
        _tile_dpbf16ps(4, 6, 7);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_stored(0, values[0], tile_bytes);
    _tile_stored(1, values[1], tile_bytes);
    _tile_stored(2, values[2], tile_bytes);
    _tile_stored(3, values[3], tile_bytes);
    _tile_stored(4, values[4], tile_bytes);
    _tile_stored(5, values[5], tile_bytes);
    _tile_release();
    widen(&values[0][0], end, tiles * tile_elements);
}

constexpr Chain table[] = {
    {"avx2_fp32", "AVX2", "avx2", ChainKind::fma, accumulators, 8, 8, run_avx2_fp32},
    {"avx2_fp64", "AVX2", "avx2", ChainKind::fma, accumulators, 4, 4, run_avx2_fp64},
    {"avx512_fp32", "AVX-512", "avx512f", ChainKind::fma, accumulators, 16, 16, run_avx512_fp32},
    {"avx512_fp64", "AVX-512", "avx512f", ChainKind::fma, accumulators, 8, 8, run_avx512_fp64},
    {"avx512_fp16", "AVX512_FP16", "avx512_fp16", ChainKind::fma, accumulators, 32, 32, run_avx512_fp16},
    {"avx512_bf16", "AVX512_BF16", "avx512_bf16", ChainKind::dot, dot_accumulators, 16, 32, run_avx512_bf16},
    {"amx_bf16", "AMX_BF16", "amx_tile amx_bf16", ChainKind::tile, tiles, tile_elements, tile_operands, run_amx_bf16},
};

/// Asks Linux for tile data, which only processes that ask may use (Documentation/arch/x86/xstate.rst). "" on success.
std::string ask_for_tiles() {
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    if (syscall(SYS_arch_prctl, request_permission, tile_data) == 0) return {};
    return fmt::format("the system refuses the tiles of AMX: {}", std::strerror(errno));
}

#endif

}  // namespace

std::string Chain::unavailable() const {
    const std::vector<std::string>& isa = cpu_info().isa;
    std::istringstream names{std::string(needs)};
    for (std::string name; names >> name;)
        if (std::ranges::find(isa, name) == isa.end()) return fmt::format("the CPU has no {}", instruction_set);
#if defined(__x86_64__)
    if (kind == ChainKind::tile) return ask_for_tiles();
#endif
    return {};
}

std::span<const Chain> chains() {
#if defined(__x86_64__)
    return table;
#else
    return {};
#endif
}

}  // namespace kbench::cpu
