// trace.json: every point of a result as processes of a Chrome trace.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/explain/explain.h"
#include "analysis/facts/counters.h"
#include "analysis/machine/machine.h"
#include "analysis/report/trace_counters.h"
#include "analysis/report/trace_events.h"
#include "analysis/report/trace_timeline.h"
#include "analysis/report/writers.h"
#include "analysis/result/point_name.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

using Json = TraceEvents::Json;

Json json_of(const Quantity& quantity) {
    if (!quantity.value) return fmt::format("unavailable: {}", quantity.reason);
    return {{"value", brief(*quantity.value)}, {"origin", name(quantity.origin)}};
}

/// A program's is the call of its framework, or its op where that is not known.
std::string step_name(const StepResult& step) {
    if (step.call && !step.call->op.empty()) return step.call->op;
    return fmt::format("{} {}", step.index, step.layer.empty() ? step.op : step.layer);
}

/// Arguments that many slices of a point share, as blocks of a model repeat each other: the first slice has them, and
/// the others its step under "like".
class Repeats {
  public:
    Json once(const std::string& where, Json args) {
        const std::string text = args.dump(-1, ' ', false, Json::error_handler_t::replace);
        const auto [first, is_new] = places_.try_emplace(text, where);
        return is_new ? args : Json{{"like", first->second}};
    }

  private:
    std::map<std::string, std::string> places_;
};

Json launch_args(const KernelResult& kernel, const StepResult& step) {
    return {{"name", kernel.name},
            {"provider", step.provider},
            {"implementation", step.implementation},
            {"grid", kernel.grid},
            {"block", kernel.block},
            {"registers", kernel.registers},
            {"static_shared_bytes", kernel.static_shared_bytes},
            {"dynamic_shared_bytes", kernel.dynamic_shared_bytes},
            {"local_bytes", kernel.local_bytes},
            {"cluster_blocks", kernel.cluster_blocks},
            {"theoretical_occupancy_pct", json_of(kernel.theoretical_occupancy_pct)},
            {"waves", json_of(kernel.waves)},
            {"lost_in_last_wave_pct", json_of(kernel.lost_in_last_wave_pct)},
            {"blocks_per_sm", kernel.blocks_per_sm},
            {"limiters", kernel.limiters},
            {"occupancy_hint", kernel.occupancy_hint}};
}

Json kernel_args(const KernelInterval& placed, const StepResult& step, Repeats& repeats) {
    Json args = {{"gap_us", brief(placed.kernel->gap_us)}};
    if (placed.kernel->host_wait_us) args["host_wait_us"] = brief(*placed.kernel->host_wait_us);
    if (placed.kernel->moved_bytes) {
        args["name"] = placed.kernel->name;
        args["bytes"] = *placed.kernel->moved_bytes;
        return args;
    }
    if (placed.overlap > 0)
        args["overlap"] =
            fmt::format("began {} ns before the kernel ahead of it ended; drawn after it", placed.overlap);
    const auto number = placed.kernel - step.kernels.data();
    args.update(repeats.once(fmt::format("step {}, kernel {}", step.index, number), launch_args(*placed.kernel, step)));
    return args;
}

/// What the plan and the verdict say of a step; of what it absorbs the op kinds, as their layers differ from block to
/// block.
Json work_args(const StepResult& step, const Verdict* verdict) {
    const auto kind_of = [](const std::string& absorbed) { return absorbed.substr(absorbed.rfind(':') + 1); };
    Json args = {{"op", step.op},
                 {"absorbs", joined(step.absorbs, " + ", kind_of)},
                 {"provider", step.provider},
                 {"implementation", step.implementation},
                 {"shape", step.shape},
                 {"precision", name(step.precision)},
                 {"direction", name(step.direction)},
                 {"flops", brief(step.cost.flops)},
                 {"padding_flops", brief(step.padding_flops)},
                 {"bytes", brief(step.cost.bytes())}};
    if (!step.has_cost())
        for (const char* unknown : {"flops", "padding_flops", "bytes"}) args.erase(unknown);
    if (verdict != nullptr)
        args["verdict"] = verdict->level.empty() ? std::string(name(verdict->bound))
                                                 : fmt::format("{} ({})", name(verdict->bound), verdict->level);
    return args;
}

