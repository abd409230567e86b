// Finds the iteration in the records, joins the other runs with it, and puts the numbers into a point.
#include "analysis/program/program_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/program/device_time.h"
#include "analysis/program/joined_names.h"
#include "analysis/program/layers.h"
#include "analysis/program/processes.h"
#include "analysis/program/program_launches.h"
#include "analysis/program/program_steps.h"
#include "analysis/program/symbols.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Most activities of a run without iterations that a point tells of; a report shows each.
constexpr std::size_t most_activities = 20'000;

/// From so many recorded iterations of the bare run on, times are those: fewer are no middle half.
constexpr std::size_t fewest_in_turn = 8;

/// Keeps the end of a run that is too long to tell of.
void shorten(Joined& joined, std::vector<std::string>& notes) {
    Iterations& run = joined.found;
    if (run.unavailable.empty() || run.period <= most_activities) return;
    const std::size_t left_out = run.period - most_activities;
    notes.push_back(
        fmt::format("the last {} of the run's {} kernels, copies and fills are told of", most_activities, run.period));
    run.begin += left_out;
    joined.named_begin += left_out;
    run.period = most_activities;
}

/// How an iteration's time divides, in ns.
struct Division {
    std::int64_t busy = 0, host_wait = 0, queued = 0;
    std::int64_t total() const { return busy + host_wait + queued; }
};

std::vector<Division> divisions(const std::vector<OwnTime>& times, const UsedIterations& used) {
    std::vector<Division> all;
    for (std::size_t i = 0; i < used.count(); ++i) {
        Division& division = all.emplace_back();
        for (std::size_t a = 0; a < used.period; ++a) {
            const OwnTime& time = times[used.at(i, a)];
            const std::int64_t waited = time.host_wait.value_or(0);
            division.busy += time.busy;
            division.host_wait += waited;
            division.queued += time.gap - waited;
        }
    }
    return all;
}

std::vector<std::size_t> typical_of(const std::vector<Division>& all) {
    std::vector<std::int64_t> lengths;
    for (const Division& division : all) lengths.push_back(division.total());
    return middle_half(lengths);
}

/// Iterations of the bare run that have records, where there are enough of them: the others ran in turn with these.
std::optional<UsedIterations> recorded_in_turn(const ProgramFile& records, const UsedIterations& used,
                                               const ProgramFile* bare) {
    if (bare == nullptr || bare->activities.empty()) return std::nullopt;
    Symbols symbols;
    const std::vector<Symbol> all = symbols.of(records), in_turn = symbols.of(*bare);
    UsedIterations found{
        .begins = iterations_behind_another(in_turn, std::span(all).subspan(used.begins[0], used.period)),
        .period = used.period};
    return found.count() >= fewest_in_turn ? std::optional(std::move(found)) : std::nullopt;
}

