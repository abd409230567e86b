// The mean of a scope's samples, and how far off it may be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace kbench::embedded {

struct Mean {
    std::size_t n = 0;
    double value = 0;
    /// Half of its 95 % interval; nothing below two samples.
    std::optional<double> half_width;
};

/// In the samples' own unit, in the order in which they were taken. The interval is Student's, and wider where
/// neighbours resemble each other: with their correlation r by sqrt((1 + r) / (1 - r)) (Law, Simulation Modeling and
/// Analysis, section 4.4, for a first-order autoregressive series). It does not cover what differs from run to run.
Mean mean_of(std::span<const double> samples);

}  // namespace kbench::embedded
