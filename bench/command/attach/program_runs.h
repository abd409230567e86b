// The runs of a program that `kbench attach` makes: each a process of its own with libkbench_attach.so in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/program/program_point.h"
#include "bench/measure/point/progress.h"

namespace kbench {

/// What a run is told beyond its purpose.
struct RunSettings {
    std::string purpose;         ///< records, bare, names or counters
    ProgramLaunches calls = {};  ///< as the records have them
    bool hears_rarest = false;   ///< bare: only that call
    std::int64_t block = 0;      ///< bare: so many iterations have records and have none, in turn; 0: none has
    std::vector<std::string> counters = {};  ///< as the chip calls them
};

/// Runs a program again and again, and keeps in a folder what it writes.
class ProgramRunner {
  public:
    /// Throws UsageError where the library is not beside this program.
    ProgramRunner(std::vector<std::string> command, std::filesystem::path folder);

    /// The files of this run's processes. Throws UsageError where the program cannot be started, MeasurementError where
    /// it fails or a stop was asked for.
    std::vector<ProgramFile> run(const RunSettings& settings);

  private:
    std::vector<std::string> command_;
    std::filesystem::path folder_, library_, hook_;
    int runs_ = 0;
};

}  // namespace kbench
