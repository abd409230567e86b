// Everything that reports say about one point, computed once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/attribution.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cross_checks.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/elasticity.h"
#include "analysis/explain/interventions.h"
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
    std::vector<StepRoofTimes> roof_times;  ///< one a step; none where the point was not timed
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

/// `point` must be one of `result`'s and outlive the explanation. A point that was not timed has an explanation whose
/// parts say that they are unavailable.
Explanation explain(const Result& result, const Point& point);
/// With other roofs than the result's.
Explanation explain(const Result& result, const Point& point, const Roofs& roofs);

/// The explanation of one point, made when it is first asked for. Result and point must outlive it.
class LazyExplanation {
  public:
    LazyExplanation(const Result& result, const Point& point) : result_(&result), point_(&point) {}
    const Explanation& get() const {
        if (!made_) made_ = explain(*result_, *point_);
        return *made_;
    }

  private:
    const Result* result_;
    const Point* point_;
    mutable std::optional<Explanation> made_;
};

/// A result, which must outlive this, and the explanation of each of its points, in their order: computed once and
/// handed to every writer.
class ExplainedResult {
  public:
    ExplainedResult(const Result& result);  // not explicit: a result is all that it takes
    /// With explanations made elsewhere. Throws std::invalid_argument unless there is one a point.
    ExplainedResult(const Result& result, std::vector<Explanation> points);

    const Result& result() const { return *result_; }
    const std::vector<Point>& points() const { return result_->points; }
    const Explanation& of(std::size_t point) const { return explanations_[point]; }
    /// Impossible figures of all points, each once.
    std::vector<std::string> impossible() const;

  private:
    const Result* result_;
    std::vector<Explanation> explanations_;
};

}  // namespace kbench
