// A point of a result from what a profiled program wrote: one iteration, step by step. Pure: it opens no file.
//
//     const kbench::ProgramRuns runs{.records = kbench::read_program_files("records")["records"]};
//     const kbench::Point point = kbench::program_point(runs, {.command = "python3 bench.py"}, gpu);
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/program/program_counters.h"
#include "analysis/program/program_file.h"
#include "kbench/result.h"

namespace kbench {

/// The files of each run of the program, one a process. Only `records` must be there.
struct ProgramRuns {
    std::vector<ProgramFile> records = {}, bare = {}, names = {}, counters = {};
};

struct ProgramOptions {
    std::string command = {};     ///< as the user typed it; empty: the process's arguments
    std::string from = {};        ///< name of the range with which iterations begin; empty: found
    std::string iterations = {};  ///< "A:B", see used_iterations(); empty: all but the first
    MetricsOf metrics_of = {};
    CounterRun counters = {};           ///< what was asked for, and its metrics; the rest is filled in
    double target_relative_ci = 0.005;  ///< EndToEnd::converged says whether the interval reached it
};

/// Which launch calls of the program its iterations are made of: what later runs mark and count.
struct ProgramLaunches {
    std::int64_t pid = 0;  ///< the process that program_point() takes
    std::optional<std::int64_t> rank;
    std::int64_t first = 0;                ///< index in the process of the first used iteration's first launch call
    std::int64_t count = 0;                ///< launch calls of an iteration
    std::int64_t iterations = 0;           ///< used iterations, one after another
    std::string unavailable;               ///< why the whole run is one iteration; empty where iterations were found
    std::int64_t kernels = 0, graphs = 0;  ///< in an iteration: kernels outside of graphs; launches of graphs
    double iteration_ms = 0;               ///< from one to the next, with records; 0: there is one
    double kernels_ms = 0;                 ///< sum over the first used iteration's kernels, copies and fills
    /// The launch call of which an iteration makes the fewest, the number of the first iteration's first of them among
    /// all of the process, and how many an iteration makes.
    std::string rarest;
    std::int64_t rarest_first = 0, rarest_count = 0;
};

/// What records and names tell of the iterations; the other runs are not needed. Throws as program_point().
ProgramLaunches program_launches(const ProgramRuns& runs, const ProgramOptions& options);

/// The median time of an iteration in the run without records; 0 where its marks are none of such iterations.
double bare_iteration_ms(const std::vector<ProgramFile>& bare, const ProgramLaunches& launches);

/// The point of the process of rank 0, or of the one that launched most where there are no ranks. Times of kernels, of
/// gaps and of waits, and `program`'s, are means over the middle half of the used iterations by length, so that they
/// add up to recorded_ms. Where nothing repeats, the whole run is one iteration, of
/// which at most the last 20,000 kernels are told. Names of another run are joined only where that run launched the
/// same sequence. What a reader should know is in `program->notes`. Throws UsageError where there are no records, where
/// no range has the name `from`, and as used_iterations().
Point program_point(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu);

/// The name of a program for people: its script's or its binary's, without folders.
std::string program_name(const std::vector<std::string>& arguments);

}  // namespace kbench
