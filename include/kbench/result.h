// What one run wrote: the types behind result.json. Everything a report may need, nothing that needs a device.
// JSON: analysis/result/result_json.h; schema: result.schema.json; both follow this file field by field, with the same
// names.
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
#include "kbench/profile.h"
#include "kbench/quantity.h"
#include "kbench/statistics.h"
#include "kbench/step_account.h"

namespace kbench {

/// Version 2 added kernels, counters and matrix_flops; version 3 ceilings, marginal costs, condition readings and what
/// a forward takes without records beside the recorded ones; version 4 the options of the run, the repeats of a point
/// and whether its batch was chosen as the largest that fits. Older files are read as having none of it. Since version
/// 5 a point has only those axes and throughputs that mean something for it. Version 6 says how many samples are
/// independent; the intervals of older files are computed again from their samples. It may say a model's least bytes,
/// and counts no masked work as useful; older files keep their costs.
inline constexpr std::string_view result_schema = "kbench.result/6";

struct HostInfo {
    std::string cpu;  ///< model name
    int sockets = 0, physical_cores = 0, logical_cpus = 0, threads = 0;
    bool pinned = false;
    std::int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0, memory_bytes = 0;
    std::vector<std::string> isa;
    std::string governor, os, kernel;
    /// What decided how many threads there are: `threads_from_cores`, "--threads", "OMP_NUM_THREADS=4", "quota".
    std::optional<std::string> threads_from = {};
    /// Of the machine; `logical_cpus` and `physical_cores` are those that this process may use.
    std::optional<int> machine_cpus = {};
    /// CPU time that control groups allow this process, over wall time; nothing where they do not limit it.
    std::optional<double> cpu_quota = {};
};

/// How much the medians of one command differ from run to run on a machine, as `kbench doctor --noise` found it there.
struct RunToRun {
    double deviation = 0;  ///< of the medians' logarithms: 0.002 is 0.2 %
    int runs = 0;
    std::string command_line, measured_at;  ///< UTC, ISO 8601
};

struct Environment {
    std::string kbench_version, git_revision, build_type, compiler;
    std::map<std::string, std::string> libraries;  ///< name to version: cuda, cublaslt, onednn, blas
    std::string command_line, started_at;          ///< UTC, ISO 8601
    HostInfo host;
    std::optional<GpuInfo> gpu;
    std::optional<RunToRun> run_to_run;  ///< where this machine remembers it
};

/// Raw samples and their summary, milliseconds.
struct Timing {
    std::vector<double> samples_ms;
    Summary summary_ms;
};

/// One provider call of the plan.
struct StepResult {
    int index = 0;
    std::string layer;                 ///< of the first op, as the checkpoint names it
    std::string op;                    ///< kind of the op that names the step, see op_kinds
    std::vector<std::string> absorbs;  ///< every op computed, "layer:kind", in order
    std::string provider, implementation, shape;
    Precision precision = Precision::fp32;
    Direction direction = Direction::fwd;
    /// Of a backward step the forward step that it belongs to, of a forward step the earlier one that it computes
    /// again: "layer:op" of that step, which a point of the backward alone does not have among its steps.
    std::optional<std::string> forward;
    Cost cost;
    double padding_flops = 0;  ///< executed on padded columns and masked elements, not in cost
    /// In cost, not executed: what the implementation's algorithm does without, by its own account. Nothing where it
    /// executes what the op's definition says.
    std::optional<double> spared_flops;
    /// FLOPs of the step's matrix products as launched, 2 m n k with padding; 0 where it has none.
    double matrix_flops = 0;
    /// Dependent steps of its ops, one after another: see OpStruct. Nothing where each op has one, and in files that
    /// do not say.
    std::optional<std::int64_t> dependent_steps;
    std::optional<StepAccount> account;      ///< of one of them; none where no kernel has clocks for it
    std::optional<Summary> time_us;          ///< from the step run
    std::vector<KernelResult> kernels;       ///< in order; none without an activity run
    std::map<std::string, double> counters;  ///< by the metric's name, see CounterRun::metrics
    std::string counters_discarded;          ///< why they are missing though the run was counted

