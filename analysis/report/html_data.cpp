// The report's data: the environment, the ceilings, and of each point its key figures, conditions and timeline.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/machine/machine.h"
#include "analysis/report/html.h"
#include "analysis/report/html_parts.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// A figure as the page shows it: a label, text, where it is from and a remark.
ReportJson figure(std::string_view label, std::string value, Origin origin, std::string note = {}) {
    return {{"label", label}, {"value", std::move(value)}, {"origin", name(origin)}, {"note", std::move(note)}};
}

template <class Format>
ReportJson figure(std::string_view label, const Quantity& quantity, Format format) {
    if (!quantity.value)
        return figure(label, "–", Origin::unavailable,
                      quantity.reason.empty() ? "no reason recorded" : quantity.reason);
    return figure(label, format(*quantity.value), quantity.origin, quantity.reason);
}

/// One figure in a unit of time that suits it, with its interval.
std::string time_text(const Summary& ms) {
    const TimeUnit unit = time_unit(ms.median);
    return fmt::format("{} {}", significant(ms.median * unit.per_ms, 4), unit.name);
}

std::string interval_text(const Summary& ms) {
    const TimeUnit unit = time_unit(ms.median);
    if (!ms.has_interval()) return fmt::format("median of {}, too few for an interval", ms.n);
    return fmt::format("median of {}, 95 % interval {} to {} {}", ms.n, significant(ms.ci_low * unit.per_ms, 4),
                       significant(ms.ci_high * unit.per_ms, 4), unit.name);
}

ReportJson figures_data(const Point& point) {
    ReportJson list = ReportJson::array();
    if (!point.end_to_end) return list;
    const EndToEnd& times = *point.end_to_end;
    const Summary& latency = times.latency.summary_ms;
    const bool gpu = point.backend() == "cuda";
    const double seconds = latency.median * 1e-3;
    list.push_back(figure(gpu ? "latency, CUDA graph" : "latency", time_text(latency), Origin::measured,
                          interval_text(latency) + (times.converged ? "" : "; the time budget ended first")));
    if (times.stream)
        list.push_back(figure("latency, stream launches", time_text(times.stream->summary_ms), Origin::measured,
                              interval_text(times.stream->summary_ms)));
    const std::string sequences =
        times.sequences_per_s ? significant(*times.sequences_per_s, 4) + " sequences/s" : std::string();
    if (times.tokens_per_s)
        list.push_back(
            figure("throughput", significant(*times.tokens_per_s, 4) + " tokens/s", Origin::measured, sequences));
    else if (times.sequences_per_s)
        list.push_back(figure("throughput", sequences, Origin::measured));
    if (seconds > 0) {
        list.push_back(figure("useful work", format_flop_per_s(point.cost.flops / seconds), Origin::derived,
                              format_flop(point.cost.flops) + " of the cost model over the latency"));
        list.push_back(figure("compulsory traffic", format_bytes_per_s(point.cost.bytes() / seconds), Origin::derived,
                              format_bytes(point.cost.bytes()) + " of the cost model over the latency"));
    }
    if (times.energy_per_sequence_j)
        list.push_back(figure("energy a sequence", *times.energy_per_sequence_j, format_joules));
    list.push_back(figure("memory planned", format_bytes(static_cast<double>(point.memory.total())), Origin::derived));
    const auto with = [](std::string_view unit) {
        return [unit](double value) { return fmt::format("{} {}", significant(value), unit); };
    };
    const Conditions& state = point.conditions;
    list.push_back(figure(gpu ? "SM clock" : "core clock", state.sm_clock_mhz, with("MHz")));
    if (gpu) list.push_back(figure("memory clock", state.memory_clock_mhz, with("MHz")));
    list.push_back(figure("power", state.power_w, with("W")));
    list.push_back(figure("temperature", state.temperature_c, with("°C")));
    return list;
}

ReportJson optional_number(const std::optional<double>& value) { return value ? report_number(*value) : ReportJson(); }

