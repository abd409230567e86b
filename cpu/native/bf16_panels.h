// Products of a few rows in bf16 with a packed weight by AVX512_BF16, whose vdpbf16ps adds the products of two pairs to
// an fp32 sum. Steps of recurrent layers use them where so few rows leave a library's tiles empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/vector.h"

namespace kbench::cpu {

/// A weight [depth, columns] for products of `rows` rows. It is cut into panels of a few vectors of 16 columns, one
/// after another. Each row of a panel has two neighbouring k of its columns. So a product reads the weight once and in
/// order, uses each vector for all rows, and keeps their sums in registers. Padding past the last k and column is 0.
class Bf16Panels {
  public:
    static constexpr std::int64_t most_rows = 8;

    /// `rows` is in [1, most_rows].
    Bf16Panels(std::int64_t rows, std::int64_t depth, std::int64_t columns);
    std::size_t bytes() const;
    /// Packs a weight with these distances, in elements, between k and between columns. Runs on every CPU.
    void pack(const BFloat16* weight, std::int64_t k_stride, std::int64_t column_stride, void* packed) const;
    /// sums[r][j] = sum over k of x[r][k] weight[k][j]; rows of x and sums are ldx and lds elements apart. Needs
    /// has_bf16_instructions (half.h); its instructions treat subnormal numbers as zero.
    void multiply(const BFloat16* x, std::int64_t ldx, const void* packed, float* sums, std::int64_t lds) const;

  private:
    /// Calls `panel(first, vectors, offset)` for all panels: first vector of columns, number of them, offset in pairs.
    template <class Panel>
    void for_panels(const Panel& panel) const;

    std::int64_t rows_, depth_, columns_;
};

}  // namespace kbench::cpu
