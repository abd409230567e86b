// The one description of result.json: a table of fields for each struct of result.h, in the order they are written,
// each struct below those that it holds. A new field is a row here; KBENCH_UPDATE_GOLDEN=1 with the tests writes it
// into result.schema.json and docs/schema.md.
#include "analysis/result/result_fields.h"

// A row: the field is called as its member is.
#define FIELD(member, ...) Field(#member, &Self::member __VA_OPT__(, ) __VA_ARGS__)
// The table of a struct, which its rows call Self.
#define OBJECT(Struct, ...)            \
    template <>                        \
    const Object object<Struct> = [] { \
        using Self = Struct;           \
        return Object(__VA_ARGS__);    \
    }()

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

OBJECT(Quantity, "quantity",
       "A figure with its origin, in the unit that the field's name gives; null exactly when it is unavailable",
       FIELD(value), FIELD(origin, "derived: from the cost model"),
       FIELD(reason, "Why it is unavailable, or on what an estimate rests"));

OBJECT(Summary, "summary", "Statistics of samples, in the unit that the field's name gives", FIELD(n, {.least = 1}),
       FIELD(min), FIELD(max), FIELD(mean), FIELD(median), FIELD(p25), FIELD(p75), FIELD(p90), FIELD(p95), FIELD(p99),
       FIELD(independent, {.since = 6, .least = 0},
             "Independent samples that would tell as much about the median, at most n; 0: not recorded"),
       FIELD(ci_low,
             "Lower end of the median's 95 % confidence interval; min when too few samples are independent for one"),
       FIELD(ci_high, "Upper end of it; max when too few samples are independent"));

OBJECT(Timing, "timing", "Raw samples and their summary", FIELD(samples_ms), FIELD(summary_ms));

OBJECT(
    Cost, "cost",
    "Useful FLOPs, and bytes by role (roles without any are left out): a step's operands and results once; a point's are the sum over its steps",
    FIELD(flops, {.least = 0}), FIELD(bytes_read, {.least = 0}), FIELD(bytes_written, {.least = 0}));

OBJECT(GpuInfo, "gpu", "The GPU that was used", FIELD(name), FIELD(uuid), FIELD(driver), FIELD(cuda_runtime),
       FIELD(compute_capability_major), FIELD(compute_capability_minor),
       FIELD(multiprocessors, "SMs that the work ran on"),
       FIELD(multiprocessors_of_device, {.optional = 6, .least = 1},
             "SMs of the device, where the work ran on a part of them (--sms)"),
       FIELD(memory_bytes), FIELD(l2_bytes), FIELD(max_sm_clock_mhz), FIELD(max_memory_clock_mhz),
       FIELD(power_limit_w));

OBJECT(HostInfo, "host", "The machine's CPU side", FIELD(cpu, "Model name"), FIELD(sockets),
       FIELD(physical_cores, "That the process may use"), FIELD(logical_cpus, "That the process may use"),
       FIELD(threads, "Threads used for CPU steps"), FIELD(pinned), FIELD(l1d_bytes), FIELD(l2_bytes), FIELD(l3_bytes),
       FIELD(memory_bytes), FIELD(isa), FIELD(governor), FIELD(os), FIELD(kernel),
       FIELD(threads_from, {.optional = 6}, "What decided how many threads there are"),
       FIELD(machine_cpus, {.optional = 6, .least = 1}, "Online CPUs of the machine"),
       FIELD(cpu_quota, {.optional = 6, .above = 0},
             "CPUs of time that control groups allow the process; missing without a quota"));

OBJECT(RunToRun, "run_to_run", "How much the medians of one command differ from run to run on this machine",
       FIELD(deviation, "Standard deviation of the medians' logarithms"), FIELD(runs), FIELD(command_line),
       FIELD(measured_at, "UTC, ISO 8601"));

OBJECT(Environment, "environment", "Where and with what it was measured", FIELD(kbench_version), FIELD(git_revision),
       FIELD(build_type), FIELD(compiler), FIELD(libraries, "Name to version"), FIELD(command_line),
       FIELD(started_at, "UTC, ISO 8601"), FIELD(host), FIELD(gpu, "null without a GPU"),
       FIELD(run_to_run, {.optional = 6}, "Missing where the machine remembers nothing (kbench doctor --noise)"));

