// Theoretical occupancy: how many blocks of a kernel an SM can hold, what stops it from holding more, how evenly the
// grid fills the device, and what the next change worth making would give. Pure arithmetic on a launch's shape;
// achieved occupancy is a counter's matter.
//
// Sources: the limits are from the CUDA Programming Guide, "Compute Capabilities", the tables of device, SM and memory
// information (7.0 from its 12.x edition); allocation units, barriers and the rules by which resources are given out
// from cuda_occupancy.h of the CUDA 13.0 toolkit, with which tests/kernels/occupancy_test.cu compares every row.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

/// What one SM can hold. The defaults are those of every architecture in `known_architectures`. KiB is 1024 bytes.
struct DeviceLimits {
    int compute_capability_major = 0, compute_capability_minor = 0;
    int max_warps_per_sm = 0, max_blocks_per_sm = 0;
    std::int64_t shared_bytes_per_sm = 0;
    std::int64_t max_shared_bytes_per_block = 0;       ///< static and dynamic, with the opt-in over 48 KiB
    std::int64_t reserved_shared_bytes_per_block = 0;  ///< taken by the driver beside what the kernel asks for
    std::int64_t shared_allocation_bytes = 0;          ///< a block's shared memory is rounded up to this
    int barriers_per_sm = 0;                           ///< 0: barriers never limit (before 9.0)
    int warp_size = 32;
    int max_threads_per_block = 1024;
    int max_barriers_per_block = 16;
    int registers_per_sm = 65536, max_registers_per_block = 65536, max_registers_per_thread = 255;
    int register_allocation_unit = 256;  ///< a warp's registers are rounded up to this
    int warp_allocation_unit = 4;        ///< partitions of an SM; each has its own share of the registers
    int multiprocessors = 0;             ///< a property of the device, not of the architecture; 0: unknown
};

/// Capability, warps and blocks an SM; shared memory an SM, a block, reserved, unit; barriers.
inline constexpr std::array known_architectures{
    DeviceLimits{7, 0, 64, 32, 96 << 10, 96 << 10, 0, 256},
    DeviceLimits{7, 5, 32, 16, 64 << 10, 64 << 10, 0, 256},
    DeviceLimits{8, 0, 64, 32, 164 << 10, 163 << 10, 1024, 128},
    DeviceLimits{8, 6, 48, 16, 100 << 10, 99 << 10, 1024, 128},
    DeviceLimits{8, 7, 48, 16, 164 << 10, 163 << 10, 1024, 128},
    DeviceLimits{8, 9, 48, 24, 100 << 10, 99 << 10, 1024, 128},
    DeviceLimits{9, 0, 64, 32, 228 << 10, 227 << 10, 1024, 128, 64},
    DeviceLimits{10, 0, 64, 32, 228 << 10, 227 << 10, 1024, 128, 64},
    DeviceLimits{10, 3, 64, 32, 228 << 10, 227 << 10, 1024, 128, 64},
    DeviceLimits{12, 0, 48, 24, 100 << 10, 99 << 10, 1024, 128, 24},
};

/// The limits of exactly this architecture with the device's number of SMs; nothing when it is not in the table,
/// because another chip's limits would give a wrong answer that looks right.
std::optional<DeviceLimits> device_limits(int compute_capability_major, int compute_capability_minor,
                                          int multiprocessors = 0);

/// A kernel's launch. `registers_per_thread` is what the compiler allotted (cudaFuncAttributes::numRegs, or the
/// kernel's activity record); 0 where it used none.
struct LaunchShape {
    int block_threads = 0;
    int registers_per_thread = 0;
    std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
    std::int64_t grid_blocks = 1;
    int cluster_blocks = 1;
    std::optional<int> barriers;  ///< named barriers a block, __syncthreads being one; unset: assumed not to limit
};

enum class Limiter { registers, shared, warps, blocks, barriers };
inline constexpr std::array<std::string_view, 5> limiter_names{"registers", "shared memory", "warps", "blocks",
                                                               "barriers"};
constexpr std::string_view name(Limiter limiter) { return limiter_names[static_cast<std::size_t>(limiter)]; }

/// Blocks an SM that a limiter allows when the kernel uses nothing of what it counts.
inline constexpr int unlimited_blocks = std::numeric_limits<int>::max();

/// How the grid fills the device. Shares count places for blocks and suppose that every block takes the same time: a
/// grid of less than one wave can still give every SM a block, and leave most of its places idle.
struct Waves {
    double waves = 0;       ///< grid over the blocks that the device holds at once
    double lost_share = 0;  ///< share of the places of all waves begun that stay idle: what the tail costs
};

/// The nearest change of one parameter of the launch, the others kept, that raises occupancy.
struct OccupancyStep {
    enum class Parameter { registers_per_thread, shared_bytes, block_threads };
    Parameter parameter;
    std::int64_t from = 0, to = 0;  ///< shared_bytes is static and dynamic together
    int blocks_per_sm = 0;          ///< afterwards
    double occupancy = 0;           ///< afterwards
};

struct Occupancy {
    std::array<int, limiter_names.size()> blocks_by_limiter{};  ///< indexed by Limiter
    int blocks_per_sm = 0;                                      ///< the least of them
    std::vector<Limiter> limiters;                              ///< those that allow no more than blocks_per_sm
    int active_warps = 0;                                       ///< an SM; a warp with idle threads counts as one
    double occupancy = 0;                                       ///< active_warps over the SM's most, in (0, 1]
    /// Unset when the number of SMs is unknown, and for clusters of more than one block, which must fit into one GPC:
    /// how many do is known to the driver alone (cudaOccupancyMaxActiveClusters).
    std::optional<Waves> waves;
    /// At most one a parameter. Fewer registers: the largest such count. Less shared memory: the most bytes. Other
    /// block sizes: the nearest of 32, 64 and the multiples of 128 threads (the same warps for each of four schedulers)
    /// with the same shared memory a block; of two as near, the higher occupancy, then the smaller block.
    std::vector<OccupancyStep> steps;

    int blocks_by(Limiter limiter) const { return blocks_by_limiter[static_cast<std::size_t>(limiter)]; }
};

/// Supposes that shared memory may take all of its part of the L1 cache, which is the driver's default choice for a
/// kernel that needs it. Throws UsageError, with the value and the limit, on a launch that the device would refuse.
Occupancy theoretical_occupancy(const DeviceLimits& device, const LaunchShape& launch);

/// "24 fewer registers a thread (40): 50 % -> 75 %".
std::string describe(const OccupancyStep& step, double occupancy_now);

/// All steps in one line, or why there is none.
std::string occupancy_hint(const Occupancy& occupancy);

}  // namespace kbench
