// Steps of a program: the kernels, copies and fills of an iteration, by the call of the framework that launched them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/program/device_time.h"
#include "analysis/program/iterations.h"
#include "analysis/program/layers.h"
#include "analysis/program/program_file.h"
#include "kbench/result.h"

namespace kbench {

/// The iterations of a file that figures are of.
struct UsedIterations {
    std::vector<std::size_t> begins;  ///< places in the file of each one's first activity
    std::size_t period = 0;           ///< activities of each
    /// Those that times are means over: the middle half by length, see middle_half(). Their parts then add up to them.
    std::vector<std::size_t> typical = {};

    std::size_t count() const { return begins.size(); }
    /// Place in the file of an iteration's activity.
    std::size_t at(std::size_t iteration, std::size_t activity) const { return begins[iteration] + activity; }
};

/// Those of the found ones that are `asked` for, see used_iterations().
UsedIterations used_of(const Iterations& found, const std::string& asked);

struct ProgramSteps {
    std::vector<StepResult> steps;
    std::vector<std::size_t> step_of;  ///< by activity of an iteration
    bool counts_all_pairs = false;     ///< whether attention's cost is that of all pairs, as its mask is unknown
};

/// Places of the lengths between the quartiles, in order: without the shortest and the longest quarter.
std::vector<std::size_t> middle_half(std::span<const std::int64_t> lengths);

/// The precision with most of the time, by microseconds; fp32 where there is none.
Precision most_used(const std::map<Precision, double>& us);

/// Consecutive activities of one layer, op, direction and call are one step. `layers` has the layer of each activity of
/// an iteration. Times, gaps and waits are means over the typical iterations, microseconds. A step's precision is what
/// the name of its longest kernel tells, else its module's type, else that which most of the iteration's time has.
ProgramSteps program_steps(const ProgramFile& file, const std::vector<OwnTime>& times, const UsedIterations& used,
                           const std::vector<ActivityLayer>& layers, const GpuInfo& gpu);

}  // namespace kbench
