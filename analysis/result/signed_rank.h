// The centre of values that are symmetric about it, however far out some of them lie.
#pragma once

#include <optional>
#include <span>

#include "analysis/result/interval.h"

namespace kbench {

/// The median of the means of every two of `values`, each with itself too (Hodges and Lehmann), with the interval that
/// Wilcoxon's signed ranks leave it: it errs in at most `error` where the values are independent and symmetric.
/// Nothing where so few cannot say as much, as fewer than 7 cannot for 2.5 %.
std::optional<Interval> symmetric_centre(std::span<const double> values, double error);

}  // namespace kbench