/// What a program's framework says of a call.
Json call_args(const FrameworkCall& call, const std::string& layer) {
    Json args = {{"layer", layer}, {"module", call.module}};
    if (!call.sub.empty()) args["sub"] = call.sub;
    if (!call.parameters.empty()) args["parameters"] = call.parameters;
    if (!call.line.empty()) args["line"] = call.line;
    if (call.sequence) args["sequence"] = *call.sequence;
    if (call.forward_sequence) args["forward_sequence"] = *call.forward_sequence;
    return args;
}

Json step_args(const StepInterval& placed, bool recorded, const Verdict* verdict, bool is_alone, Repeats& repeats) {
    const StepResult& step = *placed.step;
    Json args = repeats.once(fmt::format("step {}", step.index), work_args(step, verdict));
    if (step.forward) args["forward"] = *step.forward;
    if (step.call) args["call"] = call_args(*step.call, step.layer);
    if (recorded && step.kernels.empty()) args["time"] = "launched no kernel";
    if (args.contains("like") && !is_alone) return args;
    if (step.has_cost()) {
        args["tflop_per_s"] = brief(step.tflop_per_s());
        args["gb_per_s"] = brief(step.gb_per_s());
    }
    for (const auto& [name, value] : step.counters)
        if (const std::optional<double> shown = counter_named(step, name)) args["counters"][name] = brief(*shown);
    if (const std::string why = elapsed_withheld(step); !why.empty()) args["counters_withheld"] = why;
    if (!step.counters_discarded.empty()) args["counters_discarded"] = step.counters_discarded;
    return args;
}

Json layer_args(const LayerInterval& layer, const Timeline& timeline) {
    double flops = 0, bytes = 0;
    for (std::size_t i = layer.first_step; i < layer.first_step + layer.step_count; ++i) {
        flops += timeline.steps[i].step->cost.flops;
        bytes += timeline.steps[i].step->cost.bytes();
    }
    return {{"steps", layer.step_count}, {"flops", brief(flops)}, {"bytes", brief(bytes)}};
}

void add_copies(TraceEvents& events, int process, const Point& point, const Timeline& timeline) {
    if (!timeline.tokens_in && !timeline.logits_out) return;
    const int track = events.track(process, "copies");
    const auto add = [&](std::string_view label, const std::optional<TimeSpan>& copy,
                         const std::optional<Timing>& timing) {
        if (!copy) return;
        events.slice(process, track, label, copy->start, copy->end,
                     {{"time", fmt::format("median of {} copies, timed apart from the {}", timing->summary_ms.n,
                                           timed_words(point).short_name)},
                      {"median_ms", brief(timing->summary_ms.median)},
                      {"ci_ms", {brief(timing->summary_ms.ci_low), brief(timing->summary_ms.ci_high)}}});
    };
    add("host_to_device tokens (median)", timeline.tokens_in, point.end_to_end->host_to_device);
    add("device_to_host logits (median)", timeline.logits_out, point.end_to_end->device_to_host);
}

/// Adds what has samples, all tracks under one name, each time with the values that then hold; gives what has none,
/// with the reason, and what the samples leave out.
Json add_counters(TraceEvents& events, int process, std::string_view name, const std::vector<CounterTrack>& tracks) {
    Json missing = Json::object(), notes = Json::object();
    std::map<Nanoseconds, Json> changes;
    for (const CounterTrack& track : tracks) {
        if (track.samples.empty()) missing[track.name] = track.unavailable;
        if (!track.note.empty()) notes[track.name] = track.note;
        for (const CounterTrack::Sample& sample : track.samples) changes[sample.at][track.name] = brief(sample.value);
    }
    Json values = Json::object();
    for (const auto& [at, changed] : changes) {
        values.update(changed);
        events.counters(process, name, at, values);
    }
    return {{"unavailable", std::move(missing)}, {"notes", std::move(notes)}};
}

/// The kernels, copies and fills of a program, a track a stream. Where the GPU waits for the host, a slice says so.
void add_streams(TraceEvents& events, int process, const Timeline& timeline, Repeats& repeats) {
    std::map<int, int> tracks;
    for (const StepInterval& step : timeline.steps)
        for (const KernelInterval& kernel : step.kernels) tracks[kernel.kernel->stream] = 0;
    for (auto& [stream, track] : tracks) track = events.track(process, fmt::format("kernel, stream {}", stream));
    const int wait_track = events.track(process, "host wait");
    for (const StepInterval& step : timeline.steps)
        for (const KernelInterval& kernel : step.kernels) {
            if (kernel.host_wait)
                events.slice(process, wait_track, "GPU waits for the host", kernel.host_wait->start,
                             kernel.host_wait->end, {{"launch", kernel.kernel->short_name}});
            events.slice(process, tracks[kernel.kernel->stream], kernel.kernel->short_name, kernel.start, kernel.end,
                         kernel_args(kernel, *step.step, repeats));
        }
}