OBJECT(ConditionReading, "condition_reading", "The machine's state at one moment; null for what could not be read",
       FIELD(at_s, "Since the first sample began"), FIELD(sm_clock_mhz), FIELD(memory_clock_mhz), FIELD(power_w),
       FIELD(temperature_c));

OBJECT(ConditionBlock, "condition_block", "Samples taken one after another, and the clock meanwhile",
       FIELD(until_s, "When its last sample ended, since the first sample of all began"), FIELD(median_ms),
       FIELD(sm_clock_mhz, {.optional = 6}, "Mean of the clock's readings meanwhile; missing where there was none"),
       FIELD(readings, "Readings of the clock"));

OBJECT(MarginalCost, "marginal_cost", "What the steps of one op kind add to the forward", FIELD(op),
       FIELD(steps, "Steps that were run twice"), FIELD(difference_ms));

OBJECT(Ceiling, "ceiling", "A roof of this machine",
       FIELD(name, "One of `kbench list ceilings`; its unit follows from it"), FIELD(value, {.most = highest_roof}),
       FIELD(low, "95 % interval of the median"), FIELD(high),
       FIELD(clock_mhz, {.least = 0}, "While measured; 0: unknown"), FIELD(datasheet, "What the maker states"),
       FIELD(threads, {.optional = 6, .least = 1}, "Threads of a CPU that made it; missing for a GPU"));

OBJECT(CeilingRun, "ceiling_run", "The roofs that the run is compared with, measured on this machine",
       FIELD(unavailable, "Why there are none; empty when there are"), FIELD(device), FIELD(driver),
       FIELD(measured_at, "UTC, ISO 8601"), FIELD(seconds, {.least = 0}, "Wall time of measuring them"),
       FIELD(lacked_share, {.optional = 6, .least = 0},
             "Share of the CPU time that measuring them wanted and did not get; missing where it is not known"),
       FIELD(ceilings),
       FIELD(threads, {.optional = 6, .least = 1}, "Threads of a CPU that made the roofs of all cores"));

OBJECT(
    CpuShare, "cpu_share",
    "How much of the CPU time that the process wanted it did not get while the samples that were kept were taken; shares are from 0 to 1",
    FIELD(waited_share, "Share of the time for which the working thread that waited the most was on a run queue"),
    FIELD(steal_share, "What the hypervisor gave to others of the time that the host's CPUs wanted to run"),
    FIELD(throttled_share, "Time that a quota held CPUs back, over that and the time that the process ran"),
    FIELD(throttled_periods, "Among quota_periods"), FIELD(quota_periods, "0 where there is no quota"),
    FIELD(involuntary_switches, "Sum over all threads"),
    FIELD(load, "1 minute's load average at the end, with the process's threads in it"),
    FIELD(pressure_share, "Share of the time in which some task of the host waited for a CPU"),
    FIELD(starved_samples, "Discarded and repeated"));

OBJECT(
    RoofReadings, "roof_readings", "A CPU's roof of all cores between the samples", FIELD(ceiling, "Its name"),
    FIELD(
        values, {.most = highest_roof, .least = 0},
        "In its unit, in order of time; each is the second of two runs of its probe, or the faster one in files of before 2026-11-28"));

OBJECT(
    Conditions, "conditions",
    "The machine's state from the first sample's begin to the last one's end, without the warm-up; means unless said otherwise",
    FIELD(sm_clock_mhz), FIELD(memory_clock_mhz),
    FIELD(power_w,
          "Derived from the energy counter; measured: the mean of power readings, where the counter cannot tell"),
    FIELD(temperature_c), FIELD(energy_j, "Over all that time; estimated where no energy counter can tell"),
    FIELD(throttle_reasons, "Seen meanwhile"),
    FIELD(throttle_unavailable, {.optional = 6}, "Why no throttling could be seen; empty where something looked"),
    FIELD(throttled_samples, "Discarded and repeated"), FIELD(readings, {.since = 3}, "In order of time"),
    FIELD(
        blocks, {.optional = 6},
        "The samples in up to 16 blocks of as many each, in order of time; missing where no clock was read, where too few samples were taken, and in microbenchmarks"),
    FIELD(cpu_share, {.optional = 6}, "Missing for a GPU"),
    FIELD(roofs, {.optional = 6}, "Missing for a GPU, and where no roofs were read between the samples"));

