#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/point_facts.h"
#include "analysis/machine/ceiling_kinds.h"
#include "analysis/machine/cpu_share.h"
#include "analysis/report/sections/sections.h"
#include "kbench/statistics.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// NVML's clock is a mean over all that ran between two of its readings, short kernels and the pauses between them
/// alike: not the clock of any of them.
struct Condition {
    std::string_view name, name_on_cpu, unit;
    Quantity Conditions::*mean;
    std::optional<double> ConditionReading::*reading;
    bool gpu_only = false;
};
constexpr Condition all_conditions[] = {
    {"SM clock (NVML's mean)", "clock", "MHz", &Conditions::sm_clock_mhz, &ConditionReading::sm_clock_mhz},
    {"memory clock", "memory clock", "MHz", &Conditions::memory_clock_mhz, &ConditionReading::memory_clock_mhz, true},
    {"power", "power", "W", &Conditions::power_w, &ConditionReading::power_w},
    {"temperature", "temperature", "C", &Conditions::temperature_c, &ConditionReading::temperature_c},
};

std::string range_of(const Conditions& conditions, std::optional<double> ConditionReading::*member) {
    std::optional<double> low, high;
    for (const ConditionReading& reading : conditions.readings) {
        if (!(reading.*member)) continue;
        low = std::min(low.value_or(*(reading.*member)), *(reading.*member));
        high = std::max(high.value_or(*(reading.*member)), *(reading.*member));
    }
    return low ? fmt::format("{} to {}", significant(*low), significant(*high)) : std::string();
}

/// Correlations of less are not worth a sentence. Slow drifts of both reach it by chance, so it says no more than that
/// they went together.
constexpr double noteworthy_correlation = 0.5;

/// Whether the clock moved from block to block of the samples, and the times with it.
std::string clock_of_blocks(const Conditions& conditions, std::string_view clock) {
    std::vector<double> mhz, ms;
    for (const ConditionBlock& block : conditions.blocks) {
        if (!block.sm_clock_mhz) continue;
        mhz.push_back(*block.sm_clock_mhz);
        ms.push_back(block.median_ms);
    }
    if (mhz.empty()) return {};
    const auto range = [](const std::vector<double>& values) {
        const auto [low, high] = std::ranges::minmax(values);
        const std::string from = significant(low, 4), to = significant(high, 4);
        return from == to ? from : fmt::format("{} to {}", from, to);
    };
    std::string text = fmt::format("In {} blocks of the samples, in order of time, {} was {} MHz and the median {} ms",
                                   mhz.size(), clock, range(mhz), range(ms));
    const auto mean = [](const std::vector<double>& values) {
        return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    };
    const double mean_mhz = mean(mhz), mean_ms = mean(ms);
    double both = 0, of_mhz = 0, of_ms = 0;
    for (std::size_t i = 0; i < mhz.size(); ++i) {
        both += (mhz[i] - mean_mhz) * (ms[i] - mean_ms);
        of_mhz += std::pow(mhz[i] - mean_mhz, 2);
        of_ms += std::pow(ms[i] - mean_ms, 2);
    }
    if (mhz.size() < 16 || of_mhz <= 0 || of_ms <= 0) return text + ".";
    const double correlation = both / std::sqrt(of_mhz * of_ms);
    return fmt::format("{}; their correlation is {:.2f}{}.", text, correlation,
                       correlation < -noteworthy_correlation ? ": samples took longer at a lower clock" : "");
}

/// What was read over the time of the samples.
Section reading_curves(const Conditions& conditions, bool gpu) {
    Section section{"Clock, power and temperature during the samples"};
    section.is_only_on_page = true;
    for (const Condition& condition : all_conditions) {
        std::vector<double> at_s;
        const std::string_view name = gpu ? condition.name : condition.name_on_cpu;
        ChartSeries values{std::string(name)};
        for (const ConditionReading& reading : conditions.readings) {
            if (!(reading.*condition.reading)) continue;
            at_s.push_back(reading.at_s);
            const double value = *(reading.*condition.reading);
            values.add(value,
                       fmt::format("{} {} at {} s", significant(value), condition.unit, significant(reading.at_s)));
        }
        if (!at_s.empty())
            section.add(Chart{fmt::format("{}, {}", name, condition.unit), "measured during the samples",
                              CurveChart{{"s since the sampling began"}, {}, {{std::move(at_s), std::move(values)}}}});
    }
    if (section.empty()) section.add(Paragraph{"the result holds no readings over time", Tone::missing});
    return section;
}

/// Op kinds beyond these have the least of the time.
constexpr std::size_t op_kinds_with_clock = 4;

/// "1,570 MHz in gemm, 1,690 MHz in attention", the op kinds with most of the time first; empty where no clock was read
/// in the graph.
std::string clocks_by_op(const Point& point) {
    struct KindClock {
        std::string_view op;
        double us = 0, cycles = 0;
    };
    const std::vector<Interval> clocks = graph_clocks(point);
    std::vector<KindClock> kinds;
    for (std::size_t s = 0; s < clocks.size(); ++s) {
        const double us = point.steps[s].device_us().value_or(0);
        if (clocks[s].value <= 0 || us <= 0) continue;
        KindClock& kind = entry(kinds, &KindClock::op, point.steps[s].op);
        kind.us += us;
        kind.cycles += us * clocks[s].value;
    }
    std::ranges::stable_sort(kinds, std::greater{}, &KindClock::us);
    if (kinds.size() > op_kinds_with_clock) kinds.resize(op_kinds_with_clock);
    return joined(kinds, ", ", [](const KindClock& kind) {
        return fmt::format("{} MHz in {}", significant(kind.cycles / kind.us, 4), kind.op);
    });
}

