// What one run wrote: the types behind result.json. Everything a report may need, nothing that needs a device.
// JSON: analysis/result/result_json.h; schema: result.schema.json; both follow this file field by field, with the same
// names.
//
//     const kbench::Result result = kbench::read_result("out/result.json").result;  // or the folder "out"
//     for (const kbench::Point& point : result.points)
//         if (point.end_to_end)
//             std::cout << point.model() << ": " << point.end_to_end->latency.summary_ms.median << " ms\n";
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/axes.h"
#include "kbench/cost.h"
#include "kbench/op.h"
#include "kbench/precision.h"
#include "kbench/program.h"
#include "kbench/quantity.h"
#include "kbench/records.h"
#include "kbench/statistics.h"
#include "kbench/step_account.h"

namespace kbench {

/// Version 2 added kernels, counters and matrix_flops. Version 3 added ceilings, marginal costs, condition readings and
/// the unrecorded time of a forward next to the recorded one. Version 4 added the run's options, repeats of a point and
/// whether its batch was chosen as the largest that fits. Older files are read as having none of these. Since version
/// 5 a point has only axes and throughputs that mean something for it. Version 6 says how many samples are independent;
/// intervals of older files are computed again from their samples. It may also hold a model's compulsory traffic, and
/// masked work no longer counts as useful; older files keep their costs.
inline constexpr std::string_view result_schema = "kbench.result/6";

struct HostInfo {
    std::string cpu;  ///< model name
    int sockets = 0, physical_cores = 0, logical_cpus = 0, threads = 0;
    bool pinned = false;
    std::int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;
    std::vector<std::string> isa;
    std::string governor, os, kernel;
    /// What decided the number of threads: `threads_from_cores`, "--threads", "OMP_NUM_THREADS=4" or "quota".
    std::optional<std::string> threads_from = {};
    /// CPUs of the whole machine; `logical_cpus` and `physical_cores` are those that this process may use.
    std::optional<int> machine_cpus = {};
    /// CPU time that control groups allow this process, over wall time; nothing where there is no limit.
    std::optional<double> cpu_quota = {};
};

/// How much the medians of one command differ from run to run on this machine, as `kbench doctor --noise` found.
struct RunToRun {
    double deviation = 0;  ///< standard deviation of the medians' logarithms: 0.002 is 0.2 %
    int runs = 0;
    std::string command_line, measured_at;  ///< UTC, ISO 8601
};

struct Environment {
    std::string kbench_version, git_revision, build_type, compiler;
    std::map<std::string, std::string> libraries;  ///< name to version: cuda, cublaslt, onednn, blas
    std::string command_line, started_at;          ///< UTC, ISO 8601
    HostInfo host;
    std::optional<GpuInfo> gpu;
    std::optional<RunToRun> run_to_run;  ///< present where `kbench doctor --noise` was run on this machine
};

/// Raw samples in milliseconds, and their summary.
struct Timing {
    std::vector<double> samples_ms;
    Summary summary_ms;
};

/// One step: one provider call of the plan. Of a program: the kernels of one call of its framework, or one kernel.
struct StepResult {
    int index = 0;
    std::string layer;                 ///< layer of the first op, as the checkpoint names it
    std::string op;                    ///< kind of the op that names the step, see op_kinds
    std::vector<std::string> absorbs;  ///< every op computed, "layer:kind", in order
    std::string provider, implementation, shape;
    Precision precision = Precision::fp32;
    Direction direction = Direction::fwd;
    /// "layer:op" of another step: for a backward step its forward step, for a recomputed forward step the step that
    /// computed it first. A point of the backward alone does not have that step.
    std::optional<std::string> forward;
    Cost cost;
    double padding_flops = 0;  ///< executed on padded columns and masked elements, not in cost
    /// FLOPs in cost that the implementation's algorithm does not execute, as it says itself. Nothing where it executes
    /// what the op's definition says.
    std::optional<double> spared_flops;
    /// FLOPs of the step's matrix products as launched, 2 m n k with padding; of fused attention those of the pairs
    /// that its mask leaves (0 in files before it had them). 0 where it has none.
    double matrix_flops = 0;
    /// Time steps of its ops, one after another (see OpStruct). Nothing where each op has one, and in files that
    /// do not say.
    std::optional<std::int64_t> time_steps;
    std::optional<StepAccount> account;      ///< the time in one time step; none where no kernel has clocks for it
    std::optional<Summary> time_us;          ///< from the step run
    std::vector<KernelResult> kernels;       ///< in order; none without an activity run
    std::map<std::string, double> counters;  ///< values by the metric's name, see CounterRun::metrics
    std::string counters_discarded;          ///< why the step has no counters although the run was counted
    std::optional<FrameworkCall> call;       ///< a program's step whose call is known; none in kbench's own models

