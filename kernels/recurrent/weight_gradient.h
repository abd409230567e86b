// Gradients of a recurrent layer's weights and biases, both directions: products of shifted rows through cuBLASLt, and
// sums of columns. Shapes as in models/ops/recurrent.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <optional>

#include "kernels/gemm/cublaslt.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// dweight_hh of one direction: db of all steps but one, transposed, times h of the steps before. Its k is 0, and
/// cuBLASLt cannot take it, of a layer of one step.
GemmProblem recurrent_weight_problem(Cell cell, const RecurrentShape& shape, Precision precision);

/// What one direction reads and makes; `gates` of gru alone.
struct RecurrentWeightDirection {
    const void *dgates_x, *gates, *out;
    void *dweight_hh, *dbias_ih, *dbias_hh;
};

class RecurrentWeightGradient {
  public:
    /// `product`: of recurrent_weight_problem; nothing for a layer of one step. `accumulates`: sums are added to what
    /// is there.
    RecurrentWeightGradient(Cell cell, const RecurrentShape& shape, Precision precision, bool accumulates,
                            std::optional<LtGemm> product);
    std::size_t workspace_bytes() const;
    /// `workspace`: a multiple of 256 bytes, may hold anything. Nothing allocates or waits.
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
