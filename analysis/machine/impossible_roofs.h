// Roofs of a CPU that contradict each other: all cores against one of them. Pure.
#pragma once

#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// Two measurements of one roof on a shared machine differ by less than this, as a rule.
inline constexpr double roof_tolerance = 0.1;

struct ImpossibleRoof {
    std::string ceiling;  ///< the name of the one of all cores
    std::string why;
};

/// The roofs of all cores that are below what one core reached alone, or above as many times that as there were
/// threads: one of both was made by other threads than it says, or beside other work. Empty of a GPU, and where no
/// threads are known.
std::vector<ImpossibleRoof> impossible_roofs(const CeilingRun& run);

/// Makes those unavailable with the reason, so that nothing is set against them.
void discard(CeilingRun& run, const std::vector<ImpossibleRoof>& impossible);

}  // namespace kbench
