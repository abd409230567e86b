// FLOPs of each op kind, and the bytes that a step cannot avoid.
#include "models/cost.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace kbench {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};

double real(std::int64_t count) { return static_cast<double>(count); }

/// Rows of scores: one for each query of each head.
double queries(const AttentionShape& s) { return real(s.batch) * real(s.heads) * real(s.seq); }

/// (query, key) pairs with key <= query.
double causal_pairs(const AttentionShape& s) { return queries(s) * real(s.seq + 1) / 2; }

/// What of a tensor an op touches: some rows of a range of columns, of which a causal op skips a part.
struct Part {
    double rows;
    std::int64_t first_column, last_column;
    double density = 1.0;

    double elements() const { return rows * real(last_column - first_column) * density; }
    void merge(const Part& other) {
        rows = std::max(rows, other.rows);
        first_column = std::min(first_column, other.first_column);
        last_column = std::max(last_column, other.last_column);
        density = std::max(density, other.density);
    }
};

/// The part of `tensor` that `op` reads as its input number `input`: all of it, with four exceptions.
Part part_read(const Op& op, std::size_t input, const Tensor& tensor) {
    Part part{real(tensor.rows), 0, tensor.columns};
    std::visit(Overloaded{[&](const Embedding& e) {
                              // wte and wpe; tokens are taken as distinct, so this is the most that can be needed.
                              if (input == 1) part.rows = real(std::min(e.rows, e.vocab));
                              if (input == 2) part.rows = real(std::min({e.rows, e.seq, e.positions}));
                          },
                          [&](const AttentionScores&) { part.last_column = tensor.columns / 3 * 2; },  // q and k
                          [&](const AttentionContext&) {
                              if (input == 1) part.first_column = tensor.columns / 3 * 2;  // v
                          },
                          [&](const ScaleMask& s) {
                              part.density = causal_pairs(s.shape) / (queries(s.shape) * real(s.shape.seq));
                          },
                          [](const auto&) {}},
               op);
    return part;
}

DataType type_of(const Tensor& tensor, Precision precision) {
    if (tensor.role == Role::tokens) return DataType::int32;
    return tensor.always_fp32 ? DataType::fp32 : storage_type(precision);
}

}  // namespace

double Cost::bytes() const {
    return std::accumulate(bytes_read.begin(), bytes_read.end(), 0.0) +
           std::accumulate(bytes_written.begin(), bytes_written.end(), 0.0);
}

Cost& Cost::operator+=(const Cost& other) {
    flops += other.flops;
    for (std::size_t role = 0; role < role_count; ++role) {
        bytes_read[role] += other.bytes_read[role];
        bytes_written[role] += other.bytes_written[role];
    }
    return *this;
}

double flops(const Op& op) {
    return std::visit(
        Overloaded{
            [](const Embedding& e) { return real(e.rows) * real(e.width); },
            // An element: add to the mean, subtract it, square, add, times rstd, times weight, plus bias. A row: two
            // divisions by the width, plus epsilon, root, reciprocal.
            [](const LayerNorm& l) { return real(l.rows) * (7 * real(l.width) + 5); },
            [](const Gemm& g) { return 2 * real(g.m) * real(g.n) * real(g.k); },
            [](const BiasAdd& b) { return real(b.rows) * real(b.width); },
            // x * x * x * 0.044715 + x: four; times sqrt(2/pi), tanh, plus 1, times 0.5, times x.
            [](const Gelu& g) { return 9 * real(g.rows) * real(g.width); },
            [](const ResidualAdd& r) { return real(r.rows) * real(r.width); },
            // A pair: 2 head_size for q k^T and as many for p v; scale, minus the maximum, exp, add to the sum.
            // A query: its output divided by the sum.
            [](const Attention& a) {
                const double size = real(a.shape.head_size);
                return causal_pairs(a.shape) * (4 * size + 4) + queries(a.shape) * size;
            },
            // The unfused products take no note of the mask: they compute the whole square.
            [](const AttentionScores& a) { return 2 * queries(a.shape) * real(a.shape.seq) * real(a.shape.head_size); },
            [](const ScaleMask& s) { return causal_pairs(s.shape); },
            // Minus the maximum, exp, add to the sum, divide.
            [](const Softmax& s) { return 4 * real(s.rows) * real(s.width); },
            [](const AttentionContext& a) {
                return 2 * queries(a.shape) * real(a.shape.seq) * real(a.shape.head_size);
            },
        },
        op);
}

double tensor_bytes(const Tensor& tensor, Precision precision) {
    return real(tensor.rows) * real(tensor.columns) * static_cast<double>(size_of(type_of(tensor, precision)));
}

Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision) {
    Cost cost;
    std::map<TensorId, Part> read;
    std::set<TensorId> written;
    for (std::size_t i : ops) {
        const OpNode& node = model.ops[i];
        cost.flops += flops(node.op);
        written.insert(node.outputs.begin(), node.outputs.end());
        for (std::size_t input = 0; input < node.inputs.size(); ++input) {
            const TensorId id = node.inputs[input];
            const Part part = part_read(node.op, input, model.tensors[id]);
            const auto [known, is_new] = read.emplace(id, part);
            if (!is_new) known->second.merge(part);
        }
    }

    // What is written here must reach memory when an op outside reads it, or when nobody does: it is a result then.
    const std::set<std::size_t> inside(ops.begin(), ops.end());
    std::set<TensorId> read_outside{model.logits};
    for (std::size_t i = 0; i < model.ops.size(); ++i)
        if (!inside.contains(i)) read_outside.insert(model.ops[i].inputs.begin(), model.ops[i].inputs.end());

    for (TensorId id : written) {
        const Tensor& tensor = model.tensors[id];
        if (read_outside.contains(id) || !read.contains(id))
            cost.bytes_written[static_cast<std::size_t>(tensor.role)] += tensor_bytes(tensor, precision);
    }
    for (const auto& [id, part] : read) {
        const Tensor& tensor = model.tensors[id];
        if (!written.contains(id))
            cost.bytes_read[static_cast<std::size_t>(tensor.role)] +=
                part.elements() * static_cast<double>(size_of(type_of(tensor, precision)));
    }
    return cost;
}

}  // namespace kbench
