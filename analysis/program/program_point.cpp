// Finds the iteration in the records, joins the other runs with it, and puts the numbers into a point.
#include "analysis/program/program_point.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/program/device_time.h"
#include "analysis/program/iterations.h"
#include "analysis/program/layers.h"
#include "analysis/program/program_steps.h"
#include "analysis/program/symbols.h"
#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Most activities of a run without iterations that a point tells of; a report shows each.
constexpr std::size_t most_activities = 20'000;

/// From so many recorded iterations of the bare run on, times are those: fewer are no middle half.
constexpr std::size_t fewest_in_turn = 8;

std::size_t amount(const ProgramFile& file) { return file.activities.size() + file.marks.size() + file.counted.size(); }

/// The process that did most, of those with rank `rank` where there is one; null where none did anything.
const ProgramFile* chosen(const std::vector<ProgramFile>& files, std::optional<std::int64_t> rank) {
    const ProgramFile* best = nullptr;
    for (const ProgramFile& file : files)
        if ((!rank || file.process.rank == rank) && amount(file) > (best ? amount(*best) : 0)) best = &file;
    return best;
}

/// The process that a point is of.
const ProgramFile& recorded_process(const std::vector<ProgramFile>& records) {
    const auto has_rank = [](const ProgramFile& file) { return file.process.rank == 0 && amount(file) > 0; };
    const bool has_ranks = std::ranges::any_of(records, has_rank);
    const ProgramFile* process = chosen(records, has_ranks ? std::optional<std::int64_t>(0) : std::nullopt);
    if (process == nullptr || process->activities.empty())
        throw UsageError("the program launched nothing on a GPU while it was recorded");
    return *process;
}

/// Iterations in the records, and where the names of an iteration's activities are.
struct Joined {
    Iterations found;
    const ProgramFile* named = nullptr;  ///< null: the names are not of the same kernels, or there are none
    std::size_t named_begin = 0;
    std::string refused = {};  ///< why names were left out
};

/// The iterations may begin at other kernels: the plain one is turned so that most of its begin is that of the named.
std::string first_difference(const Symbols& symbols, std::vector<Symbol> plain, std::span<const Symbol> named) {
    std::pair<std::size_t, std::size_t> best;  // common begin, and by how much it is turned
    const std::size_t turns = plain.size() <= most_activities ? plain.size() : 1;  // their number squares the time
    for (std::size_t turn = 0; turn < turns; ++turn) {
        std::size_t common = 0;
        while (common < std::min(plain.size(), named.size()) && plain[(turn + common) % plain.size()] == named[common])
            ++common;
        if (common > best.first) best = {common, turn};
    }
    std::ranges::rotate(plain, plain.begin() + static_cast<std::ptrdiff_t>(best.second));
    const auto [a, b] = std::ranges::mismatch(plain, named);
    const auto text = [&](auto at, auto end) { return at == end ? std::string("nothing more") : symbols.text(*at); };
    return fmt::format(
        "the run with names launched other kernels, so its names are left out: kernel {} of an iteration is {} without "
        "them and {} with them",
        a - plain.begin() + 1, text(a, plain.end()), text(b, named.end()));
}

std::span<const Symbol> first_of(const std::vector<Symbol>& symbols, const Iterations& iterations) {
    return std::span(symbols).subspan(iterations.begin, iterations.period);
}

Iterations iterations_of(const ProgramFile& file, std::span<const Symbol> symbols, const std::string& from,
                         const Spans& calls) {
    return from.empty() ? find_iterations(file, symbols, calls) : iterations_from(symbols, calls);
}

Joined join_names(const ProgramFile& records, const ProgramFile* names, const std::string& from) {
    Symbols symbols;
    const std::vector<Symbol> plain = symbols.of(records);
    const auto calls_of = [&](const ProgramFile& file) {
        return from.empty() ? calls_of_model(file) : calls_of_range(file, from);
    };
    const Spans own_calls = calls_of(records);
    const Spans named_calls = names ? calls_of(*names) : Spans{};
    if (!from.empty() && own_calls.empty() && named_calls.empty())
        throw UsageError(
            one_line(fmt::format("--from '{}': no kernel was launched within a range of that name", from)));
    // A range that only the hook's run has says nothing of the records' iterations until both are joined.
    const auto alone = [&] {
        return own_calls.empty() ? find_iterations(records, plain, {}) : iterations_of(records, plain, from, own_calls);
    };
    if (names == nullptr) return {.found = alone()};
    const std::vector<Symbol> named = symbols.of(*names);
    const Iterations with_names = iterations_of(*names, named, from, named_calls);
    if (with_names.unavailable.empty()) {
        if (std::optional<Iterations> found = iterations_like(plain, first_of(named, with_names)))
            return {.found = std::move(*found), .named = names, .named_begin = with_names.begin};
    } else if (plain == named) {
        return {.found = with_names, .named = names, .named_begin = with_names.begin};
    }
    Iterations found = alone();
    const std::span<const Symbol> iteration = first_of(plain, found);
    std::string why = first_difference(symbols, {iteration.begin(), iteration.end()}, first_of(named, with_names));
    return {.found = std::move(found), .refused = std::move(why)};
}

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

