// The points of a result from what a profiled program wrote: one iteration of each process, step by step. Pure: it
// opens no file.
//
//     const kbench::ProgramRuns runs{.records = kbench::read_program_files("records")["records"]};
//     const kbench::ProgramPoints made = kbench::program_points(runs, {.command = "python3 bench.py"}, gpu);
#pragma once

#include <string>
#include <vector>

#include "analysis/program/program_options.h"
#include "kbench/result.h"

namespace kbench {

struct ProgramPoints {
    std::vector<Point> points;
    std::vector<std::string> warnings;  ///< what to know of all of them
};

/// A point for each process that launched at least a hundredth of what the busiest did. Several have the axis "rank":
/// the launcher's, or their numbers in order of their ids where that told none apart. Times of kernels, of gaps and of
/// waits, and `program`'s, are means over the middle half of the used iterations by length, so that they add up to
/// recorded_ms. Where the bare run has iterations with records they are of these. Where nothing repeats, the whole run
/// is one iteration, of which at most the last 20,000 kernels are told. Names of another run are joined only where that
/// run launched the same sequence. What a reader should know is in `program->notes`. Throws UsageError where there are
/// no records, where no range has the name `from`, and as used_iterations().
ProgramPoints program_points(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu);

/// The name of a program for people: its script's or its binary's, without folders.
std::string program_name(const std::vector<std::string>& arguments);

}  // namespace kbench