/// Columns rather than rows, as a chart takes them.
ReportJson conditions_data(const Point& point) {
    ReportJson at = ReportJson::array(), clock = at, power = at, temperature = at;
    for (const ConditionReading& reading : point.conditions.readings) {
        at.push_back(report_number(reading.at_s));
        clock.push_back(optional_number(reading.sm_clock_mhz));
        power.push_back(optional_number(reading.power_w));
        temperature.push_back(optional_number(reading.temperature_c));
    }
    return {{"at_s", std::move(at)},
            {"clock_mhz", std::move(clock)},
            {"power_w", std::move(power)},
            {"temperature_c", std::move(temperature)},
            {"throttle_reasons", point.conditions.throttle_reasons},
            {"throttled_samples", point.conditions.throttled_samples}};
}

/// What the charts need of each step.
ReportJson steps_data(const Point& point) {
    ReportJson list = ReportJson::array();
    for (const StepResult& step : point.steps) {
        std::string kernels;
        for (const KernelResult& kernel : step.kernels) kernels += (kernels.empty() ? "" : " + ") + kernel.short_name;
        list.push_back({{"index", step.index},
                        {"layer", step.layer},
                        {"group", layer_group(step.layer)},
                        {"op", step.op},
                        {"kernel", kernels.empty() ? step.implementation : kernels},
                        {"provider", step.provider},
                        {"shape", step.shape},
                        {"precision", name(step.precision)}});
    }
    return list;
}

/// Start and length of every kernel, from the sums of gaps and times before it; of every step where no kernel was
/// recorded. A row: start us, length us, position of the step, kernel (null for a step).
ReportJson timeline_data(const Point& point) {
    ReportJson rows = ReportJson::array();
    double at_us = 0;
    bool recorded = false;
    for (std::size_t i = 0; i < point.steps.size(); ++i) {
        const StepResult& step = point.steps[i];
        for (const KernelResult& kernel : step.kernels) {
            at_us += kernel.gap_us;
            rows.push_back({report_number(at_us), report_number(kernel.time_us), i, kernel.short_name});
            at_us += kernel.time_us;
            recorded = true;
        }
        if (!step.kernels.empty() || !step.time_us) continue;
        rows.push_back({report_number(at_us), report_number(step.time_us->median), i, nullptr});
        at_us += step.time_us->median;
    }
    return {{"rows", std::move(rows)},
            {"recorded", recorded},
            {"unavailable",
             point.activity.unavailable.empty() && !recorded ? "no kernel was recorded" : point.activity.unavailable}};
}

/// What the curves of a sweep show. Figures that mean nothing for the point are not there.
ReportJson sweep_data(const ResultFile& file, std::size_t index, const Point& point, const Explanation& explanation) {
    ReportJson data = {{"ms", nullptr},           {"ms_low", nullptr},
                       {"ms_high", nullptr},      {"tflop_per_s", nullptr},
                       {"energy_j", nullptr},     {"tokens_per_s", nullptr},
                       {"occ_achieved", nullptr}, {"occ_theory", nullptr},
                       {"roof_share", nullptr},   {"binding_roof", binding_roof(explanation.ledger)}};
    if (!point.end_to_end) return data;
    TableQuery query;
    query.level = &find_level("point");
    query.point = index;
    query.columns = {"occ_achieved", "occ_theory"};
    const QueriedTable occupancy = query_table({&file, 1}, query);
    for (const Column& column : occupancy.columns)
        if (const Value value = column.value(occupancy.rows.front()); std::holds_alternative<double>(value))
            data[column.name] = report_number(std::get<double>(value));
    if (const auto share = roof_share(explanation.ledger)) data["roof_share"] = report_number(100 * *share);
    const Summary& latency = point.end_to_end->latency.summary_ms;
    data["ms"] = report_number(latency.median);
    data["ms_low"] = report_number(latency.ci_low);
    data["ms_high"] = report_number(latency.ci_high);
    if (latency.median > 0) data["tflop_per_s"] = report_number(point.cost.flops / latency.median * 1e-9);
    const EndToEnd& times = *point.end_to_end;
    data["energy_j"] = optional_number(value_of(times.energy_per_sequence_j));
    data["tokens_per_s"] = optional_number(times.tokens_per_s);
    if (!times.energy_per_sequence_j) data.erase("energy_j");
    if (!times.tokens_per_s) data.erase("tokens_per_s");
    return data;
}

