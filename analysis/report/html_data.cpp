// The report's data: the sections of the document, and what its charts, its heat map and its tables of steps show.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/report/html.h"
#include "analysis/report/html_parts.h"
#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"

namespace kbench {
namespace {

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
            {"temperature_c", std::move(temperature)}};
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

/// null of a forward alone.
ReportJson directions_data(const ExplainedResult& explained, std::size_t index) {
    const Directions directions = directions_of(explained, index);
    const Section section = directions_section(explained, index, directions, Depth::full);
    if (section.empty()) return nullptr;
    return {{"section", section_data(section)}, {"ops", direction_bars(directions)}};
}

/// `file` holds a copy of the result, for the queries of tables; the explanation points into the result's point.
ReportJson point_data(const ResultFile& file, const ExplainedResult& explained, std::size_t index) {
    const Point& point = explained.points()[index];
    const Explanation& explanation = explained.of(index);
    ReportJson data = {
        {"name", point_name(point)},
        {"axes", axes_data(point)},
        {"weights", point.weights},
        {"status", name(point.status)},
        {"reason", point.reason},
        {"answer", explanation.answer},
        {"figures", section_data(figures_section(point, explanation, Depth::full))},
        {"sweep", sweep_data(file, index, point, explanation)},
        {"checks", section_data(checks_section(point, Depth::full))},
        {"state", section_data(conditions_section(point, Depth::full))},
        {"demands", section_data(demands_section(explanation.ledger))},
        {"dependent", section_data(dependent_section(explanation.dependent))},
        {"cycles", section_data(cycles_section(explanation.cycles))},
        {"closures", section_data(closures_section(explanation.closures))},
        {"sms", section_data(elasticity_section(explanation.elasticity))},
        {"directions", directions_data(explained, index)},
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

ReportJson lines_data() {
    ReportJson lines = ReportJson::array();
    for (std::size_t i = 0; i < line_count; ++i) {
        lines.push_back({{"name", info(line_at(i)).name}});
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

ReportJson section_data(const Section& section) { return section.empty() ? ReportJson() : render_json(section); }

ReportJson direction_bars(const Directions& directions) {
    ReportJson ops = ReportJson::array();
    const auto ms = [](const DirectionWork& work) {
        return work.empty() || !work.time_us ? ReportJson() : report_number(work.time_us->value * 1e-3);
    };
    for (const DirectionPair& kind : directions.by_op) ops.push_back({kind.name, ms(kind.forward), ms(kind.backward)});
    return ops;
}

ReportJson report_number(double value) {
    if (!std::isfinite(value)) return nullptr;
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

ReportJson optional_number(const std::optional<double>& value) { return value ? report_number(*value) : ReportJson(); }

nlohmann::ordered_json report_data(const ExplainedResult& explained) {
    const Result& result = explained.result();
    const ResultFile file{{}, result};
    ReportJson points = ReportJson::array();
    for (std::size_t i = 0; i < result.points.size(); ++i) points.push_back(point_data(file, explained, i));
    ReportJson series = ReportJson::array();
    for (const Section& section : series_sections(explained, Depth::full)) series.push_back(section_data(section));
    return {{"schema", result_schema},
            {"study", study_data(explained)},
            {"lines", lines_data()},
            {"levels", level_names},
            {"rules", rules_data()},
            {"axes", curve_axes_data()},
            {"points", std::move(points)},
            {"all_points", section_data(points_section(explained, Depth::full))},
            {"series", std::move(series)},
            {"ceilings", section_data(ceilings_section(result.ceilings))},
            {"environment", section_data(environment_section(result))},
            {"kbench", result.environment.kbench_version},
            {"warnings", result.warnings}};
}

}  // namespace kbench
