// The sampling loop.
#include "bench/measure/sampler.h"

#include <chrono>

#include "kbench/statistics.h"

namespace kbench {

Sampled sample(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
               const std::function<bool()>& throttled) {
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const auto warm_up_start = Clock::now();
    do chunk();
    while (seconds_since(warm_up_start) < options.warm_up_s);

    Sampled sampled;
    std::vector<double> kept, discarded;
    std::size_t next_look = options.min_samples;
    const auto start = Clock::now();
    while (kept.size() < options.max_samples) {
        const bool before = throttled();
        const std::vector<double> times = chunk();
        auto& into = before || throttled() ? discarded : kept;
        into.insert(into.end(), times.begin(), times.end());
        const double elapsed = seconds_since(start);
        if (kept.size() >= next_look && elapsed >= options.min_time_s) {
            const Summary known = summarise(kept);
            if (known.relative_ci() <= options.target_relative_ci && known.independent >= options.min_independent)
                break;
            next_look = kept.size() + kept.size() / 2 + 1;
        }
        // Short of the minimum go on past the budget, but not for ever.
        const double patience = kept.size() < options.min_samples && discarded.empty() ? 3 : 1;
        if (elapsed > patience * options.time_budget_s) break;
    }
    sampled.throttled = static_cast<int>(discarded.size());
    sampled.timing.samples_ms = kept.empty() ? std::move(discarded) : std::move(kept);
    sampled.timing.summary_ms = summarise(sampled.timing.samples_ms);
    sampled.converged = sampled.throttled < static_cast<int>(sampled.timing.samples_ms.size()) &&
                        sampled.timing.summary_ms.relative_ci() <= options.target_relative_ci;
    return sampled;
}

}  // namespace kbench