ReportJson verification_data(const Point& point) {
    if (!point.verification.enabled)
        return {{"text", "not verified: --no-verify"}, {"origin", name(Origin::unavailable)}};
    double worst = 0;
    for (const VerifiedStep& step : point.verification.steps) worst = std::max(worst, step.error_over_bound);
    return {{"text", fmt::format("{} distinct steps within their error bounds before anything was timed; the largest "
                                 "error is {} of its bound",
                                 point.verification.steps.size(), significant(worst, 2))},
            {"origin", name(Origin::measured)}};
}

ReportJson axes_data(const Point& point) {
    ReportJson data = ReportJson::object();
    for (const Axis& axis : axes())
        if (const AxisValue* value = point.axes.find(axis.name))
            std::visit([&](const auto& plain) { data[std::string(axis.name)] = plain; }, *value);
    return data;
}

/// The axes along which curves are drawn: those of a sweep, then hardware.
ReportJson curve_axes_data() {
    ReportJson list = ReportJson::array();
    for (const AxisRole role : {AxisRole::what, AxisRole::where})
        for (const Axis& axis : axes())
            if (axis.role == role && (axis.sweeps || role == AxisRole::where))
                list.push_back({{"name", axis.name},
                                {"title", axis.in_full()},
                                {"count", axis.kind == AxisKind::count},
                                {"bare", axis.is_bare()}});
    return list;
}

/// `file` holds a copy of the result, for the queries of tables; the explanation points into `point`.
ReportJson point_data(const ResultFile& file, std::size_t index, const Point& point, const Explanation& explanation) {
    ReportJson data = {
        {"name", point_name(point)},
        {"axes", axes_data(point)},
        {"weights", point.weights},
        {"status", name(point.status)},
        {"reason", point.reason},
        {"answer", explanation.answer},
        {"figures", figures_data(point)},
        {"sweep", sweep_data(file, index, point, explanation)},
        {"verification", verification_data(point)},
        {"conditions", conditions_data(point)},
        {"activity_unavailable", point.activity.unavailable},
        {"counters_unavailable", point.counters.unavailable},
        {"counters_passes", point.counters.passes},
        {"steps", steps_data(point)},
        {"ledger", ledger_data(point, explanation.ledger)},
        {"roofline", roofline_data(point, explanation.roofline)},
        {"attribution", attribution_data(explanation.attribution)},
        {"verdicts", verdicts_data(explanation.verdicts)},
        {"heat", heat_data(file, index, explanation)},
        {"timeline", timeline_data(point)},
    };
    data.update(tables_data(file, index, point, explanation));
    return data;
}

ReportJson ceilings_data(const CeilingRun& run) {
    ReportJson rows = ReportJson::array();
    for (const Ceiling& ceiling : run.ceilings) {
        ReportJson row = {{"name", ceiling.name},
                          {"unit", ""},
                          {"what", "not a ceiling that this kbench knows"},
                          {"value", optional_number(ceiling.value.value)},
                          {"origin", name(ceiling.value.origin)},
                          {"reason", ceiling.value.reason},
                          {"low", report_number(ceiling.low)},
                          {"high", report_number(ceiling.high)},
                          {"clock_mhz", ceiling.clock_mhz > 0 ? report_number(ceiling.clock_mhz) : ReportJson()},
                          {"datasheet", optional_number(ceiling.datasheet.value)},
                          {"datasheet_reason", ceiling.datasheet.reason}};
        for (const CeilingKind& kind : ceiling_kinds())
            if (kind.name == ceiling.name) row["unit"] = kind.unit, row["what"] = kind.what;
        rows.push_back(std::move(row));
    }
    const bool silent = rows.empty() && run.unavailable.empty();
    return {{"rows", std::move(rows)},
            {"unavailable", silent ? "the result holds no measured ceilings" : run.unavailable},
            {"device", run.device},
            {"driver", run.driver},
            {"measured_at", run.measured_at}};
}

