// Verdicts from the facts of a point and from what siblings found of its steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/interventions.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/verdict.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// What verdicts rest on, by step; without `roof_times` no step is judged.
struct Grounds {
    const PointFacts& facts;
    std::span<const StepRoofTimes> roof_times;
    std::span<const UnitActivity> units;
    const CycleAccounts& cycles;
    std::span<const std::vector<std::string>> told;  ///< evidence from elsewhere, which comes first
    const Causes* causes = nullptr;                  ///< null: not known
    const Interventions* interventions = nullptr;    ///< likewise
};
Verdicts judge(const Grounds& grounds);

/// What binds most of the time of some steps, by the rules of a layer. `verdicts`: of all steps of the point; `steps`:
/// positions in it.
Verdict judge_together(const std::string& subject, const PointFacts& facts, const Verdicts& verdicts,
                       std::span<const std::size_t> steps);

}  // namespace kbench