OBJECT(
    KernelResult, "kernel",
    "A launch of a device function, or a program's copy or fill, as its activity record shows it",
    FIELD(name, "Demangled, with all its parameters"), FIELD(short_name, "Without namespaces and parameters"),
    FIELD(time_us, {.least = 0}, "Median of the activity runs"),
    FIELD(gap_us, "Median idle time between the kernel before it and its start"),
    FIELD(
        host_wait_us, {.optional = 6, .least = 0},
        "Part of gap_us in which the next work was launched only meanwhile; missing where the calls were not recorded"),
    FIELD(moved_bytes, {.optional = 6}, "By a copy or a fill, whose grid and block are 0; missing for kernels"),
    FIELD(grid), FIELD(block), FIELD(registers, "Per thread"), FIELD(static_shared_bytes), FIELD(dynamic_shared_bytes),
    FIELD(local_bytes, "Local memory per thread"), FIELD(cluster_blocks, {.least = 1}), FIELD(device), FIELD(stream),
    FIELD(theoretical_occupancy_pct), FIELD(waves), FIELD(lost_in_last_wave_pct),
    FIELD(blocks_per_sm, "0 where the occupancy is unavailable"), FIELD(limiters, {.words = limiter_words}),
    FIELD(occupancy_hint, "What the next step of a limiter would give"));

OBJECT(RecordInflation, "record_inflation", "What recording does to a chain of kernels of one length",
       FIELD(kernel_us, "From start to start, without records"),
       FIELD(recorded_us, "From the record's start to its end"),
       FIELD(profiled_us, "From start to start, with records"));

OBJECT(ActivityRun, "activity", "The runs in which every kernel was recorded",
       FIELD(unavailable, "Why there is none; empty when there is one"), FIELD(runs),
       FIELD(profiled_ms, {.least = 0}, "End to end with records on, median"),
       FIELD(unprofiled_ms, {.since = 3, .least = 0},
             "The same without records, run between them; on a CPU the forwards with timed steps; 0: not measured"),
       FIELD(kernels_ms, {.least = 0}, "Sum of the kernels' times"), FIELD(gaps_ms, "Sum of the gaps between them"),
       FIELD(inflation));

OBJECT(CountedMetric, "counted_metric", "A metric of the counter runs", FIELD(name), FIELD(unit),
       FIELD(source, "The device's counters that it is made of"), FIELD(origin),
       FIELD(reason, "Why it is unavailable, or on what an estimate rests"));

OBJECT(CounterRun, "counter_run", "The runs in which hardware counters were read, one range a step",
       FIELD(requested, "Sets and metrics as asked for"),
       FIELD(unavailable, "Why nothing was counted; empty when something was"), FIELD(chip),
       FIELD(passes, "Forwards needed"), FIELD(seconds, {.least = 0}), FIELD(metrics));

OBJECT(
    SmCountRun, "sm_count_run", "The same work on some of the GPU's SMs or of a CPU's threads",
    FIELD(multiprocessors, "SMs, or threads"), FIELD(sm_clock_mhz, "Mean while the launches ran"), FIELD(launches),
    FIELD(latency_ms, {.least = 0}, "One launch with records, median"),
    FIELD(
        step_us, {.least = 0},
        "By step: from its first kernel's start to its last one's end, on a CPU its whole time, median; 0 where none was recorded"),
    FIELD(step_low_us, {.least = 0}, "Lower ends of their 95 % intervals"),
    FIELD(step_high_us, {.least = 0}, "Upper ends"));

OBJECT(SmScaling, "sm_scaling", "Time against SMs, or a CPU's threads: what taking them away does to every step",
       FIELD(unavailable, "Why there is none; empty when there is one"),
       FIELD(runs, "All, 3/4, 1/2 and 1/4 of the SMs; all, 3/4 and 1/2 of the threads"),
       FIELD(ended, {.optional = 6}, "Why there are no runs on fewer; empty where all were tried"));

