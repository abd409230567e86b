// One interval of the host's counters for each step; then the ladder's last rung, the cost model.
#include "bench/profile/cpu_counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <string_view>

#include "models/base/error.h"

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
    {"dram_total_bytes", "byte", "", [](const HostCounts& c) { return c.dram_bytes; }},
};

double sum(const std::array<double, role_count>& bytes) { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

/// One metric over all steps: values where there are any, else the first step's reason.
CountedMetric gather(const HostMetric& metric, const std::string& traffic_source, const std::vector<HostCounts>& counts,
                     StepCounters& result) {
    CountedMetric described{std::string(metric.name), std::string(metric.unit),
                            std::string(metric.source.empty() ? traffic_source : metric.source), Origin::unavailable,
                            ""};
    for (std::size_t s = 0; s < counts.size(); ++s) {
        const Quantity quantity = metric.of(counts[s]);
        const bool first_value = quantity.value && described.origin == Origin::unavailable;
        if (first_value || described.reason.empty()) described.reason = quantity.reason;
        if (!quantity.value) continue;
        if (first_value || quantity.origin == Origin::estimated) described.origin = quantity.origin;
        result.by_step[s][described.name] = *quantity.value;
    }
    return described;
}

/// The ladder's last rung: compulsory bytes, and each line that is written is read first.
void estimate_traffic(const std::vector<Cost>& costs, const std::vector<std::string>& why_not, StepCounters& result) {
    const std::string reason = fmt::format("no hardware counter of memory traffic here: {}", fmt::join(why_not, "; "));
    const std::string_view source = "the cost model's compulsory bytes, written lines read first";
    result.run.metrics.push_back({"dram_read_bytes", "byte", std::string(source), Origin::estimated, reason});
    result.run.metrics.push_back({"dram_write_bytes", "byte", std::string(source), Origin::estimated, reason});
    for (std::size_t s = 0; s < costs.size(); ++s) {
        const double written = sum(costs[s].bytes_written);
        result.by_step[s]["dram_read_bytes"] = sum(costs[s].bytes_read) + written;
        result.by_step[s]["dram_write_bytes"] = written;
    }
}

}  // namespace

StepCounters count_on_cpu(PerfSystem& perf, const std::vector<Cost>& costs,
                          const std::function<void(std::size_t step)>& run_step) {
    const auto start = Clock::now();
    HostCounters counters = HostCounters::open(perf);
    std::vector<HostCounts> counts;
    for (std::size_t s = 0; s < costs.size(); ++s) {
        counters.start();
        run_step(s);
        counts.push_back(counters.stop());
    }
    StepCounters result;
    result.by_step.resize(costs.size());
    result.discarded.resize(costs.size());
    const bool has_traffic = !counters.traffic_source().empty();
    for (const HostMetric& metric : host_metrics)
        if (has_traffic || !metric.source.empty())
            result.run.metrics.push_back(gather(metric, counters.traffic_source(), counts, result));
    if (!has_traffic) estimate_traffic(costs, counters.why_not(), result);
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
