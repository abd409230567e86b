// Everything that reports say about one point, computed once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/explanation.h"

namespace kbench {

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