double ms_of(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::vector<ActivityLayer> layers_of_iteration(const ProgramFile& records, const Joined& joined,
                                               const UsedIterations& used) {
    const std::size_t period = used.period;
    if (joined.named != nullptr) return layers_of(*joined.named, joined.named_begin, joined.named_begin + period);
    const std::size_t begin = used.at(0, 0);
    return layers_of(records, begin, begin + period);
}

/// Why an iteration of a process has no counters although some were asked for.
std::string why_uncounted(const ProgramFile* file, const LaunchCalls& calls, const ProgramRun& program) {
    if (!program.iterations_unavailable.empty()) return "no iteration was found that could be counted";
    if (!calls.uncounted.empty()) return calls.uncounted;
    if (file == nullptr) return "the run for counters gave none";
    const auto note = std::ranges::find_if(
        file->notes, [](const std::string& text) { return text.starts_with(nothing_was_counted); });
    return note == file->notes.end() ? "the run for counters gave none" : note->substr(nothing_was_counted.size());
}

void add_counters(Point& point, const ProgramSteps& steps, const ProgramFile* counted, const LaunchCalls& calls,
                  const MetricsOf& metrics_of) {
    IterationLaunches launches{
        .first = calls.first.value_or(0), .count = calls.count, .of_step = {}, .waits = calls.waits};
    launches.of_step.resize(point.steps.size());
    for (std::size_t a = 0; a < steps.step_of.size(); ++a)
        if (calls.of[a]) add_once(launches.of_step[steps.step_of[a]], *calls.of[a]);
    const bool is_counted = counted != nullptr && !counted->counted.empty();
    if (!is_counted && !point.counters.requested.empty() && point.counters.unavailable.empty())
        point.counters.unavailable = why_uncounted(counted, calls, *point.program);
    join_counters(point.steps, point.counters, counted ? counted->counted : std::vector<CountedIteration>{}, launches,
                  metrics_of);
}

void set_axes(Point& point, const ProgramFile& records) {
    std::map<Precision, double> us;
    bool trains = false;
    for (const StepResult& step : point.steps) {
        trains = trains || step.direction != Direction::fwd;
        for (const KernelResult& kernel : step.kernels)
            if (!kernel.moved_bytes) us[step.precision] += kernel.time_us;
    }
    point.set("model", program_name(records.process.arguments));
    point.set("backend", std::string_view("cuda"));
    point.set("direction", std::string_view(trains ? "train" : "fwd"));
    point.set("precision", most_used(us));
}

void add_times(Point& point, const std::vector<Division>& all, const UsedIterations& used, const ProgramFile* bare,
               const LaunchCalls& calls, double target_relative_ci) {
    ProgramRun& program = *point.program;
    const auto mean_ms = [&](std::int64_t Division::*part) {
        std::int64_t sum = 0;
        for (const std::size_t i : used.typical) sum += all[i].*part;
        return ms_of(sum) / static_cast<double>(used.typical.size());
    };
    program.busy_ms = mean_ms(&Division::busy);
    program.host_wait_ms = mean_ms(&Division::host_wait);
    program.queued_ms = mean_ms(&Division::queued);
    program.recorded_ms = program.busy_ms + program.host_wait_ms + program.queued_ms;
    Timing latency;
    if (bare != nullptr && program.iterations_unavailable.empty())
        latency.samples_ms = bare_times(bare->marks, calls.first.value_or(0), calls.count, program.iterations);
    const bool is_bare = !latency.samples_ms.empty();
    if (!is_bare) {
        for (const Division& division : all) latency.samples_ms.push_back(ms_of(division.total()));
        program.notes.push_back("no run without records gave an iteration's time: it is that of the run with records");
    }
    latency.summary_ms = summarise(latency.samples_ms);
    if (is_bare) program.bare_ms = latency.summary_ms.median;
    EndToEnd& end_to_end = point.end_to_end.emplace();
    end_to_end.converged = latency.summary_ms.relative_ci() <= target_relative_ci;
    end_to_end.latency = std::move(latency);
    ActivityRun& activity = point.activity;
    activity.runs = static_cast<int>(all.size());
    activity.profiled_ms = program.recorded_ms;
    activity.unprofiled_ms = program.bare_ms;
    for (const StepResult& step : point.steps)
        for (const KernelResult& kernel : step.kernels) {
            activity.kernels_ms += kernel.time_us / 1e3;
            activity.gaps_ms += kernel.gap_us / 1e3;
        }
}

/// A caller that reads clocks meanwhile replaces these.
void leave_conditions_out(Point& point) {
    const Quantity none = Quantity::unavailable("it is not read beside a program");
    Conditions& conditions = point.conditions;
    for (Quantity* quantity : {&conditions.sm_clock_mhz, &conditions.memory_clock_mhz, &conditions.power_w,
                               &conditions.temperature_c, &conditions.energy_j, &point.step_overhead_us})
        *quantity = none;
    conditions.throttle_unavailable = none.reason;
}

void add_notes(ProgramRun& program, const ProgramRuns& runs, const std::vector<ProcessRecords>& processes,
               const ProcessRecords& process) {
    for (const auto* files : {&runs.records, &runs.bare, &runs.names, &runs.counters}) {
        std::vector<const ProgramFile*> of_others;
        for (const ProcessRecords& other : processes)
            if (other.file != process.file) of_others.push_back(find_process(*files, other.id));
        for (const ProgramFile& file : *files)
            if (!contains(of_others, &file))
                for (const std::string& note : file.notes)
                    add_once(program.notes, fmt::format("run for {}: {}", file.process.purpose, note));
    }
    std::vector<int> devices;
    for (const ProgramActivity& activity : process.file->activities) add_once(devices, activity.device);
    if (devices.size() > 1)
        program.notes.push_back(fmt::format("it uses {} GPUs: idle is when none of them works", devices.size()));
    if (const std::int64_t others = program.processes - std::ssize(processes); others > 0)
        program.notes.push_back(fmt::format("{} more did little on the GPU, and {} left out", plural(others, "process"),
                                            others == 1 ? "is" : "are"));
}

std::int64_t rank_of(const ProcessId& id) { return id.rank.value_or(static_cast<std::int64_t>(id.number)); }

/// How several processes are told apart, and which of them launch other work than the first.
std::vector<std::string> warnings_of(const std::vector<ProcessRecords>& processes,
                                     const std::vector<UsedIterations>& used) {
    std::vector<std::string> warnings;
    if (processes.size() < 2) return warnings;
    if (!processes.front().id.rank)
        warnings.push_back(
            fmt::format("no launcher told the ranks of {} processes: they are numbered in the order of their ids",
                        processes.size()));
    Symbols symbols;
    std::vector<Symbol> first;
    for (std::size_t i = 0; i < processes.size(); ++i) {
        const std::vector<Symbol> all = symbols.of(*processes[i].file);
        const auto own = std::span(all).subspan(used[i].begins[0], used[i].period);
        if (i == 0) first.assign(own.begin(), own.end());
        if (const std::optional<OtherWork> differs = first_difference(symbols, first, own))
            warnings.push_back(fmt::format(
                "rank {} launches other work than rank {}: kernel {} of an iteration is {}, not {}",
                rank_of(processes[i].id), rank_of(processes.front().id), differs->place, differs->other, differs->one));
    }
    return warnings;
}

/// The point of one of the processes; `used` becomes its iterations.
Point point_of(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu,
               const std::vector<ProcessRecords>& processes, const ProcessRecords& process, UsedIterations& used) {
    const ProgramFile& records = *process.file;
    Joined joined = join_names(records, find_process(runs.names, process.id), options.from);

    Point point;
    point.status = PointStatus::done;
    point.weights = "program";
    point.verification.enabled = false;
    point.counters = options.counters;
    leave_conditions_out(point);
    ProgramRun& program = point.program.emplace();
    program.command = options.command.empty() ? kbench::joined(records.process.arguments, " ") : options.command;
    program.processes = static_cast<int>(
        std::ranges::count_if(runs.records, [](const ProgramFile& file) { return !file.activities.empty(); }));
    program.named = joined.named != nullptr;
    add_notes(program, runs, processes, process);
    if (!joined.refused.empty()) program.notes.push_back(joined.refused);
    shorten(joined, program.notes);
    program.iterations_unavailable = joined.found.unavailable;

    used = used_of(joined.found, options.iterations);
    const std::vector<ActivityLayer> layers = layers_of_iteration(records, joined, used);
    const LaunchCalls calls = launch_calls(records, used);
    program.iterations = static_cast<std::int64_t>(used.count());
    program.launches = calls.count;
    const ProgramFile* bare = find_process(runs.bare, process.id);
    const std::optional<UsedIterations> in_turn = recorded_in_turn(records, used, bare);
    const ProgramFile& timed_file = in_turn ? *bare : records;
    UsedIterations timed = in_turn.value_or(used);
    const std::vector<OwnTime> times = own_times(timed_file);
    const std::vector<Division> all = divisions(times, timed);
    timed.typical = typical_of(all);
    ProgramSteps steps = program_steps(timed_file, times, timed, layers, gpu);
    point.steps = std::move(steps.steps);
    for (const StepResult& step : point.steps) {
        point.cost += step.cost;
        for (const KernelResult& kernel : step.kernels) ++(kernel.moved_bytes ? program.copies : program.kernels);
    }
    if (steps.counts_all_pairs)
        program.notes.push_back("attention's FLOPs are those of all pairs, as nothing tells whether it is causal");
    set_axes(point, records);
    if (processes.size() > 1) point.set("rank", rank_of(process.id));
    add_times(point, all, timed, bare, calls, options.target_relative_ci);
    add_counters(point, steps, find_process(runs.counters, process.id), calls, options.metrics_of);
    return point;
}

}  // namespace

std::string program_name(const std::vector<std::string>& arguments) {
    const auto base = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
    if (arguments.empty()) return "program";
    const std::string binary = base(arguments.front());
    if (!binary.starts_with("python")) return binary;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (!argument.starts_with("-")) return base(argument);
        if (argument == "-c") break;
        if (argument == "-m") return i + 1 < arguments.size() ? arguments[i + 1] : binary;
        if (argument == "-W" || argument == "-X") ++i;  // a value follows
    }
    return binary;
}

ProgramPoints program_points(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu) {
    const std::vector<ProcessRecords> processes = recorded_processes(runs.records);
    std::vector<UsedIterations> used(processes.size());
    ProgramPoints made;
    for (std::size_t i = 0; i < processes.size(); ++i)
        made.points.push_back(point_of(runs, options, gpu, processes, processes[i], used[i]));
    made.warnings = warnings_of(processes, used);
    return made;
}

}  // namespace kbench
