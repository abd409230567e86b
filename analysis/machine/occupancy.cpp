// The occupancy calculator's rules; each limiter is one function of the device and the launch.
#include "analysis/machine/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kbench/error.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

using BlockLimits = std::array<int, limiter_names.size()>;

template <typename Integer>
constexpr Integer divide_up(Integer value, Integer unit) {
    return (value + unit - 1) / unit;
}

template <typename Integer>
constexpr Integer round_up(Integer value, Integer unit) {
    return divide_up(value, unit) * unit;
}

int warps_per_block(const DeviceLimits& device, const LaunchShape& launch) {
    return divide_up(launch.block_threads, device.warp_size);
}

std::int64_t shared_bytes(const LaunchShape& launch) {
    return launch.static_shared_bytes + launch.dynamic_shared_bytes;
}

int registers_per_warp(const DeviceLimits& device, const LaunchShape& launch) {
    return round_up(launch.registers_per_thread * device.warp_size, device.register_allocation_unit);
}

/// What the hardware compares with the limit of a block: as if the block had the same warps in every partition.
int registers_charged_per_block(const DeviceLimits& device, const LaunchShape& launch) {
    return registers_per_warp(device, launch) * round_up(warps_per_block(device, launch), device.warp_allocation_unit);
}

int blocks_by_registers(const DeviceLimits& device, const LaunchShape& launch) {
    const int per_warp = registers_per_warp(device, launch);
    if (per_warp == 0) return unlimited_blocks;
    if (registers_charged_per_block(device, launch) > device.max_registers_per_block) return 0;
    // A warp's registers come from one partition, so what is left over in each is lost.
    const int warps_per_partition = device.registers_per_sm / device.warp_allocation_unit / per_warp;
    return warps_per_partition * device.warp_allocation_unit / warps_per_block(device, launch);
}

int blocks_by_shared_memory(const DeviceLimits& device, const LaunchShape& launch) {
    const std::int64_t allocated =
        round_up(shared_bytes(launch) + device.reserved_shared_bytes_per_block, device.shared_allocation_bytes);
    return allocated == 0 ? unlimited_blocks : static_cast<int>(device.shared_bytes_per_sm / allocated);
}

int blocks_by_barriers(const DeviceLimits& device, const LaunchShape& launch) {
    const int used = launch.barriers.value_or(0);
    return device.barriers_per_sm == 0 || used == 0 ? unlimited_blocks : device.barriers_per_sm / used;
}

/// In the order of Limiter.
BlockLimits block_limits(const DeviceLimits& device, const LaunchShape& launch) {
    return {blocks_by_registers(device, launch), blocks_by_shared_memory(device, launch),
            device.max_warps_per_sm / warps_per_block(device, launch), device.max_blocks_per_sm,
            blocks_by_barriers(device, launch)};
}

int blocks_per_sm(const DeviceLimits& device, const LaunchShape& launch) {
    return std::ranges::min(block_limits(device, launch));
}

void require_launchable(const DeviceLimits& device, const LaunchShape& launch) {
    const auto within = [](std::string_view what, auto value, auto low, auto high) {
        if (value < low || value > high)
            throw UsageError(fmt::format("{} {} is outside {} to {}", what, value, low, high));
    };
    within("threads a block", launch.block_threads, 1, device.max_threads_per_block);
    within("registers a thread", launch.registers_per_thread, 0, device.max_registers_per_thread);
    // Each part first, so that their sum cannot overflow.
    for (const auto bytes : {launch.static_shared_bytes, launch.dynamic_shared_bytes})
        within("bytes of shared memory a block", bytes, std::int64_t{0}, device.max_shared_bytes_per_block);
    within("bytes of shared memory a block", shared_bytes(launch), std::int64_t{0}, device.max_shared_bytes_per_block);
    within("barriers a block", launch.barriers.value_or(0), 0, device.max_barriers_per_block);
    if (launch.grid_blocks < 1) throw UsageError(fmt::format("grid of {} blocks; at least 1", launch.grid_blocks));
    // Sixteen blocks is the most that any architecture allows a cluster, and only where the kernel asks for it.
    within("blocks a cluster", launch.cluster_blocks, 1, device.compute_capability_major >= 9 ? 16 : 1);
    if (launch.grid_blocks % launch.cluster_blocks != 0)
        throw UsageError(fmt::format("grid of {} blocks is no multiple of its clusters of {}", launch.grid_blocks,
                                     launch.cluster_blocks));
    const int registers = registers_charged_per_block(device, launch);
    if (registers > device.max_registers_per_block)
        throw UsageError(fmt::format("{} threads of {} registers take {} registers; a block has at most {}",
                                     launch.block_threads, launch.registers_per_thread, registers,
                                     device.max_registers_per_block));
}

Waves waves_of(std::int64_t grid_blocks, std::int64_t blocks_per_wave) {
    const auto per_wave = static_cast<double>(blocks_per_wave);
    const std::int64_t in_last = grid_blocks % blocks_per_wave, full_waves = grid_blocks / blocks_per_wave;
    const double idle_share = in_last == 0 ? 0 : static_cast<double>(blocks_per_wave - in_last) / per_wave;
    return {static_cast<double>(grid_blocks) / per_wave, idle_share / static_cast<double>(full_waves + 1)};
}

/// Searches for the next steps of one launch.
class Steps {
  public:
    Steps(const DeviceLimits& device, const LaunchShape& launch)
        : device_(device), launch_(launch), active_warps_(active_warps(launch)) {}

