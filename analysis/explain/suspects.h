// What may bind, resource by resource: each confirmed or rejected by an intervention where there was one, else by the
// roofs, units and causes that were counted; and the most of the time that it can have.
//
//     for (const Suspect& suspect : suspects.whole) std::cout << suspect.name << ": " << name(suspect.finding) << '\n';
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/judge.h"
#include "analysis/explain/verdict.h"

namespace kbench {

struct Suspect {
    std::string_view name;  ///< such as "DRAM" or "issue slots"
    Finding finding = Finding::not_identifiable;
    double most_us = 0;  ///< the most of the time that it can have; all where nothing is known
    std::string why;
};

struct Suspects {
    std::vector<std::vector<Suspect>> steps;  ///< by step, each with all suspects in one order
    std::vector<Suspect> whole;               ///< the same, by the steps' time
};

/// `grounds` with causes and interventions. `at_power_limit`: NVML read that the power limit lowered the clock.
Suspects find_suspects(const Grounds& grounds, bool at_power_limit);

/// Those that were not rejected and may have most of the time, the first first; at most `most`.
std::vector<Suspect> likeliest(const Suspects& suspects, std::size_t most);

}  // namespace kbench