void add_slices(TraceEvents& events, int process, const Point& point, const Timeline& timeline,
                const Verdicts& verdicts, bool is_alone) {
    const auto verdict_of = [&](const StepResult& step) {
        const auto index = static_cast<std::size_t>(&step - point.steps.data());
        return index < verdicts.steps.size() ? &verdicts.steps[index] : nullptr;
    };
    const int layer_track = events.track(process, "layer"), step_track = events.track(process, "step");
    Repeats steps, kernels;
    for (const LayerInterval& layer : timeline.layers)
        if (is_alone || layer.step_count > 1)
            events.slice(process, layer_track, layer.name, layer.start, layer.end, layer_args(layer, timeline));
    for (const StepInterval& step : timeline.steps)
        events.slice(process, step_track, step_name(*step.step), step.start, step.end,
                     step_args(step, timeline.recorded, verdict_of(*step.step), is_alone, steps));
    if (!timeline.recorded) return;
    if (point.program) {
        add_streams(events, process, timeline, kernels);
        return;
    }
    const int kernel_track = events.track(process, "kernel");
    for (const StepInterval& step : timeline.steps)
        for (const KernelInterval& kernel : step.kernels)
            events.slice(process, kernel_track, kernel.kernel->short_name, kernel.start, kernel.end,
                         kernel_args(kernel, *step.step, kernels));
}

/// How the times came about, for otherData.
std::string times_of(const Point& point, const Timeline& timeline) {
    if (timeline.recorded)
        return fmt::format(
            "kernels and the gaps between them: medians of {} recorded {}, which take longer than without records{}",
            point.activity.runs, timed_words(point).several,
            point.program ? "; what several streams did at the same time is drawn one after another" : "");
    const std::string& why = point.activity.unavailable;
    return fmt::format("steps: medians of the step run, one after another; no kernel was recorded{}{}",
                       why.empty() ? "" : ": ", why);
}

/// `is_alone`: the result has no other point, and there is room for all. Else a layer of one step is that step, a step
/// that repeats another has no rates and counters beside its tracks, and of the conditions' readings some are enough.
Json add_point(TraceEvents& events, const Point& point, const Explanation& explanation, bool is_alone) {
    const std::string name = point_name(point);
    if (point.steps.empty()) return {{"point", name}, {"status", kbench::name(point.status)}, {"reason", point.reason}};
    const Timeline timeline = make_timeline(point);
    const int forward = events.process(name);
    add_slices(events, forward, point, timeline, explanation.verdicts, is_alone);
    add_copies(events, forward, point, timeline);
    Json told = {{"point", name}, {"status", kbench::name(point.status)}, {"times", times_of(point, timeline)}};
    if (timeline.untimed_steps > 0) told["untimed_steps"] = timeline.untimed_steps;
    told["forward"] = add_counters(events, forward, "step", forward_counters(explanation, timeline));
    const int conditions = events.process("conditions of the timing run: " + name);
    told["conditions"] = add_counters(events, conditions, "run", condition_counters(point.conditions, is_alone));
    return told;
}

}  // namespace

std::string write_trace(const ExplainedResult& explained) {
    const Result& result = explained.result();
    TraceEvents events;
    const Environment& environment = result.environment;
    Json told = {{"kbench", environment.kbench_version},
                 {"git_revision", environment.git_revision},
                 {"command_line", environment.command_line},
                 {"started_at", environment.started_at},
                 {"device", environment.gpu ? device_name(*environment.gpu) : environment.host.cpu},
                 {"conditions", "in their own time, from the begin of the first sample"},
                 {"points", Json::array()}};
    for (std::size_t i = 0; i < result.points.size(); ++i)
        told["points"].push_back(add_point(events, result.points[i], explained.of(i), result.points.size() == 1));
    return events.text(told);
}

}  // namespace kbench
