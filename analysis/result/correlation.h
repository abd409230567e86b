// How much samples resemble the ones before them, and what that takes from what they tell.
#pragma once

#include <span>

namespace kbench {

/// How many independent samples an interval needs: where neighbouring samples do not correlate, and where they do. In
/// the latter their number is itself an estimate, and those series that look better than they are pass more easily:
/// with ten an interval that was shown held the true median in 47 to 80 % of made-up series.
inline constexpr double fewest_independent = 10, fewest_independent_of_correlated = 20;
/// From how much on neighbours may correlate before they count as correlated.
inline constexpr double correlated_from = 0.5;

/// Correlation of each sample with the one before it.
struct NeighbourCorrelation {
    double value = 0;
    double high = 0;  ///< the upper end of its one-sided 95 % interval
};

/// By ranks, so that outliers count as any other; ties share a rank. A correlation r of ranks is one of 2 sin(r pi / 6)
/// of normal samples (Pearson, 1907). Estimates are too low by (1 + 3 r) / n (Kendall, Biometrika 41, 1954), which is
/// added; their standard deviation is sqrt((1 - r^2) / n). Both are 0 of samples that are all equal.
NeighbourCorrelation correlation_of_neighbours(std::span<const double> samples);

/// How many times the variance of the median of samples is that of independent ones, where normal samples that are k
/// apart correlate by the k-th power of `correlation`: those of being below the median then correlate by 2 / pi times
/// its arcsine. 1 from 0 downwards; a correlation near 1 counts as 0.995.
double median_inflation(double correlation);

}  // namespace kbench
