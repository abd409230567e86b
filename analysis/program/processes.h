// The processes of a program that did work on a GPU, and the same ones in other runs of it.
//
//     for (const kbench::ProcessRecords& process : kbench::recorded_processes(records))
//         const kbench::ProgramFile* const names = kbench::find_process(files_with_names, process.id);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/program/program_file.h"

namespace kbench {

/// Which of the processes of a run it is.
struct ProcessId {
    std::optional<std::int64_t> rank = {};  ///< the launcher's, where each of the processes has one of its own
    std::size_t number = 0, count = 1;      ///< its place among all of them, by rank or by id
};

struct ProcessRecords {
    ProcessId id;
    const ProgramFile* file = nullptr;
};

/// The processes that did at least a hundredth of what the busiest did; of those of one rank the busiest. Empty where
/// none did anything.
std::vector<ProcessRecords> working_processes(const std::vector<ProgramFile>& files);

/// Those of the run with records, of which each has a point. Throws UsageError where none launched anything.
std::vector<ProcessRecords> recorded_processes(const std::vector<ProgramFile>& records);

/// The file of that process in another run; null where it is not there, or cannot be told from others.
const ProgramFile* find_process(const std::vector<ProgramFile>& files, const ProcessId& id);

}  // namespace kbench
