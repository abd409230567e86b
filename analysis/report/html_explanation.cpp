// What the explanation of a point says, as the report's scripts read it.
#include <map>
#include <utility>

#include "analysis/report/html_parts.h"
#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"

namespace kbench {
namespace {

ReportJson lines_data(const Lines& lines) {
    ReportJson values = ReportJson::array();
    for (const double us : lines.us) values.push_back(report_number(us));
    return values;
}

ReportJson sums_data(const DemandSums& sums) {
    ReportJson list = ReportJson::array();
    for (const DemandSum& sum : sums.by_roof)
        list.push_back({{"name", sum.name},
                        {"busy", sum.is_busy_time},
                        {"us", report_number(sum.us.value)},
                        {"low", report_number(sum.us.low)},
                        {"high", report_number(sum.us.high)}});
    return list;
}

ReportJson groups_data(const std::vector<LedgerGroup>& groups) {
    ReportJson list = ReportJson::array();
    for (const LedgerGroup& group : groups)
        list.push_back({{"name", group.name},
                        {"steps", group.steps},
                        {"time_us", report_number(group.time_us)},
                        {"lines", lines_data(group.lines)},
                        {"demands", sums_data(group.demands)}});
    return list;
}

ReportJson demands_data(const std::vector<Demand>& demands) {
    ReportJson list = ReportJson::array();
    for (const Demand& demand : demands)
        list.push_back({{"roof", demand.roof.ceiling},
                        {"level", demand.level ? ReportJson(name(*demand.level)) : ReportJson()},
                        {"work", report_number(demand.work)},
                        {"us", report_number(demand.run_us.value)},
                        {"origin", name(demand.origin)}});
    return list;
}

ReportJson roofs_data(const std::vector<Roof>& roofs) {
    ReportJson list = ReportJson::array();
    for (const Roof& roof : roofs)
        list.push_back({{"name", roof.ceiling}, {"per_s", report_number(roof.per_s)}, {"origin", name(roof.origin)}});
    return list;
}

/// Arrays of numbers, since there are many; names only where the step does not give them. A row: name, layer, op,
/// level, time us, FLOPs, bytes, FLOPs a byte, FLOP/s, streaming, roof, share of the roof, position of the step.
ReportJson points_data(const std::vector<RooflinePoint>& points, const std::map<int, std::size_t>& positions = {}) {
    ReportJson list = ReportJson::array();
    for (const RooflinePoint& point : points) {
        const auto position = positions.find(point.step);
        const bool is_step = position != positions.end();
        list.push_back({is_step ? "" : point.name, is_step ? "" : point.layer, is_step ? "" : point.op,
                        static_cast<int>(point.level), report_number(point.time_us), report_number(point.flops),
                        report_number(point.bytes), report_number(point.intensity), report_number(point.flop_per_s),
                        point.streaming, point.roof, report_number(point.roof_share),
                        is_step ? ReportJson(position->second) : ReportJson()});
    }
    return list;
}

ReportJson verdict_data(const Verdict& verdict) {
    return {{"subject", verdict.subject},
            {"bound", name(verdict.bound)},
            {"rule", verdict.rule},
            {"level", verdict.level},
            {"evidence", verdict.evidence},
            {"margin", report_number(verdict.margin)},
            {"overturned_by", verdict.overturned_by}};
}

ReportJson verdict_list(const std::vector<Verdict>& verdicts) {
    ReportJson list = ReportJson::array();
    for (const Verdict& verdict : verdicts) list.push_back(verdict_data(verdict));
    return list;
}

}  // namespace

ReportJson ledger_data(const Point& point, const Ledger& ledger) {
    ReportJson steps = ReportJson::array();
    for (const StepLedger& step : ledger.steps)
        steps.push_back({{"step", step.step == nullptr ? -1 : step.step - point.steps.data()},
                         {"time_us", report_number(step.time_us)},
                         {"share", report_number(step.roof_share())},
                         {"lines", lines_data(step.lines)},
                         {"demands", demands_data(step.demands)}});
    return {{"unavailable", ledger.unavailable},
            {"section", section_data(ledger_section(ledger, Depth::full))},
            {"roofs_unavailable", ledger.roofs_unavailable},
            {"end_to_end_us", report_number(ledger.end_to_end_us)},
            {"total", lines_data(ledger.total)},
            {"demands", sums_data(ledger.demands)},
            {"by_layer", groups_data(ledger.by_layer)},
            {"by_op", groups_data(ledger.by_op)},
            {"steps", std::move(steps)},
            {"marginal", section_data(marginal_section(ledger))}};
}

ReportJson roofline_data(const Point& point, const Roofline& roofline) {
    std::map<int, std::size_t> positions;
    for (std::size_t i = 0; i < point.steps.size(); ++i) positions.emplace(point.steps[i].index, i);
    return {{"unavailable", roofline.unavailable},    {"bandwidths", roofs_data(roofline.bandwidths)},
            {"units", roofs_data(roofline.units)},    {"steps", points_data(roofline.steps, positions)},
            {"layers", points_data(roofline.layers)}, {"ops", points_data(roofline.ops)},
            {"model", points_data(roofline.model)}};
}

ReportJson attribution_data(const Attribution& attribution) {
    ReportJson roles = ReportJson::array(), levels_list = roles;
    for (const RoleTraffic& role : attribution.roles)
        roles.push_back({{"role", title(role.role)},
                         {"streaming_bytes", report_number(role.streaming_bytes)},
                         {"attributed_bytes", report_number(role.attributed_bytes)},
                         {"dram_ms", report_number(role.dram_ms)},
                         {"exposed_ms", report_number(role.exposed_ms)}});
    for (const LevelTraffic& level : attribution.levels)
        levels_list.push_back({{"level", name(level.level)},
                               {"bytes", report_number(level.bytes)},
                               {"ms", report_number(level.ms)},
                               {"binding_ms", report_number(level.binding_ms)},
                               {"origin", name(level.origin)}});
    return {{"unavailable", attribution.unavailable},
            {"counted", attribution.counted},
            {"roles", std::move(roles)},
            {"levels", std::move(levels_list)},
            {"section", section_data(attribution_section(attribution))}};
}

ReportJson verdicts_data(const Verdicts& verdicts) {
    return {{"section", section_data(verdict_section(verdicts))}, {"steps", verdict_list(verdicts.steps)}};
}

}  // namespace kbench
