// Matches samples with readings by their times since the first sample began.
#include "bench/measure/machine/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kbench/statistics.h"

namespace kbench {
namespace {

constexpr std::size_t most_blocks = 16, fewest_samples = 5;
constexpr double busy = 0.95;

}  // namespace

std::vector<ConditionBlock> condition_blocks(std::span<const double> samples_ms, std::span<const double> ended_s,
                                             std::span<const ConditionReading> readings) {
    const std::size_t count = std::min(most_blocks, samples_ms.size() / fewest_samples);
    if (count < 2) return {};
    std::vector<ConditionBlock> blocks;
    bool any_clock = false;
    double from_s = 0;
    for (std::size_t b = 0; b < count; ++b) {
        const std::size_t first = b * samples_ms.size() / count, end = (b + 1) * samples_ms.size() / count;
        ConditionBlock& block = blocks.emplace_back();
        block.until_s = ended_s[end - 1];
        block.median_ms = summarise(samples_ms.subspan(first, end - first)).median;
        double sum_mhz = 0;
        for (const ConditionReading& reading : readings) {
            if (!reading.sm_clock_mhz || reading.at_s <= from_s || reading.at_s > block.until_s) continue;
            sum_mhz += *reading.sm_clock_mhz;
            ++block.readings;
        }
        if (block.readings > 0) block.sm_clock_mhz = sum_mhz / block.readings;
        any_clock = any_clock || block.readings > 0;
        from_s = block.until_s;
    }
    return any_clock ? blocks : std::vector<ConditionBlock>();
}

Quantity energy_of(const Conditions& conditions, double seconds, double busy_share) {
    const Quantity& power_w = conditions.power_w;
    if (!power_w.value) return Quantity::unavailable(power_w.reason);
    Quantity energy = Quantity::derived(*power_w.value * seconds);
    const auto estimate = [&energy](const std::string& why) {
        energy.origin = Origin::estimated;
        energy.reason += (energy.reason.empty() ? "" : "; ") + why;
    };
    if (conditions.energy_j.origin == Origin::estimated) estimate(conditions.energy_j.reason);
    if (busy_share < busy)
        estimate(fmt::format("too low: the device was busy for {:.0f} % of the sampling", 100 * busy_share));
    return energy;
}

}  // namespace kbench
