// trace.json: every point of a result as processes of a Chrome trace.
#include <fmt/format.h>

#include <utility>

#include "analysis/explain/explain.h"
#include "analysis/facts/counters.h"
#include "analysis/machine/machine.h"
#include "analysis/report/trace_counters.h"
#include "analysis/report/trace_events.h"
#include "analysis/report/trace_timeline.h"
#include "analysis/report/writers.h"
#include "analysis/result/point_name.h"

namespace kbench {
namespace {

using Json = TraceEvents::Json;

Json json_of(const Quantity& quantity) {
    if (!quantity.value) return fmt::format("unavailable: {}", quantity.reason);
    return {{"value", *quantity.value}, {"origin", name(quantity.origin)}};
}

std::string step_name(const StepResult& step) { return fmt::format("{} {}", step.index, step.layer); }

Json kernel_args(const KernelInterval& placed, const StepResult& step) {
    const KernelResult& kernel = *placed.kernel;
    Json args = {{"name", kernel.name},
                 {"step", step_name(step)},
                 {"provider", step.provider},
                 {"implementation", step.implementation},
                 {"time_us", kernel.time_us},
                 {"gap_us", kernel.gap_us},
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
    if (placed.overlap > 0)
        args["overlap"] =
            fmt::format("began {} ns before the kernel ahead of it ended; drawn after it", placed.overlap);
    return args;
}

Json step_args(const StepInterval& placed, bool recorded, const Verdict* verdict) {
    const StepResult& step = *placed.step;
    Json args = {{"op", step.op},
                 {"absorbs", step.absorbs},
                 {"provider", step.provider},
                 {"implementation", step.implementation},
                 {"shape", step.shape},
                 {"precision", name(step.precision)},
                 {"direction", name(step.direction)},
                 {"flops", step.cost.flops},
                 {"padding_flops", step.padding_flops},
                 {"bytes", step.cost.bytes()},
                 {"tflop_per_s", step.tflop_per_s()},
                 {"gb_per_s", step.gb_per_s()}};
    if (step.forward) args["forward"] = *step.forward;
    if (verdict != nullptr)
        args["verdict"] = verdict->level.empty() ? std::string(name(verdict->bound))
                                                 : fmt::format("{} ({})", name(verdict->bound), verdict->level);
    if (!recorded) args["time"] = "median of the step run; no kernel was recorded";
    if (recorded && step.kernels.empty()) args["time"] = "launched no kernel";
    for (const auto& [name, value] : step.counters)
        if (const std::optional<double> shown = counter_named(step, name)) args["counters"][name] = *shown;
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
    return {{"steps", layer.step_count}, {"flops", flops}, {"bytes", bytes}};
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
                      {"median_ms", timing->summary_ms.median},
                      {"ci_ms", {timing->summary_ms.ci_low, timing->summary_ms.ci_high}}});
    };
    add("host_to_device tokens (median)", timeline.tokens_in, point.end_to_end->host_to_device);
    add("device_to_host logits (median)", timeline.logits_out, point.end_to_end->device_to_host);
}

/// Adds what has samples; gives what has none, with the reason, and what the samples leave out.
Json add_counters(TraceEvents& events, int process, const std::vector<CounterTrack>& tracks) {
    Json missing = Json::object(), notes = Json::object();
    for (const CounterTrack& track : tracks) {
        if (track.samples.empty()) missing[track.name] = track.unavailable;
        if (!track.note.empty()) notes[track.name] = track.note;
        for (const CounterTrack::Sample& sample : track.samples)
            events.counter(process, track.name, sample.at, sample.value);
    }
    return {{"unavailable", std::move(missing)}, {"notes", std::move(notes)}};
}

void add_slices(TraceEvents& events, int process, const Point& point, const Timeline& timeline,
                const Verdicts& verdicts) {
    const auto verdict_of = [&](const StepResult& step) {
        const auto index = static_cast<std::size_t>(&step - point.steps.data());
        return index < verdicts.steps.size() ? &verdicts.steps[index] : nullptr;
    };
    const int layer_track = events.track(process, "layer"), step_track = events.track(process, "step");
    for (const LayerInterval& layer : timeline.layers)
        events.slice(process, layer_track, layer.name, layer.start, layer.end, layer_args(layer, timeline));
    for (const StepInterval& step : timeline.steps)
        events.slice(process, step_track, step_name(*step.step), step.start, step.end,
                     step_args(step, timeline.recorded, verdict_of(*step.step)));
    if (!timeline.recorded) return;
    const int kernel_track = events.track(process, "kernel");
    for (const StepInterval& step : timeline.steps)
        for (const KernelInterval& kernel : step.kernels)
            events.slice(process, kernel_track, kernel.kernel->short_name, kernel.start, kernel.end,
                         kernel_args(kernel, *step.step));
}

/// How the times came about, for otherData.
std::string times_of(const Point& point, const Timeline& timeline) {
    if (timeline.recorded)
        return fmt::format(
            "kernels and the gaps between them: medians of {} recorded {}, which take longer than without records",
            point.activity.runs, timed_words(point).several);
    const std::string& why = point.activity.unavailable;
    return fmt::format("steps: medians of the step run, one after another; no kernel was recorded{}{}",
                       why.empty() ? "" : ": ", why);
}

Json add_point(TraceEvents& events, const Point& point, const Explanation& explanation) {
    const std::string name = point_name(point);
    if (point.steps.empty()) return {{"point", name}, {"status", kbench::name(point.status)}, {"reason", point.reason}};
    const Timeline timeline = make_timeline(point);
    const int forward = events.process(name);
    add_slices(events, forward, point, timeline, explanation.verdicts);
    add_copies(events, forward, point, timeline);
    Json told = {{"point", name}, {"status", kbench::name(point.status)}, {"times", times_of(point, timeline)}};
    if (timeline.untimed_steps > 0) told["untimed_steps"] = timeline.untimed_steps;
    told["forward"] = add_counters(events, forward, forward_counters(explanation, timeline));
    const int conditions = events.process("conditions of the timing run: " + name);
    told["conditions"] = add_counters(events, conditions, condition_counters(point.conditions));
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
        told["points"].push_back(add_point(events, result.points[i], explained.of(i)));
    return events.text(told);
}

}  // namespace kbench
