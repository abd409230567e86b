// Counted bytes split among roles, compared with the steps' unfused traffic.
#include "analysis/explain/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

using ByRole = std::array<double, role_count>;

ByRole unfused_bytes(const Cost& cost) {
    ByRole bytes{};
    for (std::size_t role = 0; role < role_count; ++role)
        bytes[role] = cost.bytes_read[role] + cost.bytes_written[role];
    return bytes;
}

/// `counted` bytes by role: beyond the unfused traffic each role has its part of them and what is more stays
/// unassigned (the step's excess); below them weights and the cache of keys and values come first, as nothing has read
/// them since the last forward.
ByRole attribute(const ByRole& needed, double counted) {
    double total = 0;
    for (const double bytes : needed) total += bytes;
    if (counted >= total) return needed;
    ByRole attributed{};
    const auto is_first = [](std::size_t role) {
        return role == static_cast<std::size_t>(Role::weights) || role == static_cast<std::size_t>(Role::cache);
    };
    double first = 0;
    for (std::size_t role = 0; role < role_count; ++role)
        if (is_first(role)) first += needed[role];
    const double others = total - first, left = std::max(0.0, counted - first);
    for (std::size_t role = 0; role < role_count; ++role) {
        const double all = is_first(role) ? first : others;
        if (all > 0) attributed[role] = needed[role] / all * (is_first(role) ? std::min(first, counted) : left);
    }
    return attributed;
}

bool binds(const StepRoofTimes& roof_times, Level level) {
    return roof_times.binding() != nullptr && roof_times.binding()->level == level;
}

/// From which ratio of counted to unfused traffic on a layer is worth a sentence.
constexpr double noteworthy_more = 1.1, noteworthy_less = 0.9;

std::string finding(const LayerTraffic& layer, bool counted) {
    if (!counted || layer.unfused_bytes <= 0) return "";
    const double ratio = layer.measured_bytes / layer.unfused_bytes;
    const std::string moved =
        fmt::format("{}: while it runs, {:.2f} times its unfused traffic moves", layer.layer, ratio);
    if (ratio >= noteworthy_more)
        return fmt::format("{}; {} read again, or written back for it or for what ran before it, {} us of DRAM time",
                           moved, format_bytes(layer.measured_bytes - layer.unfused_bytes),
                           significant(layer.excess_ms * 1e3));
    if (ratio <= noteworthy_less)
        return fmt::format("{}; L2 kept {}", moved, format_bytes(layer.unfused_bytes - layer.measured_bytes));
    return "";
}

}  // namespace

Attribution attribute_bandwidth(const PointFacts& facts, std::span<const StepRoofTimes> roof_times) {
    Attribution result;
    const std::optional<Roof> dram = facts.roofs.bandwidth(Level::dram);
    if (!facts.unavailable.empty() || !dram) {
        result.unavailable = !facts.unavailable.empty() ? facts.unavailable : facts.roofs.unavailable();
        if (result.unavailable.empty()) result.unavailable = "no DRAM bandwidth was measured";
        return result;
    }
    const double ms_per_byte = 1e3 / dram->per_s;
    std::array<RoleTraffic, role_count> roles{};
    std::array<LevelTraffic, std::size(levels)> traffic{};
    double dram_bound_us = 0;
    result.counted = !roof_times.empty();
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        const StepRoofTimes& of_step = roof_times[i];
        const StepResult& step = *facts.steps[i].step;
        const ByRole needed = unfused_bytes(step.cost);
        const RoofTime* at_dram = of_step.at(Level::dram);
        const bool counted = at_dram != nullptr && at_dram->origin == Origin::measured;
        result.counted = result.counted && (counted || step.cost.bytes() == 0);
        const double bytes = counted ? at_dram->work : step.cost.bytes();
        const ByRole attributed = attribute(needed, bytes);
        const bool exposed = binds(of_step, Level::dram);
        if (exposed) dram_bound_us += facts.steps[i].time_us;
        for (std::size_t role = 0; role < role_count; ++role) {
            roles[role].unfused_bytes += needed[role];
            roles[role].attributed_bytes += attributed[role];
            roles[role].dram_ms += attributed[role] * ms_per_byte;
            if (exposed) roles[role].exposed_ms += attributed[role] * ms_per_byte;
        }
        const double excess = bytes - step.cost.bytes();
        (excess > 0 ? result.excess_bytes : result.kept_bytes) += std::abs(excess);
        LayerTraffic& layer = entry(result.layers, &LayerTraffic::layer, layer_group(step.layer));
        layer.unfused_bytes += step.cost.bytes();
        layer.measured_bytes += bytes;
        layer.excess_ms += excess * ms_per_byte;
        if (const RoofTime* at_l2 = of_step.at(Level::l2)) layer.l2_bytes += at_l2->work;
        for (const Level level : levels) {
            const RoofTime* roof_time = of_step.at(level);
            if (roof_time == nullptr) continue;
            LevelTraffic& sum = traffic[static_cast<std::size_t>(level)];
            sum.level = level;
            sum.bytes += roof_time->work;
            sum.ms += roof_time->us * 1e-3;
            if (roof_time->origin != Origin::measured) sum.origin = roof_time->origin;
            if (binds(of_step, level)) sum.binding_ms += roof_time->us * 1e-3;
        }
    }
    for (std::size_t role = 0; role < role_count; ++role) {
        roles[role].role = static_cast<Role>(role);
        if (roles[role].unfused_bytes > 0) result.roles.push_back(roles[role]);
    }
    for (const LevelTraffic& level : traffic)
        if (level.bytes > 0) result.levels.push_back(level);
    for (LayerTraffic& layer : result.layers) layer.finding = finding(layer, result.counted);
    std::ranges::stable_sort(result.layers, std::greater{}, &LayerTraffic::measured_bytes);
    result.excess_ms = result.excess_bytes * ms_per_byte;
    result.kept_ms = result.kept_bytes * ms_per_byte;
    result.dram_binding_share = facts.end_to_end_us > 0 ? dram_bound_us / facts.end_to_end_us : 0;
    for (const Role role : {Role::activations, Role::scores})
        result.activation_ms += roles[static_cast<std::size_t>(role)].dram_ms;
    return result;
}

}  // namespace kbench
