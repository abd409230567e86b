// Columns that say what a row is: PyProf's, the point's and the sweep's, and the step's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/ledger.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/explain/verdict.h"
#include "analysis/machine/isa.h"
#include "analysis/result/frames.h"
#include "analysis/table/columns_builders.h"

namespace kbench::column {
namespace {

/// The names and meanings of PyProf (github.com/NVIDIA/PyProf, docs/profile.rst), in its order.
void add_pyprof_columns(std::vector<Column>& list) {
    list.push_back(of_row("idx", Align::right,
                          "number of the row in order of execution, from 0, before --sort and --top",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.index)); }));
    list.push_back(of_row(
        "seq", Align::left,
        "numbers of the ops computed, from 0 in the order of the forward pass; na for steps of a backward, which name theirs in forward",
        [](const TableRow& row) { return shared(row, op_numbers); }));
    list.back().shortens = false;
    list.push_back(not_recorded("altseq", "alternate sequence number; always na, an op has one number here"));
    list.push_back(not_recorded("tid", "thread that launched the row; na, not recorded"));
    list.push_back(of_row("layer", Align::left, "layer as the checkpoint names it; with --fold * for each number",
                          [](const TableRow& row) {
                              return shared(row, [&](const PlacedStep& placed) {
                                  const std::string& layer = placed.step->layer;
                                  return text_or_na(row.folded ? layer_group(layer) : layer);
                              });
                          }));
    list.push_back(not_recorded("trace", "call stack of the op; na, a plan has none"));
    list.push_back(text("dir", "direction: fwd, bwd, dgrad or wgrad",
                        [](const StepResult& step) { return name(step.direction); }));
    list.push_back(of_row(
        "sub", Align::right, "number of the kernel in its step, from 0; 0 where rows are not kernels",
        [](const TableRow& row) { return row.steps.empty() ? Value(NoValue::na) : Value(count(row.kernel_number)); }));
    list.push_back(
        text("mod", "module that computes the op: the provider", [](const StepResult& step) { return step.provider; }));
    list.push_back(text("op", "kind of the op that names the step", [](const StepResult& step) { return step.op; }));
    list.push_back(of_row(
        "kernel", Align::left,
        "kernel, without namespaces and parameters; several of a step joined by +; the implementation where none was recorded",
        [](const TableRow& row) {
            return shared_kernel_names(row, &KernelResult::short_name,
                                       [](const StepResult& step) { return step.implementation; });
        }));
    list.push_back(text("params", "shape and precision", [](const StepResult& step) {
        return fmt::format("[{}]{}", step.shape, name(step.precision));
    }));
    list.push_back({.name = "sil",
                    .header = "sil ns",
                    .unit = "ns",
                    .what = "silicon time: time on the device as in time_us, whole nanoseconds",
                    .align = Align::right,
                    .shortens = false,
                    .decimals = 0,
                    .value = [](const TableRow& row) {
                        const std::optional<double> time = time_us(row);
                        return time ? Value(static_cast<std::int64_t>(std::llround(*time * 1e3))) : Value(NoValue::na);
                    }});
    list.push_back(counted(of_row("tc", Align::right, "tensor cores used, by counters: 1 or 0; na when not counted",
                                  [](const TableRow& row) { return shared(row, tensor_cores_of); })));
    list.push_back(of_row("device", Align::right,
                          "ordinal of the CUDA device: of the kernels where recorded, else the first; na on a CPU",
                          device_of));
    list.push_back(of_kernels("stream", Align::right, "CUDA stream of the kernels",
                              [](const KernelResult& kernel) { return std::int64_t{kernel.stream}; }));
    list.push_back(of_kernels("grid", Align::right, "blocks launched, x,y,z",
                              [](const KernelResult& kernel) { return extent(kernel.grid); }));
    list.push_back(of_kernels("block", Align::right, "threads of a block, x,y,z",
                              [](const KernelResult& kernel) { return extent(kernel.block); }));
    list.push_back(amount("flops", "FLOP", "useful FLOPs of the cost model, a fused multiply-add is 2", flops_of));
    list.push_back(amount("bytes", "B", "streaming bytes: each step's operands and results once", bytes_of));
}

