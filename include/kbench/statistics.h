// Statistics of samples in the order in which they were taken: the median, and an interval for it that stays valid when
// neighbouring samples resemble each other.
//
//     const kbench::Summary ms = kbench::summarise(samples);  // std::vector<double>, in the order taken
//     if (ms.has_interval()) std::cout << ms.median << " ms (" << ms.ci_low << " to " << ms.ci_high << ")\n";
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
    /// The number of independent samples that would say as much about the median, at most n. A clock that a power limit
    /// regulates once a second makes hundreds of samples alike. 0 in results that did not record it.
    double independent = 0;
    /// 95 % confidence interval for the median of this run; it does not cover run-to-run variance. With no interval, it
    /// is the whole range [min, max].
    double ci_low = 0, ci_high = 0;

    /// Whether ci_low and ci_high are a confidence interval: it needs at least ten independent samples.
    bool has_interval() const;
    /// The larger distance from the median to an end of the interval over the median; infinite without an interval.
    double relative_ci() const;
};

/// Summarises `samples`, given in the order in which they were taken. The series is cut into 16 to 64 blocks; how much
/// the share of samples below the median varies between blocks says how far off that median may be (batch means:
/// Fishman, Discrete-Event Simulation, 2001, section 6.6). Correlation r of neighbouring blocks widens it by
/// (1 + r) / (1 - r). The interval's ends are the order statistics at that distance. Throws MeasurementError without
/// samples or on a sample that is not finite.
Summary summarise(std::span<const double> samples);

}  // namespace kbench
