// The runs of a program, one purpose each, in their order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/program/program_options.h"
#include "bench/command/attach/attach_options.h"

namespace kbench {

struct AllRuns {
    ProgramRuns runs;
    ProgramOptions options;             ///< those that the runs allow
    std::vector<std::string> failures;  ///< a line for each run after that of the records that failed
};

/// Runs the program of `request` for its records, then for names, for times without records, and where there are
/// `counters` for these. Once there are records nothing is lost: a later run that fails, or a stop that is asked for,
/// is a failure, and the files that it left are used. Throws UsageError where the program cannot be started and as
/// program_launches(); MeasurementError where the run for records fails or is stopped.
AllRuns run_program(const AttachRequest& request, const std::filesystem::path& out, const ProgramOptions& options,
                    const std::vector<std::string>& counters);

}  // namespace kbench
