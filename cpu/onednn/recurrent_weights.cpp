// Gradients of recurrent layers' weights: db of all steps but one, transposed, times h of the steps before.
#include <cstring>

#include "cpu/onednn/onednn.h"

namespace kbench::cpu {
namespace {

const char* at(const void* base, std::int64_t element, DataType type) {
    return static_cast<const char*>(base) + element * static_cast<std::int64_t>(size_of(type));
}

}  // namespace

RecurrentWeights::RecurrentWeights(Cell cell, const RecurrentShape& shape, Precision precision, bool accumulates)
    : cell_(cell), shape_(shape), type_(storage_type(precision)), accumulates_(accumulates) {
    if (shape.steps == 1) return;
    const std::int64_t width = gates_of(cell) * shape.hidden;
    const Gemm::Product product{.m = width,
                                .n = shape.hidden,
                                .k = (shape.steps - 1) * shape.batch,
                                .left_transposed = true,
                                .right_transposed = false,
                                .left_is_second = false,
                                .left_stride = width,
                                .right_stride = shape.hidden,
                                .out_stride = shape.hidden};
    product_ = std::make_unique<PlainMatmul>(product, precision, accumulates);
}

/// Bytes of db; 0 except for a GRU, because for other cells db is dgates_x.
std::size_t RecurrentWeights::db_bytes() const {
    if (cell_ != Cell::gru) return 0;
    const auto elements = static_cast<std::size_t>(shape_.steps * shape_.batch * gates_of(cell_) * shape_.hidden);
    return (elements * size_of(type_) + 63) / 64 * 64;
}

std::size_t RecurrentWeights::workspace_bytes() const {
    return db_bytes() + (product_ ? product_->workspace_bytes() : 0);
}

void RecurrentWeights::run(const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse,
                           void* workspace) const {
    const std::int64_t width = gates_of(cell_) * shape_.hidden;
    for (const RecurrentWeightDirection* d : {&forward, &reverse}) {
        recurrent_biases_gradient(type_, cell_, shape_, accumulates_, *d);
        if (!product_) {
            if (!accumulates_)
                std::memset(d->dweight_hh, 0, static_cast<std::size_t>(width * shape_.hidden) * size_of(type_));
            continue;
        }
        const void* db = d->dgates_x;
        if (cell_ == Cell::gru) {
            gru_hidden_gradient(type_, shape_, d->dgates_x, d->gates, workspace);
            db = workspace;
        }
        // Pairs db[t] with h[t - 1], or with h[t + 1] in the reverse direction.
        const bool is_reverse = d == &reverse;
        const void* const of_steps = is_reverse ? db : at(db, shape_.batch * width, type_);
        const void* const before = is_reverse ? at(d->out, shape_.batch * shape_.hidden, type_) : d->out;
        product_->run(of_steps, before, d->dweight_hh, static_cast<char*>(workspace) + db_bytes());
    }
}

std::string RecurrentWeights::implementation() const {
    return product_ ? product_->implementation() : "cpu::recurrent_biases_gradient";
}

}  // namespace kbench::cpu
