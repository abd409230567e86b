// The runs of a program that `kbench attach` makes: each a process of its own with libkbench_attach.so in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/program/program_launches.h"

namespace kbench {

/// What a run is told beyond its purpose.
struct RunSettings {
    std::string purpose;                         ///< records, bare, names or counters
    std::vector<ProgramLaunches> launches = {};  ///< a process each, as the records have them
    bool hears_rarest = false;                   ///< bare: only that call
    std::int64_t block = 0;  ///< bare: so many iterations have records and have none, in turn; 0: none has
    std::vector<std::string> counters = {};  ///< as the chip calls them
};

/// What a run left.
struct FinishedRun {
    std::vector<ProgramFile> files;  ///< one a process
    std::string failure;             ///< why they may not be whole; empty where the program ended well
};

/// Runs a program again and again, and keeps in a folder what it writes.
class ProgramRunner {
  public:
    /// Throws UsageError where the library is not beside this program.
    ProgramRunner(std::vector<std::string> command, std::filesystem::path folder);

    /// Runs it to its end, however that comes. Throws UsageError where the program cannot be started.
    FinishedRun run(const RunSettings& settings);

  private:
    std::vector<std::string> command_;
    std::filesystem::path folder_, library_, hook_;
    int runs_ = 0;
};

}  // namespace kbench
