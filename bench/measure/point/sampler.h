// Samples until the median is known well enough: one rule for every measurement. Whoever stops when an interval happens
// to be narrow stops too early too often; looks are few, and ask for many independent samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// However slow the work is, see sample(): fewer say nothing of how samples spread.
inline constexpr std::size_t fewest_slow_samples = 5;

struct SamplerOptions {
    double target_relative_ci = 0.005;  ///< half-width of the median's 95 % interval, relative to the median
    double time_budget_s = 7;           ///< wall time after which sampling ends whatever the interval
    double warm_up_s = 1.0;             ///< run untimed for at least this long, and at least once
    double min_time_s = 1.0;  ///< sample for at least this long, so that power and clocks are read often enough
    std::size_t min_samples = 20;
    double min_independent = 60;  ///< fewer do not show how much neighbouring samples resemble each other
    std::size_t max_samples = 20000;
    /// Whoever gives as little time wants to see that it runs: fewest_slow_samples then do not count.
    double trial_budget_s = 1;
};

struct Sampled {
    Timing timing;
    /// When each sample ended, seconds since the window began; the runs of a chunk are taken as of one length.
    std::vector<double> ended_s;
    double timed_share = 0;  ///< the sum of all samples, discarded ones too, over the window's length
    bool converged = false;
    int throttled = 0;          ///< samples discarded because the device throttled while they were taken
    int starved = 0;            ///< samples discarded because the process lacked its CPUs meanwhile
    bool kept_starved = false;  ///< such samples were kept, as there were too few others
};

/// Called around the window: when the warm-up is over, before the first sample; and as soon as the last one has ended.
struct WindowCalls {
    std::function<void()> begin = [] {}, end = [] {};
    /// Whether the process lacked its CPUs since the answer before; nothing: too early to tell, unless it is the last.
    std::function<std::optional<bool>(bool last)> starved = [](bool) { return std::optional(false); };
    /// Told after the warm-up where the fewest samples take longer than the time budget: how long they and one of them.
    std::function<void(double all_s, double one_s)> takes_longer = [](double, double) {};
};

/// `chunk` runs the work once or more and returns one time in milliseconds for each run. `throttled` is asked before
/// and after each chunk: a chunk during which it says yes is discarded and repeated, until the time budget ends; when
/// no sample at all was kept by then, the throttled ones are kept and `converged` is false. Samples during which the
/// process lacked its CPUs are discarded and repeated, too, for up to three time budgets; where fewer than five others
/// came by then, they are kept.
///
/// Where fewer are independent by the end of the time budget than a conclusion needs, it goes on for up to three.
/// Work that is too slow for `min_samples` goes on for up to three time budgets, and beyond them up to
/// `fewest_slow_samples` or ten chunks; this last not under a budget of a second or less, which is a trial and not a
/// measurement.
Sampled sample(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
               const std::function<bool()>& throttled, const WindowCalls& window = {});

/// As sample(), by another clock than the host's, for tests of where time budgets end: `now_s` gives seconds from any
/// moment on.
Sampled sample_by_clock(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
                        const std::function<bool()>& throttled, const WindowCalls& window,
                        const std::function<double()>& now_s);

}  // namespace kbench
