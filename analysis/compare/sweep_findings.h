// What the points of a sweep say beside each other: measurements that are the same though they ought not to be.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// One line for each of these, in the order of the points; repeats are looked at once, and points that were not timed
/// not at all:
/// - two points asked for in different precisions that executed the same: the same kernels where they were recorded
///   ("all precisions ran fp16"), else the same implementations of all steps;
/// - two points of different batch, or of different sequence length, whose data are the same: identical samples, or
///   the same kernels with the same grids throughout.
std::vector<std::string> sweep_findings(std::span<const Point> points);

}  // namespace kbench
