// Which launch calls of a program its iterations are made of.
//
//     for (const kbench::ProgramLaunches& process : kbench::program_launches(runs, options))
//         std::cout << process.count << " launch calls an iteration, the first of them call " << process.first << "\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/processes.h"
#include "analysis/program/program_options.h"
#include "analysis/program/program_steps.h"

namespace kbench {

/// Which launch calls of a process its iterations are made of: what later runs mark and count.
struct ProgramLaunches {
    ProcessId process;
    std::int64_t first = 0;            ///< index in the process of the first used iteration's first launch call
    std::int64_t count = 0;            ///< launch calls of an iteration
    std::int64_t iterations = 0;       ///< used iterations, one after another
    std::string unavailable;           ///< why the whole run is one iteration; empty where iterations were found
    std::string uncounted;             ///< why its iterations cannot be counted; empty where they can
    std::int64_t ranges = 0;           ///< to count in an iteration
    bool ranges_of_calls = false;      ///< a range is a launch call, not a kernel
    bool has_graphs = false;           ///< an iteration launches graphs
    std::vector<std::string> waiting;  ///< mangled names of its kernels that wait for other ranks
    /// Sums over the first used iteration, with records: time in which its GPU worked, but for kernels that wait for
    /// other ranks, and from its begin to its end.
    double busy_ms = 0, iteration_ms = 0;
    /// The launch call of which an iteration makes the fewest, the number of the first iteration's first of them among
    /// all of the process, and how many an iteration makes.
    std::string rarest;
    std::int64_t rarest_first = 0, rarest_count = 0;

    bool repeats() const { return count > 0 && unavailable.empty(); }
};

/// What records and names tell of the iterations of each process that program_points() tells of, in that order; the
/// other runs are not needed. Throws as program_points().
std::vector<ProgramLaunches> program_launches(const ProgramRuns& runs, const ProgramOptions& options);

/// The launch calls of the first used iteration, in order; the kernels of a graph launch share one.
struct LaunchCalls {
    std::optional<std::int64_t> first;  ///< index in the process of the iteration's first
    std::int64_t count = 0;             ///< to the begin of the next iteration
    std::vector<std::optional<std::int64_t>>
        of;                   ///< call of each activity, from the iteration's first; none: not recorded
    std::vector<bool> waits;  ///< by call: its kernel waits for other ranks; no graph does, whatever is in it
    std::string uncounted;    ///< why its kernels cannot be counted; empty where they can
};
LaunchCalls launch_calls(const ProgramFile& file, const UsedIterations& used);

/// Times of whole iterations of `count` launches in ms, by marks: between the launches of the used iterations, which
/// begin with `first`, where two marks or more are there, else between all.
std::vector<double> bare_times(const std::vector<ProgramMark>& marks, std::int64_t first, std::int64_t count,
                               std::int64_t used);

/// The median time of an iteration in the run without records; 0 where its marks are none of such iterations.
double bare_iteration_ms(const std::vector<ProgramFile>& bare, const ProgramLaunches& launches);

}  // namespace kbench
