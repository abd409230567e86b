// The one description of result.json: a table of fields for each struct of result.h, in the order they are written,
// each struct below those that it holds. A new field is a row here; KBENCH_UPDATE_GOLDEN=1 with the tests writes it
// into result.schema.json and docs/schema.md.
#include "analysis/result/result_fields.h"

namespace kbench::fields {
namespace {

constexpr std::string_view limiter_words[] = {"registers", "shared memory", "warps", "blocks", "barriers"};
constexpr std::string_view timed_directions[] = {"fwd", "bwd", "train"};
constexpr std::string_view study_tasks[] = {"bottlenecks", "batch", "precision", "directions"};
constexpr std::string_view thief_kinds[] = {"nothing", "compute", "dram", "l2"};

}  // namespace

template <>
const std::span<const std::string_view> names<Origin> = origin_names;
template <>
const std::span<const std::string_view> names<Direction> = direction_names;
template <>
const std::span<const std::string_view> names<PointStatus> = point_status_names;
template <>
const std::span<const std::string_view> names<Precision> = axis_named("precision").words;

template <>
const Object object<Quantity> =
    Object("quantity",
           "A figure with its origin, in the unit that the field's name gives; null exactly when it is unavailable",
           Field("value", &Quantity::value), Field("origin", &Quantity::origin, "derived: from the cost model"),
           Field("reason", &Quantity::reason, "Why it is unavailable, or on what an estimate rests"));

template <>
const Object object<Summary> = Object(
    "summary", "Statistics of samples, in the unit that the field's name gives", Field("n", &Summary::n, {.least = 1}),
    Field("min", &Summary::min), Field("max", &Summary::max), Field("mean", &Summary::mean),
    Field("median", &Summary::median), Field("p25", &Summary::p25), Field("p75", &Summary::p75),
    Field("p90", &Summary::p90), Field("p95", &Summary::p95), Field("p99", &Summary::p99),
    Field("independent", &Summary::independent, {.since = 6, .least = 0},
          "Independent samples that would tell as much about the median, at most n; 0: not recorded"),
    Field("ci_low", &Summary::ci_low,
          "Lower end of the median's 95 % confidence interval; min when too few samples are independent for one"),
    Field("ci_high", &Summary::ci_high, "Upper end of it; max when too few samples are independent"));

template <>
const Object object<Timing> = Object("timing", "Raw samples and their summary",
                                     Field("samples_ms", &Timing::samples_ms),
                                     Field("summary_ms", &Timing::summary_ms));

template <>
const Object object<Cost> = Object(
    "cost",
    "Useful FLOPs, and bytes by role (roles without any are left out): a step's operands and results once; a point's are the sum over its steps",
    Field("flops", &Cost::flops, {.least = 0}), Field("bytes_read", &Cost::bytes_read, {.least = 0}),
    Field("bytes_written", &Cost::bytes_written, {.least = 0}));

template <>
const Object object<GpuInfo> = Object(
    "gpu", "The GPU that was used", Field("name", &GpuInfo::name), Field("uuid", &GpuInfo::uuid),
    Field("driver", &GpuInfo::driver), Field("cuda_runtime", &GpuInfo::cuda_runtime),
    Field("compute_capability_major", &GpuInfo::compute_capability_major),
    Field("compute_capability_minor", &GpuInfo::compute_capability_minor),
    Field("multiprocessors", &GpuInfo::multiprocessors, "SMs that the work ran on"),
    Field("multiprocessors_of_device", &GpuInfo::multiprocessors_of_device, {.optional = 6, .least = 1},
          "SMs of the device, where the work ran on a part of them (--sms)"),
    Field("memory_bytes", &GpuInfo::memory_bytes), Field("l2_bytes", &GpuInfo::l2_bytes),
    Field("max_sm_clock_mhz", &GpuInfo::max_sm_clock_mhz),
    Field("max_memory_clock_mhz", &GpuInfo::max_memory_clock_mhz), Field("power_limit_w", &GpuInfo::power_limit_w));

template <>
const Object object<HostInfo> = Object(
    "host", "The machine's CPU side", Field("cpu", &HostInfo::cpu, "Model name"), Field("sockets", &HostInfo::sockets),
    Field("physical_cores", &HostInfo::physical_cores, "That the process may use"),
    Field("logical_cpus", &HostInfo::logical_cpus, "That the process may use"),
    Field("threads", &HostInfo::threads, "Threads used for CPU steps"), Field("pinned", &HostInfo::pinned),
    Field("l1d_bytes", &HostInfo::l1d_bytes), Field("l2_bytes", &HostInfo::l2_bytes),
    Field("l3_bytes", &HostInfo::l3_bytes), Field("memory_bytes", &HostInfo::memory_bytes),
    Field("isa", &HostInfo::isa), Field("governor", &HostInfo::governor), Field("os", &HostInfo::os),
    Field("kernel", &HostInfo::kernel),
    Field("threads_from", &HostInfo::threads_from, {.optional = 6}, "What decided how many threads there are"),
    Field("machine_cpus", &HostInfo::machine_cpus, {.optional = 6, .least = 1}, "Online CPUs of the machine"),
    Field("cpu_quota", &HostInfo::cpu_quota, {.optional = 6, .above = 0},
          "CPUs of time that control groups allow the process; missing without a quota"));

template <>
const Object object<RunToRun> = Object("run_to_run",
                                       "How much the medians of one command differ from run to run on this machine",
                                       Field("deviation", &RunToRun::deviation,
                                             "Standard deviation of the medians' logarithms"),
                                       Field("runs", &RunToRun::runs), Field("command_line", &RunToRun::command_line),
                                       Field("measured_at", &RunToRun::measured_at, "UTC, ISO 8601"));

template <>
const Object object<Environment> = Object(
    "environment", "Where and with what it was measured", Field("kbench_version", &Environment::kbench_version),
    Field("git_revision", &Environment::git_revision), Field("build_type", &Environment::build_type),
    Field("compiler", &Environment::compiler), Field("libraries", &Environment::libraries, "Name to version"),
    Field("command_line", &Environment::command_line), Field("started_at", &Environment::started_at, "UTC, ISO 8601"),
    Field("host", &Environment::host), Field("gpu", &Environment::gpu, "null without a GPU"),
    Field("run_to_run", &Environment::run_to_run, {.optional = 6},
          "Missing where the machine remembers nothing (kbench doctor --noise)"));

template <>
const Object object<ConditionReading> = Object("condition_reading",
                                               "The machine's state at one moment; null for what could not be read",
                                               Field("at_s", &ConditionReading::at_s, "Since the first sample began"),
                                               Field("sm_clock_mhz", &ConditionReading::sm_clock_mhz),
                                               Field("memory_clock_mhz", &ConditionReading::memory_clock_mhz),
                                               Field("power_w", &ConditionReading::power_w),
                                               Field("temperature_c", &ConditionReading::temperature_c));

template <>
const Object object<ConditionBlock> = Object(
    "condition_block", "Samples taken one after another, and the clock meanwhile",
    Field("until_s", &ConditionBlock::until_s, "When its last sample ended, since the first sample of all began"),
    Field("median_ms", &ConditionBlock::median_ms),
    Field("sm_clock_mhz", &ConditionBlock::sm_clock_mhz, {.optional = 6},
          "Mean of the clock's readings meanwhile; missing where there was none"),
    Field("readings", &ConditionBlock::readings, "Readings of the clock"));

template <>
const Object object<MarginalCost> = Object("marginal_cost", "What the steps of one op kind add to the forward",
                                           Field("op", &MarginalCost::op),
                                           Field("steps", &MarginalCost::steps, "Steps that were run twice"),
                                           Field("difference_ms", &MarginalCost::difference_ms));

template <>
const Object object<Ceiling> = Object(
    "ceiling", "A roof of this machine",
    Field("name", &Ceiling::name, "One of `kbench list ceilings`; its unit follows from it"),
    Field("value", &Ceiling::value, {.most = highest_roof}), Field("low", &Ceiling::low, "95 % interval of the median"),
    Field("high", &Ceiling::high), Field("clock_mhz", &Ceiling::clock_mhz, {.least = 0}, "While measured; 0: unknown"),
    Field("datasheet", &Ceiling::datasheet, "What the maker states"),
    Field("threads", &Ceiling::threads, {.optional = 6, .least = 1},
          "Threads of a CPU that made it; missing for a GPU"));

template <>
const Object object<CeilingRun> =
    Object("ceiling_run", "The roofs that the run is compared with, measured on this machine",
           Field("unavailable", &CeilingRun::unavailable, "Why there are none; empty when there are"),
           Field("device", &CeilingRun::device), Field("driver", &CeilingRun::driver),
           Field("measured_at", &CeilingRun::measured_at, "UTC, ISO 8601"),
           Field("seconds", &CeilingRun::seconds, {.least = 0}, "Wall time of measuring them"),
           Field("lacked_share", &CeilingRun::lacked_share, {.optional = 6, .least = 0},
                 "Share of the CPU time that measuring them wanted and did not get; missing where it is not known"),
           Field("ceilings", &CeilingRun::ceilings),
           Field("threads", &CeilingRun::threads, {.optional = 6, .least = 1},
                 "Threads of a CPU that made the roofs of all cores"));

template <>
const Object object<CpuShare> = Object(
    "cpu_share",
    "How much of the CPU time that the process wanted it did not get while the samples that were kept were taken; shares are from 0 to 1",
    Field("waited_share", &CpuShare::waited_share,
          "Share of the time for which the working thread that waited the most was on a run queue"),
    Field("steal_share", &CpuShare::steal_share,
          "What the hypervisor gave to others of the time that the host's CPUs wanted to run"),
    Field("throttled_share", &CpuShare::throttled_share,
          "Time that a quota held CPUs back, over that and the time that the process ran"),
    Field("throttled_periods", &CpuShare::throttled_periods, "Among quota_periods"),
    Field("quota_periods", &CpuShare::quota_periods, "0 where there is no quota"),
    Field("involuntary_switches", &CpuShare::involuntary_switches, "Sum over all threads"),
    Field("load", &CpuShare::load, "1 minute's load average at the end, with the process's threads in it"),
    Field("pressure_share", &CpuShare::pressure_share,
          "Share of the time in which some task of the host waited for a CPU"),
    Field("starved_samples", &CpuShare::starved_samples, "Discarded and repeated"));

template <>
const Object object<Conditions> = Object(
    "conditions",
    "The machine's state from the first sample's begin to the last one's end, without the warm-up; means unless said otherwise",
    Field("sm_clock_mhz", &Conditions::sm_clock_mhz), Field("memory_clock_mhz", &Conditions::memory_clock_mhz),
    Field("power_w", &Conditions::power_w,
          "Derived from the energy counter; measured: the mean of power readings, where the counter cannot tell"),
    Field("temperature_c", &Conditions::temperature_c),
    Field("energy_j", &Conditions::energy_j, "Over all that time; estimated where no energy counter can tell"),
    Field("throttle_reasons", &Conditions::throttle_reasons, "Seen meanwhile"),
    Field("throttle_unavailable", &Conditions::throttle_unavailable, {.optional = 6},
          "Why no throttling could be seen; empty where something looked"),
    Field("throttled_samples", &Conditions::throttled_samples, "Discarded and repeated"),
    Field("readings", &Conditions::readings, {.since = 3}, "In order of time"),
    Field(
        "blocks", &Conditions::blocks, {.optional = 6},
        "The samples in up to 16 blocks of as many each, in order of time; missing where no clock was read, where too few samples were taken, and in microbenchmarks"),
    Field("cpu_share", &Conditions::cpu_share, {.optional = 6}, "Missing for a GPU"));

template <>
const Object object<KernelResult> =
    Object("kernel", "A launch of a device function, as its activity record shows it",
           Field("name", &KernelResult::name, "Demangled, with all its parameters"),
           Field("short_name", &KernelResult::short_name, "Without namespaces and parameters"),
           Field("time_us", &KernelResult::time_us, {.least = 0}, "Median of the activity runs"),
           Field("gap_us", &KernelResult::gap_us, "Median idle time between the kernel before it and its start"),
           Field("grid", &KernelResult::grid), Field("block", &KernelResult::block),
           Field("registers", &KernelResult::registers, "Per thread"),
           Field("static_shared_bytes", &KernelResult::static_shared_bytes),
           Field("dynamic_shared_bytes", &KernelResult::dynamic_shared_bytes),
           Field("local_bytes", &KernelResult::local_bytes, "Local memory per thread"),
           Field("cluster_blocks", &KernelResult::cluster_blocks, {.least = 1}), Field("device", &KernelResult::device),
           Field("stream", &KernelResult::stream),
           Field("theoretical_occupancy_pct", &KernelResult::theoretical_occupancy_pct),
           Field("waves", &KernelResult::waves), Field("lost_in_last_wave_pct", &KernelResult::lost_in_last_wave_pct),
           Field("blocks_per_sm", &KernelResult::blocks_per_sm, "0 where the occupancy is unavailable"),
           Field("limiters", &KernelResult::limiters, {.words = limiter_words}),
           Field("occupancy_hint", &KernelResult::occupancy_hint, "What the next step of a limiter would give"));

template <>
const Object object<RecordInflation> =
    Object("record_inflation", "What recording does to a chain of kernels of one length",
           Field("kernel_us", &RecordInflation::kernel_us, "From start to start, without records"),
           Field("recorded_us", &RecordInflation::recorded_us, "From the record's start to its end"),
           Field("profiled_us", &RecordInflation::profiled_us, "From start to start, with records"));

template <>
const Object object<ActivityRun> =
    Object("activity", "The runs in which every kernel was recorded",
           Field("unavailable", &ActivityRun::unavailable, "Why there is none; empty when there is one"),
           Field("runs", &ActivityRun::runs),
           Field("profiled_ms", &ActivityRun::profiled_ms, {.least = 0}, "End to end with records on, median"),
           Field("unprofiled_ms", &ActivityRun::unprofiled_ms, {.since = 3, .least = 0},
                 "The same without records, run between them; on a CPU the forwards with timed steps; 0: not measured"),
           Field("kernels_ms", &ActivityRun::kernels_ms, {.least = 0}, "Sum of the kernels' times"),
           Field("gaps_ms", &ActivityRun::gaps_ms, "Sum of the gaps between them"),
           Field("inflation", &ActivityRun::inflation));

template <>
const Object object<CountedMetric> =
    Object("counted_metric", "A metric of the counter runs", Field("name", &CountedMetric::name),
           Field("unit", &CountedMetric::unit),
           Field("source", &CountedMetric::source, "The device's counters that it is made of"),
           Field("origin", &CountedMetric::origin),
           Field("reason", &CountedMetric::reason, "Why it is unavailable, or on what an estimate rests"));

template <>
const Object object<CounterRun> =
    Object("counter_run", "The runs in which hardware counters were read, one range a step",
           Field("requested", &CounterRun::requested, "Sets and metrics as asked for"),
           Field("unavailable", &CounterRun::unavailable, "Why nothing was counted; empty when something was"),
           Field("chip", &CounterRun::chip), Field("passes", &CounterRun::passes, "Forwards needed"),
           Field("seconds", &CounterRun::seconds, {.least = 0}), Field("metrics", &CounterRun::metrics));

template <>
const Object object<SmCountRun> = Object(
    "sm_count_run", "The same work on some of the GPU's SMs", Field("multiprocessors", &SmCountRun::multiprocessors),
    Field("sm_clock_mhz", &SmCountRun::sm_clock_mhz, "Mean while the launches ran"),
    Field("launches", &SmCountRun::launches),
    Field("latency_ms", &SmCountRun::latency_ms, {.least = 0}, "One launch with records, median"),
    Field("step_us", &SmCountRun::step_us, {.least = 0},
          "By step: from its first kernel's start to its last one's end, median; 0 where none was recorded"),
    Field("step_low_us", &SmCountRun::step_low_us, {.least = 0}, "Lower ends of their 95 % intervals"),
    Field("step_high_us", &SmCountRun::step_high_us, {.least = 0}, "Upper ends"));

template <>
const Object object<SmScaling> = Object("sm_scaling", "Time against SMs: what taking SMs away does to every step",
                                        Field("unavailable", &SmScaling::unavailable,
                                              "Why there is none; empty when there is one"),
                                        Field("runs", &SmScaling::runs, "All, 3/4, 1/2 and 1/4 of the SMs"));

template <>
const Object object<SizeTime> = Object(
    "size_time", "A step's time at one size, measured alone",
    Field("factor", &SizeTime::factor, {.above = 0}, "Of the size that changed: 1, 2, 4; 0.25, 0.5, 1 for time steps"),
    Field("work_flops", &SizeTime::work_flops, {.least = 0}, "The cost model's at that size"),
    Field("shape", &SizeTime::shape), Field("implementation", &SizeTime::implementation),
    Field("us", &SizeTime::us, "One run of the step, without a profiler"),
    Field("sm_clock_mhz", &SizeTime::sm_clock_mhz, "The SM's own meanwhile"));

template <>
const Object object<SizeScaling> =
    Object("size_scaling", "Time against size: steps that are alike, larger, with the same algorithm",
           Field("steps", &SizeScaling::steps, {.least = 0}, "Positions of the steps that are alike"),
           Field("axis", &SizeScaling::axis, "Which size grew: k, seq, rows, time_steps, batch"),
           Field("unavailable", &SizeScaling::unavailable, "Why there are no times; empty when there are"),
           Field("times", &SizeScaling::times, "Smallest first; the first is the step's own size"));

template <>
const Object object<ThiefRun> =
    Object("thief_run", "The same work while a thief on other SMs takes a part of what all of them share",
           Field("takes", &ThiefRun::takes, {.words = thief_kinds}),
           Field("multiprocessors", &ThiefRun::multiprocessors, "The work's own, or a CPU's cores"),
           Field("share", &ThiefRun::share, {.least = 0}, "Of the roof of what it takes, by its own count"),
           Field("sm_clock_mhz", &ThiefRun::sm_clock_mhz, "Of the work's SMs meanwhile"),
           Field("launches", &ThiefRun::launches),
           Field("latency_ms", &ThiefRun::latency_ms, {.least = 0}, "One launch, median"),
           Field("step_us", &ThiefRun::step_us, {.least = 0}, "By step, median; 0 where none was recorded"),
           Field("step_low_us", &ThiefRun::step_low_us, {.least = 0}, "Lower ends of their 95 % intervals"),
           Field("step_high_us", &ThiefRun::step_high_us, {.least = 0}, "Upper ends"));

template <>
const Object object<BandwidthTheft> =
    Object("bandwidth_theft", "Time against bandwidth: what taking DRAM's or L2's away does to every step",
           Field("unavailable", &BandwidthTheft::unavailable, "Why there is none; empty when there is one"),
           Field("runs", &BandwidthTheft::runs, "First the work alone; all on as many SMs"));

template <>
const Object object<GraphClock> =
    Object("graph_clock", "The SM's clock inside the graph, read between steps of graphs that are not timed",
           Field("unavailable", &GraphClock::unavailable, "Why there is none; empty when there is one"),
           Field("graphs", &GraphClock::graphs, "Between which the places were spread"),
           Field("places", &GraphClock::places, "In which the clock was read, in all graphs"),
           Field("cost_us", &GraphClock::cost_us, "What reading at one place adds to a graph"),
           Field("step_mhz", &GraphClock::step_mhz, {.least = 0},
                 "By step; those that share an interval have its mean; 0: not read"));

template <>
const Object object<StepPhase> = Object("step_phase", "Cycles of one time step in a part of it, over the blocks",
                                        Field("name", &StepPhase::name),
                                        Field("median_cycles", &StepPhase::median_cycles, {.least = 0}),
                                        Field("least_cycles", &StepPhase::least_cycles, {.least = 0}),
                                        Field("most_cycles", &StepPhase::most_cycles, {.least = 0}));

template <>
const Object object<StepAccount> =
    Object("step_account", "Where the time of one time step goes, by clocks in the kernel",
           Field("blocks", &StepAccount::blocks, {.least = 1}, "Blocks that had clocks"),
           Field("us", &StepAccount::us, {.least = 0}, "One time step with the clocks, microseconds"),
           Field("start_us", &StepAccount::start_us, {.least = 0},
                 "A launch before its first time step, by difference of two numbers of time steps"),
           Field("phases", &StepAccount::phases, {.not_empty = true}, "In the order of a time step"));

template <>
const Object object<StepResult> = Object(
    "step", "One provider call of the plan", Field("index", &StepResult::index),
    Field("layer", &StepResult::layer, "Layer of the first op, as the checkpoint names it"),
    Field("op", &StepResult::op, "Kind of the op that names the step"),
    Field("absorbs", &StepResult::absorbs, "Every op computed, layer:kind, in order"),
    Field("provider", &StepResult::provider), Field("implementation", &StepResult::implementation),
    Field("shape", &StepResult::shape), Field("precision", &StepResult::precision),
    Field("direction", &StepResult::direction),
    Field(
        "forward", &StepResult::forward, {.optional = 6},
        "layer:op of the forward step that a backward one belongs to, or that a forward one computes again; missing in other steps"),
    Field("cost", &StepResult::cost),
    Field("padding_flops", &StepResult::padding_flops, {.least = 0},
          "Executed on padded columns and masked elements, not in cost"),
    Field(
        "spared_flops", &StepResult::spared_flops, {.optional = 6, .least = 0},
        "In cost, not executed: what the implementation's algorithm does without, by its own account; missing where it executes what the op's definition says"),
    Field(
        "matrix_flops", &StepResult::matrix_flops, {.since = 2, .least = 0},
        "The step's matrix products as launched, 2 m n k with padding; of fused attention those of visible pairs; 0 where it has none"),
    Field(
        "time_steps", &StepResult::time_steps, {.optional = 6, .was = "dependent_steps", .least = 2},
        "How many times at least its ops wait for a result of their own, one after another: the time steps of a recurrent layer; missing where each op has one"),
    Field("account", &StepResult::account, {.optional = 6},
          "Of a persistent kernel; missing where no kernel has clocks"),
    Field("time_us", &StepResult::time_us, "null when the step was not timed"),
    Field("counters", &StepResult::counters, {.since = 2},
          "By the metric's name; units and sources are in the point's counters.metrics"),
    Field("counters_discarded", &StepResult::counters_discarded, {.since = 2},
          "Why this step's counters are missing though the run was counted"),
    Field("kernels", &StepResult::kernels, {.since = 2}, "In order; none without an activity run"));

// A kernel that wrote NaN or infinity has no finite error: the one place where such numbers are findings.
constexpr Rule error_rule{.least = 0, .null_if_not_finite = true};

template <>
const Object object<VerifiedStep> = Object(
    "verified_step", "One distinct step that was checked against the reference", Field("op", &VerifiedStep::op),
    Field("shape", &VerifiedStep::shape), Field("provider", &VerifiedStep::provider),
    Field("implementation", &VerifiedStep::implementation), Field("elements_checked", &VerifiedStep::elements_checked),
    Field("elements_total", &VerifiedStep::elements_total),
    Field("worst_error", &VerifiedStep::worst_error, error_rule, "null when it is not finite, as for the next two"),
    Field("bound_there", &VerifiedStep::bound_there, error_rule),
    Field("error_over_bound", &VerifiedStep::error_over_bound, error_rule));

template <>
const Object object<Verification> = Object("verification", "The check against the reference that precedes all timing",
                                           Field("enabled", &Verification::enabled),
                                           Field("seconds", &Verification::seconds, {.least = 0}),
                                           Field("steps", &Verification::steps));

template <>
const Object object<MemoryPlan> = Object(
    "memory", "Peak bytes planned; aliased activations count once",
    Field(
        "bytes", &MemoryPlan::bytes,
        "By role; roles without any are left out; saved_activations are those that the forward makes and the backward reads"));

template <>
const Object object<LargestBatch> =
    Object("largest_batch", "The largest batch of one direction, all else being as in the point",
           Field("direction", &LargestBatch::direction, {.words = timed_directions}),
           Field("batch", &LargestBatch::batch, "0: not even one sequence fits"),
           Field("available_bytes", &LargestBatch::available_bytes, "What a plan may take"),
           Field("ran", &LargestBatch::ran, "Asked for as max and run; else by what providers announce"));

template <>
const Object object<EndToEnd> = Object(
    "end_to_end", "The whole model", Field("latency", &EndToEnd::latency, "As a CUDA graph, or the CPU's forward"),
    Field("stream", &EndToEnd::stream, "As plain stream launches; null on a CPU, as for the next three"),
    Field("host_to_device", &EndToEnd::host_to_device), Field("device_to_host", &EndToEnd::device_to_host),
    Field("enqueue", &EndToEnd::enqueue),
    Field("sequences_per_s", &EndToEnd::sequences_per_s, {.since = 1, .optional = 5, .least = 0},
          "Missing, as the next three, where it means nothing"),
    Field("tokens_per_s", &EndToEnd::tokens_per_s, {.since = 1, .optional = 5, .least = 0}),
    Field("energy_per_sequence_j", &EndToEnd::energy_per_sequence_j, {.since = 1, .optional = 5}),
    Field("energy_per_token_j", &EndToEnd::energy_per_token_j, {.since = 1, .optional = 5}),
    Field("converged", &EndToEnd::converged, "The interval reached its target before the time budget ended"),
    Field(
        "runs_per_sample", &EndToEnd::runs_per_sample, {.optional = 6, .least = 1},
        "A sample of the latency is so many runs in a row, divided: more than one where a run is short for the clock"));

template <>
const Object object<Point> = Object(
    "point", "One combination of values on the axes, run, skipped or failed; each repeat is a point of its own",
    axes_between("model", "batch", &Point::axes),
    Field("batch_is_max", &Point::batch_is_max, {.since = 4},
          "Asked for as max: the largest that fits, proved by running it"),
    axes_between("seq", "repeat", &Point::axes), Field("parameters", &Point::parameters),
    axes_between("precision", "recompute", &Point::axes), Field("seed", &Point::seed),
    Field("weights", &Point::weights, "random, or the file's name"), Field("status", &Point::status),
    Field("reason", &Point::reason, "Why it was skipped or failed"), Field("memory", &Point::memory),
    Field("largest_batches", &Point::largest_batches, {.optional = 6},
          "By direction, the largest batch whose plan fits into the memory that was free; missing for a single op"),
    Field("cost", &Point::cost, "The bytes are the unfused traffic: every step's operands and results once"),
    Field(
        "compulsory_bytes", &Point::compulsory_bytes, {.optional = 6, .was = "least_bytes", .least = 0},
        "Weights, inputs and outputs of what is timed of the model once (what a backward alone reads of its forward is an input); caches may bring the bytes of cost down to these; missing for a single op"),
    Field("padding_flops", &Point::padding_flops, {.least = 0},
          "Executed on padding and on what a mask discards, not in cost"),
    Field(
        "recomputed_flops", &Point::recomputed_flops, {.optional = 6, .least = 0},
        "FLOPs of steps that compute again what the forward computed before (--recompute block), not in cost; missing where there are none"),
    Field("verification", &Point::verification),
    Field("end_to_end", &Point::end_to_end, "null unless the point was timed"), Field("conditions", &Point::conditions),
    Field("activity", &Point::activity, {.since = 2}), Field("counters", &Point::counters, {.since = 2}),
    Field("sm_scaling", &Point::sm_scaling, {.optional = 6},
          "The same work on some of the GPU's SMs, every kernel recorded; missing where it was not asked for"),
    Field("size_scaling", &Point::size_scaling, {.optional = 6},
          "Steps alone, at three of one of their sizes; missing where it was not asked for"),
    Field("theft", &Point::theft, {.optional = 6},
          "The same work while a thief takes bandwidth; missing where it was not asked for"),
    Field("graph_clock", &Point::graph_clock, {.optional = 6},
          "The SM's clock by step; missing where it was not asked for"),
    Field("steps", &Point::steps),
    Field("marginal", &Point::marginal, {.since = 3},
          "By op kind: the forward with each of its steps run twice, less the plain forward"),
    Field("step_overhead_us", &Point::step_overhead_us,
          "Time of an empty interval between two marks of the step run, taken off every step"),
    Field("phase_seconds", &Point::phase_seconds, {.least = 0}, "Wall time by phase"));

template <>
const Object object<PlannedPoint> =
    Object("planned_point",
           "A point asked for at one value on each of its axes; one whose batch is the largest that fits has no batch",
           axes_between("model", "recompute", &PlannedPoint::axes), Field("batch_is_max", &PlannedPoint::batch_is_max),
           Field("tasks", &PlannedPoint::tasks, {.words = study_tasks}, "Questions of the study that look at it"),
           Field("left_out", &PlannedPoint::left_out, "Why it was not to be measured; empty where it was"));

template <>
const Object object<StudyPlan> = Object("study", "What kbench study planned to measure",
                                        Field("budget_s", &StudyPlan::budget_s, {.above = 0},
                                              "null: as long as it takes"),
                                        Field("points", &StudyPlan::points, "In the order in which they are measured"));

template <>
const Object object<ConfigurationKey> =
    Object("configuration_key", "A key of the model's config.json as it was read", Field("key", &ConfigurationKey::key),
           Field("value", &ConfigurationKey::value),
           Field("from", &ConfigurationKey::from,
                 "Its name in the file; empty where the file has none and the value is the default"));

template <>
const Object object<Result> = Object(
    "result", "What one run of kbench wrote: result.json", Field("environment", &Result::environment),
    Field(
        "options", &Result::options, {.since = 4},
        "The options that decide how a point is measured, by name, the model's configuration among them: results are joined and sweeps resumed only where these are equal; deterministic and sms are there only where asked for"),
    Field("configuration", &Result::configuration, {.optional = 6}, "Key by key; missing for a built-in model"),
    Field("ceilings", &Result::ceilings, {.since = 3}),
    Field("study", &Result::study, {.optional = 6}, "Missing in the results of other commands"),
    Field("points", &Result::points, "One for each combination of values on the axes, and each repeat"),
    Field("warnings", &Result::warnings, "One line each"));

const Object& result_object() { return object<Result>; }
const Object& ceiling_run_object() { return object<CeilingRun>; }

}  // namespace kbench::fields
