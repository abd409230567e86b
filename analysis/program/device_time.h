// How the time of a process's GPU divides: work, waits for the host, and waits of work that was queued.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/program/program_file.h"

namespace kbench {

/// Parts of the timeline that belong to one activity, in ns: the idle time before it, and the part of its own time in
/// which no earlier activity ran. All activities of a file together divide its timeline from the first start to the
/// last end. Work on several streams or devices counts once.
struct OwnTime {
    std::int64_t gap = 0, busy = 0;
    /// The gap, where the call that launched it ended when the GPU was idle already: it waited for the host, and for
    /// what the host had launched too late to arrive. Else 0, as of a graph's later nodes. A copy or fill whose call is
    /// unknown was called after the launch call before it had ended. Nothing where the file has no launch calls.
    std::optional<std::int64_t> host_wait;

    std::int64_t total() const { return gap + busy; }
};

/// For each activity of the file, in its order.
std::vector<OwnTime> own_times(const ProgramFile& file);

}  // namespace kbench
