#include "analysis/program/processes.h"

#include <algorithm>
#include <set>

#include "kbench/error.h"

namespace kbench {
namespace {

/// Who did less than this part of what the busiest did helped it, as by a copy at the begin.
constexpr std::size_t part_of_busiest = 100;

std::size_t amount(const ProgramFile& file) { return file.activities.size() + file.marks.size() + file.counted.size(); }

/// Null where none is wanted.
template <class Wanted>
const ProgramFile* busiest(const std::vector<ProgramFile>& files, const Wanted& wanted) {
    const ProgramFile* best = nullptr;
    for (const ProgramFile& file : files)
        if (wanted(file) && (best == nullptr || amount(file) > amount(*best))) best = &file;
    return best;
}

const ProgramFile* busiest_of_rank(const std::vector<ProgramFile>& files, std::int64_t rank) {
    return busiest(files, [rank](const ProgramFile& file) { return file.process.rank == rank; });
}

}  // namespace

std::vector<ProcessRecords> working_processes(const std::vector<ProgramFile>& files) {
    const ProgramFile* const most = busiest(files, [](const ProgramFile&) { return true; });
    if (most == nullptr) return {};
    std::vector<const ProgramFile*> working;
    for (const ProgramFile& file : files)
        if (amount(file) * part_of_busiest >= amount(*most) && amount(file) > 0) working.push_back(&file);
    std::set<std::int64_t> ranks;
    for (const ProgramFile* file : working)
        if (file->process.rank) ranks.insert(*file->process.rank);
    std::vector<ProcessRecords> processes;
    // One variable of a batch system is the same in all that a script starts: it tells none apart.
    const bool has_ranks = ranks.size() > 1 || (ranks.size() == 1 && working.size() == 1);
    if (has_ranks)
        for (const std::int64_t rank : ranks)
            processes.push_back({.id = {.rank = rank}, .file = busiest_of_rank(files, rank)});
    else
        for (const ProgramFile* file : working) processes.push_back({.id = {}, .file = file});
    for (std::size_t i = 0; i < processes.size(); ++i) {
        processes[i].id.number = i;
        processes[i].id.count = processes.size();
    }
    return processes;
}

std::vector<ProcessRecords> recorded_processes(const std::vector<ProgramFile>& records) {
    std::vector<ProcessRecords> processes = working_processes(records);
    std::erase_if(processes, [](const ProcessRecords& process) { return process.file->activities.empty(); });
    if (processes.empty()) throw UsageError("the program launched nothing on a GPU while it was recorded");
    return processes;
}

const ProgramFile* find_process(const std::vector<ProgramFile>& files, const ProcessId& id) {
    if (id.rank) return busiest_of_rank(files, *id.rank);
    if (id.count == 1) return busiest(files, [](const ProgramFile&) { return true; });
    const std::vector<ProcessRecords> processes = working_processes(files);
    return processes.size() == id.count ? processes[id.number].file : nullptr;
}

}  // namespace kbench
