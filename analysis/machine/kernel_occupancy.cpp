// From a kernel's record to the calculator's question, and from its answer to the record's fields.
#include "analysis/machine/kernel_occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analysis/machine/occupancy.h"
#include "kbench/error.h"

namespace kbench {
namespace {

std::int64_t product(const std::array<std::int64_t, 3>& extent) { return extent[0] * extent[1] * extent[2]; }

LaunchShape launch_of(const KernelResult& kernel) {
    // A block too large for an int must stay too large for the calculator.
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    return {.block_threads = static_cast<int>(std::min(product(kernel.block), most)),
            .registers_per_thread = kernel.registers,
            .static_shared_bytes = kernel.static_shared_bytes,
            .dynamic_shared_bytes = kernel.dynamic_shared_bytes,
            .grid_blocks = product(kernel.grid),
            .cluster_blocks = kernel.cluster_blocks,
            .barriers = std::nullopt};
}

std::string reason_without_waves(const KernelResult& kernel) {
    if (kernel.cluster_blocks > 1)
        return fmt::format("how many clusters of {} blocks run at once is known to the driver alone",
                           kernel.cluster_blocks);
    return "the device's number of SMs is unknown";
}

}  // namespace

void describe_occupancy(KernelResult& kernel, const GpuInfo& gpu) {
    const std::optional<DeviceLimits> limits =
        device_limits(gpu.compute_capability_major, gpu.compute_capability_minor, gpu.multiprocessors);
    std::string why = fmt::format("the limits of compute capability {}.{} are not known", gpu.compute_capability_major,
                                  gpu.compute_capability_minor);
    std::optional<Occupancy> known;
    try {
        if (limits) known = theoretical_occupancy(*limits, launch_of(kernel));
    } catch (const UsageError& refused) {
        why = refused.what();
    }
    const auto percentage = [&](const std::optional<double>& share) {
        return share ? Quantity::derived(100 * *share) : Quantity::unavailable(why);
    };
    const Occupancy occupancy = known.value_or(Occupancy{});
    kernel.theoretical_occupancy_pct = percentage(known ? std::optional(occupancy.occupancy) : std::nullopt);
    if (known) why = reason_without_waves(kernel);
    const std::optional<Waves>& waves = occupancy.waves;
    kernel.waves = waves ? Quantity::derived(waves->waves) : Quantity::unavailable(why);
    kernel.lost_in_last_wave_pct = percentage(waves ? std::optional(waves->lost_share) : std::nullopt);
    kernel.blocks_per_sm = occupancy.blocks_per_sm;
    kernel.limiters.clear();
    for (const Limiter limiter : occupancy.limiters) kernel.limiters.emplace_back(name(limiter));
    kernel.occupancy_hint = known ? occupancy_hint(occupancy) : "";
}

}  // namespace kbench
