// The summary for a terminal: the environment, a block for each point, and a comparison of the points of a sweep.
// The tables of a block are in terminal_tables.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "analysis/report/terminal_tables.h"
#include "analysis/report/writers.h"
#include "analysis/result/point_name.h"
#include "analysis/table/table.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// "a, b, c" of what is not empty.
std::string join_present(const std::vector<std::string>& parts, std::string_view separator = ", ") {
    std::vector<std::string> present;
    std::copy_if(parts.begin(), parts.end(), std::back_inserter(present),
                 [](const auto& part) { return !part.empty(); });
    return fmt::format("{}", fmt::join(present, separator));
}

std::string labelled(std::string_view label, const std::string& text, std::size_t width) {
    return text.empty() ? std::string() : wrap(fmt::format("  {:<13} ", label), one_line(text), width);
}

/// Collects what is unavailable or estimated while a point is written, so that each reason is given once.
class Remarks {
  public:
    /// `format(value)`, marked when it is an estimate; empty when there is no value.
    template <class Format>
    std::string show(std::string_view what, const Quantity& quantity, Format format) {
        if (!quantity.value) {
            add(fmt::format("unavailable ({})", quantity.reason.empty() ? "no reason recorded" : quantity.reason),
                what);
            return {};
        }
        if (quantity.origin == Origin::estimated)
            add(quantity.reason.empty() ? "estimated" : fmt::format("estimated ({})", quantity.reason), what);
        return format(*quantity.value);
    }

    std::string text(std::size_t width) const {
        std::string lines;
        for (const auto& [remark, what] : remarks_)
            lines += labelled("", fmt::format("{}: {}", fmt::join(what, ", "), remark), width);
        return lines;
    }

  private:
    void add(const std::string& remark, std::string_view what) {
        const auto found =
            std::find_if(remarks_.begin(), remarks_.end(), [&](const auto& entry) { return entry.first == remark; });
        auto& entry = found == remarks_.end() ? remarks_.emplace_back(remark, std::vector<std::string>()) : *found;
        entry.second.emplace_back(what);
    }

    std::vector<std::pair<std::string, std::vector<std::string>>> remarks_;
};

std::string format_with_unit(double value, std::string_view unit) {
    return fmt::format("{} {}", significant(value, 2), unit);
}

std::string write_gpu(const GpuInfo& gpu, std::size_t width) {
    const auto limit = [](const Quantity& quantity, std::string_view name, std::string_view unit) {
        return quantity.value ? fmt::format("{} {}", name, format_with_unit(*quantity.value, unit)) : std::string();
    };
    return labelled(
        "GPU",
        join_present({gpu.name, fmt::format("sm_{}{}", gpu.compute_capability_major, gpu.compute_capability_minor),
                      fmt::format("{} SMs", gpu.multiprocessors),
                      fmt::format("memory {}", format_bytes(static_cast<double>(gpu.memory_bytes))),
                      fmt::format("L2 {}", format_bytes(static_cast<double>(gpu.l2_bytes))),
                      limit(gpu.max_sm_clock_mhz, "SM clock up to", "MHz"),
                      limit(gpu.max_memory_clock_mhz, "memory clock up to", "MHz"),
                      limit(gpu.power_limit_w, "power limit", "W"), fmt::format("driver {}", gpu.driver),
                      fmt::format("CUDA runtime {}", gpu.cuda_runtime)}),
        width);
}

std::string write_host(const HostInfo& host, std::size_t width) {
    const auto bytes = [](std::string_view name, std::int64_t amount) {
        return amount > 0 ? fmt::format("{} {}", name, format_bytes(static_cast<double>(amount))) : std::string();
    };
    return labelled(
        "CPU",
        join_present(
            {host.cpu, fmt::format("{} socket{}", host.sockets, host.sockets == 1 ? "" : "s"),
             fmt::format("{} cores", host.physical_cores),
             host.threads > 0 ? fmt::format("{} threads {}", host.threads, host.pinned ? "pinned" : "not pinned") : "",
             bytes("L1d", host.l1d_bytes), bytes("L2", host.l2_bytes), bytes("L3", host.l3_bytes),
             bytes("memory", host.memory_bytes), fmt::format("{}", fmt::join(host.isa, " ")),
             host.governor.empty() ? std::string() : fmt::format("governor {}", host.governor)}),
        width);
}

std::string write_environment(const Environment& environment, std::size_t width) {
    std::vector<std::string> libraries;
    for (const auto& [library, version] : environment.libraries)
        libraries.push_back(fmt::format("{} {}", library, version));
    std::string text =
        wrap("",
             one_line(join_present({"kbench " + environment.kbench_version, environment.git_revision,
                                    environment.build_type, environment.compiler, environment.started_at})),
             width);
    if (environment.gpu) text += write_gpu(*environment.gpu, width);
    text += write_host(environment.host, width);
    text += labelled("system", join_present({environment.host.os, environment.host.kernel}), width);
    text += labelled("libraries", join_present(libraries), width);
    text += labelled("command", environment.command_line, width);
    return text;
}

