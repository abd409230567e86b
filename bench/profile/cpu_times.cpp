// Launches one after another: a CPU has done a range when its function returns.
#include "bench/profile/cpu_times.h"

#include <chrono>
#include <vector>

#include "cpu/probe/core_clock.h"

namespace kbench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t most_launches_on_cpu = 400;
/// Each takes some 0.1 ms.
constexpr std::size_t most_clock_readings = 50;

double us_between(SteadyClock::time_point from, SteadyClock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
}

}  // namespace

RangeTimes time_ranges_on_cpu(std::span<const WorkRange> ranges, double seconds, const RecordedLaunches& around) {
    const double half_us = seconds / 2 * 1e6;
    const auto warm_up = SteadyClock::now();
    for (std::size_t r = 0; us_between(warm_up, SteadyClock::now()) < half_us; r = (r + 1) % ranges.size())
        enqueue(ranges[r]);
    std::vector<std::vector<double>> us(ranges.size());
    std::vector<double> latency_ms;
    std::vector<double> clocks_mhz;
    if (around.begin) around.begin();
    const auto start = SteadyClock::now();
    while (latency_ms.size() < fewest_launches_on_cpu ||
           (latency_ms.size() < most_launches_on_cpu && us_between(start, SteadyClock::now()) < half_us)) {
        const auto launch = SteadyClock::now();
        for (std::size_t r = 0; r < ranges.size(); ++r) {
            const auto begin = SteadyClock::now();
            enqueue(ranges[r]);
            us[r].push_back(us_between(begin, SteadyClock::now()));
        }
        latency_ms.push_back(us_between(launch, SteadyClock::now()) * 1e-3);
        if (clocks_mhz.size() >= most_clock_readings) continue;
        if (const double mhz = cpu::core_clock_mhz(); mhz > 0) clocks_mhz.push_back(mhz);
    }
    if (around.end) around.end();
    RangeTimes result;
    result.launches = static_cast<int>(latency_ms.size());
    result.sm_clock_mhz = clocks_mhz.empty() ? Quantity::unavailable("the core's clock could not be read")
                                             : Quantity::measured(summarise(clocks_mhz).median);
    result.latency_ms = summarise(latency_ms);
    for (const std::vector<double>& of_range : us) result.us.push_back(summarise(of_range));
    return result;
}

}  // namespace kbench
