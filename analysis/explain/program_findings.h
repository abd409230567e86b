// What a program's records say of it beside what is said of every point: whether its GPU waits for the host, what
// copies take, which layers run in another precision, and what the records themselves did.
//
//     for (const std::string& sentence : program_findings(facts, breakdown).sentences) fmt::print("{}\n", sentence);
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/time_breakdown.h"
#include "analysis/facts/point_facts.h"
#include "analysis/result/interval.h"

namespace kbench {

/// From this share of an iteration without records on, a program is launch-bound whatever its kernels are.
inline constexpr double host_wait_share = 0.20;

/// How long the GPU waits for the host in an iteration without records, microseconds. The high end is what was
/// recorded. Records slow the host's calls: the value, which is the low end, has all that they add taken off. Zeros
/// where no launch call was recorded, and for kbench's own models.
Interval host_wait_us(const PointFacts& facts);

/// How long kernels that wait for other ranks take in an iteration, microseconds: the wait, and what they do.
double waiting_us(const PointFacts& facts);

/// "the GPU waits for the host for 4.20 ms of 10.4 ms (40 %)".
std::string host_wait_text(const PointFacts& facts);

struct ProgramFindings {
    /// Whether its GPU waits for the host; empty where it does so for less than host_wait_share for certain.
    std::string host_wait;
    bool is_launch_bound = false;  ///< it does for certain, in an iteration of median length
    /// It does even in the shortest of all iterations that were timed, however few of them are independent.
    bool is_always_launch_bound = false;
    /// About other ranks, copies, precisions and records, each where there is something to say.
    std::vector<std::string> sentences;
};

/// `breakdown` is of the same facts. Nothing for kbench's own models, and where the point was not timed.
ProgramFindings program_findings(const PointFacts& facts, const TimeBreakdown& breakdown);

/// What lets a host launch faster, or the GPU work without it.
std::string quicker_launches(const ProgramRun& program);

}  // namespace kbench
