// Derives operands, names and padding of a step from what its ops declare.
#include "kbench/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kbench {
namespace {

Operand placed(const Step& step, const OperandSpec& spec, std::string name, Precision precision) {
    const bool padded = spec.padded && step.padded_columns > 0;
    return {.name = std::move(name),
            .use = spec.use,
            .type = data_type(spec.element, precision),
            .rows = spec.rows,
            .columns = spec.columns,
            .stride = padded ? step.padded_columns : spec.columns,
            .allocated_rows = spec.rows_are_columns && step.padded_columns > 0 ? step.padded_columns : spec.rows,
            .contents = spec.contents};
}

bool leaves_result(const OperandSpec& spec) {
    return spec.use == OperandUse::output || spec.use == OperandUse::in_place;
}

/// The array that an op passes on within a fused step: its first output.
const OperandSpec& made_by(const std::vector<OperandSpec>& specs) {
    return *std::ranges::find_if(specs, leaves_result);
}

/// How many more columns the product of a step has than its op.
std::int64_t added_columns(const Step& step) {
    if (step.padded_columns == 0 || step.head_op().work(step.direction).matrix_flops == 0) return 0;
    const std::vector<OperandSpec> specs = step.head_op().operands(step.direction);
    return step.padded_columns - std::ranges::find_if(specs, &OperandSpec::padded)->columns;
}

double padded_column_flops(const Step& step) {
    const std::int64_t added = added_columns(step);
    if (added == 0) return 0;
    return step.head_op().work(step.direction).matrix_flops / static_cast<double>(step.padded_columns - added) *
           static_cast<double>(added);
}

bool is_name_of_head(const Step& step, std::string_view name) {
    const std::vector<OperandSpec> specs = step.head_op().operands(step.direction);
    return std::ranges::any_of(specs, [&](const OperandSpec& spec) { return spec.name == name; });
}

}  // namespace

bool Step::absorbs(std::string_view kind) const {
    for (std::size_t i = 0; i < ops.size(); ++i)
        if (i != head && name(ops[i]) == kind) return true;
    return false;
}

std::vector<Operand> operands(const Step& step, Precision precision) {
    std::vector<Operand> read, left;
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
        const std::vector<OperandSpec> specs = step.ops[i].operands(step.direction_of(i));
        const bool is_beside = i < step.beside;
        // The first input is what the op before made; beside the head, it is what the head reads.
        bool carried = is_beside || i > step.beside;
        for (const OperandSpec& spec : specs) {
            if (spec.use == OperandUse::output) continue;
            if (std::exchange(carried, false)) continue;
            const bool taken = i < step.head && is_name_of_head(step, spec.name) && spec.use == OperandUse::weight;
            read.push_back(placed(step, spec, fmt::format("{}{}", taken ? "pre_" : "", spec.name), precision));
        }
        const bool last = i + 1 == step.ops.size();
        if (!last && std::ranges::find(step.kept, i) != step.kept.end())
            left.push_back(placed(step, made_by(specs), "sum", precision));
        for (const OperandSpec& spec : specs) {
            const bool handed_on = !last && !is_beside && &spec == &made_by(specs);
            if (spec.use == OperandUse::output && !handed_on)
                left.push_back(placed(step, spec, std::string(spec.name), precision));
        }
    }
    read.insert(read.end(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
    return read;
}

std::string shape_text(const Step& step) {
    std::string text = step.head_op().text();
    for (std::size_t i = 0; i < step.ops.size(); ++i)
        if (i != step.head) text += fmt::format("+{}", name(step.ops[i]));
    if (const std::int64_t added = added_columns(step); added > 0) text += fmt::format("+pad{}", added);
    return text;
}

double padding_flops(const Step& step) {
    double flops = padded_column_flops(step);
    for (std::size_t i = 0; i < step.ops.size(); ++i) flops += step.ops[i].work(step.direction_of(i)).masked_flops;
    return flops;
}

std::int64_t time_steps(const Step& step) {
    std::int64_t steps = 0;
    for (const Op& op : step.ops)
        if (const std::int64_t own = op.time_steps(); own > 1) steps += own;
    return std::max<std::int64_t>(1, steps);
}

double matrix_flops(const Step& step) {
    double flops = padded_column_flops(step);
    for (std::size_t i = 0; i < step.ops.size(); ++i) flops += step.ops[i].work(step.direction_of(i)).matrix_flops;
    return flops;
}

}  // namespace kbench
