// Steps of a program: the kernels, copies and fills of an iteration, by the call of the framework that launched them.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "analysis/program/device_time.h"
#include "analysis/program/iterations.h"
#include "analysis/program/layers.h"
#include "analysis/program/program_file.h"
#include "kbench/result.h"

namespace kbench {

/// The iterations of a file that medians are taken over: [first, last) of those found.
struct UsedIterations {
    Iterations found;
    std::size_t first = 0, last = 0;

    std::size_t count() const { return last - first; }
    /// Place in the file of an iteration's activity.
    std::size_t at(std::size_t iteration, std::size_t activity) const { return found.at(iteration) + activity; }
};

struct ProgramSteps {
    std::vector<StepResult> steps;
    std::vector<std::size_t> step_of;  ///< by activity of an iteration
    bool counts_all_pairs = false;     ///< whether attention's cost is that of all pairs, as its mask is unknown
};

/// The precision with most of the time, by microseconds; fp32 where there is none.
Precision most_used(const std::map<Precision, double>& us);

/// Consecutive activities of one layer, op, direction and call are one step. `layers` has the layer of each activity of
/// an iteration. Times, gaps and waits are medians over the iterations, microseconds. A step's precision is that which
/// the name of its longest kernel tells, else its module's type, else that which most of the iteration's time has.
ProgramSteps program_steps(const ProgramFile& file, const std::vector<OwnTime>& times, const UsedIterations& used,
                           const std::vector<ActivityLayer>& layers, const GpuInfo& gpu);

}  // namespace kbench
