// Runs the step, chooses elements and compares them with the reference.
#include "bench/measure/point/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "bench/measure/point/device_rows.h"
#include "bench/plan/current_call.h"
#include "cpu/reference/reference.h"
#include "kbench/error.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;

/// Multiply-adds of the reference that one step may cost: about 0.3 s on two cores. And elements, of which each takes
/// 64 bytes: AdamW of 436 tensors has 1,308 results, and would have 186 million elements of 774 million parameters.
constexpr double reference_budget = 1e8;
constexpr std::int64_t most_elements = std::int64_t{1} << 21;
/// How many elements to sample from each result where a step has up to 64; fewer from each where it has more.
constexpr std::size_t sampled_elements = 4096, fewest_sampled = 256, sampled_together = 64 * sampled_elements;

/// All elements where that is cheap; otherwise at least 4096, in whole groups where a group shares its work. `results`
/// of the step share what it may cost.
std::vector<Element> choose_elements(const Step& step, const Operand& out, std::size_t results, std::uint64_t seed) {
    const reference::ElementCost cost = reference::row_of(step.head_op().kind()).cost(step.head_op(), step.direction);
    std::vector<Element> elements;
    const std::int64_t total = out.rows * out.columns;
    if (static_cast<double>(total) * cost.multiply_adds <= reference_budget / static_cast<double>(results) &&
        total <= most_elements / static_cast<std::int64_t>(results)) {
        elements.reserve(static_cast<std::size_t>(total));
        for (std::int64_t r = 0; r < out.rows; ++r)
            for (std::int64_t c = 0; c < out.columns; ++c) elements.push_back({r, c});
        return elements;
    }
    // A row may be narrower than the group of its op, or end within one.
    const std::int64_t group = std::clamp<std::int64_t>(cost.group, 1, out.columns);
    const std::int64_t groups_in_row = (out.columns + group - 1) / group;
    const std::size_t sampled = std::clamp(sampled_together / results, fewest_sampled, sampled_elements);
    const std::size_t wanted =
        std::max((sampled + static_cast<std::size_t>(group) - 1) / static_cast<std::size_t>(group),
                 static_cast<std::size_t>(cost.least_groups));
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> any(0, out.rows * groups_in_row - 1);
    // The corners first: tiles at the edges are where kernels go wrong.
    std::set<std::int64_t> groups{0, groups_in_row - 1, (out.rows - 1) * groups_in_row, out.rows * groups_in_row - 1};
    while (groups.size() < std::min<std::size_t>(wanted + 4, static_cast<std::size_t>(out.rows * groups_in_row)))
        groups.insert(any(random));
    for (const std::int64_t g : groups)
        for (std::int64_t c = g % groups_in_row * group; c < std::min((g % groups_in_row + 1) * group, out.columns);
             ++c)
            elements.push_back({g / groups_in_row, c});
    return elements;
}

/// What one output should be: elements in the order of rows.
struct ExpectedOutput {
    std::size_t operand;
    std::vector<Element> elements;
    std::vector<Expected> values;
};

}  // namespace

/// The reference's bound, with a further rounding for each time that the result is stored on its way.
static double allowed_error(const Expected& expected, Precision precision, DataType stored, int roundings) {
    const double bound = reference::error_bound(expected, precision, stored);
    if (!std::isfinite(expected.value)) return bound;  // to be met exactly
    return bound + (roundings - 1) * unit_roundoff(stored) * std::abs(expected.value);
}

VerifiedStep verify_step(const VerifyTarget& target, Precision precision, Device& device, std::uint64_t seed) {
    const StepOperands operands(*target.step, *target.computation, precision, device, seed);
    return verify_step(target, precision, device, operands, seed);
}

VerifiedStep verify_step(const VerifyTarget& target, Precision precision, Device& device, const StepOperands& step,
                         std::uint64_t seed) {
    const Step& what = *target.step;
    const Computation& computation = *target.computation;
    // Before the step runs: it may overwrite what it reads.
    std::vector<ExpectedOutput> outputs;
    const auto is_result = [](const Operand& operand) {
        return operand.use == OperandUse::output || operand.use == OperandUse::in_place;
    };
    const auto results = static_cast<std::size_t>(std::ranges::count_if(step.list(), is_result));
    for (std::size_t i = 0; i < step.list().size(); ++i) {
        const Operand& out = step.list()[i];
        if (!is_result(out)) continue;
        ExpectedOutput& output = outputs.emplace_back(ExpectedOutput{i, choose_elements(what, out, results, seed), {}});
        const CurrentCall call(call_name(fmt::format("the reference of {} {}", op_name(what), shape_text(what))));
        output.values = reference::evaluate(what, i, step.views(), output.elements);
    }
    DeviceBuffer workspace(device, computation.workspace_bytes());
    {
        const CurrentCall call(call_name(fmt::format("{} {} of {} by {}, to be verified,", op_name(what),
                                                     shape_text(what), target.layer, target.provider)));
        computation.run({step.pointers(), workspace.data(), device.stream()});
        device.synchronize();
    }

    VerifiedStep verified{std::string(op_name(what)), shape_text(what), target.provider, computation.implementation()};
    for (const ExpectedOutput& output : outputs) {
        const Operand& out = step.list()[output.operand];
        const auto fail = [&](std::int64_t row, std::int64_t column, const std::string& why) {
            throw MeasurementError(fmt::format("verification failed: {} {} of {} by {} ({}), {}: {}[{}, {}] {}",
                                               verified.op, verified.shape, target.layer, target.provider,
                                               verified.implementation, name(precision), out.name, row, column, why));
        };
        std::size_t next = 0;
        visit_rows(device, step.pointers()[output.operand], out, [&](const View& slab, std::int64_t first) {
            for (; next < output.elements.size() && output.elements[next].row < first + slab.rows; ++next) {
                const auto [row, column] = output.elements[next];
                const Expected& expected = output.values[next];
                const double value = slab(row - first, column);
                const double bound = allowed_error(expected, precision, out.type, computation.roundings());
                const double error = value == expected.value ? 0 : std::abs(value - expected.value);
                if (!(error <= bound))
                    fail(row, column,
                         fmt::format("is {:.9g}, the reference says {:.9g}, allowed error {:.3g}", value,
                                     expected.value, bound));
                const double ratio = bound > 0 ? error / bound : 0;
                if (ratio > verified.error_over_bound) {
                    verified.error_over_bound = ratio;
                    verified.worst_error = error;
                    verified.bound_there = bound;
                }
            }
            if (count_nan(slab) == 0) return;
            for (std::int64_t r = 0; r < slab.rows; ++r)
                for (std::int64_t c = 0; c < slab.columns; ++c)
                    if (std::isnan(slab(r, c))) fail(first + r, c, "was not written, or is not a number");
        });
        verified.elements_checked += static_cast<std::int64_t>(output.elements.size());
        verified.elements_total += out.rows * out.columns;
    }
    return verified;
}

}  // namespace kbench
