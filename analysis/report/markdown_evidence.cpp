// report.md: bandwidth attribution, verdicts, occupancy, conditions, ceilings and environment.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "analysis/explain/executed.h"
#include "analysis/machine/ceilings.h"
#include "analysis/report/markdown_sections.h"
#include "analysis/report/markdown_text.h"
#include "analysis/table/table_query.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string ms_text(double ms) { return significant(ms); }

/// Milliseconds of one column, with the decimals of its largest.
template <class Rows, class Value>
auto ms_cells(const Rows& rows, Value Rows::value_type::*member) {
    double largest = 0;
    for (const auto& row : rows) largest = std::max(largest, row.*member);
    return [decimals = decimals_for(largest)](double ms) { return fmt::format("{:.{}f}", ms, decimals); };
}

std::string bullet(const std::string& markdown) { return markdown.empty() ? markdown : "- " + markdown + '\n'; }

/// "bandwidth-bound (DRAM)".
std::string verdict_word(const Verdict& verdict) {
    const std::string level = verdict.level.empty() ? "" : " (" + markdown_text(verdict.level) + ")";
    return std::string(name(verdict.bound)) + level;
}

/// A row of the table of the environment.
struct Entry {
    std::string_view what;
    std::string value;
};

std::string entries_table(std::span<const Entry> entries) {
    MarkdownTable table({{"what", Align::left}, {"value", Align::left}});
    for (const Entry& entry : entries)
        if (!entry.value.empty()) table.add_row({std::string(entry.what), markdown_text(entry.value)});
    return table.text();
}

std::string gpu_text(const GpuInfo& gpu) {
    const auto limit = [](const Quantity& quantity, std::string_view what, std::string_view unit) {
        return quantity.value ? fmt::format(", {} {} {}", what, significant(*quantity.value), unit) : std::string();
    };
    return fmt::format(
        "{}, sm_{}{}, {} SMs, memory {}, L2 {}{}{}{}", gpu.name, gpu.compute_capability_major,
        gpu.compute_capability_minor, gpu.multiprocessors, format_bytes(static_cast<double>(gpu.memory_bytes)),
        format_bytes(static_cast<double>(gpu.l2_bytes)), limit(gpu.max_sm_clock_mhz, "SM clock up to", "MHz"),
        limit(gpu.max_memory_clock_mhz, "memory clock up to", "MHz"), limit(gpu.power_limit_w, "power limit", "W"));
}

std::string host_text(const HostInfo& host) {
    return fmt::format("{}, {} cores, {} threads{}, L2 {}, L3 {}, memory {}, {}", host.cpu, host.physical_cores,
                       host.threads, host.pinned ? " pinned" : "", format_bytes(static_cast<double>(host.l2_bytes)),
                       format_bytes(static_cast<double>(host.l3_bytes)),
                       format_bytes(static_cast<double>(host.memory_bytes)), fmt::join(host.isa, " "));
}

}  // namespace

std::string attribution_section(const Attribution& attribution, Heading heading) {
    std::string text = heading.text("Which bytes cost which milliseconds");
    if (!attribution.unavailable.empty())
        return text + "\nUnavailable: " + markdown_text(attribution.unavailable) + ".\n\n";
    text += fmt::format("\nBytes at DRAM are {}; times are bytes over DRAM's roof (derived).\n",
                        attribution.counted ? "measured by counters and attributed to roles (derived)"
                                            : "the cost model's (derived): DRAM was not counted");
    MarkdownTable roles({{"role", Align::left},
                         {"compulsory"},
                         {"attributed"},
                         {"DRAM ms"},
                         {"of it where DRAM is the longest demand, ms"}});
    const auto role_ms = ms_cells(attribution.roles, &RoleTraffic::dram_ms);
    for (const RoleTraffic& role : attribution.roles)
        roles.add_row({std::string(name(role.role)), format_bytes(role.compulsory_bytes),
                       format_bytes(role.attributed_bytes), role_ms(role.dram_ms), role_ms(role.exposed_ms)});
    MarkdownTable memory({{"level", Align::left},
                          {"bytes"},
                          {"ms over its roof"},
                          {"of it where it is the longest demand, ms"},
                          {"origin of bytes", Align::left}});
    const auto level_ms = ms_cells(attribution.levels, &LevelTraffic::ms);
    for (const LevelTraffic& level : attribution.levels)
        memory.add_row({std::string(name(level.level)), format_bytes(level.bytes), level_ms(level.ms),
                        level_ms(level.binding_ms), std::string(name(level.origin))});
    text += roles.text() + "By level of memory:\n" + memory.text();
    text += bullet(fmt::format("Steps in which DRAM is the longest demand take {:.1f} % of the end-to-end time.",
                               100 * attribution.dram_binding_share));
    if (attribution.counted)
        text += bullet(fmt::format("Beyond the compulsory bytes {} moved ({} ms); caches kept {} ({} ms) from DRAM.",
                                   format_bytes(attribution.excess_bytes), ms_text(attribution.excess_ms),
                                   format_bytes(attribution.kept_bytes), ms_text(attribution.kept_ms)));
    text += bullet(fmt::format("Activations and scores take {} ms of DRAM time: the most that fusing can save.",
                               ms_text(attribution.activation_ms)));
    for (const LayerTraffic& layer : attribution.layers) text += bullet(markdown_text(layer.finding));
    return text + '\n';
}