    /// FLOPs of the cost that the implementation's algorithm executes.
    double needed_flops() const { return std::max(0.0, cost.flops - spared_flops.value_or(0)); }
    bool is_recomputed() const { return direction == Direction::fwd && forward; }
    /// The step's time on the device: its kernels' recorded times with the gaps between them; without records the
    /// median of the step run, whose marks between steps cost time of their own.
    std::optional<double> device_us() const;
    /// device_us() over dependent steps; nothing for a step without a time or without several of them.
    std::optional<double> dependent_step_us() const;
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

/// Peak bytes planned, by role; aliased activations count once.
struct MemoryPlan {
    std::array<std::int64_t, role_count> bytes{};
    std::int64_t total() const;
};

/// End to end, all in milliseconds.
struct EndToEnd {
    Timing latency;                ///< headline: GPU compute as a CUDA graph, or the CPU's forward
    std::optional<Timing> stream;  ///< the same as plain stream launches (GPU)
    std::optional<Timing> host_to_device, device_to_host, enqueue;  ///< GPU only
    std::optional<double> sequences_per_s, tokens_per_s;            ///< at the median latency
    /// Like these, not there where the point has no sequences or no tokens, as one op has none.
    std::optional<Quantity> energy_per_sequence_j, energy_per_token_j;
    bool converged = false;  ///< the interval reached the target before the time budget ended
    /// A sample of the latency is so many runs in a row, divided: more than one where a single one is short for the
    /// clock. Nothing in files that did not record it.
    std::optional<std::int64_t> runs_per_sample = std::nullopt;
    /// Whether whoever sampled went on until enough samples were independent. Files from before version 6 did not know;
    /// how many were is computed when they are read. Not in JSON.
    bool counted_independent = true;
};

/// The same forward on some of a GPU's SMs, every kernel recorded.
struct SmCountRun {
    int multiprocessors = 0;
    Quantity sm_clock_mhz;  ///< mean while the launches ran
    int launches = 0;       ///< that counted
    double latency_ms = 0;  ///< of one launch, by events, with records; median
    /// By step: from the start of its first kernel to the end of its last, the median of the launches and its
    /// interval as Summary has it. 0 where no kernel was recorded.
    std::vector<double> step_us, step_low_us, step_high_us;
};

/// Time against SMs: what taking SMs away does to every step.
struct SmScaling {
    std::string unavailable;       ///< why there is none; empty when there is one
    std::vector<SmCountRun> runs;  ///< most SMs first, which are all that the timing run had
};

/// What the steps of one op kind add to the end-to-end time, measured without a profiler: the same forward with each of
/// these steps run twice in a row, less the plain forward next to it.
struct MarginalCost {
    std::string op;        ///< kind of the op that names the steps
    int steps = 0;         ///< run twice
    Timing difference_ms;  ///< a sample: one forward of each, neighbours in time
};

/// In the unit of any ceiling: no machine is within a factor of a million of it, and its reciprocal is below any roof.
inline constexpr double highest_roof = 1e12;

/// A roof of this machine, measured. What it is and its unit: ceilings.h, by name.
struct Ceiling {
    std::string name;
    Quantity value;
    /// 95 % interval of the median of its runs; on a CPU, where the value is the fastest run, the median and the value.
    double low = 0, high = 0;
    double clock_mhz = 0;  ///< of the SMs or cores while it was measured; 0: unknown
    Quantity datasheet;    ///< what the maker states
    /// Of a CPU, that made it. Nothing in older files, and for a GPU.
    std::optional<int> threads = {};
};

/// The roofs that a run is set against.
struct CeilingRun {
    std::string unavailable;  ///< why there are none; empty when there are
    std::string device, driver, measured_at;
    double seconds = 0;  ///< wall time of measuring them
    std::vector<Ceiling> ceilings;
    /// The CPU time that measuring them wanted and did not get, see CpuShare::lacked(); nothing where it is not known.
    std::optional<double> lacked_share = std::nullopt;
    /// Of a CPU: those of the roofs of all cores, as many as the run had. Nothing in older files, and for a GPU.
    std::optional<int> threads = {};
};

enum class PointStatus { done, skipped, failed };
inline constexpr std::string_view point_status_names[] = {"done", "skipped", "failed"};
constexpr std::string_view name(PointStatus status) { return point_status_names[static_cast<int>(status)]; }

/// The largest batch of one direction, all else being as in the point, whose plan fits into the memory that is free.
struct LargestBatch {
    std::string direction;
    std::int64_t batch = 0;            ///< 0: not even one sequence fits
    std::int64_t available_bytes = 0;  ///< what a plan may take
    bool ran = false;                  ///< asked for as "max" and run; else what providers announce says so
};

/// One point of the sweep: what was run, at one value on each axis that it has.
struct Point {
    AxisValues axes;
    bool batch_is_max = false;  ///< asked for as "max": the largest that fits into memory, proved by running it
    std::int64_t parameters = 0;
    std::uint64_t seed = 0;
    std::string weights;  ///< "random" or the file's name
    PointStatus status = PointStatus::skipped;
    std::string reason;  ///< why it was skipped or failed
    MemoryPlan memory;
    std::vector<LargestBatch> largest_batches;  ///< none for a single op, and in files that do not have them
    Cost cost;  ///< sum of the steps', without the FLOPs of recomputed ones: its bytes are the streaming bytes
    /// Weights, inputs and outputs once, of what is timed: what a backward alone reads of its forward is an input.
    /// Nothing for a single op, whose streaming bytes are the least, and in files that do not have it.
    std::optional<double> least_bytes;
    double padding_flops = 0;
    /// FLOPs of steps that compute again what the forward computed before, not in cost; none where there are no such.
    std::optional<double> recomputed_flops;
    Verification verification;
    std::optional<EndToEnd> end_to_end;
    Conditions conditions;
    ActivityRun activity;
    CounterRun counters;
    std::optional<SmScaling> sm_scaling;  ///< none on a CPU, where it was not asked for, and in files without it
    std::vector<StepResult> steps;
    std::vector<MarginalCost> marginal;  ///< by op kind; none where it was not measured
    /// Time of an empty interval between two marks of the step run, already taken off every step's time.
    Quantity step_overhead_us;
    std::map<std::string, double> phase_seconds;  ///< wall time by phase: plan, weights, tune, verify, ...