    /// Whether its work is known: an op of a program whose shape is not has no cost.
    bool has_cost() const { return cost.flops > 0 || cost.bytes() > 0; }
    /// FLOPs in the cost that the algorithm executes.
    double needed_flops() const { return std::max(0.0, cost.flops - spared_flops.value_or(0)); }
    bool is_recomputed() const { return direction == Direction::fwd && forward; }
    /// The step's time on the device: the recorded times of its kernels with the gaps between them. Without records,
    /// the median of the step run, whose marks between steps cost some time themselves.
    std::optional<double> device_us() const;
    /// device_us() over time steps; nothing for a step without a time or with a single time step.
    std::optional<double> time_step_us() const;
    double tflop_per_s() const;  ///< cost.flops over device_us(); 0 without a time
    double gb_per_s() const;     ///< cost.bytes() over device_us(); 0 without a time
};

/// One distinct step that was checked against the reference.
struct VerifiedStep {
    std::string op, shape, provider, implementation;
    std::int64_t elements_checked = 0, elements_total = 0;
    double worst_error = 0, bound_there = 0;  ///< the element with the largest error / bound
    double error_over_bound = 0;
};

struct Verification {
    bool enabled = true;
    double seconds = 0;
    std::vector<VerifiedStep> steps;
};

/// Peak bytes planned, by role. Activations that share memory count once.
struct MemoryPlan {
    std::array<std::int64_t, role_count> bytes{};
    std::int64_t total() const;
};

/// End to end, all in milliseconds.
struct EndToEnd {
    Timing latency;                ///< the headline: a CUDA graph launch, or the forward on a CPU
    std::optional<Timing> stream;  ///< the same as plain stream launches (GPU)
    std::optional<Timing> host_to_device, device_to_host, enqueue;  ///< GPU only
    std::optional<double> sequences_per_s, tokens_per_s;            ///< at the median latency
    /// Missing, like those two, where the point has no sequences or no tokens, as for one op.
    std::optional<Quantity> energy_per_sequence_j, energy_per_token_j;
    bool converged = false;  ///< whether the interval reached its target before the time budget ended
    /// Runs per sample: a sample is their total time, divided. More than 1 where one run is short compared with the
    /// clock. Nothing in files that did not record it.
    std::optional<std::int64_t> runs_per_sample = std::nullopt;
    /// Whether sampling went on until enough samples were independent. Files before version 6 did not; their number of
    /// independent samples is computed on reading. Not in JSON.
    bool counted_independent = true;
};

/// The same forward on some of a GPU's SMs, with every kernel recorded, or of a CPU's threads, with every step timed.
struct SmCountRun {
    int multiprocessors = 0;  ///< SMs, or threads
    Quantity sm_clock_mhz;    ///< mean clock while the launches ran
    int launches = 0;         ///< launches in the medians
    double latency_ms = 0;    ///< median time of one launch, by events, with records
    /// For each step the time from the start of its first kernel to the end of its last: the launches' median and its
    /// interval, as in Summary. 0 where no kernel was recorded. On a CPU its whole time.
    std::vector<double> step_us, step_low_us, step_high_us;
};

/// Time against number of SMs or threads: how much each step slows down as they are taken away.
struct SmScaling {
    std::string unavailable;       ///< why there is none; empty when there is one
    std::vector<SmCountRun> runs;  ///< most first: as many as in the timing run
    std::string ended = {};        ///< why there are none on fewer; empty where all were tried
};

/// A step's time at one size, measured alone: the same work again and again in a graph, on operands that rotate so that
/// weights come from DRAM.
struct SizeTime {
    double factor = 1;           ///< how many times the step's own size: 1, 2, 4; 0.25, 0.5, 1 for time steps
    double work_flops = 0;       ///< the cost model's at that size
    std::string shape;           ///< as StepResult::shape
    std::string implementation;  ///< as StepResult::implementation, which is the same at every size
    Summary us;                  ///< one run of the step, without a profiler
    Quantity sm_clock_mhz;       ///< the SM's own clock meanwhile
};

/// Time against size: steps that are alike, at three of one of their sizes with the same algorithm. What grows with it
/// is the main loop's, what does not is a fixed time of the kernel.
struct SizeScaling {
    std::vector<int> steps;       ///< positions in Point::steps of those that are alike
    std::string axis;             ///< which size changes: "k", "seq", "rows", "time_steps", "batch"
    std::string unavailable;      ///< why there are no times; empty when there are
    std::vector<SizeTime> times;  ///< smallest first; the first is the step's own size
};

/// The same forward on a part of the GPU's SMs (a CPU's cores), while a thief on the others takes a part of what all of
/// them share.
struct ThiefRun {
    std::string takes;        ///< "nothing", "compute", "dram", "l2"
    int multiprocessors = 0;  ///< the forward's SMs, or threads; the thief has SMs or cores beside them
    double share = 0;         ///< what it took meanwhile, by its own count, over the roof of that
    Quantity sm_clock_mhz;    ///< the forward's SMs' meanwhile
    int launches = 0;
    double latency_ms = 0;  ///< median time of one launch, by events
    /// As in SmCountRun: each step's time, the launches' median and its interval; 0 where no kernel was recorded.
    std::vector<double> step_us, step_low_us, step_high_us;
};

/// Time against bandwidth: how much each step slows down as DRAM's or L2's bandwidth is taken away. A thief that only
/// computes, or idle SMs, show what power, clock and missing SMs do without that.
struct BandwidthTheft {
    std::string unavailable;  ///< why there is none; empty when there is one
    /// First the forward alone on its SMs, then as they were made: a run beside one that only computes is its
    /// neighbour's measure. All on as many SMs.
    std::vector<ThiefRun> runs;
};

/// The SM's clock inside the graph, read by clock64 and globaltimer between steps of graphs that are not timed.
struct GraphClock {
    std::string unavailable;       ///< why there is none; empty when there is one
    int graphs = 0;                ///< between which the places were spread
    int places = 0;                ///< in which the clock was read in all of them
    double cost_us = 0;            ///< what reading at one place adds to a graph
    std::vector<double> step_mhz;  ///< by step; those that share an interval have its mean; 0: not read
};

/// What the steps of one op kind add to the end-to-end time, measured without a profiler: a forward that runs each of
/// these steps twice in a row, minus the plain forward next to it.
struct MarginalCost {
    std::string op;        ///< op kind of the steps
    int steps = 0;         ///< number of steps that ran twice
    Timing difference_ms;  ///< a sample is the difference of two neighbouring forwards
};

/// Upper limit for any ceiling, in its unit: a million times any machine's, and its reciprocal is below any roof.
inline constexpr double highest_roof = 1e12;

/// A measured roof of this machine; ceilings.h has its meaning and unit, by name.
struct Ceiling {
    std::string name;
    Quantity value;
    /// 95 % interval of the median of its runs. On a CPU the value is the fastest run; the interval is [median, value].
    double low = 0, high = 0;
    double clock_mhz = 0;  ///< clock of the SMs or cores during the measurement; 0: unknown
    Quantity datasheet;    ///< what the maker states
    /// CPU threads that measured it. Nothing for a GPU and in older files.
    std::optional<int> threads = {};
};

/// The roofs that a run is compared with.
struct CeilingRun {
    std::string unavailable;  ///< why there are none; empty when there are some
    std::string device, driver, measured_at;
    double seconds = 0;  ///< wall time of measuring them
    std::vector<Ceiling> ceilings;
    /// Share of the wanted CPU time that was missing meanwhile, see CpuShare::lacked(); nothing where it is unknown.
    std::optional<double> lacked_share = std::nullopt;
    /// CPU threads of the all-core roofs, as many as the run had. Nothing for a GPU and in older files.
    std::optional<int> threads = {};
};

enum class PointStatus { done, skipped, failed };
inline constexpr std::string_view point_status_names[] = {"done", "skipped", "failed"};
constexpr std::string_view name(PointStatus status) { return point_status_names[static_cast<int>(status)]; }

/// The largest batch of one direction whose plan fits into free memory, with all other axes as in the point.
struct LargestBatch {
    std::string direction;
    std::int64_t batch = 0;            ///< 0: not even one sequence fits
    std::int64_t available_bytes = 0;  ///< memory that a plan may take
    bool ran = false;                  ///< asked for as "max" and run; else computed from what providers announce
};

/// One point of the sweep: what was run, with its value on each axis.
struct Point {
    AxisValues axes;
    bool batch_is_max = false;  ///< asked for as "max": the largest that fits into memory, proved by running it
    std::int64_t parameters = 0;
    std::uint64_t seed = 0;
    std::string weights;  ///< "random" or the file's name
    PointStatus status = PointStatus::skipped;
    std::string reason;  ///< why it was skipped or failed
    MemoryPlan memory;
    std::vector<LargestBatch> largest_batches;  ///< none for a single op, and in files without them
    Cost cost;  ///< sum over the steps without FLOPs of recomputed ones; its bytes are the unfused traffic
    /// Weights, inputs and outputs of the timed part, once each; what a backward reads of its forward is an input.
    /// Nothing for a single op, whose unfused traffic is the same, and in files without it.
    std::optional<double> compulsory_bytes;
    double padding_flops = 0;
    /// FLOPs of steps that recompute results of the forward; not in cost. Nothing where no step does.
    std::optional<double> recomputed_flops;
    Verification verification;
    std::optional<EndToEnd> end_to_end;
    Conditions conditions;
    ActivityRun activity;
    CounterRun counters;
    std::optional<SmScaling> sm_scaling;    ///< none where it was not asked for, and in files without it
    std::vector<SizeScaling> size_scaling;  ///< largest share of the time first; none where it was not asked for
    std::optional<BandwidthTheft> theft;    ///< none where it was not asked for, and in files without it
    std::optional<GraphClock> graph_clock;  ///< none on a CPU, where it was not asked for, and in files without it
    std::optional<ProgramRun> program;      ///< a program that kbench attached to; none for kbench's own models
    std::vector<StepResult> steps;
    std::vector<MarginalCost> marginal;  ///< by op kind; none where it was not measured
    /// Time of an empty interval between two marks of the step run. Every step's time already has it subtracted.
    Quantity step_overhead_us;
    std::map<std::string, double> phase_seconds;  ///< wall time by phase: plan, weights, tune, verify, ...

