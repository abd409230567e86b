// A step's time as a fixed part and one that grows with its work, from its times at three of one of its
// sizes.
//
//     const SizeFit fit = fit_size(scaling, step.own_clock_mhz);
//     if (fit.unavailable.empty()) std::cout << fit.by_clock.fixed_us.value << " us do not grow with " << fit.axis;
#pragma once

#include <string>

#include "analysis/result/interval.h"
#include "kbench/result.h"

namespace kbench {

/// A line through the smallest and the largest size. The size between them tests it.
struct SizeParts {
    Interval fixed_us;  ///< what does not grow: launch, fill, exposed epilogue, drain
    Interval slope_us;  ///< what grows, at the step's own size
    /// By so much the fixed part would be larger or smaller, were the line drawn through the two smallest sizes. Both
    /// intervals hold it.
    double misfit_us = 0;
    double sum_us() const { return fixed_us.value + slope_us.value; }
};

/// At the clock that the step had in the model, not at the one of its times by size.
struct SizeFit {
    std::string unavailable;  ///< why there is none; empty when there is one
    std::string axis;         ///< which size grew
    SizeParts by_clock;       ///< what grows follows the SM's clock
    SizeParts by_memory;      ///< what grows does not, as DRAM; the fixed part does
};

/// `clock_mhz`: the SM's in the model. With a clock of 0, there or of a size, nothing is rescaled. Unavailable, with
/// the reason, where `scaling` has none, fewer than three sizes, times or work that do not rise, another
/// implementation at another size, or times that grow so much faster than the work that nothing is fixed.
SizeFit fit_size(const SizeScaling& scaling, const Interval& clock_mhz);

}  // namespace kbench
