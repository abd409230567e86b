#include "analysis/program/program_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "analysis/machine/kernel_name.h"
#include "analysis/machine/kernel_occupancy.h"
#include "analysis/program/kernel_precision.h"
#include "analysis/program/op_cost.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

/// Mean over the typical iterations of a number of each of their activities, in us.
template <class Number>
double mean_over_iterations(const UsedIterations& used, std::size_t activity, const Number& number_ns) {
    std::int64_t sum = 0;
    for (const std::size_t i : used.typical) sum += number_ns(used.at(i, activity));
    return static_cast<double>(sum) / static_cast<double>(used.typical.size()) / 1e3;
}

/// What the record says of a kernel, copy or fill, without its times.
KernelResult record_of(const ProgramFile& file, const ProgramActivity& activity, const GpuInfo& gpu) {
    KernelResult result;
    result.device = activity.device;
    result.stream = activity.stream;
    if (activity.kind != ActivityKind::kernel) {
        const bool is_copy = activity.kind == ActivityKind::copy;
        result.short_name = is_copy ? "copy " + activity.what : "fill";
        result.name =
            is_copy ? fmt::format("copy {}, {} to {} memory", activity.what, activity.memory[0], activity.memory[1])
                    : "fill";
        result.moved_bytes = activity.bytes;
        for (Quantity* quantity : {&result.theoretical_occupancy_pct, &result.waves, &result.lost_in_last_wave_pct})
            *quantity = Quantity::unavailable("it has no blocks");
        return result;
    }
    result.name = demangled(file.text(activity.name));
    result.short_name = short_kernel_name(result.name);
    result.grid = activity.grid;
    result.block = activity.block;
    result.registers = activity.registers;
    result.static_shared_bytes = activity.static_shared;
    result.dynamic_shared_bytes = activity.dynamic_shared;
    result.local_bytes = activity.local;
    result.cluster_blocks = activity.cluster;
    describe_occupancy(result, gpu);
    return result;
}

/// The cost of the outermost op around an activity whose cost is known, and that op's range.
struct KnownWork {
    std::int64_t range = 0;
    OpWork work;
};

std::optional<Precision> precision_of(const KernelResult& kernel, const ActivityLayer& layer) {
    if (!kernel.moved_bytes)
        if (const std::optional<Precision> named = named_precision(kernel.name)) return named;
    return framework_precision(layer.dtype);
}

std::optional<KnownWork> known_work(const ActivityLayer& layer, const KernelResult& kernel) {
    const std::optional<Precision> precision = precision_of(kernel, layer);
    const auto bytes = static_cast<double>(precision ? size_of(storage_type(*precision)) : 0);
    const std::string& outer = layer.node.empty() ? layer.op : layer.forward_op;
    for (const OpFrame& op : layer.ops) {
        OpWork work = op_work({.name = op.frame.name,
                               .sizes = op.frame.sizes,
                               .node = layer.node,
                               .outer = outer,
                               .forward_sizes = layer.forward ? layer.forward->frame.sizes : Sizes{},
                               .kernel = kernel.name},
                              bytes);
        if (work.known) return KnownWork{op.range, std::move(work)};
    }
    return std::nullopt;
}

/// What the step is called: a kind of kbench where the op or one within it is one, else the framework's name.
std::string op_of(const ActivityLayer& layer, const std::optional<KnownWork>& count, const ProgramActivity& activity) {
    if (count && find_op_kind(count->work.kind) != nullptr) return count->work.kind;
    if (!layer.node.empty()) return op_kind_of(layer.forward_op.empty() ? layer.node : layer.forward_op);
    if (!layer.op.empty()) return op_kind_of(layer.op);
    constexpr std::array names{"kernel", "copy", "fill"};
    return names[static_cast<std::size_t>(activity.kind)];
}

std::string shown_layer(const ActivityLayer& layer, const KernelResult& kernel) {
    return layer.layer.empty() ? kernel.short_name : layer.layer;
}

/// What two neighbours share that are one step.
using StepKey = std::tuple<std::string, std::string, Direction, std::int64_t>;

std::optional<FrameworkCall> framework_call(const ActivityLayer& layer) {
    if (layer.call == 0 && layer.class_name.empty()) return std::nullopt;
    return FrameworkCall{.module = layer.class_name,
                         .op = layer.op,
                         .sub = layer.sub(),
                         .parameters = layer.parameters(),
                         .line = layer.line,
                         .sequence = layer.sequence,
                         .forward_sequence = layer.forward_sequence,
                         .thread = layer.thread};
}

