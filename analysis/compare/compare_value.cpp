// What buyers ask: latency times price, latency times bandwidth, energy.
#include <algorithm>
#include <limits>
#include <utility>

#include "analysis/compare/compare.h"

namespace kbench {
namespace {

constexpr double million = 1e6, seconds_per_hour = 3600, ms_per_s = 1e3;

ValueRow value_of(std::size_t run, const Point& point, const Result& result, std::optional<double> dollars_per_hour) {
    const EndToEnd& times = *point.end_to_end;
    const std::optional<std::int64_t> batch = point.axes.count("batch"), tokens = point.tokens_of_sequence();
    ValueRow row;
    row.run = run;
    row.latency_ms = Interval::of(times.latency.summary_ms);
    if (batch && row.latency_ms.value > 0)
        row.sequences_per_s = static_cast<double>(*batch) * ms_per_s / row.latency_ms.value;
    row.energy_per_sequence_j = times.energy_per_sequence_j;
    if (dollars_per_hour && batch) {
        const double sequences = static_cast<double>(*batch);
        const Interval dollars = scaled(row.latency_ms, *dollars_per_hour / seconds_per_hour / ms_per_s);
        row.dollars_per_million_sequences = scaled(dollars, million / sequences);
        if (tokens)
            row.dollars_per_million_tokens = scaled(dollars, million / (sequences * static_cast<double>(*tokens)));
    }
    if (const std::optional<Roof> roof = Roofs(result).bandwidth(Level::dram))
        row.latency_bandwidth_gb = row.latency_ms.value / ms_per_s * roof->per_s * 1e-9;
    return row;
}

/// Runs without a price come last.
double cost_of(const ValueRow& row) {
    return row.dollars_per_million_sequences ? row.dollars_per_million_sequences->value
                                             : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<ValueTable> value_tables(std::span<const NamedResult> runs, const std::map<std::string, double>& prices) {
    std::vector<ValueTable> tables;
    std::vector<std::vector<const Point*>> by_first(runs[0].result.points.size());
    const auto place = [&](const Point* point) {
        return static_cast<std::size_t>(point - runs[0].result.points.data());
    };
    for (const NamedResult& run : runs)
        for (const auto& [first, later] : match_points(runs[0], run)) by_first[place(first)].push_back(later);
    for (std::size_t p = 0; p < by_first.size(); ++p) {
        if (by_first[p].size() != runs.size()) continue;
        ValueTable& table = tables.emplace_back();
        table.point = &runs[0].result.points[p];
        for (std::size_t r = 0; r < runs.size(); ++r) {
            const auto price = prices.find(runs[r].name);
            table.rows.push_back(value_of(r, *by_first[p][r], runs[r].result,
                                          price == prices.end() ? std::nullopt : std::optional(price->second)));
        }
        std::ranges::stable_sort(table.rows, [](const ValueRow& one, const ValueRow& other) {
            return std::pair(cost_of(one), one.latency_ms.value) < std::pair(cost_of(other), other.latency_ms.value);
        });
    }
    return tables;
}

}  // namespace kbench