    /// Values on the axes; the usual one where the point has none.
    const std::string& model() const { return axes.text("model"); }
    const std::string& backend() const { return axes.text("backend"); }
    const std::string& direction() const { return axes.text("direction"); }
    Precision precision() const;
    std::int64_t batch() const { return axes.count("batch").value_or(1); }
    /// Nothing for a point without sequences of tokens.
    std::optional<std::int64_t> seq() const { return axes.count("seq"); }
    /// Whether it makes one more token of each sequence.
    bool decodes() const { return axes.text("phase") == "decode"; }
    /// Tokens of each sequence that are timed; nothing for a point without sequences of tokens.
    std::optional<std::int64_t> tokens_of_sequence() const {
        return decodes() ? std::optional<std::int64_t>(1) : seq();
    }

    void set(std::string_view axis, std::int64_t value) { axes.set(axis, value); }
    void set(std::string_view axis, std::string_view value) { axes.set(axis, std::string(value)); }
    void set(std::string_view axis, Precision value) { set(axis, name(value)); }
};

/// A point that a study asks for, measured or not.
struct PlannedPoint {
    AxisValues axes;  ///< without a batch where the largest that fits is meant
    bool batch_is_max = false;
    std::vector<std::string> tasks;  ///< tasks of the study that use it: bottlenecks, batch, precision, directions
    std::string left_out;            ///< why it was not to be measured; empty where it was
};

/// What `kbench study` planned to measure.
struct StudyPlan {
    std::optional<double> budget_s;    ///< nothing: no limit
    std::vector<PlannedPoint> points;  ///< in the order in which they are measured
};

/// One key of the model's config.json, as it was read.
struct ConfigurationKey {
    std::string key, value;
    std::string from;  ///< the key's name in the file; empty where the file has none and the value is the default
};

struct Result {
    Environment environment;
    /// The options that decide how a point is measured, by name. Results may be merged only where these are equal. They
    /// do not include which points were measured and where output went. None in files before version 4.
    std::map<std::string, std::string> options;
    std::vector<Point> points;
    std::vector<std::string> warnings;
    CeilingRun ceilings;
    std::optional<StudyPlan> study = {};  ///< only in the result of a study
    /// Keys in the order in which they were read; none for a built-in model.
    std::vector<ConfigurationKey> configuration = {};
};

/// A result and where it was read from.
struct ResultFile {
    std::string path;
    Result result;
};

/// The result called `name`: a result.json of this or an older schema, a result.json.gz, or a directory with one. The
/// points of several in a directory are joined as by `kbench merge`. Throws UsageError (error.h) with one line.
ResultFile read_result(const std::string& name);

}  // namespace kbench
