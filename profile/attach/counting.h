// Hardware counters of a program's iterations: one pass an iteration, a range for each kernel or, where the program
// launches graphs, for each of these launches.
#pragma once

#include <cstdint>

namespace kbench::attach {

/// Called when the launch call with this index begins, and when it has ended, on the thread that makes it. Never
/// throws: what goes wrong is a note, and counting ends.
void count_before(std::uint64_t launch, bool of_graph);
void count_after(bool of_graph);
/// Called when the process ends: the pass that is running may be the last.
void end_counting();

}  // namespace kbench::attach
