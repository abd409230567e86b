// Sums costs over ops: FLOPs, and the bytes that a step must move when no cache holds anything before it.
#include "models/cost.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace kbench {
namespace {

double elements(const Part& part) {
    return part.rows * static_cast<double>(part.last_column - part.first_column) * part.density;
}

/// Extends `part` so that it covers another part of the same tensor.
void merge(Part& part, const Part& other) {
    part.rows = std::max(part.rows, other.rows);
    part.first_column = std::min(part.first_column, other.first_column);
    part.last_column = std::max(part.last_column, other.last_column);
    part.density = std::max(part.density, other.density);
}

/// Converts `part` to the tensor's own shape. An op that views the tensor as one long row touches all of it or nothing.
Part part_of(const Tensor& tensor, const OperandSpec& spec, const Part& part) {
    if (spec.columns == tensor.columns()) return part;
    if (elements(part) == 0) return {};
    return {static_cast<double>(tensor.rows()), 0, tensor.columns()};
}

double bytes_of(const Tensor& tensor, double elements, Precision precision) {
    return elements * static_cast<double>(size_of(data_type(tensor.element, precision)));
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

double tensor_bytes(const Tensor& tensor, Precision precision) {
    return bytes_of(tensor, static_cast<double>(tensor.elements()), precision);
}

namespace {

/// By tensor the ops that read it.
using Readers = std::vector<std::vector<std::size_t>>;

Readers readers_of(const Model& model) {
    Readers readers(model.tensors.size());
    for (std::size_t i = 0; i < model.ops.size(); ++i)
        for (const TensorId id : model.ops[i].inputs) readers[id].push_back(i);
    return readers;
}

Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision, const Readers& readers) {
    Cost cost;
    struct Written {
        Part part;
        Role role;  // a tensor worked on in place keeps its role
    };
    std::map<TensorId, Part> read;
    std::map<TensorId, Written> written;
    for (std::size_t i : ops) {
        const OpNode& node = model.ops[i];
        cost.flops += node.op.work(node.direction).flops;
        std::size_t input = 0, output = 0;
        for (const OperandSpec& spec : node.op.operands(node.direction)) {
            if (spec.use == OperandUse::output || spec.use == OperandUse::in_place) {
                const TensorId made = node.outputs.at(output++);
                const TensorId named = spec.use == OperandUse::in_place ? node.inputs.at(input) : made;
                Part part = part_of(model.tensors[made], spec, spec.part_written());
                // What an earlier op wrote to other parts still counts.
                if (const auto before = written.find(named); before != written.end() && named != made)
                    merge(part, before->second.part);
                written.emplace(made, Written{part, model.tensors[named].role});
            }
            if (spec.use == OperandUse::output) continue;
            const TensorId id = node.inputs[input++];
            const Part part = part_of(model.tensors[id], spec, spec.part_read());
            const auto [known, is_new] = read.emplace(id, part);
            if (!is_new) merge(known->second, part);
        }
    }

    // A tensor written here must reach memory when an op outside reads it, or when no op does: it is then a result.
    const std::set<std::size_t> inside(ops.begin(), ops.end());
    const auto is_read_outside = [&](TensorId id) {
        return std::ranges::count(model.outputs, id) > 0 ||
               std::ranges::any_of(readers[id], [&](std::size_t op) { return !inside.contains(op); });
    };
    for (const auto& [id, what] : written) {
        if (!read.contains(id) || is_read_outside(id))
            cost.bytes_written[static_cast<std::size_t>(what.role)] +=
                bytes_of(model.tensors[id], elements(what.part), precision);
    }
    for (const auto& [id, part] : read) {
        const Tensor& tensor = model.tensors[id];
        if (!written.contains(id))
            cost.bytes_read[static_cast<std::size_t>(tensor.role)] += bytes_of(tensor, elements(part), precision);
    }
    return cost;
}

}  // namespace

Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision) {
    return step_cost(model, ops, precision, readers_of(model));
}

Cost unfused_cost(const Model& model, Precision precision) {
    const Readers readers = readers_of(model);
    Cost total;
    for (std::size_t i = model.untimed_ops; i < model.ops.size(); ++i) {
        Cost one = step_cost(model, {i}, precision, readers);
        const auto steps = static_cast<double>(std::max<std::int64_t>(1, model.ops[i].op.time_steps()));
        one.bytes_read[static_cast<std::size_t>(Role::weights)] *= steps;
        total += one;
    }
    return total;
}

double compulsory_bytes(const Model& model, Precision precision) {
    std::vector<std::size_t> timed(model.ops.size() - model.untimed_ops);
    std::iota(timed.begin(), timed.end(), model.untimed_ops);
    return step_cost(model, timed, precision).bytes();
}

}  // namespace kbench
