// The product of one thread in a step of a recurrent layer: a few rows with its block of the packed weight. Internal to
// cpu/onednn/.
#pragma once

#include <optional>
#include <string>

#include "cpu/native/bf16_panels.h"
#include "cpu/onednn/primitive.h"

namespace kbench::cpu::onednn {

/// sums [rows, columns] in fp32 = x [rows, depth] times a weight; x and sums are dense. oneDNN computes it; Bf16Panels
/// does for few rows in bf16 where the CPU has AVX512_BF16.
class StepProduct {
  public:
    /// A weight before it is packed, with the distances in elements between its k and between its columns.
    struct Weight {
        std::int64_t depth, columns, k_stride, column_stride;
    };

    /// `type` is that of x and the weight. Call it under MadeForOneThread, in `create`, which reports what is missing.
    StepProduct(std::int64_t rows, const Weight& weight, DataType type);
    std::size_t packed_bytes() const;
    std::size_t pack_scratchpad_bytes() const;
    std::size_t scratchpad_bytes() const;
    dnnl_status_t pack(const void* plain, void* packed, void* scratchpad) const;
    /// The two directions of a layer may run at the same time.
    dnnl_status_t run(bool is_reverse, const void* x, const void* packed, float* sums, void* scratchpad) const;
    std::string implementation() const;

  private:
    Weight weight_;
    std::optional<Bf16Panels> panels_;  ///< where it is empty, the members below compute with oneDNN
    dnnl::matmul::primitive_desc desc_;
    dnnl::reorder::primitive_desc pack_desc_;
    Call pack_, run_[2];
};

}  // namespace kbench::cpu::onednn
