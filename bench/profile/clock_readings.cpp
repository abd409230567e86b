// Differences on the same SM alone, summed over launches.
#include "bench/profile/clock_readings.h"

#include <vector>

#include "kbench/statistics.h"
#include "kernels/probe/span.h"

namespace kbench {

std::optional<double> clock_mhz(const ClockReadings& readings, std::size_t from, std::size_t to) {
    std::vector<double> mhz;
    for (std::size_t sm = 0; sm < readings.sms; ++sm) {
        cuda::probe::Span span;
        double launches = 0;
        for (std::size_t launch = 0; launch < readings.launches(); ++launch) {
            const auto &begin = readings.at(launch, from, sm), &end = readings.at(launch, to, sm);
            const bool is_read_at_both = begin.ns > 0 && end.ns > begin.ns && end.cycles > begin.cycles;
            if (!is_read_at_both) continue;
            span.cycles += end.cycles - begin.cycles;
            span.ns += end.ns - begin.ns;
            ++launches;
        }
        const bool is_long = static_cast<double>(span.ns) >= launches * shortest_clock_interval_us * 1e3;
        if (is_long && span.mhz() > 0) mhz.push_back(span.mhz());
    }
    return mhz.empty() ? std::nullopt : std::optional(summarise(mhz).median);
}

}  // namespace kbench
