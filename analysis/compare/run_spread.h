// How much single runs differ though nothing was changed, and so what two of them cannot tell.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "analysis/result/match.h"

namespace kbench {

/// Fewer repeats say too little of it.
inline constexpr int fewest_repeats = 4;

struct RunSpread {
    double deviation = 0;  ///< standard deviation of the logarithms of medians
    int runs = 0;          ///< that it is known from
    std::string basis;     ///< where it was found

    /// Two runs that differ by less may be the same: a 95 % interval's half-width, 0.01 is 1 %.
    double least_difference() const;
};

/// The deviation of the logarithms of `values`, at least two of them and above 0.
double log_deviation(std::span<const double> values);

/// For `a`'s point `point` beside `b`'s: from fewest_repeats or more of `runs` that are of the same command, program
/// and machine as `a` or `b`, else what either machine remembers, the larger of the two. Nothing where neither is
/// known.
std::optional<RunSpread> run_spread(std::span<const NamedResult> runs, const NamedResult& a, const NamedResult& b,
                                    const Point& point);

}  // namespace kbench
