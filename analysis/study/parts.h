// What the parts of a study share. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/study/figures.h"

namespace kbench {

/// The points of a study that may be evidence, by the task that asked for them.
struct StudyPoints {
    const ExplainedResult* explained = nullptr;
    std::vector<std::string> reasons;  ///< not_evidence()

    const StudyPlan& plan() const { return *explained->result().study; }
    const Point& point(std::size_t index) const { return explained->points()[index]; }
    PointAt at(std::size_t index) const { return {point(index), index}; }
    const Explanation& explanation(std::size_t index) const { return explained->of(index); }
    /// The result's point that was planned there, whether or not it is evidence.
    std::optional<std::size_t> measured(const PlannedPoint& planned) const;
    /// Those of a task that may be evidence, each once, in the order of the plan.
    std::vector<std::size_t> of_task(std::string_view task) const;
    /// The point that all tasks have in common, if it may be evidence.
    std::optional<std::size_t> base() const;
};

/// That nothing follows for what binds those of these points whose figures carry no conclusion, and why; empty where
/// all do. Their figures stand all the same.
std::string without_ground(const StudyPoints& points, const std::vector<std::size_t>& of);

/// Values of parts and their mean, weighted by time; parts without a value do not count.
class MeanByTime {
  public:
    void add(const std::optional<double>& value, const std::optional<double>& us) {
        if (!value || !us) return;
        sum_ += *value * *us;
        us_ += *us;
    }
    std::optional<double> mean() const { return us_ > 0 ? std::optional(sum_ / us_) : std::nullopt; }

  private:
    double sum_ = 0, us_ = 0;
};

/// A point's row with all that tables show of it.
StudyRow row_of(const StudyPoints& points, std::size_t index);

StudyAnswer answer_bottlenecks(const StudyPoints& points, Study& study);
StudyAnswer answer_batch(const StudyPoints& points, Study& study);
StudyAnswer answer_precision(const StudyPoints& points, Study& study);
StudyAnswer answer_directions(const StudyPoints& points, Study& study);
/// After all of these.
std::vector<StudyChange> changes_of(const StudyPoints& points, const Study& study);
std::vector<WhatIf> elsewhere_of(const StudyPoints& points, const Study& study);

}  // namespace kbench