UsedIterations used_of(const Iterations& found, const std::string& asked) {
    const auto [first, last] = used_iterations(found, asked);
    UsedIterations used{.begins = {}, .period = found.period};
    for (std::size_t i = first; i < last; ++i) used.begins.push_back(found.at(i));
    return used;
}

/// The launch calls of the first used iteration, in order; the kernels of a graph launch share one.
struct LaunchCalls {
    std::optional<std::int64_t> first;  ///< index in the process of the iteration's first
    std::int64_t count = 0;             ///< to the begin of the next iteration
    std::vector<std::optional<std::int64_t>>
        of;  ///< call of each activity, from the iteration's first; none: not recorded
};

LaunchCalls launch_calls(const ProgramFile& file, const UsedIterations& used) {
    std::unordered_map<std::int64_t, std::int64_t> indices;
    for (const ProgramLaunch& launch : file.launches) indices[launch.correlation] = launch.index;
    LaunchCalls calls;
    std::int64_t last = 0;
    for (std::size_t a = 0; a < used.period; ++a) {
        const auto index = indices.find(file.activities[used.at(0, a)].correlation);
        calls.of.emplace_back(index == indices.end() ? std::nullopt : std::optional(index->second));
        if (index == indices.end()) continue;
        calls.first = std::min(calls.first.value_or(index->second), index->second);
        last = std::max(last, index->second);
    }
    if (!calls.first) return calls;
    calls.count = last - *calls.first + 1;
    for (std::optional<std::int64_t>& index : calls.of)
        if (index) *index -= *calls.first;
    return calls;
}

/// On the GPU where both marks are known there: the host may be far ahead of it, with graphs above all.
double ms_between(const ProgramMark& a, const ProgramMark& b) {
    return a.gpu_ms && b.gpu_ms ? *b.gpu_ms - *a.gpu_ms : static_cast<double>(b.at_ns - a.at_ns) / 1e6;
}

