#include "analysis/program/program_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/machine/waiting_kernels.h"
#include "analysis/program/device_time.h"
#include "analysis/program/joined_names.h"
#include "kbench/statistics.h"

namespace kbench {
namespace {

/// Among the texts of a file.
std::set<std::int64_t> waiting_names(const ProgramFile& file) {
    std::set<std::int64_t> kernels, waiting;
    for (const ProgramActivity& activity : file.activities)
        if (activity.kind == ActivityKind::kernel) kernels.insert(activity.name);
    for (const std::int64_t name : kernels)
        if (waits_for_other_ranks(file.text(name))) waiting.insert(name);
    return waiting;
}

/// On the GPU where both marks are known there: the host may be far ahead of it, with graphs above all.
double ms_between(const ProgramMark& a, const ProgramMark& b) {
    return a.gpu_ms && b.gpu_ms ? *b.gpu_ms - *a.gpu_ms : static_cast<double>(b.at_ns - a.at_ns) / 1e6;
}

/// How an iteration is counted.
void add_ranges(ProgramLaunches& found, const ProgramFile& file, const UsedIterations& used, const LaunchCalls& calls) {
    std::int64_t kernels = 0;
    for (std::size_t a = 0; a < used.period; ++a) {
        const ProgramActivity& activity = file.activities[used.at(0, a)];
        if (activity.kind == ActivityKind::kernel && activity.graph_node == 0) ++kernels;
    }
    found.has_graphs = std::ranges::any_of(file.launches, [&](const ProgramLaunch& launch) {
        return launch.index >= found.first && launch.index < found.first + found.count &&
               launch.call.find("GraphLaunch") != std::string::npos;
    });
    const std::int64_t waits = std::ranges::count(calls.waits, true);
    found.ranges_of_calls = found.has_graphs || waits > 0;
    found.ranges = found.ranges_of_calls ? found.count - waits : kernels;
}

/// Which call tells iterations apart with the least to hear.
void add_rarest(ProgramLaunches& found, const ProgramFile& file) {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;  // before the iteration, and in it
    for (const ProgramLaunch& launch : file.launches) {
        const std::int64_t place = launch.index - found.first;
        if (place >= found.count) break;
        for (const std::string& name : {launch.call, launch.inner}) {  // who hears the inner one hears both
            auto& [before, within] = by_name[name];
            ++(place < 0 ? before : within);
        }
    }
    for (const auto& [name, counts] : by_name)
        if (!name.empty() && counts.second > 0 && (found.rarest.empty() || counts.second < found.rarest_count)) {
            found.rarest = name;
            std::tie(found.rarest_first, found.rarest_count) = counts;
        }
}

ProgramLaunches launches_of(const ProcessRecords& process, const ProgramFile* names, const ProgramOptions& options) {
    const ProgramFile& file = *process.file;
    const Iterations iterations = join_names(file, names, options.from).found;
    const UsedIterations used = used_of(iterations, options.iterations);
    const LaunchCalls calls = launch_calls(file, used);
    ProgramLaunches found;
    found.process = process.id;
    found.first = calls.first.value_or(0);
    found.count = calls.count;
    found.iterations = static_cast<std::int64_t>(used.count());
    found.unavailable = iterations.unavailable;
    for (const std::int64_t name : waiting_names(file)) found.waiting.push_back(file.text(name));
    const std::vector<OwnTime> times = own_times(file);
    std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max(), end_ns = 0, busy_ns = 0;
    for (std::size_t a = 0; a < used.period; ++a) {
        const ProgramActivity& activity = file.activities[used.at(0, a)];
        const std::optional<std::int64_t>& call = calls.of[a];
        if (!call || !calls.waits[static_cast<std::size_t>(*call)]) busy_ns += times[used.at(0, a)].busy;
        begin_ns = std::min(begin_ns, activity.start_ns);
        end_ns = std::max(end_ns, activity.end_ns);
    }
    found.busy_ms = static_cast<double>(busy_ns) / 1e6;
    found.iteration_ms = static_cast<double>(std::max(end_ns - begin_ns, std::int64_t{0})) / 1e6;
    found.uncounted = calls.uncounted;
    add_ranges(found, file, used, calls);
    add_rarest(found, file);
    return found;
}

}  // namespace

LaunchCalls launch_calls(const ProgramFile& file, const UsedIterations& used) {
    const std::set<std::int64_t> waiting = waiting_names(file);
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
    calls.waits.resize(static_cast<std::size_t>(calls.count));
    std::set<int> devices;
    for (std::size_t a = 0; a < used.period; ++a) {
        std::optional<std::int64_t>& index = calls.of[a];
        if (!index) continue;
        *index -= *calls.first;
        const ProgramActivity& activity = file.activities[used.at(0, a)];
        devices.insert(activity.device);
        if (activity.graph_node == 0 && waiting.contains(activity.name))
            calls.waits[static_cast<std::size_t>(*index)] = true;
    }
    if (devices.size() > 1)
        calls.uncounted =
            fmt::format("the process works on {} GPUs, and only one of them could be counted", devices.size());
    else if (std::ranges::count(calls.waits, true) == calls.count)
        calls.uncounted = "all its kernels wait for other ranks";
    return calls;
}

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

std::vector<ProgramLaunches> program_launches(const ProgramRuns& runs, const ProgramOptions& options) {
    std::vector<ProgramLaunches> launches;
    for (const ProcessRecords& process : recorded_processes(runs.records))
        launches.push_back(launches_of(process, find_process(runs.names, process.id), options));
    return launches;
}

double bare_iteration_ms(const std::vector<ProgramFile>& bare, const ProgramLaunches& launches) {
    const ProgramFile* file = find_process(bare, launches.process);
    if (file == nullptr) return 0;
    const std::vector<double> ms = bare_times(file->marks, launches.first, launches.count, launches.iterations);
    return ms.empty() ? 0 : summarise(ms).median;
}

}  // namespace kbench