std::string write_throughput(const Point& point, std::size_t width) {
    const EndToEnd& times = *point.end_to_end;
    const auto rate = [](const std::optional<double>& value, std::string_view unit) {
        return value ? fmt::format("{} {}", significant(*value, 4), unit) : std::string();
    };
    std::string text = labelled(
        "throughput", join_present({rate(times.sequences_per_s, "sequences/s"), rate(times.tokens_per_s, "tokens/s")}),
        width);
    const double seconds = times.latency.summary_ms.median * 1e-3;
    if (seconds <= 0) return text;
    const double executed = point.cost.flops + point.padding_flops;
    return text + labelled("useful work",
                           fmt::format("{} -> {}; compulsory traffic {} -> {}{}", format_flop(point.cost.flops),
                                       format_flop_per_s(point.cost.flops / seconds), format_bytes(point.cost.bytes()),
                                       format_bytes_per_s(point.cost.bytes() / seconds),
                                       point.padding_flops > 0 ? fmt::format("; padding {:.2f} % of the FLOPs executed",
                                                                             100 * point.padding_flops / executed)
                                                               : ""),
                           width);
}

std::string write_memory(const Point& point, std::size_t width) {
    if (point.memory.total() == 0) return {};
    std::vector<std::string> roles;
    for (std::size_t role = 0; role < role_count; ++role)
        if (point.memory.bytes[role] > 0)
            roles.push_back(
                fmt::format("{} {}", role_names[role], format_bytes(static_cast<double>(point.memory.bytes[role]))));
    const std::string total = format_bytes(static_cast<double>(point.memory.total()));
    return labelled("memory", fmt::format("{} planned: {}", total, join_present(roles)), width);
}

std::string write_conditions(const Point& point, std::size_t width) {
    Remarks remarks;
    const auto unit = [](std::string_view name) {
        return [name](double value) { return format_with_unit(value, name); };
    };
    const auto joules_per = [](std::string_view what) {
        return [what](double value) { return fmt::format("{}/{}", format_joules(value), what); };
    };
    const auto named = [&](std::string_view name, const Quantity& quantity, std::string_view unit_name) {
        const std::string value = remarks.show(name, quantity, unit(unit_name));
        return value.empty() ? value : fmt::format("{} {}", name, value);
    };

    const EndToEnd& times = *point.end_to_end;
    const Conditions& conditions = point.conditions;
    const bool gpu = point.backend() == "cuda";
    const auto energy_per = [&](const std::optional<Quantity>& quantity, std::string_view what) {
        return quantity ? remarks.show(fmt::format("energy per {}", what), *quantity, joules_per(what)) : std::string();
    };
    const std::string energy = join_present(
        {energy_per(times.energy_per_sequence_j, "sequence"), energy_per(times.energy_per_token_j, "token"),
         remarks.show("energy", conditions.energy_j,
                      [](double value) { return format_joules(value) + " while sampling"; })});
    const std::string state = join_present(
        {named("power", conditions.power_w, "W"), named(gpu ? "SM clock" : "clock", conditions.sm_clock_mhz, "MHz"),
         gpu ? named("memory clock", conditions.memory_clock_mhz, "MHz") : "",
         named("temperature", conditions.temperature_c, "C"),
         fmt::format("throttling {}", conditions.throttle_reasons.empty()
                                          ? "none seen"
                                          : fmt::format("{}", fmt::join(conditions.throttle_reasons, ", "))),
         conditions.throttled_samples > 0 ? fmt::format("{} throttled samples repeated", conditions.throttled_samples)
                                          : std::string()});
    return labelled("energy", energy, width) + labelled("conditions", state, width) + remarks.text(width);
}

std::string write_verification(const Point& point, std::size_t width) {
    const Verification& verification = point.verification;
    if (!verification.enabled) return labelled("verified", "no: turned off", width);
    if (verification.steps.empty()) return labelled("verified", "no: nothing was checked", width);

    std::int64_t checked = 0, total = 0;
    const VerifiedStep* worst = &verification.steps.front();
    std::string failures;
    for (const VerifiedStep& step : verification.steps) {
        checked += step.elements_checked;
        total += step.elements_total;
        if (step.error_over_bound <= 1) {  // false for NaN, too
            if (step.error_over_bound > worst->error_over_bound) worst = &step;
            continue;
        }
        failures += labelled("WRONG",
                             fmt::format("{} {} by {} ({}): error {:.3g} where {:.3g} is allowed", step.op, step.shape,
                                         step.provider, step.implementation, step.worst_error, step.bound_there),
                             width);
    }
    const std::size_t distinct = verification.steps.size();
    const std::string verdict = failures.empty()
                                    ? fmt::format("worst error {} of its bound ({} {})",
                                                  significant(worst->error_over_bound, 2), worst->op, worst->shape)
                                    : std::string("NOT all within their bounds");
    return labelled("verified",
                    fmt::format("{} distinct step{}, {} of {} elements, {}, {}", distinct, distinct == 1 ? "" : "s",
                                significant(static_cast<double>(checked)), significant(static_cast<double>(total)),
                                verdict, format_seconds(verification.seconds)),
                    width) +
           failures;
}

