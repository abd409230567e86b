// What the points of a program are made from.
#pragma once

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

}  // namespace kbench
