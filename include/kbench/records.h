// A device and work on it, as profilers see them: the device, its state while it worked, kernels as recorded, counters
// as read. Nothing here knows what the work computes; result.h joins these records with the model's steps.
//
//     for (const kbench::KernelResult& kernel : step.kernels)  // those of a StepResult, result.h
//         std::cout << kernel.short_name << ": " << kernel.time_us << " us, " << kernel.registers << " registers\n";
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/cpu_share.h"
#include "kbench/quantity.h"

namespace kbench {

/// Environment::threads_from when the thread count follows from the machine: one thread per core.
inline constexpr std::string_view threads_from_cores = "cores";

/// The GPU that was used.
struct GpuInfo {
    std::string name, uuid, driver, cuda_runtime;
    int compute_capability_major = 0, compute_capability_minor = 0;
    int multiprocessors = 0;  ///< SMs that the work ran on
    /// SMs of the whole device, where the work ran on only a part of them (--sms).
    std::optional<int> multiprocessors_of_device = std::nullopt;
    std::int64_t memory_bytes = 0, l2_bytes = 0;
    Quantity max_sm_clock_mhz, max_memory_clock_mhz, power_limit_w;
};

/// The machine's state at one moment of the sampling. Fields that could not be read are empty.
struct ConditionReading {
    double at_s = 0;  ///< time since the first sample began
    std::optional<double> sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
};

/// A run of consecutive samples, and the clock while they were taken.
struct ConditionBlock {
    double until_s = 0;  ///< when its last sample ended, counted from the start of the first sample of all
    double median_ms = 0;
    std::optional<double> sm_clock_mhz;  ///< mean of the readings since the block before ended
    int readings = 0;                    ///< number of clock readings in that mean
};

/// What a roof of all of a CPU's cores was between the samples. Other programs take of both, so both are compared.
struct RoofReadings {
    std::string ceiling;         ///< its name
    std::vector<double> values;  ///< in its unit, in order of time; each is the second of two runs of its probe
    bool operator==(const RoofReadings&) const = default;
};

/// The machine's state from the start of the first sample to the end of the last. Fields are means unless stated.
struct Conditions {
    Quantity sm_clock_mhz, memory_clock_mhz;
    Quantity power_w;  ///< derived from the energy counter; measured by power readings where there is no counter
    Quantity temperature_c;
    Quantity energy_j;                          ///< over all that time; estimated where there is no energy counter
    std::vector<std::string> throttle_reasons;  ///< every reason seen in that time
    /// Why throttling could not be observed; empty where it was. Nothing in files that do not say.
    std::optional<std::string> throttle_unavailable = std::nullopt;
    int throttled_samples = 0;               ///< samples that were discarded and repeated
    std::vector<ConditionReading> readings;  ///< in order of time
    /// The kept samples in consecutive blocks of equal length. None where no clock was read, where too few samples were
    /// taken, in microbenchmarks, and in files that did not record it.
    std::vector<ConditionBlock> blocks;
    std::optional<CpuShare> cpu_share = std::nullopt;  ///< none on a GPU, and in files that did not record it
    std::vector<RoofReadings> roofs = {};  ///< none on a GPU, without ceilings, and in files that did not record them
};

/// Whether other work on the host slowed the samples so much that no verdict may follow from them.
inline bool starved(const Conditions& conditions) { return conditions.cpu_share && conditions.cpu_share->starved(); }

/// One launch of a device function, or a copy or fill of memory, as its activity record shows it.
struct KernelResult {
    std::string name;        ///< demangled, with all its parameters
    std::string short_name;  ///< without namespaces and parameters
    /// Median over the activity runs, of a program the mean over its typical iterations; longer than without records,
    /// see ActivityRun.
    double time_us = 0;
    double gap_us = 0;  ///< likewise: idle time between the end of the kernel before it and its start
    /// Part of gap_us as it was launched only meanwhile: the GPU waited for the host. Nothing where the launch calls
    /// were not recorded.
    std::optional<double> host_wait_us = std::nullopt;
    /// Bytes that a copy or a fill wrote; nothing for a device function.
    std::optional<std::int64_t> moved_bytes = std::nullopt;
    std::array<std::int64_t, 3> grid{}, block{};  ///< 0 for a copy or a fill
    int registers = 0;                            ///< registers per thread
    std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
    std::int64_t local_bytes = 0;  ///< local memory per thread
    int cluster_blocks = 1, device = 0, stream = 0;
    /// Derived from the launch and the device's limits, see occupancy.h.
    Quantity theoretical_occupancy_pct, waves, lost_in_last_wave_pct;
    int blocks_per_sm = 0;              ///< 0 where the occupancy is unavailable
    std::vector<std::string> limiters;  ///< what limits occupancy: registers, shared memory, warps, blocks, barriers
    std::string occupancy_hint;         ///< what relaxing a limiter by one step would give
};

/// How much recording a kernel lengthens its time: a chain of equal kernels with and without records.
struct RecordInflation {
    double kernel_us = 0;    ///< from one start to the next, without records
    double recorded_us = 0;  ///< from the record's start to its end
    double profiled_us = 0;  ///< from one start to the next, with records; before version 3 with part of the launch
};

/// The runs in which every kernel was recorded. They launch the same CUDA graph as the timing run.
struct ActivityRun {
    std::string unavailable;  ///< why there is none; empty when there is one
    int runs = 0;
    double profiled_ms = 0;  ///< median time end to end with records on, by events
    /// The same without records, measured between the recorded runs. On a CPU: the mean of the forwards with timed
    /// steps, less the cost of reading the clock. 0: not measured.
    double unprofiled_ms = 0;
    double kernels_ms = 0, gaps_ms = 0;  ///< total time of the kernels and of the gaps between them
    std::vector<RecordInflation> inflation;
};

/// Prefix of metrics that are counts of PC samples by stall reason ("sampled_barrier"), not hardware counters.
inline constexpr std::string_view sampled_prefix = "sampled_";

/// One metric of the counter runs.
struct CountedMetric {
    std::string name, unit;
    std::string source;  ///< the hardware counters that it is computed from
    Origin origin = Origin::measured;
    std::string reason;  ///< why it is unavailable, or what an estimate rests on
};

/// The runs in which hardware counters were read: around a step's only kernel, or around the range of all its kernels.
struct CounterRun {
    std::vector<std::string> requested;  ///< metric sets and metrics as the user named them
    std::string unavailable;             ///< why nothing was counted; empty when something was
    std::string chip;
    int passes = 0;      ///< how many forwards the counters needed
    double seconds = 0;  ///< wall time of all passes
    std::vector<CountedMetric> metrics;
};

}  // namespace kbench