OBJECT(SizeTime, "size_time", "A step's time at one size, measured alone",
       FIELD(factor, {.above = 0}, "Of the size that changed: 1, 2, 4; 0.25, 0.5, 1 for time steps"),
       FIELD(work_flops, {.least = 0}, "The cost model's at that size"), FIELD(shape), FIELD(implementation),
       FIELD(us, "One run of the step, without a profiler"), FIELD(sm_clock_mhz, "The SM's own meanwhile"));

OBJECT(SizeScaling, "size_scaling", "Time against size: steps that are alike, at other sizes, with the same algorithm",
       FIELD(steps, {.least = 0}, "Positions of the steps that are alike"),
       FIELD(axis, "Which size changes: k, seq, rows, time_steps, batch"),
       FIELD(unavailable, "Why there are no times; empty when there are"),
       FIELD(times, "Smallest first; the step's own size has the factor 1"));

OBJECT(ThiefRun, "thief_run",
       "The same work while a thief on other SMs or cores takes a part of what all of them share",
       FIELD(takes, {.words = thief_kinds}), FIELD(multiprocessors, "The work's own, or its threads on a CPU"),
       FIELD(share, {.least = 0}, "Of the roof of what it takes, by its own count"),
       FIELD(sm_clock_mhz, "Of the work's SMs or cores meanwhile"), FIELD(launches),
       FIELD(latency_ms, {.least = 0}, "One launch, median"),
       FIELD(step_us, {.least = 0}, "By step, median; 0 where none was recorded"),
       FIELD(step_low_us, {.least = 0}, "Lower ends of their 95 % intervals"),
       FIELD(step_high_us, {.least = 0}, "Upper ends"));

OBJECT(BandwidthTheft, "bandwidth_theft", "Time against bandwidth: what taking DRAM's or L2's away does to every step",
       FIELD(unavailable, "Why there is none; empty when there is one"),
       FIELD(runs, "First the work alone; all on as many SMs"));

OBJECT(GraphClock, "graph_clock", "The SM's clock inside the graph, read between steps of graphs that are not timed",
       FIELD(unavailable, "Why there is none; empty when there is one"),
       FIELD(graphs, "Between which the places were spread"),
       FIELD(places, "In which the clock was read, in all graphs"),
       FIELD(cost_us, "What reading at one place adds to a graph"),
       FIELD(step_mhz, {.least = 0}, "By step; those that share an interval have its mean; 0: not read"));

OBJECT(StepPhase, "step_phase", "Cycles of one time step in a part of it, over the blocks", FIELD(name),
       FIELD(median_cycles, {.least = 0}), FIELD(least_cycles, {.least = 0}), FIELD(most_cycles, {.least = 0}));

OBJECT(StepAccount, "step_account", "Where the time of one time step goes, by clocks in the kernel",
       FIELD(blocks, {.least = 1}, "Blocks that had clocks"),
       FIELD(us, {.least = 0}, "One time step with the clocks, microseconds"),
       FIELD(start_us, {.least = 0}, "A launch before its first time step, by difference of two numbers of time steps"),
       FIELD(phases, {.not_empty = true}, "In the order of a time step"));

OBJECT(FrameworkCall, "framework_call",
       "The call of a program's framework that launched a step, as the framework names it",
       FIELD(module, "Class of the module"), FIELD(op), FIELD(sub, "The innermost call inside of op"),
       FIELD(parameters, "Sizes of the inputs"), FIELD(line, "Of the program that called, file:line"),
       FIELD(sequence, {.optional = 6}, "The framework's number of the call"),
       FIELD(forward_sequence, {.optional = 6}, "A backward call's: the number of its forward call"),
       FIELD(thread, "Of the host"));

OBJECT(ProgramRun, "program", "How a program ran that kbench attached to; times of an iteration are medians",
       FIELD(command), FIELD(processes, {.least = 1}), FIELD(iterations, "Recorded"),
       FIELD(launches, "Calls of an iteration that launch kernels or graphs"), FIELD(kernels, "In an iteration"),
       FIELD(copies, "In an iteration, with fills"), FIELD(recorded_ms, {.least = 0}, "An iteration with records"),
       FIELD(bare_ms, {.least = 0}, "An iteration without records; 0: not measured"),
       FIELD(busy_ms, {.least = 0}, "The GPU worked; work on several streams counts once"),
       FIELD(host_wait_ms, {.least = 0}, "The GPU was idle, and its next work was launched only meanwhile"),
       FIELD(queued_ms, {.least = 0}, "The GPU was idle although its next work had been launched before"),
       FIELD(iterations_unavailable, "Why no iteration was found; empty when one was"),
       FIELD(named, "Whether the framework's calls were recorded"), FIELD(notes, "One line each"));

