// The sampling loop.
#include "bench/measure/point/sampler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kbench/statistics.h"

namespace kbench {
namespace {

/// How many time budgets sampling may take where too few samples were kept.
constexpr double patience = 3;

/// How many clean samples a median needs on a busy host. More are taken as long as the time budget lasts.
constexpr std::size_t enough_clean = 20;

constexpr std::size_t most_slow_chunks = 10;

/// What became of a sample. It may not be known yet for those of the last chunks.
enum class Fate { pending, kept, throttled, starved };

struct Sample {
    double ms = 0, ended_s = 0;
    Fate fate = Fate::pending;
};

class Samples {
  public:
    void add(const std::vector<double>& times, double from_s, double to_s, Fate fate) {
        for (std::size_t i = 1; i <= times.size(); ++i)
            all_.push_back({times[i - 1],
                            from_s + (to_s - from_s) * static_cast<double>(i) / static_cast<double>(times.size()),
                            fate});
        count(fate) += times.size();
    }
    void settle(Fate fate) {
        for (auto sample = all_.rbegin(); count(Fate::pending) > 0; ++sample)
            if (sample->fate == Fate::pending) {
                sample->fate = fate;
                --count(Fate::pending);
                ++count(fate);
            }
    }
    std::size_t& count(Fate fate) { return counts_[static_cast<std::size_t>(fate)]; }
    double sum_s() const {
        double ms = 0;
        for (const Sample& sample : all_) ms += sample.ms;
        return ms * 1e-3;
    }
    /// The samples with one of these fates, in order of time.
    void write(const std::vector<Fate>& fates, std::vector<double>& ms, std::vector<double>* ended_s = nullptr) const {
        for (const Sample& sample : all_) {
            if (std::ranges::find(fates, sample.fate) == fates.end()) continue;
            ms.push_back(sample.ms);
            if (ended_s != nullptr) ended_s->push_back(sample.ended_s);
        }
    }
    Summary known() const {
        std::vector<double> ms;
        write({Fate::kept}, ms);
        return summarise(ms);
    }

  private:
    std::vector<Sample> all_;
    std::size_t counts_[4] = {};
};

/// Warms up. Gives how long the last chunk took, and how many samples it has.
std::pair<double, std::size_t> warm_up(const std::function<std::vector<double>()>& chunk, double for_s,
                                       const std::function<double()>& now_s) {
    const double start = now_s();
    for (;;) {
        const double began = now_s();
        const std::size_t samples = chunk().size();
        if (const double ended = now_s(); ended - start >= for_s) return {ended - began, samples};
    }
}

/// Whether to take another chunk after `chunks` of them, when so many samples are kept.
bool goes_on(Samples& samples, std::size_t kept, std::size_t chunks, double after_s, const SamplerOptions& options) {
    if (kept >= options.max_samples) return false;
    if (after_s <= options.time_budget_s) return true;
    const std::size_t wanted =
        samples.count(Fate::starved) > 0 ? std::min(options.min_samples, enough_clean) : options.min_samples;
    if (kept >= wanted || samples.count(Fate::throttled) > 0) return false;
    if (after_s <= patience * options.time_budget_s) return true;
    return options.time_budget_s > options.trial_budget_s && kept < fewest_slow_samples && chunks < most_slow_chunks;
}

/// Whether to go on for another time budget, as no conclusion is drawn without an interval.
bool too_few_independent(Samples& samples, double after_s, const SamplerOptions& options) {
    return options.time_budget_s > options.trial_budget_s && after_s <= patience * options.time_budget_s &&
           samples.count(Fate::kept) < options.max_samples && samples.count(Fate::throttled) == 0 &&
           !samples.known().has_interval();
}

}  // namespace

Sampled sample(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
               const std::function<bool()>& throttled, const WindowCalls& window) {
    return sample_by_clock(chunk, options, throttled, window, [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    });
}

Sampled sample_by_clock(const std::function<std::vector<double>()>& chunk, const SamplerOptions& options,
                        const std::function<bool()>& throttled, const WindowCalls& window,
                        const std::function<double()>& now_s) {
    const auto [chunk_s, samples_a_chunk] = warm_up(chunk, options.warm_up_s, now_s);
    const double fewest = static_cast<double>(std::min(fewest_slow_samples, options.max_samples));
    const double one_s = chunk_s / static_cast<double>(std::max<std::size_t>(1, samples_a_chunk));
    if (options.time_budget_s > options.trial_budget_s && fewest * one_s > options.time_budget_s)
        window.takes_longer(fewest * one_s, one_s);

    Samples samples;
    std::size_t next_look = options.min_samples, chunks = 0, go_on_to = 0;
    const auto settle = [&](bool last) {
        if (const std::optional<bool> starved = window.starved(last))
            samples.settle(*starved ? Fate::starved : Fate::kept);
    };
    window.begin();
    const auto elapsed_s = [&now_s, start = now_s()] { return now_s() - start; };
    for (;;) {
        const bool before = throttled();
        const double chunk_began = elapsed_s();
        const std::vector<double> times = chunk();
        const double chunk_ended = elapsed_s();
        samples.add(times, chunk_began, chunk_ended, before || throttled() ? Fate::throttled : Fate::pending);
        ++chunks;
        settle(false);
        const double elapsed = elapsed_s();
        const std::size_t kept = samples.count(Fate::kept);
        if (samples.count(Fate::pending) == 0 && kept >= next_look && elapsed >= options.min_time_s) {
            const Summary known = samples.known();
            if (known.relative_ci() <= options.target_relative_ci && known.independent >= options.min_independent)
                break;
            next_look = kept + kept / 2 + 1;
        }
        const std::size_t at_most = kept + samples.count(Fate::pending);
        if (goes_on(samples, at_most, chunks, elapsed, options)) continue;
        if (at_most < go_on_to && elapsed <= patience * options.time_budget_s) continue;
        settle(true);
        if (goes_on(samples, samples.count(Fate::kept), chunks, elapsed, options)) continue;
        if (!too_few_independent(samples, elapsed, options)) break;
        go_on_to = std::min(options.max_samples, at_most + at_most / 4);  // a look takes as long as a short forward
    }
    const double window_s = elapsed_s();
    window.end();
    Sampled sampled;
    sampled.timed_share = samples.sum_s() / window_s;
    sampled.throttled = static_cast<int>(samples.count(Fate::throttled));
    const bool few = samples.count(Fate::kept) < std::min(fewest_slow_samples, options.min_samples);
    sampled.kept_starved = few && samples.count(Fate::starved) > 0;
    if (!sampled.kept_starved) sampled.starved = static_cast<int>(samples.count(Fate::starved));
    std::vector<Fate> used{Fate::kept};
    if (sampled.kept_starved) used.push_back(Fate::starved);
    if (samples.count(Fate::kept) + samples.count(Fate::starved) == 0) used.push_back(Fate::throttled);
    samples.write(used, sampled.timing.samples_ms, &sampled.ended_s);
    sampled.timing.summary_ms = summarise(sampled.timing.samples_ms);
    sampled.converged = !sampled.kept_starved &&
                        sampled.throttled < static_cast<int>(sampled.timing.samples_ms.size()) &&
                        sampled.timing.summary_ms.relative_ci() <= options.target_relative_ci;
    return sampled;
}

}  // namespace kbench
