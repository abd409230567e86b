// Refuses plans that do not fit, twice: by the layout on paper, and once every computation has said what it takes.
#include "bench/measure/sweep/planning.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analysis/result/point_name.h"
#include "bench/measure/point/outputs.h"
#include "bench/measure/point/progress.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

/// Memory left free for what no plan contains: the context, library handles, page tables, graphs, CUPTI's buffers.
std::int64_t reserved_bytes(std::int64_t free) { return std::max(std::int64_t{256} << 20, free / 100); }

std::string gigabytes(std::int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9); }

void refuse_if_too_large(const Point& point, std::int64_t needed, const Device& device,
                         const std::function<std::string(std::int64_t)>& hint) {
    const std::int64_t available = plannable_bytes(device);
    if (needed <= available) return;
    throw Unsupported(fmt::format("{} needs {} of memory, {} are free: {}", short_name(point), gigabytes(needed),
                                  gigabytes(available), hint(available)));
}

/// By op of the model, the step that computes it as a result names it: "layer:op".
std::vector<std::string> step_names(const Plan& plan) {
    const Model& model = plan.model();
    std::vector<std::string> names(model.ops.size());
    for (const PlannedStep& planned : plan.steps())
        for (const std::size_t op : planned.ops)
            names[op] = fmt::format("{}:{}", model.ops[planned.naming_op].layer, op_name(planned.step));
    return names;
}

/// The steps as a result has them, with what each must do.
void describe_steps(const Plan& plan, Point& point) {
    const Model& model = plan.model();
    const std::vector<std::string> names = step_names(plan);
    for (const PlannedStep& planned : plan.timed_steps()) {
        StepResult result;
        result.index = static_cast<int>(point.steps.size());
        result.layer = model.ops[planned.naming_op].layer;
        result.op = op_name(planned.step);
        for (const std::size_t op : planned.ops)
            result.absorbs.push_back(model.ops[op].layer + ":" + std::string(name(model.ops[op].op)));
        result.provider = planned.provider->name;
        result.implementation = planned.computation->implementation();
        result.shape = shape_text(planned.step);
        result.precision = point.precision();
        result.direction = model.ops[planned.naming_op].direction;
        if (const auto forward = model.ops[planned.naming_op].forward) result.forward = names[*forward];
        result.cost = step_cost(model, planned.ops, point.precision());
        result.padding_flops = padding_flops(planned.step);
        if (const double spared = planned.computation->spared_flops(); spared > 0) result.spared_flops = spared;
        result.matrix_flops = matrix_flops(planned.step);
        if (const std::int64_t steps = time_steps(planned.step); steps > 1) result.time_steps = steps;
        Cost cost = result.cost;
        if (result.is_recomputed())
            point.recomputed_flops = point.recomputed_flops.value_or(0) + std::exchange(cost.flops, 0);
        point.cost += cost;
        point.padding_flops += result.padding_flops;
        point.steps.push_back(std::move(result));
    }
}

}  // namespace

Layout estimate_layout(const Model& model, Precision precision, const std::vector<AssignedStep>& steps) {
    std::int64_t workspace = 0;
    for (const AssignedStep& a : steps) workspace = std::max(workspace, a.provider->workspace_limit);
    // Keeps the operands of the last step asked about: AdamW has thousands of operands, and each is asked about.
    std::vector<Operand> list;
    std::size_t list_of = steps.size();
    return lay_out(
        model, precision, steps,
        [&](std::size_t s, std::size_t i) {
            if (std::exchange(list_of, s) != s) list = operands(steps[s].step, precision);
            const Operand& operand = list[i];
            const bool packed =
                steps[s].provider->packs_weights && operand.use == OperandUse::weight && operand.rows > 1;
            return packed ? operand.bytes() : 0;
        },
        workspace);
}

std::int64_t plannable_bytes(const Device& device) {
    const std::int64_t free = device.free_bytes();
    return free - reserved_bytes(free);
}

std::int64_t needed_bytes(const Model& model, const Layout& layout, const Device& device) {
    if (device.is_gpu()) return layout.memory.total();
    return layout.memory.total() + 2 * std::min(output_bytes(model, layout), OutputRows::usual_bytes);
}

Plan plan_point(const Model& model, std::vector<AssignedStep> steps, const Device& device, Point& point,
                const std::function<std::string(std::int64_t)>& hint) {
    const PhaseTimer timer(point, "plan");
    refuse_if_too_large(point, needed_bytes(model, estimate_layout(model, point.precision(), steps), device), device,
                        hint);
    Plan plan(model, point.precision(), std::move(steps));
    point.memory = plan.layout().memory;
    refuse_if_too_large(point, needed_bytes(model, plan.layout(), device), device, hint);
    describe_steps(plan, point);
    return plan;
}

}  // namespace kbench
