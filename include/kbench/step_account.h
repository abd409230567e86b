// Where the time of a dependent step goes, by clocks within its kernel.
#pragma once

#include <string>
#include <vector>

namespace kbench {

/// Cycles of one dependent step that the first thread of a block spends in a part of it, over the blocks.
struct StepPhase {
    std::string name;
    double median_cycles = 0, least_cycles = 0, most_cycles = 0;
};

/// The same work again by a kernel that also reads clocks: it takes a little longer, and says by how much.
struct StepAccount {
    int blocks = 0;                 ///< that had clocks
    double us = 0;                  ///< of one dependent step, with the clocks; median of its launches
    double start_us = 0;            ///< of a launch before its first step: loading weights and starting, by difference
    std::vector<StepPhase> phases;  ///< in the order of a step; a thread is in one of them at any time
};

}  // namespace kbench