OBJECT(
    StepResult, "step",
    "One provider call of the plan; of a program the kernels of one call of its framework, or one kernel", FIELD(index),
    FIELD(layer, "Layer of the first op, as the checkpoint names it"), FIELD(op, "Kind of the op that names the step"),
    FIELD(absorbs, "Every op computed, layer:kind, in order"), FIELD(provider), FIELD(implementation), FIELD(shape),
    FIELD(precision), FIELD(direction),
    FIELD(
        forward, {.optional = 6},
        "layer:op of the forward step that a backward one belongs to, or that a forward one computes again; missing in other steps"),
    FIELD(cost), FIELD(padding_flops, {.least = 0}, "Executed on padded columns and masked elements, not in cost"),
    FIELD(
        spared_flops, {.optional = 6, .least = 0},
        "In cost, not executed: what the implementation's algorithm does without, by its own account; missing where it executes what the op's definition says"),
    FIELD(
        matrix_flops, {.since = 2, .least = 0},
        "The step's matrix products as launched, 2 m n k with padding; of fused attention those of visible pairs; 0 where it has none"),
    FIELD(
        time_steps, {.optional = 6, .was = "dependent_steps", .least = 2},
        "How many times at least its ops wait for a result of their own, one after another: the time steps of a recurrent layer; missing where each op has one"),
    FIELD(account, {.optional = 6}, "Of a persistent kernel; missing where no kernel has clocks"),
    FIELD(time_us, "null when the step was not timed"),
    FIELD(counters, {.since = 2}, "By the metric's name; units and sources are in the point's counters.metrics"),
    FIELD(counters_discarded, {.since = 2}, "Why this step's counters are missing though the run was counted"),
    FIELD(kernels, {.since = 2}, "In order; none without an activity run"),
    FIELD(call, {.optional = 6}, "Of a program's step; missing where it is not known, and in kbench's own models"));

// A kernel that wrote NaN or infinity has no finite error: the one place where such numbers are findings.
constexpr Rule error_rule{.least = 0, .null_if_not_finite = true};

OBJECT(VerifiedStep, "verified_step", "One distinct step that was checked against the reference", FIELD(op),
       FIELD(shape), FIELD(provider), FIELD(implementation), FIELD(elements_checked), FIELD(elements_total),
       FIELD(worst_error, error_rule, "null when it is not finite, as for the next two"),
       FIELD(bound_there, error_rule), FIELD(error_over_bound, error_rule));

OBJECT(Verification, "verification", "The check against the reference that precedes all timing", FIELD(enabled),
       FIELD(seconds, {.least = 0}), FIELD(steps));

OBJECT(
    MemoryPlan, "memory", "Peak bytes planned; aliased activations count once",
    FIELD(
        bytes,
        "By role; roles without any are left out; saved_activations are those that the forward makes and the backward reads"));

OBJECT(LargestBatch, "largest_batch", "The largest batch of one direction, all else being as in the point",
       FIELD(direction, {.words = timed_directions}), FIELD(batch, "0: not even one sequence fits"),
       FIELD(available_bytes, "What a plan may take"),
       FIELD(ran, "Asked for as max and run; else by what providers announce"));

OBJECT(
    EndToEnd, "end_to_end", "The whole model", FIELD(latency, "As a CUDA graph, or the CPU's forward"),
    FIELD(stream, "As plain stream launches; null on a CPU, as for the next three"), FIELD(host_to_device),
    FIELD(device_to_host), FIELD(enqueue),
    FIELD(sequences_per_s, {.since = 1, .optional = 5, .least = 0},
          "Missing, as the next three, where it means nothing"),
    FIELD(tokens_per_s, {.since = 1, .optional = 5, .least = 0}),
    FIELD(energy_per_sequence_j, {.since = 1, .optional = 5}), FIELD(energy_per_token_j, {.since = 1, .optional = 5}),
    FIELD(converged, "The interval reached its target before the time budget ended"),
    FIELD(
        runs_per_sample, {.optional = 6, .least = 1},
        "A sample of the latency is so many runs in a row, divided: more than one where a run is short for the clock"));

