// Gradients of a recurrent layer's weights and biases, both directions: products of shifted rows through cuBLASLt, and
// sums over columns. Shapes as in models/ops/recurrent.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "kernels/gemm/cublaslt.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// dweight_hh of one direction: db of all steps but one, transposed, times h of the steps before. For a layer of one
/// step its k is 0, which cuBLASLt cannot take.
GemmProblem recurrent_weight_problem(Cell cell, const RecurrentShape& shape, Precision precision);

/// What one direction reads and writes; only gru has `gates`.
struct RecurrentWeightDirection {
    const void *dgates_x, *gates, *out;
    void *dweight_hh, *dbias_ih, *dbias_hh;
};

class RecurrentWeightGradient {
  public:
    /// `product` computes recurrent_weight_problem; null for a layer of one step. `accumulates`: sums are added to what
    /// the outputs hold.
    RecurrentWeightGradient(Cell cell, const RecurrentShape& shape, Precision precision, bool accumulates,
                            std::optional<LtGemm> product);
    std::size_t workspace_bytes() const;
    /// `workspace` is aligned to 256 bytes and may hold anything. Nothing allocates or waits.
    void run(const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse, void* workspace,
             cudaStream_t stream) const;

    const std::optional<LtGemm>& product() const { return product_; }

  private:
    std::size_t db_bytes() const;
    std::size_t scratch_bytes() const;

    Cell cell_;
    RecurrentShape shape_;
    DataType type_;
    bool accumulates_;
    std::optional<LtGemm> product_;
};

}  // namespace kbench::cuda