std::string verdict_section(const Verdicts& verdicts, Heading heading) {
    if (verdicts.model.subject.empty()) return {};
    const Verdict& model = verdicts.model;
    const bool known = model.bound != Bound::not_identifiable;
    std::string text = heading.text("Verdicts");
    text += known ? fmt::format("\n**The model is {}**, {:.0f} % beyond the threshold", verdict_word(model),
                                100 * model.margin)
                  : std::string("\n**What binds the model is not identifiable**");
    text += fmt::format(", by the rule `{}`. What would overturn it: {}.\n\n", model.rule,
                        markdown_text(model.overturned_by));
    for (const std::string& evidence : model.evidence) text += bullet(markdown_text(evidence));
    MarkdownTable hypotheses({{"hypothesis", Align::left}, {"finding", Align::left}, {"why", Align::left}});
    for (const Hypothesis& hypothesis : model.hypotheses)
        hypotheses.add_row({std::string(name(hypothesis.bound)), std::string(name(hypothesis.finding)),
                            markdown_text(hypothesis.why)});
    text += hypotheses.text() + "By layer:\n";
    MarkdownTable table({{"layer", Align::left},
                         {"verdict", Align::left},
                         {"margin %"},
                         {"evidence", Align::left},
                         {"overturned by", Align::left}});
    for (const Verdict& layer : verdicts.layers)
        table.add_row({markdown_name(layer.subject), verdict_word(layer), fmt::format("{:.0f}", 100 * layer.margin),
                       markdown_text(fmt::format("{}", fmt::join(layer.evidence, "; "))),
                       markdown_text(layer.overturned_by)});
    return text + table.text();
}

std::string occupancy_section(const Point& point, Heading heading) {
    const auto has_kernels = [](const StepResult& step) { return !step.kernels.empty(); };
    if (std::ranges::none_of(point.steps, has_kernels)) return {};
    struct Shown {
        const char *column, *header;
    };
    constexpr Shown shown_columns[] = {{"layer", "layer"},
                                       {"kernel", "kernel"},
                                       {"grid", "grid"},
                                       {"block", "block"},
                                       {"occ_theory", "theoretical % (derived)"},
                                       {"occ_achieved", "achieved % (measured)"},
                                       {"occ_limiter", "limited by"},
                                       {"waves", "waves (derived)"},
                                       {"occ_hint", "what would raise it (derived)"}};
    Result copy;
    copy.points = {point};
    const ResultFile file{"", std::move(copy)};
    TableQuery query;
    query.level = &find_level("layer");
    query.fold = true;
    query.sort = SortBy{"time_us", true};
    std::vector<TableColumn> layout;
    for (const Shown& one : shown_columns) {
        query.columns.emplace_back(one.column);
        layout.push_back({one.header, find_column(one.column).align});
    }
    const QueriedTable found = query_table(std::span(&file, 1), query);
    MarkdownTable table(std::move(layout));
    for (const TableRow& row : found.rows) {
        std::vector<std::string> cells;
        for (const Column& column : found.columns) {
            const Value value = column.value(row);
            const std::string cell = value == Value(NoValue::na) ? "" : shown(column, value);
            const bool is_name = column.name == "layer" || column.name == "kernel";
            cells.push_back(is_name ? markdown_name(cell) : markdown_text(cell));
        }
        table.add_row(std::move(cells));
    }
    const auto is_counted = [](const StepResult& step) { return counter(step, "achieved_occupancy").has_value(); };
    const bool counted = std::ranges::any_of(point.steps, is_counted);
    return heading.text("Occupancy") + table.text() +
           (counted ? "" : "Achieved occupancy: unavailable: the counter achieved\\_occupancy was not read.\n\n");
}

