// What the points of a sweep say beside each other: measurements that are the same though they ought not to be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// Two points that agree in what they must not agree in.
struct SamePoints {
    std::size_t first = 0, second = 0;  ///< their places
    bool executed_alike = false;        ///< asked for in different precisions; else one has the other's data
    std::string finding;
};
/// Each point that agrees with an earlier one, with the first of these, question by question.
std::vector<SamePoints> same_points(std::span<const Point> points);

/// One line for each of these, in the order of the points; repeats are looked at once, and points that were not timed
/// not at all:
/// - two points asked for in different precisions that executed the same: the same kernels where they were recorded
///   ("all precisions ran fp16"), else the same implementations of all steps;
/// - two points of different batch, or of different sequence length, whose data are the same: identical samples, or
///   the same kernels with the same grids throughout.
std::vector<std::string> sweep_findings(std::span<const Point> points);

}  // namespace kbench
