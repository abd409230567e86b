// Reads the host's counters over each range, and estimates memory traffic where there are none.
#include "bench/profile/cpu_counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "kbench/error.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

struct HostMetric {
    std::string_view name, unit, source;
    Quantity (*of)(const HostCounts&);
};
constexpr HostMetric host_metrics[] = {
    {"cycles", "cycle", "PERF_COUNT_HW_CPU_CYCLES", [](const HostCounts& c) { return c.cycles; }},
    {"instructions", "inst", "PERF_COUNT_HW_INSTRUCTIONS", [](const HostCounts& c) { return c.instructions; }},
    {"ipc", "inst/cycle", "instructions / cycles", instructions_per_cycle},
    {"core_clock", "MHz", "cycles / time of the threads on their cores", core_clock_mhz},
    {"dram_read_bytes", "byte", "", [](const HostCounts& c) { return c.dram_read_bytes; }},
    {"dram_write_bytes", "byte", "", [](const HostCounts& c) { return c.dram_write_bytes; }},
};

/// One metric over all ranges: values where there are any, else the first range's reason.
CountedMetric gather(const HostMetric& metric, const std::string& traffic_source, const std::vector<HostCounts>& counts,
                     RangeCounters& result) {
    CountedMetric described{std::string(metric.name), std::string(metric.unit),
                            std::string(metric.source.empty() ? traffic_source : metric.source), Origin::unavailable,
                            ""};
    for (std::size_t r = 0; r < counts.size(); ++r) {
        const Quantity quantity = metric.of(counts[r]);
        const bool first_value = quantity.value && described.origin == Origin::unavailable;
        if (first_value || described.reason.empty()) described.reason = quantity.reason;
        if (!quantity.value) continue;
        if (first_value || quantity.origin == Origin::estimated) described.origin = quantity.origin;
        result.by_range[r][described.name] = *quantity.value;
    }
    return described;
}

/// The estimate without any counter: unfused traffic, with each written line read first.
void estimate_traffic(std::span<const WorkRange> ranges, const std::vector<std::string>& why_not,
                      RangeCounters& result) {
    const std::string reason = fmt::format("no hardware counter of memory traffic here: {}", fmt::join(why_not, "; "));
    const std::string_view source = "the cost model's unfused traffic, written lines read first";
    result.run.metrics.push_back({"dram_read_bytes", "byte", std::string(source), Origin::estimated, reason});
    result.run.metrics.push_back({"dram_write_bytes", "byte", std::string(source), Origin::estimated, reason});
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        const double written = ranges[r].least_written_bytes;
        result.by_range[r]["dram_read_bytes"] = ranges[r].least_read_bytes + written;
        result.by_range[r]["dram_write_bytes"] = written;
    }
}

}  // namespace

RangeCounters count_on_cpu(PerfSystem& perf, std::span<const WorkRange> ranges) {
    const auto start = Clock::now();
    HostCounters counters = HostCounters::open(perf);
    std::vector<HostCounts> counts;
    for (const WorkRange& range : ranges) {
        counters.start();
        range.enqueue();
        counts.push_back(counters.stop());
    }
    RangeCounters result;
    result.by_range.resize(ranges.size());
    result.discarded.resize(ranges.size());
    const bool has_traffic = !counters.traffic_source().empty();
    for (const HostMetric& metric : host_metrics)
        if (has_traffic || !metric.source.empty())
            result.run.metrics.push_back(gather(metric, counters.traffic_source(), counts, result));
    if (!has_traffic) estimate_traffic(ranges, counters.why_not(), result);
    result.run.passes = 1;
    result.run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
}

void check_cpu_request(const CounterRequest& request) {
    for (const std::string& set : request.sets)
        if (set != "core" && set != "full")
            throw UsageError(fmt::format("--counters '{}': a CPU has the set core; full is the same", set));
    if (!request.metrics.empty())
        throw UsageError(
            fmt::format("--metrics '{}': metrics are a GPU's, and this runs on the CPU", request.metrics.front()));
}

}  // namespace kbench