OBJECT(
    Point, "point", "One combination of values on the axes, run, skipped or failed; each repeat is a point of its own",
    axes_between("model", "batch", &Self::axes),
    FIELD(batch_is_max, {.since = 4}, "Asked for as max: the largest that fits, proved by running it"),
    axes_between("seq", "repeat", &Self::axes), FIELD(parameters), axes_between("precision", "recompute", &Self::axes),
    FIELD(seed), FIELD(weights, "random, or the file's name"), FIELD(status),
    FIELD(reason, "Why it was skipped or failed"), FIELD(memory),
    FIELD(largest_batches, {.optional = 6},
          "By direction, the largest batch whose plan fits into the memory that was free; missing for a single op"),
    FIELD(cost, "The bytes are the unfused traffic: every step's operands and results once"),
    FIELD(
        compulsory_bytes, {.optional = 6, .was = "least_bytes", .least = 0},
        "Weights, inputs and outputs of what is timed of the model once (what a backward alone reads of its forward is an input); caches may bring the bytes of cost down to these; missing for a single op"),
    FIELD(padding_flops, {.least = 0}, "Executed on padding and on what a mask discards, not in cost"),
    FIELD(
        recomputed_flops, {.optional = 6, .least = 0},
        "FLOPs of steps that compute again what the forward computed before (--recompute block), not in cost; missing where there are none"),
    FIELD(verification), FIELD(end_to_end, "null unless the point was timed"), FIELD(conditions),
    FIELD(activity, {.since = 2}), FIELD(counters, {.since = 2}),
    FIELD(sm_scaling, {.optional = 6},
          "The same work on some of the GPU's SMs or of the CPU's threads; missing where it was not asked for"),
    FIELD(size_scaling, {.optional = 6},
          "Steps alone, at three of one of their sizes; missing where it was not asked for"),
    FIELD(theft, {.optional = 6}, "The same work while a thief takes bandwidth; missing where it was not asked for"),
    FIELD(graph_clock, {.optional = 6}, "The SM's clock by step; missing where it was not asked for"),
    FIELD(program, {.optional = 6}, "Missing for kbench's own models"), FIELD(steps),
    FIELD(marginal, {.since = 3}, "By op kind: the forward with each of its steps run twice, less the plain forward"),
    FIELD(step_overhead_us, "Time of an empty interval between two marks of the step run, taken off every step"),
    FIELD(phase_seconds, {.least = 0}, "Wall time by phase"));

OBJECT(PlannedPoint, "planned_point",
       "A point asked for at one value on each of its axes; one whose batch is the largest that fits has no batch",
       axes_between("model", "recompute", &Self::axes), FIELD(batch_is_max),
       FIELD(tasks, {.words = study_tasks}, "Questions of the study that look at it"),
       FIELD(left_out, "Why it was not to be measured; empty where it was"));

OBJECT(StudyPlan, "study", "What kbench study planned to measure",
       FIELD(budget_s, {.above = 0}, "null: as long as it takes"),
       FIELD(points, "In the order in which they are measured"));

OBJECT(ConfigurationKey, "configuration_key", "A key of the model's config.json as it was read", FIELD(key),
       FIELD(value), FIELD(from, "Its name in the file; empty where the file has none and the value is the default"));

OBJECT(
    Result, "result", "What one run of kbench wrote: result.json", FIELD(environment),
    FIELD(
        options, {.since = 4},
        "The options that decide how a point is measured, by name, the model's configuration among them: results are joined and sweeps resumed only where these are equal; deterministic and sms are there only where asked for"),
    FIELD(configuration, {.optional = 6}, "Key by key; missing for a built-in model"), FIELD(ceilings, {.since = 3}),
    FIELD(study, {.optional = 6}, "Missing in the results of other commands"),
    FIELD(points, "One for each combination of values on the axes, and each repeat"), FIELD(warnings, "One line each"));

const Object& result_object() { return object<Result>; }
const Object& ceiling_run_object() { return object<CeilingRun>; }

#undef OBJECT
#undef FIELD

}  // namespace kbench::fields
