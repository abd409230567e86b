// Products of a few rows with a packed weight, in registers, for the steps of recurrent layers. Internal to
// cpu/native/.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "cpu/vector.h"

namespace kbench::cpu {

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Elements in 64 bytes; the width of a panel is a multiple of it.
template <class C>
inline constexpr std::int64_t panel_lanes = 64 / static_cast<std::int64_t>(sizeof(C));

namespace panels {

template <class C>
struct VectorOf {
    typedef C type __attribute__((vector_size(64), aligned(alignof(C)), may_alias));
};

// Each instruction set has a body of its own. The compiler splits a vector into registers of the function's target; a
// shared body in a function that these call would be split for the program's target instead.
#define KBENCH_PANEL(name, ...)                                                                                \
    template <class C, int rows, int vectors>                                                                  \
    __VA_ARGS__ void name(const C* panel, std::int64_t depth, const C* x, std::int64_t ldx, C* out,            \
                          std::int64_t ldo) {                                                                  \
        using Vector = typename VectorOf<C>::type;                                                             \
        constexpr int lanes = panel_lanes<C>;                                                                  \
        Vector sums[rows][vectors] = {};                                                                       \
        for (std::int64_t k = 0; k < depth; ++k, panel += vectors * lanes) {                                   \
            Vector w[vectors];                                                                                 \
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors; ++v) {                                        \
                w[v] = *reinterpret_cast<const Vector*>(panel + v * lanes);                                    \
                __builtin_prefetch(panel + v * lanes + 1024 / sizeof(C));                                      \
            }                                                                                                  \
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; ++r)                                             \
                _Pragma("GCC unroll 4") for (int v = 0; v < vectors; ++v) sums[r][v] += w[v] * x[r * ldx + k]; \
        }                                                                                                      \
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; ++r)                                                 \
                _Pragma("GCC unroll 4") for (int v = 0; v < vectors; ++v) *                                    \
            reinterpret_cast<Vector*>(out + r * ldo + v * lanes) = sums[r][v];                                 \
    }
KBENCH_PANEL(avx512, [[gnu::target("avx512f")]])
KBENCH_PANEL(avx2, [[gnu::target("avx2,fma")]])
KBENCH_PANEL(x86_64, )
#undef KBENCH_PANEL

}  // namespace panels

/// out[r][j] = sum over k of x[r][k] panel[k][j], for `rows` rows of x and out, `ldx` and `ldo` elements apart, and all
/// columns j of a panel: `vectors` times panel_lanes. A weight [depth, columns] is cut into panels, one after another,
/// so that it is read once and in order. The prefetch, 1 KiB ahead, is for weights in L3: 8 rows of 1024 x 2048 fp32
/// take 0.30 ms, where oneDNN's product takes 0.40.
template <class C>
using PanelProduct = void (*)(const C* panel, std::int64_t depth, const C* x, std::int64_t ldx, C* out,
                              std::int64_t ldo);

/// The kernel of [1, 8] rows and [1, 4] vectors for this CPU.
template <class C>
PanelProduct<C> panel_product(std::int64_t rows, std::int64_t vectors) {
    constexpr int most_rows = 8, most_vectors = 4;
    static constexpr auto all = []<int... i>(std::integer_sequence<int, i...>) {
        return std::array{
            std::array<PanelProduct<C>, 3>{panels::x86_64<C, i / most_vectors + 1, i % most_vectors + 1>,
                                           panels::avx2<C, i / most_vectors + 1, i % most_vectors + 1>,
                                           panels::avx512<C, i / most_vectors + 1, i % most_vectors + 1>}...};
    }
    (std::make_integer_sequence<int, most_rows * most_vectors>{});
    return all[static_cast<std::size_t>((rows - 1) * most_vectors + vectors - 1)]
              [static_cast<std::size_t>(vector_isa())];
}

/// Rows per product: their sums and a vector of the weight stay in registers, of which there are 32 of 64 bytes or 16
/// of 32 bytes.
inline std::int64_t panel_rows(std::int64_t vectors) {
    const std::int64_t registers = vector_isa() == VectorIsa::avx512 ? 24 : vector_isa() == VectorIsa::avx2 ? 6 : 2;
    return std::max<std::int64_t>(1, std::min<std::int64_t>(8, registers / vectors));
}

}  // namespace kbench::cpu
