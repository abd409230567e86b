// What is said about one point: its facts, and what each part of analysis/explain makes of them. explain.h makes one.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/attribution.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cross_checks.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/elasticity.h"
#include "analysis/explain/interventions.h"
#include "analysis/explain/program_findings.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/roofline.h"
#include "analysis/explain/serial_chain.h"
#include "analysis/explain/suspects.h"
#include "analysis/explain/theft.h"
#include "analysis/explain/time_breakdown.h"
#include "analysis/explain/verdict.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

struct Explanation {
    PointFacts facts;
    bool is_by_roofs_between_samples = false;  ///< facts.roofs are Roofs::during(); else the machine's
    std::vector<StepRoofTimes> roof_times;     ///< one a step; none where the point was not timed
    TimeBreakdown breakdown;
    Causes causes;
    CycleAccounts cycles;
    std::vector<CrossCheck> cross_checks;
    SmElasticity elasticity;
    BandwidthElasticity theft;
    Interventions interventions;
    Roofline roofline;
    Attribution attribution;
    Verdicts verdicts;
    Suspects suspects;
    ProgramFindings program;  ///< found in a program; nothing for kbench's own models
    std::vector<SerialChain> time_steps;
    std::vector<std::string> impossible;      ///< figures that cannot be; where there are any, no verdict says anything
    std::vector<std::string> missing;         ///< missing_ground(): where there is any, no verdict says anything either
    std::vector<std::string> contradictions;  ///< what interventions and counters say against each other
    std::vector<std::string> answer;  ///< how long, its largest causes where they are known, what binds it, what
                                      ///< would change it, with one of time steps where they have much of the
                                      ///< time; or the impossible figures

    /// Whether the figures carry conclusions.
    bool concludes() const { return impossible.empty() && missing.empty(); }
};

}  // namespace kbench
