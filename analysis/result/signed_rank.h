// The centre of values with outliers.
#pragma once

#include <optional>
#include <span>

#include "analysis/result/interval.h"

namespace kbench {

/// The Hodges-Lehmann estimate of the centre of `values`: the median of their Walsh averages, which are the means of
/// every two of them and of each with itself. Its interval is that of Wilcoxon's signed-rank test: it misses the centre
/// in at most `error` of all cases where the values are independent and symmetric about it. Nothing where so few
/// values cannot say as much, as fewer than 7 cannot for 2.5 %.
std::optional<Interval> hodges_lehmann(std::span<const double> values, double error);

}  // namespace kbench