    /// Values on axes; the usual one where the point does not have it.
    const std::string& model() const { return axes.text("model"); }
    const std::string& backend() const { return axes.text("backend"); }
    const std::string& direction() const { return axes.text("direction"); }
    Precision precision() const;
    std::int64_t batch() const { return axes.count("batch").value_or(1); }
    /// Nothing for a point without sequences of tokens.
    std::optional<std::int64_t> seq() const { return axes.count("seq"); }

    void set(std::string_view axis, std::int64_t value) { axes.set(axis, value); }
    void set(std::string_view axis, std::string_view value) { axes.set(axis, std::string(value)); }
    void set(std::string_view axis, Precision value) { set(axis, name(value)); }
};

/// A point that a study asks for, measured or not.
struct PlannedPoint {
    AxisValues axes;  ///< without a batch where that is to be the largest that fits
    bool batch_is_max = false;
    std::vector<std::string> tasks;  ///< those of the study that look at it: bottlenecks, batch, precision, directions
    std::string left_out;            ///< why it was not to be measured; empty where it was
};

/// What `kbench study` planned to measure.
struct StudyPlan {
    std::optional<double> budget_s;    ///< nothing: as long as it takes
    std::vector<PlannedPoint> points;  ///< in the order in which they are measured
};

/// A key of the model's config.json as it was read.
struct ConfigurationKey {
    std::string key, value;
    std::string from;  ///< the key's name in the file; empty where the file has none and the value is the default
};

struct Result {
    Environment environment;
    /// The options that decide how a point is measured, by name; results may be joined only where these are equal. Not
    /// among them: which points, and where to. None in files before version 4.
    std::map<std::string, std::string> options;
    std::vector<Point> points;
    std::vector<std::string> warnings;
    CeilingRun ceilings;
    std::optional<StudyPlan> study = {};  ///< none of a run that was no study
    /// In the order in which they were read; none of a built-in model.
    std::vector<ConfigurationKey> configuration = {};
};

/// A result and where it was read from.
struct ResultFile {
    std::string path;
    Result result;
};

/// The result called `name`: a result.json of this or an older schema, a result.json.gz, or a directory with one; of a
/// directory with several, their points joined as `kbench merge` would. Throws UsageError (error.h), one line.
ResultFile read_result(const std::string& name);

}  // namespace kbench
