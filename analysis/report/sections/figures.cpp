#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/report/sections/sections.h"
#include "analysis/result/frames.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// A kind of time taken end to end. The terminal's table has little room for its name.
struct TimeKind {
    std::string_view short_name, name;
    const std::optional<Timing> EndToEnd::*timing;
};
constexpr TimeKind time_kinds[] = {
    {"stream", "latency (stream launches)", &EndToEnd::stream},
    {"enqueue", "host's time to launch", &EndToEnd::enqueue},
    {"H2D", "inputs to the device", &EndToEnd::host_to_device},
    {"D2H", "outputs to the host", &EndToEnd::device_to_host},
};

Fact fact_of(std::string_view name, const Timing& timing) {
    const Summary& ms = timing.summary_ms;
    const TimesInUnit show(ms.median);
    const std::string interval = ms.has_interval()
                                     ? fmt::format(", 95 % interval {} to {}", show(ms.ci_low), show(ms.ci_high))
                                     : std::string(": too few for an interval");
    return {std::string(name), fmt::format("{} {}", show(ms.median), show.unit()),
            fmt::format("measured, median of {} samples, {:.0f} independent{}; mean {}", ms.n,
                        std::floor(ms.independent), interval, show(ms.mean))};
}

Rows latency_rows(const Point& point) {
    Rows rows{{words("latency"), words("unit"), figures("median"), figures("95 % CI"), figures("min"),
               figures("mean", 2), figures("p90", 3), figures("p95", 4), figures("p99", 1), figures("max"),
               figures("n"), figures("independent", 2)}};
    const auto add = [&rows](std::string_view name, const Timing& timing) {
        const Summary& ms = timing.summary_ms;
        const TimesInUnit show(ms.median);
        rows.rows.push_back({std::string(name), std::string(show.unit()), show(ms.median),
                             ms.has_interval() ? fmt::format("[{}, {}]", show(ms.ci_low), show(ms.ci_high)) : "-",
                             show(ms.min), show(ms.mean), show(ms.p90), show(ms.p95), show(ms.p99), show(ms.max),
                             std::to_string(ms.n), fmt::format("{:.0f}", std::floor(ms.independent))});
    };
    const EndToEnd& times = *point.end_to_end;
    add(is_graph(point) ? "CUDA graph" : timed_words(point).short_name, times.latency);
    for (const TimeKind& kind : time_kinds)
        if (const auto& timing = times.*kind.timing) add(kind.short_name, *timing);
    return rows;
}

std::string not_converged(const EndToEnd& times) {
    if (times.converged) return {};
    const double ci = times.latency.summary_ms.relative_ci();
    const std::string reached = std::isfinite(ci) ? fmt::format("the median's interval was still +-{:.2f} %", 100 * ci)
                                                  : fmt::format("too few independent samples, {:.0f}, for an interval",
                                                                std::floor(times.latency.summary_ms.independent));
    return fmt::format("Not converged: {} when the time budget ended.", reached);
}

/// Where a sample is more than one run.
std::string sampled_together(const EndToEnd& times) {
    if (times.runs_per_sample.value_or(1) <= 1) return {};
    return fmt::format("A sample is {} runs in a row, divided: a single one is short for the clock.",
                       *times.runs_per_sample);
}

/// What a caller waits for who copies the inputs in and the results out; empty where nothing is copied.
std::string host_latency(const EndToEnd& times) {
    if (!times.host_to_device || !times.device_to_host) return {};
    return fmt::format("{}, with H2D and D2H",
                       format_ms(times.host_to_device->summary_ms.median + times.latency.summary_ms.median +
                                 times.device_to_host->summary_ms.median));
}

std::string planned(const MemoryPlan& memory, Depth depth) {
    if (memory.total() == 0) return {};
    return depth == Depth::full ? format_bytes(static_cast<double>(memory.total())) : memory_text(memory);
}

/// FLOPs of forward steps that the backward runs again, and their time where all were timed.
std::string recomputed(const Point& point) {
    if (!point.recomputed_flops) return {};
    std::optional<double> us = 0;
    for (const StepResult& step : point.steps)
        if (step.is_recomputed()) us = us && step.device_us() ? std::optional(*us + *step.device_us()) : std::nullopt;
    return format_flop(*point.recomputed_flops) + (us ? fmt::format(" in {} ms", significant(*us * 1e-3)) : "");
}

}  // namespace

std::string memory_text(const MemoryPlan& memory) {
    const bool saves = memory.bytes[static_cast<std::size_t>(Role::saved_activations)] > 0;
    std::vector<std::string> roles;
    for (std::size_t i = 0; i < role_count; ++i) {
        const auto role = static_cast<Role>(i);
        if (memory.bytes[i] > 0)
            roles.push_back(fmt::format("{}{} {}", saves && role == Role::activations ? "other " : "", title(role),
                                        format_bytes(static_cast<double>(memory.bytes[i]))));
    }
    return fmt::format("{}: {}", format_bytes(static_cast<double>(memory.total())), fmt::join(roles, ", "));
}

