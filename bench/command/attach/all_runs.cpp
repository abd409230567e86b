#include "bench/command/attach/all_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "analysis/program/program_launches.h"
#include "bench/command/attach/program_runs.h"
#include "bench/command/repeated/child.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/stop_signal.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// A bare iteration that is shorter than the GPU's work in it was told apart wrongly.
constexpr double least_of_busy = 0.9;

/// Iterations of the bare run's blocks with and without records, at the least, and how long and how many blocks are.
constexpr double least_block = 20, most_block = 500, block_ms = 40;
constexpr std::int64_t fewest_blocks = 6;

/// Iterations of a block with or without records. The first of each is lost to the change. With blocks of 4 the
/// recorded ones were slower by a third, with blocks of 20 by a twentieth. 0, none, where graphs are launched, which
/// CUPTI only records if it did so when they were made, where there would be few blocks, and of several processes,
/// which would not change at the same time.
std::int64_t block_of(const std::vector<ProgramLaunches>& launches, const ProgramOptions& options) {
    if (launches.size() != 1 || !options.iterations.empty()) return 0;
    const ProgramLaunches& process = launches.front();
    if (process.has_graphs || !(process.iteration_ms > 0)) return 0;
    const auto block =
        static_cast<std::int64_t>(std::clamp(std::ceil(block_ms / process.iteration_ms), least_block, most_block));
    return process.iterations >= fewest_blocks * block ? block : 0;
}

class Runs {
  public:
    Runs(const AttachRequest& request, const std::filesystem::path& out)
        : runner_(request.command, out), progress_(request.quiet) {}

    std::vector<ProgramFile> first_run() {
        progress_.show("running it with records");
        FinishedRun records = runner_.run({.purpose = "records"});
        throw_if_stopped();
        if (!records.failure.empty()) throw MeasurementError(records.failure);
        return std::move(records.files);
    }

    /// The files of a run that may fail.
    std::vector<ProgramFile> later_run(std::string_view what, const RunSettings& settings) {
        if (StopSignals::asked() != 0) return {};
        progress_.show(fmt::format("running it for {}", what));
        FinishedRun run;
        try {
            run = runner_.run(settings);
        } catch (const Error& error) {
            run.failure = error.what();
        }
        if (const int signal = StopSignals::asked(); signal != 0)
            failures.push_back(fmt::format("signal {} ended the run for {}", signal, settings.purpose));
        else if (!run.failure.empty())
            failures.push_back(run.failure);
        return std::move(run.files);
    }

    /// Times without records: hears the call that an iteration makes least often, or all where it is not what the
    /// records called so.
    std::vector<ProgramFile> bare_run(const std::vector<ProgramLaunches>& launches, std::int64_t block) {
        for (const bool hears_rarest : {true, false}) {
            if (hears_rarest && block > 0) continue;  // the recorded ones need all calls
            const std::size_t failed_before = failures.size();
            std::vector<ProgramFile> bare =
                later_run("times without records",
                          {.purpose = "bare", .launches = launches, .hears_rarest = hears_rarest, .block = block});
            const bool is_of_iterations = std::ranges::all_of(launches, [&](const ProgramLaunches& process) {
                return !process.repeats() || bare_iteration_ms(bare, process) >= least_of_busy * process.busy_ms;
            });
            if (is_of_iterations) return bare;
            if (failures.size() > failed_before) break;
        }
        return {};
    }

    std::vector<std::string> failures;

  private:
    ProgramRunner runner_;
    Progress progress_;
};

bool can_be_counted(const ProgramLaunches& process) { return process.repeats() && process.uncounted.empty(); }

}  // namespace

AllRuns run_program(const AttachRequest& request, const std::filesystem::path& out, const ProgramOptions& options,
                    const std::vector<std::string>& counters) {
    Runs all(request, out);
    AllRuns made{.runs = {.records = all.first_run()}, .options = options, .failures = {}};
    if (request.names) made.runs.names = all.later_run("names", {.purpose = "names"});
    if (made.runs.names.empty() && !options.from.empty()) {
        made.options.from.clear();
        all.failures.push_back(
            fmt::format("without names no iteration begins with '{}': they begin where kernels repeat", options.from));
    }
    const std::vector<ProgramLaunches> launches = program_launches(made.runs, made.options);
    if (std::ranges::any_of(launches, &ProgramLaunches::repeats)) {
        made.runs.bare = all.bare_run(launches, block_of(launches, made.options));
        if (!counters.empty() && std::ranges::any_of(launches, can_be_counted))
            made.runs.counters =
                all.later_run("counters", {.purpose = "counters", .launches = launches, .counters = counters});
    }
    made.failures = std::move(all.failures);
    return made;
}

}  // namespace kbench
