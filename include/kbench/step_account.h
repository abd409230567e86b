// Where the time of one time step goes, measured by clocks inside its kernel.
//
//     if (const auto account = computation->account(pointers, workspace, stream))  // a Computation, provider.h
//         for (const kbench::StepPhase& phase : account->phases)
//             std::cout << phase.name << ": " << phase.median_cycles << " of a step's cycles\n";
#pragma once

#include <string>
#include <vector>

namespace kbench {

/// Cycles that the first thread of a block spends in one phase of a time step: statistics over the blocks.
struct StepPhase {
    std::string name;
    double median_cycles = 0, least_cycles = 0, most_cycles = 0;
};

/// The same work run again by a kernel that also reads clocks. That kernel is slightly slower; `us` says by how much.
struct StepAccount {
    int blocks = 0;                 ///< blocks that read clocks
    double us = 0;                  ///< time of one time step with the clocks, median over launches
    double start_us = 0;            ///< time of a launch before its first step (start, loading weights), by difference
    std::vector<StepPhase> phases;  ///< in the order of a step; a thread is in one of them at any time
};

}  // namespace kbench
