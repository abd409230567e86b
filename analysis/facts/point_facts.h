// What a measured point is, normalised once: times with what recording adds, clocks, counters, roofs, interventions. No
// verdict and no text; whoever explains a point begins here.
//
//     const PointFacts facts = make_facts(point, Roofs(result));
//     facts.steps[0].counters.ipc;
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/counters.h"
#include "analysis/facts/size_fit.h"
#include "analysis/machine/ceilings.h"
#include "analysis/result/interval.h"
#include "kbench/result.h"

namespace kbench {

/// Schedulers of an SM, since Volta: each issues an instruction a cycle.
inline constexpr double schedulers = 4;

struct StepFacts {
    const StepResult* step = nullptr;  ///< into the point
    Counters counters;
    Origin dram_origin = Origin::measured;  ///< whether DRAM's were measured or estimated
    bool on_gpu = false;
    double time_us = 0;     ///< kernels and the gaps between them; without records the step run's mean
    double kernels_us = 0;  ///< without those gaps
    /// Time on the device with the ends of the step run's samples in proportion; zero where it was not timed. Without
    /// records the median, where time_us is the mean: means add up to the mean of the whole.
    Interval device_us;
    double gap_before_us = 0;                 ///< from the end of the kernel before it
    double launch_us = 0, dependency_us = 0;  ///< gaps before its kernels, up to an empty kernel's time and beyond
    /// Gaps of a program instead: before work that was launched too late, and before other work.
    double host_wait_us = 0, queued_us = 0;
    double copies_us = 0;                      ///< copies and fills, a part of kernels_us
    double start_and_end_us = 0;               ///< what empty kernels in their place would take, less those gaps
    std::optional<double> empty_kernels_us{};  ///< what they would take; nothing where no empty kernel was measured
    double recording_us = 0;                   ///< what its records add, calibrated: it may have taken less by so much
    /// At which its cycles are times, MHz. Where the SMs' own clock was read in the graph it is that one
    /// (graph_clocks): NVML's mean holds all steps, and counters count at another time. Its interval holds all readings
    /// of steps of its name, as much lower and higher as the run's blocks were than their mean. Elsewhere the clock of
    /// the timing run, or the lower one at which the step was counted. The higher of the two where more cycles are
    /// active than the step's kernels last at the timing run's: a step's own clock may lie above the mean of a run at
    /// its power limit. A kernel of mma.sync alone took 9 % longer on an H200 than the clock that NVML read allows, and
    /// as long as its own counted clock does (docs/results/truths.md). Which of two clocks is right is not known of
    /// other kernels: the interval holds both, and those of the run's blocks. Ends of 0: the run's is not known. 0:
    /// neither is.
    Interval clock_mhz;
    double clock_error = 0;  ///< how far the run's clocks are from that one, relative: times from cycles err by so much
    Interval own_clock_mhz;  ///< the SM's own in the graph, of graph_clocks, where that was read; else clock_mhz
    bool has_graph_clock = false;  ///< it was
    SizeFit size_fit;              ///< its fixed time, and what grows with its work
    /// In which an SM had a warp, mean over SMs: active cycles at that clock. Not the counter `smsp_active`, whose
    /// denominator is the kernel's duration at another clock or, in steps of several kernels and in older results, a
    /// range some 10 us longer than the kernels.
    std::optional<double> active_us{};

    /// Whether cycles say what its time is made of.
    bool has_cycles() const;
    /// active_us as a percentage of the time of its kernels, at most 100.
    std::optional<double> active_pct() const;
    /// What a step executes of its kind of FLOPs for each useful one: padding and what a mask hides take time, too.
    double executed_over_useful() const;
    double gaps_us() const { return launch_us + dependency_us + host_wait_us + queued_us; }
    /// Whether neither the cost model nor counters know its FLOPs and bytes, as of a program's op of unknown shape.
    bool has_unknown_work() const;
    /// How many time steps wait for each other, one after another. A weight gradient's do not: its product sums over
    /// all of them.
    std::int64_t chained_steps() const;
};

/// What a device's work runs on, of which some can be taken away: a CPU's threads have a core each.
enum class Workers { sms, threads };
inline constexpr std::string_view worker_names[] = {"SMs", "threads"};
constexpr std::string_view name(Workers workers) { return worker_names[static_cast<int>(workers)]; }

/// Every step on some of the SMs or threads, recorded.
struct SmTimes {
    int multiprocessors = 0;  ///< SMs or threads
    double clock_ratio = 0;   ///< their clock over that on all of them; 0: unknown
    std::vector<Interval> step_us;
};

/// What a thief on SMs (a CPU's cores) of its own took meanwhile.
enum class Taken { nothing, compute, dram, l2 };
inline constexpr std::string_view taken_names[] = {"nothing", "compute", "dram", "l2"};

/// Every step while a thief took something, recorded.
struct TheftTimes {
    Taken taken = Taken::nothing;
    double share = 0;       ///< what the thief took of its roof, by its own count; below 1
    double clock_mhz = 0;   ///< the SMs'; 0: unknown
    double latency_ms = 0;  ///< one launch
    std::vector<Interval> step_us;
};

/// Steps of one name, by their positions.
struct NamedSteps {
    std::string name;
    std::vector<std::size_t> steps;
};

struct PointFacts {
    const Point* point = nullptr;
    Workers workers = Workers::sms;
    Roofs roofs;
    std::string unavailable;   ///< why it has no times; empty where it has
    double end_to_end_us = 0;  ///< headline median, without a profiler
    double drift_us = 0;       ///< by how much that is longer than the runs between those with records
    double records_us = 0;  ///< by how much records lengthened a program's iteration; its kernels have no calibration
    double unknown_work_us = 0;  ///< the kernels' time of a program's steps with unknown work
    Interval clock_mhz;          ///< the SMs' during the run: its mean, the lowest and the highest of its blocks
    Origin dram_origin =
        Origin::measured;  ///< counted bytes are measured or estimated; measured where nothing was counted
    std::optional<double> empty_kernel_us{};  ///< as a node of a graph
    std::vector<StepFacts> steps;             ///< all, in order
    std::vector<NamedSteps> by_layer, by_op;  ///< the same by layer of all blocks and by op kind, as they appear
    std::string sm_times_unavailable;         ///< why there are none; empty where there are, or were not asked for
    std::vector<SmTimes> sm_times;            ///< most first, which are all that the timing run had
    std::string theft_unavailable;            ///< as sm_times_unavailable
    int theft_multiprocessors = 0;            ///< the work's own meanwhile; 0: there are no times
    std::vector<TheftTimes> theft_times;      ///< as they were taken: first alone; with each, one that only computes
};

/// `point` must outlive them.
PointFacts make_facts(const Point& point, const Roofs& roofs);

/// Those of one step in a run of this clock, dram_origin and empty_kernel_us; what records add is nothing. `graph_mhz`
/// is of the step, from graph_clocks.
StepFacts make_step_facts(const StepResult& step, const PointFacts& run = {}, const Interval& graph_mhz = {});

/// The SMs' own clock by step, MHz, with the lowest and the highest that was read of steps of its layer group, op and
/// direction: its own reading, or the mean of these where only others were read. Zeros where none was, as on a CPU.
std::vector<Interval> graph_clocks(const Point& point);

/// Time on the device, see StepFacts::device_us.
Interval device_interval(const StepResult& step);

/// The layer with each number replaced: "h.12.attn.c_attn" gives "h.*.attn.c_attn".
std::string layer_group(std::string_view layer);

/// The kind in an entry of StepResult::absorbs, "layer:kind".
std::string_view kind_of(std::string_view absorbed);

}  // namespace kbench
