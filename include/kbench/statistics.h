// Order statistics of samples: the median and a distribution-free confidence interval for it.
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
    /// 95 % confidence interval of the median from order statistics (binomial, exact to n = 1000, normal approximation
    /// beyond); the whole range [min, max] when n < 6, where no such interval exists.
    double ci_low = 0, ci_high = 0;

    /// Whether ci_low and ci_high are that interval: n >= 6.
    bool has_interval() const;
    /// The larger distance from the median to an end of the interval, relative to the median; infinite without one.
    double relative_ci() const;
};

/// Throws MeasurementError on no samples or a sample that is not finite.
Summary summarise(std::span<const double> samples);

}  // namespace kbench
