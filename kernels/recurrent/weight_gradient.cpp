#include "kernels/recurrent/weight_gradient.h"

#include <algorithm>
#include <utility>

#include "kernels/bias_backward.h"
#include "kernels/check.h"
#include "kernels/recurrent/gradient.h"

namespace kbench::cuda {
namespace {

const std::byte* at(const void* base, std::int64_t element, DataType type) {
    return static_cast<const std::byte*>(base) + element * static_cast<std::int64_t>(size_of(type));
}

}  // namespace

GemmProblem recurrent_weight_problem(Cell cell, const RecurrentShape& shape, Precision precision) {
    GemmProblem problem{};
    problem.precision = precision;
    problem.m = gates_of(cell) * shape.hidden;
    problem.n = shape.hidden;
    problem.k = (shape.steps - 1) * shape.batch;
    problem.x_transposed = true;
    problem.out_type = storage_type(precision);
    problem.ld_x = problem.m;
    problem.ld_w = problem.ld_out = shape.hidden;
    return problem;
}

RecurrentWeightGradient::RecurrentWeightGradient(Cell cell, const RecurrentShape& shape, Precision precision,
                                                 bool accumulates, std::optional<LtGemm> product)
    : cell_(cell),
      shape_(shape),
      type_(storage_type(precision)),
      accumulates_(accumulates),
      product_(std::move(product)) {}

/// Bytes of one direction's db, rounded up to 256; only a GRU's differs from dgates_x.
std::size_t RecurrentWeightGradient::db_bytes() const {
    if (cell_ != Cell::gru) return 0;
    const auto elements = static_cast<std::size_t>(shape_.steps * shape_.batch * gates_of(cell_) * shape_.hidden);
    return (elements * size_of(type_) + 255) / 256 * 256;
}

std::size_t RecurrentWeightGradient::scratch_bytes() const {
    const std::size_t of_sums =
        bias_backward_workspace_bytes(type_, BiasAdd{shape_.steps * shape_.batch, gates_of(cell_) * shape_.hidden});
    return std::max(of_sums, product_ ? product_->algorithm().workspace_bytes : 0);
}

std::size_t RecurrentWeightGradient::workspace_bytes() const { return db_bytes() + scratch_bytes(); }

void RecurrentWeightGradient::run(const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse,
                                  void* workspace, cudaStream_t stream) const {
    const std::int64_t rows = shape_.steps * shape_.batch, width = gates_of(cell_) * shape_.hidden;
    const BiasAdd biases{rows, width, accumulates_};
    void* const scratch = static_cast<std::byte*>(workspace) + db_bytes();
    for (const RecurrentWeightDirection* d : {&forward, &reverse}) {
        const void* db = d->dgates_x;
        bias_backward(type_, biases, d->dgates_x, d->dbias_ih, scratch, stream);
        if (cell_ == Cell::gru) {
            gru_hidden_gradient(type_, d->dgates_x, d->gates, workspace, rows, shape_.hidden, stream);
            db = workspace;
        }
        if (db == d->dgates_x && !accumulates_)
            KBENCH_CUDA(cudaMemcpyAsync(d->dbias_hh, d->dbias_ih, static_cast<std::size_t>(width) * size_of(type_),
                                        cudaMemcpyDeviceToDevice, stream));
        else
            bias_backward(type_, biases, db, d->dbias_hh, scratch, stream);
        if (!product_) {
            if (!accumulates_)
                KBENCH_CUDA(cudaMemsetAsync(d->dweight_hh, 0,
                                            static_cast<std::size_t>(width * shape_.hidden) * size_of(type_), stream));
            continue;
        }
        // h[t - 1] forward, h[t + 1] in the reverse direction.
        const bool is_reverse = d == &reverse;
        const void* const of_steps = is_reverse ? db : at(db, shape_.batch * width, type_);
        const void* const before = is_reverse ? at(d->out, shape_.batch * shape_.hidden, type_) : d->out;
        product_->run({of_steps, before, nullptr, d->dweight_hh}, scratch, stream, accumulates_);
    }
}

}  // namespace kbench::cuda
