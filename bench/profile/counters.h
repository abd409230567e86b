// Which hardware counters a run asks for, resolved to metrics of a chip; and from counters' values to metrics'. Knows
// no device.
#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/profile/metric_sets.h"
#include "kbench/records.h"

namespace kbench {

/// Beside the sets of counters: samples of what warps wait for in cycles without an issue, which are no counters. Their
/// metrics begin with sampled_prefix.
inline constexpr std::string_view stall_samples = "samples";

/// What to count. Nothing when both lists are empty.
struct CounterRequest {
    std::vector<std::string> sets{"core"};  ///< names from `kbench list metrics`; "full" is all
    std::vector<std::string> metrics;       ///< by kbench's name or, as dram__bytes_read.sum, by the chip's
    bool required = false;                  ///< asked for by name: a run that cannot count has failed
    /// Count the last so many ranges; others have no values.
    std::size_t most_ranges = std::numeric_limits<std::size_t>::max();

    bool nothing() const { return sets.empty() && metrics.empty(); }
    bool samples() const;  ///< the set of that name is among them
};

/// The metrics that `request` means, each once: those of the sets in order, then single ones. A name with "__" that
/// kbench has no word for is taken for a counter of the chip; samples are left out. Throws UsageError with the nearest
/// names.
std::vector<Metric> requested_metrics(const MetricSets& sets, const CounterRequest& request);

/// How a result describes `metrics`.
std::vector<CountedMetric> describe_metrics(std::span<const Metric> metrics);

/// The metrics' values from those of `counters`; a metric is left out where one of its counters has no finite value.
std::map<std::string, double> metric_values(std::span<const Metric> metrics, std::span<const std::string> counters,
                                            std::span<const double> values);

}  // namespace kbench
