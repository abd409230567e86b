// Hardware counters of a program's iterations: one pass an iteration. A range is a kernel; where the program launches
// graphs or has kernels that wait for other ranks, it is a launch call, and those kernels' calls have none.
#pragma once

#include <cstdint>

namespace kbench::attach {

/// Called when the launch call with this index begins, and when it has ended, on the thread that makes it. `kernel` is
/// its mangled name; null for a graph. Never throws: what goes wrong is a note, and counting ends. A pass that takes
/// longer than Settings::most_pass_seconds ends the process.
void count_before(std::uint64_t launch, const char* kernel);
void count_after();
/// Called when the process ends: the pass that is running may be the last.
void end_counting();

}  // namespace kbench::attach
