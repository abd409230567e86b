// Statistics of samples in the order in which they were taken: the median, and an interval for it that holds although
// neighbours resemble each other.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kbench {

/// Summary of samples, in the samples' own unit. Percentiles interpolate linearly between order statistics
/// (Hyndman and Fan, 1996, type 7).
struct Summary {
    std::size_t n = 0;
    double min = 0, max = 0, mean = 0, median = 0, p25 = 0, p75 = 0, p90 = 0, p95 = 0, p99 = 0;
    /// How many independent samples would tell as much about the median, at most n. A clock that a power limit
    /// regulates once a second makes hundreds of samples alike. 0 in results that did not record it.
    double independent = 0;
    /// 95 % confidence interval of the median of this run; what other runs give is another matter. The whole range
    /// [min, max] where there is none.
    double ci_low = 0, ci_high = 0;

    /// Whether ci_low and ci_high are that interval: it needs at least ten independent samples.
    bool has_interval() const;
    /// The larger distance from the median to an end of the interval, relative to the median; infinite without one.
    double relative_ci() const;
};

/// `samples` in the order in which they were taken. The series is cut into 16 to 64 blocks; how much the share of
/// samples below the median varies from block to block tells how far off that median may be (batch means: Fishman,
/// Discrete-Event Simulation, 2001, section 6.6), times (1 + r) / (1 - r) where neighbouring blocks correlate by r, and
/// the interval's ends are the order statistics that far away. Throws MeasurementError on no samples or a sample that
/// is not finite.
Summary summarise(std::span<const double> samples);

}  // namespace kbench
