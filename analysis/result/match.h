// What of one result stands beside what of another: points by what was run, steps by the ops that they compute.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// A result and what people call it.
struct NamedResult {
    std::string name;  ///< in tables and --price
    std::string path;  ///< in errors
    Result result;
};

/// The first axis on which the points are different computations; null when they are the same. An axis that only one
/// of them has tells them apart where the other's value is not the usual one.
const Axis* first_difference(const Point& a, const Point& b);

/// Whether it is done and has times.
bool is_measured(const Point& point);

/// Without a first_difference, and of the same repeat.
bool is_match(const Point& a, const Point& b);

/// Whether the point is what a study planned there.
bool is_planned(const PlannedPoint& planned, const Point& point);

/// What a comparison records of a point: all but where it ran, and repeats from the second on.
std::vector<std::pair<const Axis*, AxisValue>> told_axes(const Point& point);

/// "NAME fp32 batch 1 seq 1024", with the attention, the direction and the repeat where not usual.
std::string match_title(const Point& point);

/// What tells these points apart: "fp16 batch 1" where all are of one model and length; nothing for one alone.
std::vector<std::string> short_titles(const std::vector<const Point*>& points);

/// Finished points without a first_difference and of the same repeat, in the order of `a`; the backend may differ.
/// Throws UsageError that names the difference when there is none.
std::vector<std::pair<const Point*, const Point*>> match_points(const NamedResult& a, const NamedResult& b);

/// The smallest set of steps that compute the same ops in both plans, each in order of execution. One side is empty
/// where the other plan has none of the ops.
struct StepMatch {
    std::vector<const StepResult*> a, b;
};

/// In the order of `a`'s steps, then those of `b` alone. An op is its entry in StepResult::absorbs and its direction;
/// of several of the same name (a block has two residual additions) the first is matched with the first, and so on.
std::vector<StepMatch> match_steps(const Point& a, const Point& b);

}  // namespace kbench