/// How kernels were recorded and counters read, or why they were not.
std::string write_profile(const Point& point, std::size_t width) {
    const ActivityRun& activity = point.activity;
    std::string text;
    if (activity.runs > 0) {
        std::size_t kernels = 0;
        for (const StepResult& step : point.steps) kernels += step.kernels.size();
        std::string line = fmt::format("{} recorded in {} forwards: {:.4g} ms and gaps of {:.2g} ms", kernels,
                                       activity.runs, activity.kernels_ms, activity.gaps_ms);
        if (!activity.inflation.empty()) {
            const RecordInflation& shortest = activity.inflation.front();
            line += fmt::format("; a kernel of {:.1f} us is recorded as {:.1f} us and takes {:.1f} us with records",
                                shortest.kernel_us, shortest.recorded_us, shortest.profiled_us);
        }
        text += labelled("kernels", line, width);
    } else if (point.backend() == "cuda" && !activity.unavailable.empty()) {
        text += labelled("kernels", "unavailable: " + activity.unavailable, width);
    }
    const CounterRun& counters = point.counters;
    if (!counters.unavailable.empty())
        return text + labelled("counters", "unavailable: " + counters.unavailable, width);
    if (counters.metrics.empty()) return text;
    text += labelled("counters",
                     join_present({fmt::format("{}", fmt::join(counters.requested, ", ")),
                                   counters.chip.empty() ? ""
                                                         : fmt::format("{}, {} pass{}", counters.chip, counters.passes,
                                                                       counters.passes == 1 ? "" : "es"),
                                   format_seconds(counters.seconds)}),
                     width);
    std::map<std::string, std::vector<std::string>> by_reason;
    for (const CountedMetric& metric : counters.metrics)
        if (metric.origin != Origin::measured && point.backend() == "cpu")
            by_reason[fmt::format("{}: {}", name(metric.origin), metric.reason)].push_back(metric.name);
    for (const auto& [reason, names] : by_reason)
        text += labelled("", fmt::format("{} {}", fmt::join(names, ", "), reason), width);
    return text;
}

std::string write_phases(const Point& point, std::size_t width) {
    std::vector<std::string> phases;
    for (const auto& [phase, seconds] : point.phase_seconds)
        phases.push_back(fmt::format("{} {}", phase, format_seconds(seconds)));
    return labelled("wall time", join_present(phases), width);
}

std::string write_point(const Result& result, const Point& point, std::size_t width) {
    if (point.status != PointStatus::done) {
        const std::string line =
            wrap("", one_line(fmt::format("{}: {}: {}", placed_name(point), name(point.status), point.reason)), width);
        return point.verification.steps.empty() ? line : line + write_verification(point, width);
    }
    std::string text = wrap("", one_line(point_heading(point)), width);
    text += labelled("weights",
                     fmt::format("{} parameters, {}, seed {}", significant(static_cast<double>(point.parameters)),
                                 point.weights, point.seed),
                     width);
    if (point.end_to_end)
        text += latency_table(point, width) + write_throughput(point, width) + write_memory(point, width) +
                write_conditions(point, width);
    return text + write_verification(point, width) + write_profile(point, width) + write_phases(point, width) +
           why_block(explain(result, point), width) + op_table(point, width) + layer_table(point, width) +
           hardware_table(point, width);
}

}  // namespace

std::string write_terminal(const Result& result, int width) {
    const auto columns = static_cast<std::size_t>(std::max(width, 40));
    std::string text = write_environment(result.environment, columns);
    for (const Point& point : result.points) text += '\n' + write_point(result, point, columns);

    const auto finished = std::count_if(result.points.begin(), result.points.end(),
                                        [](const Point& point) { return point.status == PointStatus::done; });
    if (finished > 1) text += '\n' + sweep_table(result.points, columns);
    if (!result.warnings.empty()) text += '\n';
    for (const std::string& warning : result.warnings) text += wrap("warning: ", one_line(warning), columns);
    if (finished > 0)
        text += '\n' + wrap("",
                            "Times, clocks and power are measured unless marked; FLOPs and bytes are derived from the "
                            "shapes (compulsory work). GB is 1e9 bytes.",
                            columns);
    return text;
}

}  // namespace kbench