    std::vector<OccupancyStep> find() const {
        std::vector<OccupancyStep> steps;
        for (const auto& step : {fewer_registers(), less_shared_memory(), other_block_size()})
            if (step) steps.push_back(*step);
        return steps;
    }

  private:
    using Parameter = OccupancyStep::Parameter;

    int active_warps(const LaunchShape& launch) const {
        return blocks_per_sm(device_, launch) * warps_per_block(device_, launch);
    }

    /// The step from the present launch to `changed`, if that raises occupancy.
    std::optional<OccupancyStep> step_to(const LaunchShape& changed, Parameter parameter, std::int64_t from,
                                         std::int64_t to) const {
        const int warps = active_warps(changed);
        if (warps <= active_warps_) return std::nullopt;
        return OccupancyStep{parameter, from, to, blocks_per_sm(device_, changed),
                             static_cast<double>(warps) / device_.max_warps_per_sm};
    }

    std::optional<OccupancyStep> fewer_registers() const {
        LaunchShape changed = launch_;
        while (--changed.registers_per_thread > 0)
            if (const auto step = step_to(changed, Parameter::registers_per_thread, launch_.registers_per_thread,
                                          changed.registers_per_thread))
                return step;
        return std::nullopt;
    }

    std::optional<OccupancyStep> less_shared_memory() const {
        // The most that one block more can have: its equal part of the SM's, down to an allocation unit.
        const std::int64_t part = device_.shared_bytes_per_sm / (blocks_per_sm(device_, launch_) + 1);
        const std::int64_t bytes = part / device_.shared_allocation_bytes * device_.shared_allocation_bytes -
                                   device_.reserved_shared_bytes_per_block;
        if (bytes < 0 || bytes >= shared_bytes(launch_)) return std::nullopt;
        LaunchShape changed = launch_;
        changed.static_shared_bytes = 0;
        changed.dynamic_shared_bytes = bytes;
        return step_to(changed, Parameter::shared_bytes, shared_bytes(launch_), bytes);
    }

    std::optional<OccupancyStep> other_block_size() const {
        const int even = device_.warp_size * device_.warp_allocation_unit;
        std::vector<int> sizes{device_.warp_size, 2 * device_.warp_size};
        for (int threads = even; threads <= device_.max_threads_per_block; threads += even) sizes.push_back(threads);

        std::optional<OccupancyStep> best;
        const auto distance = [&](const OccupancyStep& step) { return std::llabs(step.to - step.from); };
        for (const int threads : sizes) {
            LaunchShape changed = launch_;
            changed.block_threads = threads;
            const auto step = step_to(changed, Parameter::block_threads, launch_.block_threads, threads);
            if (!step) continue;
            if (!best || distance(*step) < distance(*best) ||
                (distance(*step) == distance(*best) && step->occupancy > best->occupancy))
                best = step;
        }
        return best;
    }

    const DeviceLimits& device_;
    const LaunchShape& launch_;
    int active_warps_;
};

}  // namespace

std::optional<DeviceLimits> device_limits(int compute_capability_major, int compute_capability_minor,
                                          int multiprocessors) {
    for (DeviceLimits limits : known_architectures)
        if (limits.compute_capability_major == compute_capability_major &&
            limits.compute_capability_minor == compute_capability_minor) {
            limits.multiprocessors = multiprocessors;
            return limits;
        }
    return std::nullopt;
}

Occupancy theoretical_occupancy(const DeviceLimits& device, const LaunchShape& launch) {
    require_launchable(device, launch);
    Occupancy result;
    result.blocks_by_limiter = block_limits(device, launch);
    result.blocks_per_sm = std::ranges::min(result.blocks_by_limiter);
    for (std::size_t i = 0; i < limiter_names.size(); ++i)
        if (result.blocks_by_limiter[i] == result.blocks_per_sm) result.limiters.push_back(static_cast<Limiter>(i));
    result.active_warps = result.blocks_per_sm * warps_per_block(device, launch);
    result.occupancy = static_cast<double>(result.active_warps) / device.max_warps_per_sm;
    if (device.multiprocessors > 0 && launch.cluster_blocks == 1)
        result.waves =
            waves_of(launch.grid_blocks, static_cast<std::int64_t>(result.blocks_per_sm) * device.multiprocessors);
    result.steps = Steps(device, launch).find();
    return result;
}

std::string describe(const OccupancyStep& step, double occupancy_now) {
    const auto change = [&] {
        switch (step.parameter) {
            case OccupancyStep::Parameter::registers_per_thread:
                return fmt::format("{} fewer registers a thread ({})", step.from - step.to, step.to);
            case OccupancyStep::Parameter::shared_bytes:
                return fmt::format("{} fewer bytes of shared memory a block ({})", step.from - step.to, step.to);
            case OccupancyStep::Parameter::block_threads: break;
        }
        return fmt::format("blocks of {} threads, not {}", step.to, step.from);
    };
    return fmt::format("{}: {:.0f} % -> {:.0f} %", change(), 100 * occupancy_now, 100 * step.occupancy);
}

std::string occupancy_hint(const Occupancy& occupancy) {
    const auto text = [&](const OccupancyStep& step) { return describe(step, occupancy.occupancy); };
    if (!occupancy.steps.empty()) return joined(occupancy.steps, "; ", text);
    if (occupancy.occupancy == 1) return "occupancy is 100 %";
    return fmt::format("no single change raises {:.0f} %; limited by {}", 100 * occupancy.occupancy,
                       joined(occupancy.limiters, " and ", [](Limiter limiter) { return name(limiter); }));
}

}  // namespace kbench