/// Names each backward step's forward step: the one that launched the op whose backward it is. Of an op that launches
/// nothing, as a view does not, its layer and name.
void add_forwards(ProgramSteps& result, const std::vector<ActivityLayer>& layers) {
    std::map<std::int64_t, std::size_t> step_of_op;  // by the op's range
    for (std::size_t a = 0; a < layers.size(); ++a)
        for (const OpFrame& op : layers[a].ops) step_of_op.try_emplace(op.range, result.step_of[a]);
    for (std::size_t a = 0; a < layers.size(); ++a) {
        if (!layers[a].forward) continue;
        const auto forward = step_of_op.find(layers[a].forward->range);
        const bool has_step = forward != step_of_op.end();
        result.steps[result.step_of[a]].forward =
            has_step ? result.steps[forward->second].layer + ":" + result.steps[forward->second].op
                     : layers[a].layer + ":" + plain_op_name(layers[a].forward_op);
    }
}

}  // namespace

UsedIterations used_of(const Iterations& found, const std::string& asked) {
    const auto [first, last] = used_iterations(found, asked);
    UsedIterations used{.begins = {}, .period = found.period};
    for (std::size_t i = first; i < last; ++i) used.begins.push_back(found.at(i));
    return used;
}

std::vector<std::size_t> middle_half(std::span<const std::int64_t> lengths) {
    std::vector<std::size_t> places(lengths.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::stable_sort(places, {}, [&](std::size_t place) { return lengths[place]; });
    const auto quarter = static_cast<std::ptrdiff_t>(places.size() / 4);
    std::vector<std::size_t> middle(places.begin() + quarter, places.end() - quarter);
    std::ranges::sort(middle);
    return middle;
}

Precision most_used(const std::map<Precision, double>& us) {
    const auto most = std::ranges::max_element(us, {}, [](const auto& entry) { return entry.second; });
    return most == us.end() ? Precision::fp32 : most->first;
}

ProgramSteps program_steps(const ProgramFile& file, const std::vector<OwnTime>& times, const UsedIterations& used,
                           const std::vector<ActivityLayer>& layers, const GpuInfo& gpu) {
    ProgramSteps result;
    std::optional<StepKey> before;
    std::set<std::int64_t> counted_ranges;  // an op's cost counts once, however many kernels it launches
    std::map<Precision, double> us_by_precision;
    std::vector<std::optional<Precision>> precisions;
    std::vector<double> longest_us;
    for (std::size_t a = 0; a < used.period; ++a) {
        const ProgramActivity& activity = file.activities[used.at(0, a)];
        const ActivityLayer& layer = layers[a];
        KernelResult kernel = record_of(file, activity, gpu);
        kernel.time_us = mean_over_iterations(
            used, a, [&](std::size_t i) { return file.activities[i].end_ns - file.activities[i].start_ns; });
        kernel.gap_us = mean_over_iterations(used, a, [&](std::size_t i) { return times[i].gap; });
        if (times[used.at(0, a)].host_wait)
            kernel.host_wait_us =
                mean_over_iterations(used, a, [&](std::size_t i) { return times[i].host_wait.value_or(0); });
        const std::optional<KnownWork> count = known_work(layer, kernel);
        const Direction direction = count && count->work.direction ? *count->work.direction : layer.direction;
        const StepKey key{shown_layer(layer, kernel), op_of(layer, count, activity), direction, layer.call};
        if (key != before) {
            StepResult& step = result.steps.emplace_back();
            step.index = static_cast<int>(result.steps.size()) - 1;
            std::tie(step.layer, step.op, step.direction, std::ignore) = key;
            step.absorbs = {step.layer + ":" + step.op};
            step.provider = "program";
            step.call = framework_call(layer);
            precisions.emplace_back();
            longest_us.push_back(-1);
            before = key;
        }
        StepResult& step = result.steps.back();
        const std::optional<Precision> precision = precision_of(kernel, layer);
        if (precision) us_by_precision[*precision] += kernel.time_us;
        if (kernel.time_us > longest_us.back()) {
            longest_us.back() = kernel.time_us;
            step.implementation = kernel.short_name;
            precisions.back() = precision;
        }
        if (count && counted_ranges.insert(count->range).second) {
            step.cost += count->work.cost;
            step.matrix_flops += count->work.matrix_flops;
            if (step.shape.empty()) step.shape = count->work.shape;
            result.counts_all_pairs |= count->work.counts_all_pairs;
        }
        step.kernels.push_back(std::move(kernel));
        result.step_of.push_back(result.steps.size() - 1);
    }
    for (std::size_t s = 0; s < result.steps.size(); ++s)
        result.steps[s].precision = precisions[s].value_or(most_used(us_by_precision));
    add_forwards(result, layers);
    return result;
}

}  // namespace kbench
