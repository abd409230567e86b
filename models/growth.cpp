// Grows the head; the others follow along the arrays that are handed from op to op.
#include "models/growth.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kbench {
namespace {

using Sizes = std::pair<std::int64_t, std::int64_t>;
using Specs = std::vector<OperandSpec>;

Sizes sizes_of(const OperandSpec& spec) { return {spec.rows, spec.columns}; }
std::int64_t elements_of(const OperandSpec& spec) { return spec.rows * spec.columns; }

Specs specs_of(const Step& step, std::size_t op) { return step.ops[op].operands(step.direction_of(op)); }

/// The array that an op passes on: its first result.
const OperandSpec& made(const Specs& specs) {
    return *std::ranges::find_if(specs, [](const OperandSpec& spec) {
        return spec.use == OperandUse::output || spec.use == OperandUse::in_place;
    });
}

/// The array of the head by which `op`, one of its `beside`, is as large as the head.
const OperandSpec* shared_with_head(const Step& step, std::size_t op, const Specs& of_head) {
    const std::string name(specs_of(step, op).front().name);
    const auto same = std::ranges::find(of_head, name, &OperandSpec::name);
    return same == of_head.end() ? nullptr : &*same;
}

/// Grows op `i` of `step` where the array by which it hangs on the others has `now` other sizes than `before`; false
/// where it cannot follow.
bool follow(Step& step, std::size_t i, const OperandSpec& before, const OperandSpec& now, Scale factor) {
    if (sizes_of(before) == sizes_of(now)) return true;
    std::optional<Grown<Op>> larger = step.ops[i].grown(step.direction_of(i), factor);
    if (!larger) return false;
    step.ops[i] = std::move(larger->op);
    return true;
}

/// Whether each op is as large as what it is handed. Some take a matrix for one of other rows and columns.
bool fits(const Step& step) {
    const Specs head = specs_of(step, step.head);
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
        const Specs own = specs_of(step, i);
        if (i < step.beside) {
            const OperandSpec* shared = shared_with_head(step, i, head);
            if (shared == nullptr || elements_of(*shared) != elements_of(own.front())) return false;
        } else if (i > step.beside && elements_of(made(specs_of(step, i - 1))) != elements_of(own.front())) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::optional<GrownStep> grown(const Step& step, Scale factor) {
    std::optional<Grown<Op>> head = step.head_op().grown(step.direction, factor);
    if (!head) return std::nullopt;
    GrownStep larger{step, head->axis};
    Step& to = larger.step;
    to.ops[step.head] = std::move(head->op);
    const Specs before = specs_of(step, step.head), now = specs_of(to, step.head);
    for (std::size_t i = 0; i < step.beside; ++i) {
        const OperandSpec *was = shared_with_head(step, i, before), *is = shared_with_head(to, i, now);
        if (was == nullptr || is == nullptr || !follow(to, i, *was, *is, factor)) return std::nullopt;
    }
    for (std::size_t i = step.head; i > step.beside; --i)
        if (!follow(to, i - 1, specs_of(step, i).front(), specs_of(to, i).front(), factor)) return std::nullopt;
    for (std::size_t i = step.head + 1; i < step.ops.size(); ++i)
        if (!follow(to, i, made(specs_of(step, i - 1)), made(specs_of(to, i - 1)), factor)) return std::nullopt;
    if (!fits(to)) return std::nullopt;
    const auto padded = std::ranges::find_if(before, &OperandSpec::padded);
    if (step.padded_columns > 0 && padded != before.end() &&
        padded->columns != now[static_cast<std::size_t>(padded - before.begin())].columns)
        to.padded_columns *= factor;
    return larger;
}

}  // namespace kbench
