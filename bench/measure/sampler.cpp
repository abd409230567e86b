// The sampling loop.
#include "bench/measure/sampler.h"

#include <chrono>
#include <numeric>

#include "kbench/statistics.h"

namespace kbench {
namespace {

struct Samples {
    std::vector<double> ms, ended_s;

    void add(const std::vector<double>& times, double from_s, double to_s) {
        ms.insert(ms.end(), times.begin(), times.end());
        for (std::size_t i = 1; i <= times.size(); ++i)
            ended_s.push_back(from_s + (to_s - from_s) * static_cast<double>(i) / static_cast<double>(times.size()));
    }
    double sum_s() const { return std::accumulate(ms.begin(), ms.end(), 0.0) * 1e-3; }
};

using Clock = std::chrono::steady_clock;

}  // namespace

Sampled sample(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
               const std::function<bool()>& throttled, const WindowCalls& window) {
    const auto seconds_since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const auto warm_up_start = Clock::now();
    do chunk();
    while (seconds_since(warm_up_start) < options.warm_up_s);

    Sampled sampled;
    Samples kept, discarded;
    std::size_t next_look = options.min_samples;
    window.begin();
    const auto start = Clock::now();
    while (kept.ms.size() < options.max_samples) {
        const bool before = throttled();
        const double chunk_began = seconds_since(start);
        const std::vector<double> times = chunk();
        const double chunk_ended = seconds_since(start);
        (before || throttled() ? discarded : kept).add(times, chunk_began, chunk_ended);
        const double elapsed = seconds_since(start);
        if (kept.ms.size() >= next_look && elapsed >= options.min_time_s) {
            const Summary known = summarise(kept.ms);
            if (known.relative_ci() <= options.target_relative_ci && known.independent >= options.min_independent)
                break;
            next_look = kept.ms.size() + kept.ms.size() / 2 + 1;
        }
        // Short of the minimum go on past the budget, but not for ever.
        const double patience = kept.ms.size() < options.min_samples && discarded.ms.empty() ? 3 : 1;
        if (elapsed > patience * options.time_budget_s) break;
    }
    const double window_s = seconds_since(start);
    window.end();
    sampled.timed_share = (kept.sum_s() + discarded.sum_s()) / window_s;
    sampled.throttled = static_cast<int>(discarded.ms.size());
    Samples& used = kept.ms.empty() ? discarded : kept;
    sampled.timing.samples_ms = std::move(used.ms);
    sampled.ended_s = std::move(used.ended_s);
    sampled.timing.summary_ms = summarise(sampled.timing.samples_ms);
    sampled.converged = sampled.throttled < static_cast<int>(sampled.timing.samples_ms.size()) &&
                        sampled.timing.summary_ms.relative_ci() <= options.target_relative_ci;
    return sampled;
}

}  // namespace kbench
