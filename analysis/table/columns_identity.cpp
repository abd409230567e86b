// Columns that say what a row is: PyProf's, the point's and the sweep's, and the step's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "analysis/explain/executed.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/explain/time_breakdown.h"
#include "analysis/facts/point_facts.h"
#include "analysis/machine/isa.h"
#include "analysis/result/frames.h"
#include "analysis/table/columns_builders.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench::column {
namespace {

/// What a program's steps share of the calls of their framework; nothing where a call is not known.
template <class Of>
auto of_calls(Of of) {
    return of_steps([of](Step step) { return step.call ? cell(std::invoke(of, *step.call)) : Value(NoValue::na); });
}

/// The thread that launched; nothing for kbench's own models.
std::optional<std::int64_t> thread_of(const FrameworkCall& call) {
    return call.thread != 0 ? std::optional(call.thread) : std::nullopt;
}

std::string calls_of(const FrameworkCall& call) {
    return call.sub.empty() || call.sub == call.op ? call.op : fmt::format("{} > {}", call.op, call.sub);
}

std::string_view module_of(Step step) { return step.call ? step.call->module : step.provider; }

std::string params_of(Step step) {
    if (step.call && !step.call->parameters.empty()) return step.call->parameters;
    if (step.shape.empty()) return "";  // a program's op
    return fmt::format("[{}]{}", step.shape, name(step.precision));
}

/// "copy HtoD, 4.20 MB, pageable": a copy or a fill is told by its size.
std::string kernel_text(Kernel kernel) {
    if (!kernel.moved_bytes) return kernel.short_name;
    return fmt::format("{}, {}{}", kernel.short_name, format_bytes(static_cast<double>(*kernel.moved_bytes)),
                       kernel.name.find("pageable") != std::string::npos ? ", pageable" : "");
}

Value kernel_of(Row row) {
    if (row.kernel != nullptr) return cell(kernel_text(*row.kernel));
    return of_steps([](Step step) {
        return step.kernels.empty() ? step.implementation : joined(step.kernels, "+", kernel_text);
    })(row);
}

/// The numbers of the ops that the row's steps compute; nothing for steps of a backward. A program's framework has
/// numbered its calls.
Value op_numbers(Row row) {
    if (row.point->program) return of_calls(&FrameworkCall::sequence)(row);
    return common(row.steps, [](const PlacedStep& placed) {
        if (placed.step->direction != Direction::fwd || placed.step->is_recomputed()) return Value(NoValue::na);
        std::vector<std::int64_t> numbers(placed.step->absorbs.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = placed.first_op + static_cast<std::int64_t>(i);
        return cell(fmt::format("{}", fmt::join(numbers, ",")));
    });
}

std::optional<std::size_t> kernel_number(Row row) {
    return row.steps.empty() ? std::nullopt : std::optional(row.kernel_number);
}

auto extent(std::array<std::int64_t, 3> KernelResult::*member) {
    return of_launches([member](Kernel kernel) { return fmt::format("{}", fmt::join(kernel.*member, ",")); });
}

Value layer_of(Row row) {
    return of_steps([&](Step step) { return row.folded ? layer_group(step.layer) : step.layer; })(row);
}

std::optional<long long> silicon_ns(Row row) {
    const std::optional<double> time = time_us(row);
    return time ? std::optional(std::llround(*time * 1e3)) : std::nullopt;
}

Value device_of(Row row) {
    if (!kernels_of(row).empty()) return of_kernels(&KernelResult::device)(row);
    return row.point->backend() == "cuda" ? Value(std::int64_t{0}) : Value(NoValue::na);
}

/// A precision is its steps' own.
Value value_on(const Axis& axis, Row row) {
    if (axis.name == "precision" && !row.steps.empty())
        return of_steps([](Step step) { return name(step.precision); })(row);
    const AxisValue* value = row.point->axes.find(axis.name);
    return value == nullptr ? NoValue::na : std::visit([](const auto& plain) { return cell(plain); }, *value);
}

/// Nothing in rows of a part of a point.
bool is_whole_point(Row row) { return row.kernel == nullptr && row.steps.size() == row.point->steps.size(); }

/// What `of` says of the point's times end to end; nothing where it has none.
template <class Of>
auto of_latency(Of of) {
    return [of](Row row) -> std::optional<double> {
        return row.point->end_to_end ? std::optional<double>(std::invoke(of, *row.point->end_to_end)) : std::nullopt;
    };
}

auto latency(double Summary::*member) {
    return of_latency([member](const EndToEnd& measured) { return measured.latency.summary_ms.*member; });
}

/// `work` of the point over its latency, times `scale`.
std::optional<double> over_latency(Row row, std::optional<double> work, double scale) {
    const std::optional<double> ms = latency(&Summary::median)(row);
    return work && ms && *ms > 0 ? std::optional(*work / *ms * scale) : std::nullopt;
}

std::optional<double> frames_per_s(Row row) {
    const std::optional<Frames> frames = frames_of(*row.point);
    return over_latency(row, frames ? std::optional(frames->useful) : std::nullopt, 1e3);
}

std::optional<double> roof_pct(Row row) {
    const Explanation* whole = whole_explanation(row);
    const std::optional<double> share = whole ? roof_share(whole->breakdown) : std::nullopt;
    return share ? std::optional(100 * *share) : std::nullopt;
}

std::string roof_of(Row row) {
    const Explanation* whole = whole_explanation(row);
    return whole != nullptr ? binding_roof(whole->breakdown) : "";
}

std::string model_verdict(Row row) {
    const Explanation* whole = whole_explanation(row);
    return whole != nullptr && whole->breakdown.unavailable.empty() ? verdict_text(whole->verdicts.model) : "";
}

}  // namespace

const Explanation* whole_explanation(Row row) {
    if (!is_whole_point(row) || !row.point->end_to_end || row.explanation == nullptr) return nullptr;
    return &row.explanation->get();
}

/// The names and meanings of PyProf (github.com/NVIDIA/PyProf, docs/profile.rst), in its order.
Entries pyprof_columns() {
    return {
        {"idx", "", "", 0, &TableRow::index,
         "number of the row in order of execution, from 0, before --sort and --top"},
        {"seq", "", "", as_text, op_numbers,
         "numbers of the ops computed, from 0 in the order of the forward pass; na for steps of a backward, which name theirs in forward; of a program the framework's number of the call"},
        {"altseq", "", "", 0, of_calls(&FrameworkCall::forward_sequence),
         "number of the forward call that a program's backward call belongs to; na for others"},
        {"tid", "", "", 0, of_calls(thread_of), "a program's thread that launched the row; na for others"},
        {"layer", "", "", as_text, layer_of, "layer as the checkpoint names it; with --fold * for each number"},
        {"trace", "", "", as_text, of_calls(&FrameworkCall::line),
         "line of the program that called the op, file:line; na for others, a plan has none"},
        {"dir", "", "", as_text, of_steps([](Step step) { return name(step.direction); }),
         "direction: fwd, bwd, dgrad or wgrad"},
        {"sub", "", "", 0, kernel_number, "number of the kernel in its step, from 0; 0 where rows are not kernels"},
        {"mod", "", "", as_text, of_steps(module_of),
         "module that computes the op: the provider; of a program the class of the framework's module"},
        {"op", "", "", as_text, of_steps(op_name),
         "kind of the op that names the step; of a program the framework's name of the call"},
        {"kernel", "", "", as_text, kernel_of,
         "kernel, without namespaces and parameters; several of a step joined by +; the implementation where none was recorded; a copy or fill with its bytes"},
        {"params", "", "", as_text, of_steps(params_of),
         "shape and precision; of a program the sizes of the call's inputs"},
        {"sil", "sil ns", "ns", 0, silicon_ns, "silicon time: time on the device as in time_us, whole nanoseconds"},
        {"tc", "", "", 0, counted(of_steps(tensor_cores_used)),
         "tensor cores used, by counters: 1 or 0; na when not counted"},
        {"device", "", "", 0, device_of,
         "ordinal of the CUDA device: of the kernels where recorded, else the first; na on a CPU"},
        {"stream", "", "", 0, of_kernels(&KernelResult::stream), "CUDA stream of the kernels"},
        {"grid", "", "", 0, extent(&KernelResult::grid), "blocks launched, x,y,z"},
        {"block", "", "", 0, extent(&KernelResult::block), "threads of a block, x,y,z"},
        {"flops", "", "FLOP", 0, total(flops_of),
         "useful FLOPs of the cost model, a fused multiply-add is 2; na where a program's op is not known"},
        {"bytes", "", "B", 0, total(bytes_of),
         "unfused traffic: each step's operands and results once; of a program's copies and fills what they move, na where its op is not known"},
    };
}

Entries point_columns() {
    Entries list{{"file", "", "", as_text, &TableRow::file, "file the row comes from"},
                 {"point", "", "", 0, &TableRow::point_index, "number of the point in its file, from 0"}};
    for (const Axis& axis : axes())
        list.push_back({std::string(axis.column), "", std::string(axis.unit),
                        axis.kind == AxisKind::count ? 0 : as_text, [&axis](Row row) { return value_on(axis, row); },
                        std::string(axis.what)});
    list.push_back({"status", "", "", as_text, [](Row row) { return name(row.point->status); },
                    "of the point: done, skipped or failed"});
    list.push_back({"reason", "", "", as_text, [](Row row) { return row.point->reason; },
                    "why the point was skipped or has failed"});
    return list;
}

Entries sweep_columns() {
    return {
        {"latency_ms", "latency ms", "ms", 4, latency(&Summary::median), "the point's time end to end, median"},
        {"latency_low_ms", "CI low ms", "ms", 4, latency(&Summary::ci_low),
         "lower end of the median's 95 % interval; the least sample where too few are independent"},
        {"latency_high_ms", "CI high ms", "ms", 4, latency(&Summary::ci_high),
         "its upper end; else the largest sample"},
        {"tokens_per_s", "tokens/s", "1/s", 0, of_latency(&EndToEnd::tokens_per_s),
         "the point's throughput at the median latency"},
        {"frames_per_s", "frames/s", "1/s", 0, frames_per_s,
         "the same of frames within utterances; na for points without frames"},
        {"point_tflop_per_s", "point TFLOP/s", "TFLOP/s", 3,
         [](Row row) { return over_latency(row, row.point->cost.flops, 1e-9); },
         "useful FLOPs of the cost model over the point's latency"},
        {"compulsory_bytes", "compulsory traffic", "B", 0,
         [](Row row) { return is_whole_point(row) ? row.point->compulsory_bytes : std::nullopt; },
         "compulsory traffic of the point's model: weights, inputs and outputs once; na in rows of a part of a point, of a single op, and in files that do not have it"},
        {"roof_share", "roof %", "%", 1, roof_pct,
         "the longest roof times of its steps over the point's latency; na in rows of a part of a point, and without ceilings"},
        {"binding_roof", "", "", as_text, roof_of, "the roof with the longest of these"},
        {"verdict", "", "", as_text, model_verdict, "the point's bottleneck; na in rows of a part of it"},
    };
}

Entries step_columns() {
    Entries list{
        {"steps", "", "", 0, [](Row row) { return row.steps.size(); }, "number of steps in the row"},
        {"step", "", "", 0, of_steps(&StepResult::index), "number of the step in its point, from 0"},
        {"absorbs", "", "", as_text, of_steps([](Step step) { return joined(step.absorbs, ";"); }),
         "every op computed, layer:kind, joined by ;"},
        {"forward", "", "", as_text, of_steps(&StepResult::forward),
         "the forward step, layer:op, that a backward step belongs to or that a forward step computes again; na for others"},
        {"provider", "", "", as_text, of_steps(&StepResult::provider),
         "who computes the step (`kbench list providers`)"},
        {"isa", "", "", as_text, of_steps([](Step step) { return instruction_set(step.implementation); }),
         "instruction set of a CPU implementation, where its name tells"},
        {"implementation", "", "", as_text, of_steps(&StepResult::implementation),
         "algorithm or kernel that the provider took"},
        {"calls", "", "", as_text, of_calls(calls_of),
         "a program's call with the innermost call inside of it, as the framework names them; na for others"},
        {"shape", "", "", as_text, of_steps(&StepResult::shape), "shape of the op that names the step"},
        {"padding_flops", "", "FLOP", 0, total(&StepResult::padding_flops),
         "FLOPs executed on padding and on what a mask discards, not in flops"},
        {"spared_flops", "", "FLOP", 0, total([](Step step) { return step.spared_flops.value_or(0); }),
         "FLOPs in flops that are not executed: what the implementation's algorithm does without, by its own account"},
        {"time_steps", "", "", 0, of_steps(&StepResult::time_steps),
         "how many times at least each step waits for a result of its own: the time steps of a recurrent layer; na for others"},
    };
    for (std::size_t role = 0; role < role_count; ++role)
        list.push_back({fmt::format("bytes_{}", role_names[role]), "", "B", 0,
                        total([role](Step step) { return step.cost.bytes_read[role] + step.cost.bytes_written[role]; }),
                        fmt::format("unfused traffic of {}", title(static_cast<Role>(role)))});
    return list;
}

}  // namespace kbench::column
