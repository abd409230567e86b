// What is told of a device and of work on it without a word of what the work is: the device, its state while it worked,
// kernels as they were recorded, counters as they were read. result.h sets them beside the model.
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

/// What decides how many threads a CPU has where nothing asks for another number: one a core.
inline constexpr std::string_view threads_from_cores = "cores";

/// The GPU that was used.
struct GpuInfo {
    std::string name, uuid, driver, cuda_runtime;
    int compute_capability_major = 0, compute_capability_minor = 0;
    int multiprocessors = 0;  ///< that the work ran on
    /// Where that was but a part of the device (--sms): how many the device has.
    std::optional<int> multiprocessors_of_device = std::nullopt;
    std::int64_t memory_bytes = 0, l2_bytes = 0;
    Quantity max_sm_clock_mhz, max_memory_clock_mhz, power_limit_w;
};

/// The machine's state at one moment of the sampling; what could not be read is missing.
struct ConditionReading {
    double at_s = 0;  ///< since the first sample began
    std::optional<double> sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
};

/// Samples that were taken one after another, and the clock meanwhile.
struct ConditionBlock {
    double until_s = 0;  ///< when the last of them ended, since the first sample of all began
    double median_ms = 0;
    std::optional<double> sm_clock_mhz;  ///< mean of the readings from the block before to until_s
    int readings = 0;                    ///< of the clock
};

/// The machine's state from the first sample's begin to the last one's end. Each is the mean unless it says otherwise.
struct Conditions {
    Quantity sm_clock_mhz, memory_clock_mhz;
    Quantity power_w;  ///< derived from the energy counter; measured, by power readings, where that cannot tell
    Quantity temperature_c;
    Quantity energy_j;                          ///< of all that time; estimated where no energy counter can tell
    std::vector<std::string> throttle_reasons;  ///< seen meanwhile
    /// Why none could be seen; empty where something looked. Nothing in files that do not say.
    std::optional<std::string> throttle_unavailable = std::nullopt;
    int throttled_samples = 0;               ///< discarded and repeated
    std::vector<ConditionReading> readings;  ///< in order of time
    /// The samples that were kept, in blocks of as many each, in order of time. None where no clock was read, too few
    /// samples were taken, in microbenchmarks, and in files that did not record it.
    std::vector<ConditionBlock> blocks;
    std::optional<CpuShare> cpu_share = std::nullopt;  ///< none on a GPU, and in files that did not record it
};

/// Whether the samples say more of this host's other work than of the process: no verdict follows from them.
inline bool starved(const Conditions& conditions) { return conditions.cpu_share && conditions.cpu_share->starved(); }

/// A launch of a device function, as its activity record shows it.
struct KernelResult {
    std::string name;        ///< demangled, with all its parameters
    std::string short_name;  ///< without namespaces and parameters
    double time_us = 0;      ///< median over the activity runs; longer than without records, see ActivityRun
    double gap_us = 0;       ///< median idle time between the end of the kernel before it and its start
    std::array<std::int64_t, 3> grid{}, block{};
    int registers = 0;  ///< a thread
    std::int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
    std::int64_t local_bytes = 0;  ///< of local memory a thread
    int cluster_blocks = 1, device = 0, stream = 0;
    /// From the launch and the device's limits, see occupancy.h.
    Quantity theoretical_occupancy_pct, waves, lost_in_last_wave_pct;
    int blocks_per_sm = 0;              ///< 0 where the occupancy is unavailable
    std::vector<std::string> limiters;  ///< registers, shared memory, warps, blocks, barriers
    std::string occupancy_hint;         ///< what the next step of a limiter would give
};

/// What recording a kernel does to its time: a chain of kernels of one length with and without records.
struct RecordInflation {
    double kernel_us = 0;    ///< from start to start, without records
    double recorded_us = 0;  ///< from the record's start to its end
    double profiled_us = 0;  ///< from start to start, with records; in files before version 3 with a part of the launch
};

/// The runs in which every kernel was recorded: the same CUDA graph as the timing run, launched again.
struct ActivityRun {
    std::string unavailable;  ///< why there is none; empty when there is one
    int runs = 0;
    double profiled_ms = 0;  ///< end to end with records on, by events, median
    /// The same without records, between the recorded runs; on a CPU the forwards whose steps were timed, mean, less
    /// what reading the clock takes. 0: not measured.
    double unprofiled_ms = 0;
    double kernels_ms = 0, gaps_ms = 0;  ///< sums of the kernels' times and of the gaps between them
    std::vector<RecordInflation> inflation;
};

/// Metrics of so many samples by stall reason begin with it ("sampled_barrier"): they are of PC sampling, not counted.
inline constexpr std::string_view sampled_prefix = "sampled_";

/// A metric of the counter runs.
struct CountedMetric {
    std::string name, unit;
    std::string source;  ///< the device's counters that it is made of
    Origin origin = Origin::measured;
    std::string reason;  ///< why it is unavailable, or on what an estimate rests
};

/// The runs in which hardware counters were read: a step's are of its one kernel, or of a range around all its kernels.
struct CounterRun {
    std::vector<std::string> requested;  ///< sets and metrics as asked for
    std::string unavailable;             ///< why nothing was counted; empty when something was
    std::string chip;
    int passes = 0;      ///< forwards needed
    double seconds = 0;  ///< wall time of it all
    std::vector<CountedMetric> metrics;
};

}  // namespace kbench