/// A precision is its steps' own.
Value value_on(const Axis& axis, const TableRow& row) {
    if (axis.name == "precision" && !row.steps.empty())
        return shared(row, [](const PlacedStep& placed) { return Value(std::string(name(placed.step->precision))); });
    const AxisValue* value = row.point->axes.find(axis.name);
    if (value == nullptr) return NoValue::na;
    if (const auto* number = std::get_if<std::int64_t>(value)) return *number;
    return text_or_na(std::get<std::string>(*value));
}

void add_point_columns(std::vector<Column>& list) {
    list.push_back(of_row("file", Align::left, "file the row comes from",
                          [](const TableRow& row) { return text_or_na(std::string(row.file)); }));
    list.push_back(of_row("point", Align::right, "number of the point in its file, from 0",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.point_index)); }));
    for (const Axis& axis : axes()) {
        list.push_back(of_row(std::string(axis.column), axis.kind == AxisKind::count ? Align::right : Align::left,
                              std::string(axis.what), [&axis](const TableRow& row) { return value_on(axis, row); }));
        list.back().unit = axis.unit;
    }
    list.push_back(of_row("status", Align::left, "of the point: done, skipped or failed",
                          [](const TableRow& row) { return Value(std::string(name(row.point->status))); }));
    list.push_back(of_row("reason", Align::left, "why the point was skipped or has failed",
                          [](const TableRow& row) { return text_or_na(row.point->reason); }));
}

/// The row's point as a whole: nothing in rows of a part of it.
const Point* whole_point(const TableRow& row) {
    return row.kernel == nullptr && row.steps.size() == row.point->steps.size() ? row.point : nullptr;
}

/// Null in rows of a part of a point, and where nothing was timed.
const Explanation* whole_explanation(const TableRow& row) {
    const Point* point = whole_point(row);
    if (point == nullptr || !point->end_to_end || row.explanation == nullptr) return nullptr;
    return &row.explanation->get();
}

/// A figure of the point's latency.
Column latency_figure(std::string column, std::string header, std::string what, double Summary::*member) {
    return figure(std::move(column), std::move(header), "ms", std::move(what), 4,
                  [member](const TableRow& row) -> std::optional<double> {
                      if (!row.point->end_to_end) return std::nullopt;
                      return row.point->end_to_end->latency.summary_ms.*member;
                  });
}

void add_sweep_columns(std::vector<Column>& list) {
    list.push_back(latency_figure("latency_ms", "latency ms", "the point's time end to end, median", &Summary::median));
    list.push_back(
        latency_figure("latency_low_ms", "CI low ms",
                       "lower end of the median's 95 % interval; the least sample where fewer than ten are independent",
                       &Summary::ci_low));
    list.push_back(
        latency_figure("latency_high_ms", "CI high ms", "its upper end; else the largest sample", &Summary::ci_high));
    list.push_back(figure("tokens_per_s", "tokens/s", "1/s", "the point's throughput at the median latency", 0,
                          [](const TableRow& row) -> std::optional<double> {
                              if (!row.point->end_to_end) return std::nullopt;
                              return row.point->end_to_end->tokens_per_s;
                          }));
    list.push_back(figure("frames_per_s", "frames/s", "1/s",
                          "the same of frames within utterances; na for points without frames", 0,
                          [](const TableRow& row) -> std::optional<double> {
                              const std::optional<Frames> frames = frames_of(*row.point);
                              if (!row.point->end_to_end || !frames) return std::nullopt;
                              const double ms = row.point->end_to_end->latency.summary_ms.median;
                              return ms > 0 ? std::optional(frames->useful / ms * 1e3) : std::nullopt;
                          }));
    list.push_back(figure("point_tflop_per_s", "point TFLOP/s", "TFLOP/s",
                          "useful FLOPs of the cost model over the point's latency", 3,
                          [](const TableRow& row) -> std::optional<double> {
                              if (!row.point->end_to_end) return std::nullopt;
                              const double ms = row.point->end_to_end->latency.summary_ms.median;
                              return ms > 0 ? std::optional(row.point->cost.flops / ms * 1e-9) : std::nullopt;
                          }));
    list.push_back(figure(
        "least_bytes", "least bytes", "B",
        "least bytes of the point's model: weights, inputs and outputs once; na in rows of a part of a point, of a single op, and in files that do not have it",
        0, [](const TableRow& row) {
            const Point* point = whole_point(row);
            return point ? point->least_bytes : std::nullopt;
        }));
    list.push_back(figure(
        "roof_share", "roof %", "%",
        "share of the point's latency that the binding roofs of its steps demand; na in rows of a part of a point, and without ceilings",
        1, [](const TableRow& row) -> std::optional<double> {
            const Explanation* whole = whole_explanation(row);
            const std::optional<double> share = whole ? roof_share(whole->ledger) : std::nullopt;
            return share ? std::optional(100 * *share) : std::nullopt;
        }));
    list.push_back(of_row("binding_roof", Align::left, "the roof that demands most of that", [](const TableRow& row) {
        const Explanation* whole = whole_explanation(row);
        return text_or_na(whole ? binding_roof(whole->ledger) : "");
    }));
    list.push_back(
        of_row("verdict", Align::left, "what binds the point; na in rows of a part of it", [](const TableRow& row) {
            const Explanation* whole = whole_explanation(row);
            if (whole == nullptr || !whole->ledger.unavailable.empty()) return Value(NoValue::na);
            return text_or_na(verdict_text(whole->verdicts.model));
        }));
}