std::string conditions_section(const Point& point, Heading heading) {
    const Conditions& conditions = point.conditions;
    MarkdownTable table({{"condition", Align::left}, {"mean"}, {"range"}, {"origin", Align::left}});
    const auto add = [&](std::string_view what, std::string_view unit, const Quantity& mean,
                         std::optional<double> ConditionReading::*member) {
        std::optional<double> low, high;
        for (const ConditionReading& reading : conditions.readings) {
            if (!(reading.*member)) continue;
            low = std::min(low.value_or(*(reading.*member)), *(reading.*member));
            high = std::max(high.value_or(*(reading.*member)), *(reading.*member));
        }
        const std::string range = low ? fmt::format("{} to {}", significant(*low), significant(*high)) : std::string();
        table.add_row({std::string(what),
                       mean.value ? fmt::format("{} {}", significant(*mean.value), unit) : std::string("unavailable"),
                       range, origin_cell(mean)});
    };
    add(point.backend() == "cuda" ? "SM clock" : "clock", "MHz", conditions.sm_clock_mhz,
        &ConditionReading::sm_clock_mhz);
    add("memory clock", "MHz", conditions.memory_clock_mhz, &ConditionReading::memory_clock_mhz);
    add("power", "W", conditions.power_w, &ConditionReading::power_w);
    add("temperature", "C", conditions.temperature_c, &ConditionReading::temperature_c);
    const std::string reasons = fmt::format("{}", fmt::join(conditions.throttle_reasons, ", "));
    return heading.text("Conditions of the timing run") + table.text() +
           fmt::format("Throttling: {}; {} throttled samples were repeated.\n\n",
                       reasons.empty() ? "none seen" : markdown_text(reasons), conditions.throttled_samples);
}

std::string ceilings_section(const CeilingRun& run, Heading heading) {
    if (run.ceilings.empty())
        return heading.text("Ceilings") + fmt::format("\nUnavailable: {}.\n\n", run.unavailable.empty()
                                                                                    ? "the result has none"
                                                                                    : markdown_text(run.unavailable));
    MarkdownTable table({{"ceiling", Align::left},
                         {"unit", Align::left},
                         {"value"},
                         {"interval"},
                         {"at MHz"},
                         {"datasheet"},
                         {"share %"},
                         {"origin", Align::left}});
    for (const Ceiling& ceiling : run.ceilings) {
        const auto kinds = ceiling_kinds();
        const auto kind = std::ranges::find(kinds, ceiling.name, &CeilingKind::name);
        const bool measured = ceiling.value.value.has_value();
        const std::optional<double>& stated = ceiling.datasheet.value;
        table.add_row(
            {markdown_name(ceiling.name), kind == kinds.end() ? "" : std::string(kind->unit),
             measured ? significant(*ceiling.value.value) : "unavailable",
             measured ? fmt::format("{} to {}", significant(ceiling.low), significant(ceiling.high)) : "",
             ceiling.clock_mhz > 0 ? significant(ceiling.clock_mhz) : "", stated ? significant(*stated) : "",
             measured && stated && *stated > 0 ? fmt::format("{:.1f}", 100 * *ceiling.value.value / *stated) : "",
             origin_cell(ceiling.value)});
    }
    const std::string when = run.measured_at.empty() ? "" : markdown_text(run.measured_at);
    return heading.text("Ceilings") +
           fmt::format("\nOf {}, driver {}, {}. The share is that of the datasheet's value (estimated).\n",
                       markdown_text(run.device), markdown_text(run.driver), when) +
           table.text();
}

std::string environment_section(const Environment& environment, Heading heading) {
    std::vector<std::string> libraries;
    for (const auto& [library, version] : environment.libraries)
        libraries.push_back(fmt::format("{} {}", library, version));
    const HostInfo& host = environment.host;
    const Entry entries[] = {
        {"kbench", fmt::format("{} {} {} {}", environment.kbench_version, environment.git_revision,
                               environment.build_type, environment.compiler)},
        {"started", environment.started_at},
        {"command", environment.command_line},
        {"GPU", environment.gpu ? gpu_text(*environment.gpu) : ""},
        {"driver", environment.gpu ? environment.gpu->driver : ""},
        {"CUDA runtime", environment.gpu ? environment.gpu->cuda_runtime : ""},
        {"CPU", host_text(host)},
        {"governor", host.governor},
        {"system", fmt::format("{} {}", host.os, host.kernel)},
        {"libraries", fmt::format("{}", fmt::join(libraries, ", "))},
    };
    return heading.text("Environment") + entries_table(entries);
}

}  // namespace kbench