ReportJson environment_data(const Environment& environment) {
    ReportJson rows = ReportJson::array();
    const auto add = [&rows](std::string_view label, const std::string& text) {
        if (!text.empty()) rows.push_back({label, text});
    };
    const auto bytes = [](std::int64_t amount) { return format_bytes(static_cast<double>(amount)); };
    add("command", environment.command_line);
    add("started", environment.started_at);
    add("kbench", fmt::format("{} {}, {}, {}", environment.kbench_version, environment.git_revision,
                              environment.build_type, environment.compiler));
    if (environment.gpu) {
        const GpuInfo& gpu = *environment.gpu;
        const auto limit = [](const Quantity& quantity, std::string_view unit) {
            return quantity.value ? fmt::format("{} {}", significant(*quantity.value), unit) : std::string("unknown");
        };
        add("GPU", fmt::format("{}, sm_{}{}, {} SMs, memory {}, L2 {}", gpu.name, gpu.compute_capability_major,
                               gpu.compute_capability_minor, gpu.multiprocessors, bytes(gpu.memory_bytes),
                               bytes(gpu.l2_bytes)));
        add("GPU limits", fmt::format("SM clock {}, memory clock {}, power {}", limit(gpu.max_sm_clock_mhz, "MHz"),
                                      limit(gpu.max_memory_clock_mhz, "MHz"), limit(gpu.power_limit_w, "W")));
        add("driver", fmt::format("{}, CUDA runtime {}", gpu.driver, gpu.cuda_runtime));
    }
    const HostInfo& host = environment.host;
    add("CPU", fmt::format("{}, sockets {}, cores {}, logical CPUs {}, threads {}{}", host.cpu, host.sockets,
                           host.physical_cores, host.logical_cpus, host.threads, host.pinned ? " pinned" : ""));
    add("CPU memory", fmt::format("L1d {}, L2 {}, L3 {}, memory {}", bytes(host.l1d_bytes), bytes(host.l2_bytes),
                                  bytes(host.l3_bytes), bytes(host.memory_bytes)));
    add("instruction sets", fmt::format("{}", fmt::join(host.isa, " ")));
    add("governor", host.governor);
    add("system", host.os + (host.kernel.empty() ? "" : ", " + host.kernel));
    std::string libraries;
    for (const auto& [library, version] : environment.libraries)
        libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", library, version);
    add("libraries", libraries);
    return rows;
}

ReportJson lines_data() {
    ReportJson lines = ReportJson::array();
    for (std::size_t i = 0; i < line_count; ++i) {
        const LineInfo& line = info(line_at(i));
        lines.push_back({{"name", line.name}, {"what", line.what}});
    }
    return lines;
}

ReportJson rules_data() {
    ReportJson rules = ReportJson::array();
    for (const VerdictRule& rule : verdict_rules())
        rules.push_back({{"id", rule.id}, {"bound", name(rule.bound)}, {"what", rule.what}});
    return rules;
}

}  // namespace

ReportJson report_number(double value) {
    if (!std::isfinite(value)) return nullptr;
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

nlohmann::ordered_json report_data(const Result& result, std::span<const Explanation> explanations) {
    if (explanations.size() != result.points.size())
        throw std::invalid_argument("a report needs an explanation a point");
    const ResultFile file{{}, result};
    ReportJson points = ReportJson::array();
    for (std::size_t i = 0; i < result.points.size(); ++i)
        points.push_back(point_data(file, i, result.points[i], explanations[i]));
    return {{"schema", result_schema},
            {"lines", lines_data()},
            {"levels", level_names},
            {"rules", rules_data()},
            {"axes", curve_axes_data()},
            {"points", std::move(points)},
            {"ceilings", ceilings_data(result.ceilings)},
            {"environment", environment_data(result.environment)},
            {"kbench", result.environment.kbench_version},
            {"warnings", result.warnings}};
}

}  // namespace kbench