void add_step_columns(std::vector<Column>& list) {
    list.push_back(of_row("steps", Align::right, "number of steps in the row",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.steps.size())); }));
    list.push_back(of_row("step", Align::right, "number of the step in its point, from 0", [](const TableRow& row) {
        return shared(row, [](const PlacedStep& placed) { return Value(std::int64_t{placed.step->index}); });
    }));
    list.push_back(text("absorbs", "every op computed, layer:kind, joined by ;",
                        [](const StepResult& step) { return fmt::format("{}", fmt::join(step.absorbs, ";")); }));
    list.push_back(text(
        "forward",
        "the forward step, layer:op, that a backward step belongs to or that a forward step computes again; na for others",
        [](const StepResult& step) { return step.forward.value_or(""); }));
    list.push_back(text("provider", "who computes the step (`kbench list providers`)",
                        [](const StepResult& step) { return step.provider; }));
    list.push_back(text("isa", "instruction set of a CPU implementation, where its name tells",
                        [](const StepResult& step) { return instruction_set(step.implementation); }));
    list.push_back(text("implementation", "algorithm or kernel that the provider took",
                        [](const StepResult& step) { return step.implementation; }));
    list.push_back(
        text("shape", "shape of the op that names the step", [](const StepResult& step) { return step.shape; }));
    list.push_back(amount("padding_flops", "FLOP",
                          "FLOPs executed on padding and on what a mask discards, not in flops",
                          [](const StepResult& step) { return step.padding_flops; }));
    list.push_back(amount(
        "spared_flops", "FLOP",
        "FLOPs in flops that are not executed: what the implementation's algorithm does without, by its own account",
        [](const StepResult& step) { return step.spared_flops.value_or(0); }));
    list.push_back(of_row(
        "dependent_steps", Align::right,
        "how many times at least each step waits for a result of its own: the time steps of a recurrent layer; na for others",
        [](const TableRow& row) {
            return shared(row, [](const PlacedStep& placed) {
                const std::optional<std::int64_t>& steps = placed.step->dependent_steps;
                return steps ? Value(*steps) : Value(NoValue::na);
            });
        }));
    for (std::size_t role = 0; role < role_count; ++role)
        list.push_back(amount(
            fmt::format("bytes_{}", role_names[role]), "B",
            fmt::format("streaming bytes of {}", title(static_cast<Role>(role))),
            [role](const StepResult& step) { return step.cost.bytes_read[role] + step.cost.bytes_written[role]; }));
}

}  // namespace

void add_identity(std::vector<Column>& list) {
    add_pyprof_columns(list);
    add_point_columns(list);
    add_sweep_columns(list);
    add_step_columns(list);
}

}  // namespace kbench::column