/// Times of whole iterations of `count` launches in ms, by marks: between the launches of the used iterations, which
/// begin with `first`, where two marks or more are there, else between all.
std::vector<double> bare_times(const std::vector<ProgramMark>& marks, std::int64_t first, std::int64_t count,
                               std::int64_t used) {
    if (count == 0) return {};
    const auto times_between = [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> ms;
        const ProgramMark* before = nullptr;
        bool switched = false;  // what begins or ends records is in the time behind that mark
        for (const ProgramMark& mark : marks) {
            if (mark.launch < begin || mark.launch > end) continue;
            const std::int64_t launches = before ? mark.launch - before->launch : 0;
            if (launches > 0 && launches % count == 0 && !before->recorded && !switched)
                ms.push_back(ms_between(*before, mark) / static_cast<double>(launches / count));
            switched = before != nullptr && before->recorded != mark.recorded;
            before = &mark;
        }
        return ms;
    };
    std::vector<double> ms = times_between(first, first + used * count);
    if (ms.empty() && !marks.empty()) ms = times_between(0, std::ranges::max(marks, {}, &ProgramMark::launch).launch);
    return ms;
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

void add_counters(Point& point, const ProgramSteps& steps, const ProgramFile* counted, const LaunchCalls& calls,
                  const MetricsOf& metrics_of) {
    IterationLaunches launches{.first = calls.first.value_or(0), .count = calls.count, .of_step = {}};
    launches.of_step.resize(point.steps.size());
    for (std::size_t a = 0; a < steps.step_of.size(); ++a)
        if (calls.of[a]) add_once(launches.of_step[steps.step_of[a]], *calls.of[a]);
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

void add_notes(ProgramRun& program, const ProgramRuns& runs, const ProgramFile& records) {
    for (const auto* files : {&runs.records, &runs.bare, &runs.names, &runs.counters})
        for (const ProgramFile& file : *files)
            for (const std::string& note : file.notes)
                add_once(program.notes, fmt::format("run for {}: {}", file.process.purpose, note));
    std::vector<int> devices;
    for (const ProgramActivity& activity : records.activities) add_once(devices, activity.device);
    if (devices.size() > 1)
        program.notes.push_back(fmt::format("it uses {} GPUs: idle is when none of them works", devices.size()));
    if (program.processes > 1)
        program.notes.push_back(
            records.process.rank
                ? fmt::format("{} processes used the GPU: this is the one of rank {}", program.processes,
                              *records.process.rank)
                : fmt::format("{} processes used the GPU: this is the one that launched most", program.processes));
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

ProgramLaunches program_launches(const ProgramRuns& runs, const ProgramOptions& options) {
    const ProgramFile& file = recorded_process(runs.records);
    const Iterations iterations = join_names(file, chosen(runs.names, file.process.rank), options.from).found;
    const UsedIterations used = used_of(iterations, options.iterations);
    const LaunchCalls calls = launch_calls(file, used);
    ProgramLaunches found;
    found.pid = file.process.pid;
    found.rank = file.process.rank;
    found.first = calls.first.value_or(0);
    found.count = calls.count;
    found.iterations = static_cast<std::int64_t>(used.count());
    found.unavailable = iterations.unavailable;
    if (used.count() > 1)
        found.iteration_ms =
            ms_of(file.activities[used.begins.back()].start_ns - file.activities[used.begins[0]].start_ns) /
            static_cast<double>(used.count() - 1);
    for (std::size_t a = 0; a < used.period; ++a) {
        const ProgramActivity& activity = file.activities[used.at(0, a)];
        if (activity.kind == ActivityKind::kernel && activity.graph_node == 0) ++found.kernels;
        found.kernels_ms += ms_of(activity.end_ns - activity.start_ns);
    }
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;  // before the iteration, and in it
    for (const ProgramLaunch& launch : file.launches) {
        const std::int64_t place = launch.index - found.first;
        if (place >= found.count) break;
        for (const std::string& name : {launch.call, launch.inner}) {  // who hears the inner one hears both
            auto& [before, within] = by_name[name];
            ++(place < 0 ? before : within);
        }
        if (place >= 0 && launch.call.find("GraphLaunch") != std::string::npos) ++found.graphs;
    }
    for (const auto& [name, counts] : by_name)
        if (!name.empty() && counts.second > 0 && (found.rarest.empty() || counts.second < found.rarest_count)) {
            found.rarest = name;
            std::tie(found.rarest_first, found.rarest_count) = counts;
        }
    return found;
}

double bare_iteration_ms(const std::vector<ProgramFile>& bare, const ProgramLaunches& launches) {
    const ProgramFile* file = chosen(bare, launches.rank);
    if (file == nullptr) return 0;
    const std::vector<double> ms = bare_times(file->marks, launches.first, launches.count, launches.iterations);
    return ms.empty() ? 0 : summarise(ms).median;
}

Point program_point(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu) {
    const ProgramFile* records = &recorded_process(runs.records);
    const std::optional<std::int64_t> rank = records->process.rank;
    Joined joined = join_names(*records, chosen(runs.names, rank), options.from);

    Point point;
    point.status = PointStatus::done;
    point.weights = "program";
    point.verification.enabled = false;
    point.counters = options.counters;
    leave_conditions_out(point);
    ProgramRun& program = point.program.emplace();
    program.command = options.command.empty() ? kbench::joined(records->process.arguments, " ") : options.command;
    program.processes = static_cast<int>(
        std::ranges::count_if(runs.records, [](const ProgramFile& file) { return !file.activities.empty(); }));
    program.named = joined.named != nullptr;
    add_notes(program, runs, *records);
    if (!joined.refused.empty()) program.notes.push_back(joined.refused);
    shorten(joined, program.notes);
    program.iterations_unavailable = joined.found.unavailable;

    UsedIterations used = used_of(joined.found, options.iterations);
    const std::vector<ActivityLayer> layers = layers_of_iteration(*records, joined, used);
    const LaunchCalls calls = launch_calls(*records, used);
    program.iterations = static_cast<std::int64_t>(used.count());
    const ProgramFile* bare = chosen(runs.bare, rank);
    if (std::optional<UsedIterations> in_turn = recorded_in_turn(*records, used, bare)) {
        used = std::move(*in_turn);
        records = bare;
    }
    const std::vector<OwnTime> times = own_times(*records);
    const std::vector<Division> all = divisions(times, used);
    used.typical = typical_of(all);
    ProgramSteps steps = program_steps(*records, times, used, layers, gpu);
    point.steps = std::move(steps.steps);
    for (const StepResult& step : point.steps) {
        point.cost += step.cost;
        for (const KernelResult& kernel : step.kernels) ++(kernel.moved_bytes ? program.copies : program.kernels);
    }
    if (steps.counts_all_pairs)
        program.notes.push_back("attention's FLOPs are those of all pairs, as nothing tells whether it is causal");
    program.launches = calls.count;
    set_axes(point, *records);
    add_times(point, all, used, bare, calls, options.target_relative_ci);
    add_counters(point, steps, chosen(runs.counters, rank), calls, options.metrics_of);
    return point;
}

}  // namespace kbench
