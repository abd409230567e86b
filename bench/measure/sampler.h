// Samples until the median is known well enough: one rule for every measurement. Whoever stops when an interval happens
// to be narrow stops too early too often; looks are few, and ask for many independent samples.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kbench/result.h"

namespace kbench {

struct SamplerOptions {
    double target_relative_ci = 0.005;  ///< half-width of the median's 95 % interval, relative to the median
    double time_budget_s = 7;           ///< wall time after which sampling ends whatever the interval
    double warm_up_s = 1.0;             ///< run untimed for at least this long, and at least once
    double min_time_s = 1.0;  ///< sample for at least this long, so that power and clocks are read often enough
    std::size_t min_samples = 20;
    double min_independent = 60;  ///< fewer do not show how much neighbouring samples resemble each other
    std::size_t max_samples = 20000;
};

struct Sampled {
    Timing timing;
    /// When each sample ended, seconds since the window began; the runs of a chunk are taken as of one length.
    std::vector<double> ended_s;
    double timed_share = 0;  ///< of the window: the sum of all samples, discarded ones too, over its length
    bool converged = false;
    int throttled = 0;  ///< samples discarded because the device throttled while they were taken
};

/// Called around the window: when the warm-up is over, before the first sample; and as soon as the last one has ended.
struct WindowCalls {
    std::function<void()> begin = [] {}, end = [] {};
};

/// `chunk` runs the work once or more and returns one time in milliseconds for each run. `throttled` is asked before
/// and after each chunk: a chunk during which it says yes is discarded and repeated, until the time budget ends; when
/// no sample at all was kept by then, the throttled ones are kept and `converged` is false.
Sampled sample(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
               const std::function<bool()>& throttled, const WindowCalls& window = {});

}  // namespace kbench
