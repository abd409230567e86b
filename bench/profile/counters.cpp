// From names on the command line to a chip's counters and back.
#include "bench/profile/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace kbench {
namespace {

bool is_a_chips_name(std::string_view name) { return name.find("__") != std::string_view::npos; }

Metric raw_metric(const std::string& counter) {
    return {.set = "",
            .name = counter,
            .unit = "",
            .counters = {counter},
            .unavailable = "",
            .what = "a counter by the chip's own name"};
}

void add_once(std::vector<Metric>& metrics, const Metric& metric) {
    if (std::ranges::find(metrics, metric.name, &Metric::name) == metrics.end()) metrics.push_back(metric);
}

}  // namespace

bool CounterRequest::samples() const { return std::ranges::find(sets, stall_samples) != sets.end(); }

std::vector<Metric> requested_metrics(const MetricSets& sets, const CounterRequest& request) {
    std::vector<Metric> metrics;
    for (const std::string& name : request.sets)
        if (name != stall_samples)
            for (const Metric& metric : name == "full" ? sets.metrics() : sets.set(name)) add_once(metrics, metric);
    for (const std::string& name : request.metrics) {
        const bool known = std::ranges::find(sets.metrics(), name, &Metric::name) != sets.metrics().end();
        add_once(metrics, !known && is_a_chips_name(name) ? raw_metric(name) : sets.find(name));
    }
    return metrics;
}

std::vector<CountedMetric> describe_metrics(std::span<const Metric> metrics) {
    std::vector<CountedMetric> described;
    for (const Metric& metric : metrics)
        described.push_back({metric.name, metric.unit, fmt::format("{}", fmt::join(metric.counters, " + ")),
                             metric.available() ? Origin::measured : Origin::unavailable, metric.unavailable});
    return described;
}

std::map<std::string, double> metric_values(std::span<const Metric> metrics, std::span<const std::string> counters,
                                            std::span<const double> values) {
    const auto value_of = [&](const std::string& counter) -> std::optional<double> {
        const auto found = std::ranges::find(counters, counter);
        if (found == counters.end()) return std::nullopt;
        const double value = values[static_cast<std::size_t>(found - counters.begin())];
        return std::isfinite(value) ? std::optional(value) : std::nullopt;
    };
    std::map<std::string, double> by_name;
    for (const Metric& metric : metrics) {
        std::optional<double> sum = metric.available() ? std::optional(0.0) : std::nullopt;
        for (const std::string& counter : metric.counters) {
            const std::optional<double> value = value_of(counter);
            sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
        }
        if (sum) by_name[metric.name] = *sum;
    }
    return by_name;
}

}  // namespace kbench
