// One product kernel for each number of rows and vectors, so that all its sums are registers.
#include "cpu/native/bf16_panels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12 on its own _mm512_undefined_ps (its bug 105593)
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "cpu/native/panels.h"

namespace kbench::cpu {
namespace {

#define KBENCH_BF16 [[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]]

/// Two neighbouring k of one column, the lower one in the low half.
using Pair = std::uint32_t;

constexpr std::int64_t lanes = 16;
/// Most vectors per panel: all sums, x of all rows and a vector of the weight must fit into 32 registers. One row's 16
/// sums hide the six cycles that an instruction waits for the one before.
constexpr std::int64_t vectors_of(std::int64_t rows) { return std::min<std::int64_t>(16, 31 / rows - 1); }
template <int rows, int vectors>
KBENCH_BF16 [[gnu::always_inline]] inline void add_pair(__m512 (&sums)[rows][vectors], const Pair* panel,
                                                        const Pair (&x)[rows]) {
    constexpr std::int64_t ahead = 1024 / sizeof(Pair);  // prefetch distance: a panel is read once, in order
    __m512bh wide[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) wide[r] = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(x[r])));
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
        const auto weight = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + v * lanes));
        _mm_prefetch(panel + v * lanes + ahead, _MM_HINT_T0);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], wide[r], weight);
    }
}

/// `last`: the columns of the last vector that are stored.
template <int rows, int vectors>
KBENCH_BF16 void product(const Pair* panel, std::int64_t depth, const BFloat16* x, std::int64_t ldx, float* out,
                         std::int64_t ldo, __mmask16 last) {
    __m512 sums[rows][vectors];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_setzero_ps();
    Pair pair[rows];
    std::int64_t k = 0;
    for (; k + 2 <= depth; k += 2, panel += vectors * lanes) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) std::memcpy(&pair[r], x + r * ldx + k, sizeof(Pair));
        add_pair(sums, panel, pair);
    }
    if (k < depth) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) pair[r] = x[r * ldx + k].bits;
        add_pair(sums, panel, pair);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < vectors - 1; ++v) _mm512_storeu_ps(out + r * ldo + v * lanes, sums[r][v]);
        _mm512_mask_storeu_ps(out + r * ldo + (vectors - 1) * lanes, last, sums[r][vectors - 1]);
    }
}

using Product = decltype(&product<1, 1>);

template <int rows, int... v>
constexpr std::array<Product, vectors_of(1)> products_of(std::integer_sequence<int, v...>) {
    return {product<rows, v + 1>...};
}
/// The kernels by rows and vectors, starting at one of each.
constexpr auto products = []<int... r>(std::integer_sequence<int, r...>) {
    return std::array{products_of<r + 1>(std::make_integer_sequence<int, vectors_of(r + 1)>{})...};
}
(std::make_integer_sequence<int, Bf16Panels::most_rows>{});

}  // namespace

Bf16Panels::Bf16Panels(std::int64_t rows, std::int64_t depth, std::int64_t columns)
    : rows_(rows), depth_(depth), columns_(columns) {}

std::size_t Bf16Panels::bytes() const {
    return static_cast<std::size_t>(divided_up(columns_, lanes) * lanes * divided_up(depth_, 2)) * sizeof(Pair);
}

template <class Panel>
void Bf16Panels::for_panels(const Panel& panel) const {
    const std::int64_t vectors = divided_up(columns_, lanes), panels = divided_up(vectors, vectors_of(rows_));
    for (std::int64_t p = 0; p < panels; ++p) {
        const std::int64_t first = vectors * p / panels, last = vectors * (p + 1) / panels;
        panel(first * lanes, last - first, first * lanes * divided_up(depth_, 2));
    }
}

void Bf16Panels::pack(const BFloat16* weight, std::int64_t k_stride, std::int64_t column_stride, void* packed) const {
    for_panels([&](std::int64_t first, std::int64_t vectors, std::int64_t offset) {
        // One vector's columns at a time: those of a whole panel are a power of two apart and would not stay in L1.
        for (std::int64_t v = 0; v < vectors; ++v) {
            const std::int64_t begin = first + v * lanes, count = std::min(lanes, columns_ - begin);
            auto* to = static_cast<Pair*>(packed) + offset + v * lanes;
            for (std::int64_t k = 0; k < depth_; k += 2, to += vectors * lanes) {
                const BFloat16* const from = weight + k * k_stride + begin * column_stride;
                std::fill_n(to, lanes, 0);
                for (std::int64_t j = 0; j < count; ++j) to[j] = from[j * column_stride].bits;
                if (k + 1 == depth_) continue;
                for (std::int64_t j = 0; j < count; ++j) to[j] |= Pair{from[k_stride + j * column_stride].bits} << 16;
            }
        }
    });
}

void Bf16Panels::multiply(const BFloat16* x, std::int64_t ldx, const void* packed, float* sums,
                          std::int64_t lds) const {
    for_panels([&](std::int64_t first, std::int64_t vectors, std::int64_t offset) {
        const std::int64_t stored = std::min(lanes, columns_ - first - (vectors - 1) * lanes);
        products[static_cast<std::size_t>(rows_ - 1)][static_cast<std::size_t>(vectors - 1)](
            static_cast<const Pair*>(packed) + offset, depth_, x, ldx, sums + first, lds,
            static_cast<__mmask16>((1u << stored) - 1));
    });
}

}  // namespace kbench::cpu
