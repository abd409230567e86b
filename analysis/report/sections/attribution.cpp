#include "analysis/explain/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Milliseconds of one column, with the decimals of its largest.
template <class List, class Value>
auto ms_cells(const List& list, Value List::value_type::*member) {
    double largest = 0;
    for (const auto& row : list) largest = std::max(largest, std::abs(row.*member));
    return [decimals = decimals_for(largest)](double ms) { return fixed(ms, decimals); };
}

/// Two members of each row beside each other.
template <class List, class Row = typename List::value_type>
Chart pair_chart(std::string title, std::string caption, std::string unit, const List& list,
                 std::string (*label)(const Row&), double scale,
                 std::initializer_list<std::pair<const char*, double Row::*>> members) {
    BarChart bars{unit, {}, {}};
    for (const Row& row : list) bars.labels.push_back(label(row));
    for (const auto& [name, member] : members) {
        ChartSeries& series = bars.series.emplace_back(ChartSeries{name});
        for (const Row& row : list)
            series.add(row.*member * scale,
                       fmt::format("{}, {}: {} {}", label(row), name, significant(row.*member * scale), unit));
    }
    return {std::move(title), std::move(caption), std::move(bars)};
}

void add_charts(Section& section, const Attribution& attribution) {
    constexpr auto role = +[](const RoleTraffic& traffic) { return std::string(title(traffic.role)); };
    constexpr auto level = +[](const LevelTraffic& traffic) { return std::string(name(traffic.level)); };
    section.add(pair_chart("DRAM bytes by role, GB",
                           attribution.counted ? "unfused traffic is derived, the others measured by counters"
                                               : "derived from the cost model: no counters",
                           "GB", attribution.roles, role, 1e-9,
                           {{"unfused", &RoleTraffic::unfused_bytes}, {"attributed", &RoleTraffic::attributed_bytes}}));
    section.add(
        pair_chart("DRAM time by role, ms", "bytes over DRAM's bandwidth, derived", "ms", attribution.roles, role, 1,
                   {{"hidden or not", &RoleTraffic::dram_ms}, {"in DRAM-bound steps", &RoleTraffic::exposed_ms}}));
    section.add(pair_chart("Time by level of memory, ms", "bytes over the level's bandwidth, derived", "ms",
                           attribution.levels, level, 1,
                           {{"all bytes", &LevelTraffic::ms}, {"in steps bound by it", &LevelTraffic::binding_ms}}));
}

}  // namespace

Section attribution_section(const SectionContext& context) {
    const Attribution& attribution = context.explanation().attribution;
    Section section{"Which bytes cost which milliseconds"};
    if (!attribution.unavailable.empty()) return missing_section(section.title, attribution.unavailable);
    const PointFacts& facts = context.explanation().facts;
    if (has_no_known_work(facts)) return missing_section(section.title, std::string(no_known_work));
    section.add(Paragraph{fmt::format("Bytes at DRAM are {}; times are bytes over DRAM's roof (derived).",
                                      attribution.counted ? "measured by counters and attributed to roles (derived)"
                                                          : "the cost model's (derived): DRAM was not counted")});
    section.add(Paragraph{unknown_work_text(facts)});
    add_charts(section, attribution);
    Rows roles{{words("role"), figures("unfused"), figures("attributed"), figures("DRAM ms"),
                figures("of it where DRAM's roof time is the longest, ms")}};
    const auto role_ms = ms_cells(attribution.roles, &RoleTraffic::dram_ms);
    for (const RoleTraffic& role : attribution.roles)
        roles.rows.push_back({std::string(title(role.role)), format_bytes(role.unfused_bytes),
                              format_bytes(role.attributed_bytes), role_ms(role.dram_ms), role_ms(role.exposed_ms)});
    Rows memory{{words("level"), figures("bytes"), figures("ms over its roof"),
                 figures("of it where its roof time is the longest, ms"), words("origin of bytes")},
                {},
                "By level of memory:"};
    const auto level_ms = ms_cells(attribution.levels, &LevelTraffic::ms);
    for (const LevelTraffic& level : attribution.levels)
        memory.rows.push_back({std::string(name(level.level)), format_bytes(level.bytes), level_ms(level.ms),
                               level_ms(level.binding_ms), std::string(name(level.origin))});
    section.add(std::move(roles));
    section.add(std::move(memory));
    Bullets findings;
    findings.items.push_back(
        fmt::format("Steps whose longest roof time is DRAM's take {:.1f} % of the end-to-end time.",
                    100 * attribution.dram_binding_share));
    if (attribution.counted)
        findings.items.push_back(
            fmt::format("Beyond the steps' unfused traffic {} moved ({} ms); caches kept {} ({} ms) from DRAM.",
                        format_bytes(attribution.excess_bytes), significant(attribution.excess_ms),
                        format_bytes(attribution.kept_bytes), significant(attribution.kept_ms)));
    findings.items.push_back(
        fmt::format("Activations and scores take {} ms of DRAM time: the most that fusing can save.",
                    significant(attribution.activation_ms)));
    for (const LayerTraffic& layer : attribution.layers)
        if (!layer.finding.empty()) findings.items.push_back(layer.finding);
    section.add(std::move(findings));
    Rows layers{{names("layer"), figures("unfused"), figures("DRAM"), figures("L2"), figures("beyond unfused, ms")}};
    const auto excess_ms = ms_cells(attribution.layers, &LayerTraffic::excess_ms);
    for (const LayerTraffic& layer : attribution.layers) {
        if (facts.unknown_work_us > 0 && layer.unfused_bytes <= 0 && layer.measured_bytes <= 0) continue;
        layers.rows.push_back({layer.layer, format_bytes(layer.unfused_bytes),
                               attribution.counted ? format_bytes(layer.measured_bytes) : "",
                               layer.l2_bytes > 0 ? format_bytes(layer.l2_bytes) : "",
                               attribution.counted ? excess_ms(layer.excess_ms) : ""});
    }
    if (!layers.rows.empty()) section.add(Section{"Bytes by layer (* is every block)", {std::move(layers)}});
    return section;
}

}  // namespace kbench