std::vector<Fact> energy_facts(const Point& point) {
    const EndToEnd& times = *point.end_to_end;
    std::vector<Fact> facts;
    if (times.energy_per_sequence_j)
        facts.push_back(
            fact(fmt::format("energy per {}", sequence_word(point)), *times.energy_per_sequence_j, format_joules));
    if (times.energy_per_token_j) facts.push_back(fact("energy per token", *times.energy_per_token_j, format_joules));
    return facts;
}

Section figures_section(const SectionContext& context) {
    const Point& point = context.point();
    const Explanation& explanation = context.explanation();
    const Depth depth = context.depth;
    Section section{depth == Depth::full ? "Key figures" : ""};
    if (depth == Depth::summary && !point.program)
        section.add(Facts{{{"weights",
                            fmt::format("{} parameters, {}, seed {}",
                                        significant(static_cast<double>(point.parameters)), point.weights, point.seed),
                            ""}}});
    if (!point.end_to_end) return section;
    const EndToEnd& times = *point.end_to_end;
    Facts facts{{}, "", "figure"};
    const auto add = [&facts](std::string_view label, std::string value, std::string_view origin) {
        if (!value.empty()) facts.facts.push_back({std::string(label), std::move(value), std::string(origin)});
    };
    if (depth == Depth::full) {
        facts.facts.push_back(fact_of(is_graph(point) ? "latency (CUDA graph)" : "latency", times.latency));
        for (const TimeKind& kind : time_kinds)
            if (const auto& timing = times.*kind.timing) facts.facts.push_back(fact_of(kind.name, *timing));
    } else {
        section.add(latency_rows(point));
        section.add(Paragraph{sampled_together(times)});
        section.add(Paragraph{not_converged(times)});
    }
    add("host latency", host_latency(times), "derived: medians added");
    std::vector<std::string> rates;
    if (times.sequences_per_s) rates.push_back(significant(*times.sequences_per_s, 4) + " sequences/s");
    if (times.tokens_per_s) rates.push_back(significant(*times.tokens_per_s, 4) + " tokens/s");
    const double seconds = times.latency.summary_ms.median * 1e-3;
    const std::optional<Frames> frames = frames_of(point);
    if (frames && seconds > 0) {
        rates.push_back(significant(static_cast<double>(point.batch()) / seconds, 4) + " utterances/s");
        rates.push_back(significant(frames->useful / seconds, 4) + " frames/s");
    }
    add("throughput", joined(rates, ", "), "derived: at the median");
    if (frames && point.axes.count("useful_frames"))
        add("frames",
            fmt::format("{} of {} ({:.1f} % are padding), {} an utterance", significant(frames->useful, 1),
                        significant(frames->padded, 1), 100 * frames->padding_share(),
                        significant(frames->useful / static_cast<double>(point.batch()), 4)),
            "derived: lengths");
    const auto rated = [seconds](const std::string& amount, const std::string& rate) {
        return seconds > 0 ? fmt::format("{}, {}", amount, rate) : amount;
    };
    const bool has_costs = !point.program || point.cost.flops > 0;
    const std::string_view known_ops =
        explanation.facts.unknown_work_us > 0 ? "derived: of ops whose work is known" : "";
    if (has_costs)
        add("useful work", rated(format_flop(point.cost.flops), format_flop_per_s(point.cost.flops / seconds)),
            known_ops.empty() ? "derived: cost model" : known_ops);
    if (point.padding_flops > 0) add("not useful", format_flop(point.padding_flops), "derived: padding and masks");
    add("time steps", serial_chain_text(explanation.time_steps), "derived: the steps' times over their number");
    add("recomputed", recomputed(point), "derived: steps of the forward that run again");
    const auto traffic = [&](double bytes) { return rated(format_bytes(bytes), format_bytes_per_s(bytes / seconds)); };
    const std::string unfused = traffic(point.cost.bytes()),
                      least = point.compulsory_bytes ? traffic(*point.compulsory_bytes) : "";
    if (!has_costs) {
        add("work", "unknown: of no op the shape is known", "");
    } else if (depth == Depth::full) {
        add("unfused traffic of its steps", unfused,
            known_ops.empty() ? "derived: operands and results of each step once" : known_ops);
        add("compulsory traffic of the model", least, "derived: weights, inputs and outputs once");
    } else {
        add("bytes", least.empty() ? "unfused " + unfused : fmt::format("unfused {}; compulsory {}", unfused, least),
            "derived: cost model");
    }
    for (const LevelTraffic& level : explanation.attribution.levels)
        if (level.origin != Origin::derived && depth == Depth::full)
            add(fmt::format("{} traffic", name(level.level)),
                rated(format_bytes(level.bytes), format_bytes_per_s(level.bytes / seconds)), name(level.origin));
    add(depth == Depth::full ? "memory planned" : "memory", planned(point.memory, depth), "derived: plan");
    if (point.direction() == "fwd") add("largest batch", largest_batches_text(point.largest_batches), "derived: plan");
    if (depth == Depth::full) std::ranges::move(energy_facts(point), std::back_inserter(facts.facts));
    section.add(std::move(facts));
    if (depth == Depth::full) {
        section.add(Paragraph{sampled_together(times)});
        section.add(Paragraph{not_converged(times)});
    }
    return section;
}

}  // namespace kbench
