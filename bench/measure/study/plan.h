// Which points a study measures, in which order: pure arithmetic, nothing is measured or planned in memory here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/sweep/run.h"
#include "kbench/precision.h"
#include "kbench/result.h"

namespace kbench {

/// What a study keeps fixed while it varies one thing after another.
struct StudyBase {
    std::int64_t batch = 1;                 ///< for bottlenecks, precisions and directions
    Precision precision = Precision::fp32;  ///< for bottlenecks, batches and directions
    std::vector<Precision> precisions{all_precisions.begin(), all_precisions.end()};
    /// Batches to look at; max_batch stands for the largest that fits. None: the powers of two up to that one, and it.
    std::vector<std::int64_t> batches = {};
};

/// A point and the tasks that look at it.
struct StudyPoint {
    PointSpec spec;
    std::vector<std::string> tasks;
};

/// Each point once, the most telling first, the tasks by turns: so whatever a budget leaves out, each of them has
/// something. The forward that all four share, the training step, then precisions and batches by turns; batches by
/// powers of four, the largest that fits, and what lies between. `largest`: that forward's largest batch, 0 where not
/// even one sequence fits; `trains`: the model has a loss. Other axes are as `options` have them.
std::vector<StudyPoint> plan_study(const RunOptions& options, const StudyBase& base, std::int64_t largest, bool trains);

/// The plan as a result records it. `mine`: the points of this shard; others were left out to other shards.
StudyPlan recorded_plan(const RunOptions& options, const Device& device, const std::vector<StudyPoint>& points,
                        const std::vector<PointSpec>& mine, std::optional<double> budget_s);

}  // namespace kbench