/// The SMs' own clock beside NVML's mean, and what it cost to read it.
std::string graph_clock_text(const Point& point) {
    const GraphClock& clock = *point.graph_clock;
    if (!clock.unavailable.empty())
        return fmt::format("The SM clock inside the graph was not read: {}.", clock.unavailable);
    const std::optional<double> nvml = point.conditions.sm_clock_mhz.value;
    return fmt::format(
        "SM clock: {} (read in the graph){}. It was read at {} places of {} graphs that are not the timed one; a place "
        "adds {} us to a graph.",
        clocks_by_op(point), nvml ? fmt::format("; NVML's mean {} MHz", significant(*nvml, 4)) : "", clock.places,
        clock.graphs, significant(clock.cost_us, 2));
}

/// What other programs left of each roof between the samples, and whether steps were compared with it.
std::string roof_readings_text(const Conditions& conditions, bool are_used) {
    std::vector<std::string> parts;
    for (const RoofReadings& readings : conditions.roofs) {
        if (readings.values.empty()) continue;
        const auto kind = std::ranges::find(ceiling_kinds(), readings.ceiling, &CeilingKind::name);
        if (kind == ceiling_kinds().end()) continue;
        const Summary summary = summarise(readings.values);
        parts.push_back(fmt::format("{} {} {} ({} to {}, {} readings)", kind->name, significant(summary.median, 3),
                                    kind->unit, significant(summary.min, 3), significant(summary.max, 3),
                                    readings.values.size()));
    }
    if (parts.empty()) return "";
    return joined(parts, ", ") + (are_used ? "" : "; not used: they are too few, or steps contradict them");
}

}  // namespace

bool was_watched(const Point& point) {
    const Conditions& conditions = point.conditions;
    return !point.program || conditions.sm_clock_mhz.value || conditions.power_w.value || !conditions.readings.empty();
}

Section conditions_section(const SectionContext& context) {
    const Point& point = context.point();
    const Depth depth = context.depth;
    const Conditions& conditions = point.conditions;
    const bool gpu = point.backend() == "cuda";
    Section section{depth == Depth::full ? "Conditions of the timing run" : ""};
    if (!point.end_to_end) return section;
    if (!was_watched(point)) {
        if (depth == Depth::full)
            section.add(Paragraph{"clock and power were not read while the program ran", Tone::missing});
        return section;
    }
    Rows rows{{words("condition"), figures("mean"), figures("range"), words("origin")}};
    Facts facts{{}, "conditions"};
    for (const Condition& condition : all_conditions) {
        if (condition.gpu_only && !gpu) continue;
        const std::string_view name = gpu ? condition.name : condition.name_on_cpu;
        Fact one = fact(name, conditions.*condition.mean, [&condition](double value) {
            return fmt::format("{} {}", significant(value, 3), condition.unit);
        });
        rows.rows.push_back({one.label, one.value.empty() ? "unavailable" : one.value,
                             range_of(conditions, condition.reading), one.origin});
        facts.facts.push_back(std::move(one));
    }
    const std::string reasons = throttling_text(conditions);
    const std::string roofs = roof_readings_text(conditions, context.explanation().is_by_roofs_between_samples);
    const std::string cpu_share = conditions.cpu_share ? cpu_share_text(*conditions.cpu_share) : "";
    if (depth == Depth::full) {
        section.add(std::move(rows));
        section.add(Paragraph{
            fmt::format("Throttling: {}; {} throttled samples were repeated.", reasons, conditions.throttled_samples)});
        if (!cpu_share.empty()) section.add(Paragraph{fmt::format("CPU time not got: {}.", cpu_share)});
        if (!roofs.empty()) section.add(Paragraph{fmt::format("Roofs between the samples: {}.", roofs)});
        if (point.graph_clock) section.add(Paragraph{graph_clock_text(point)});
        section.add(Paragraph{clock_of_blocks(conditions, gpu ? "NVML's mean SM clock" : "the clock")});
        section.add(reading_curves(conditions, gpu));
        return section;
    }
    if (const std::string clocks = point.graph_clock ? clocks_by_op(point) : ""; !clocks.empty())
        facts.facts.push_back({"SM clock in the graph", clocks, std::string(name(Origin::measured))});
    std::ranges::move(energy_facts(point), std::back_inserter(facts.facts));
    facts.facts.push_back({"throttling", reasons, ""});
    if (!cpu_share.empty()) facts.facts.push_back({"CPU time not got", cpu_share, ""});
    if (!roofs.empty()) facts.facts.push_back({"roofs between the samples", roofs, ""});
    if (conditions.throttled_samples > 0)
        facts.facts.push_back({std::to_string(conditions.throttled_samples), "throttled samples repeated", ""});
    facts.facts.push_back(fact("energy while sampling", conditions.energy_j, format_joules));
    section.add(std::move(facts));
    return section;
}

}  // namespace kbench
