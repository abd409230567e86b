// The sampler stops when it knows enough, repeats what was throttled, and ends when told to.
#include "bench/measure/point/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace kbench {
namespace {

SamplerOptions quick() {
    SamplerOptions options;
    options.warm_up_s = 0;
    options.min_time_s = 0;
    options.time_budget_s = 5;
    options.min_samples = 20;
    return options;
}

const auto never = [] { return false; };

TEST(Sampler, StopsSoonWhenSamplesAgree) {
    int calls = 0;
    const Sampled s = sample([&] { return ++calls, std::vector<double>{2.0}; }, quick(), never);
    EXPECT_EQ(s.timing.samples_ms.size(), 71u) << "looked at 20, 31, 47 and 71: fewer than 60 show too little";
    EXPECT_EQ(calls, 72) << "and one run to warm up";
    EXPECT_TRUE(s.converged);
    EXPECT_EQ(s.timing.summary_ms.median, 2.0);
}

TEST(Sampler, GoesOnWhileTheIntervalIsWide) {
    std::mt19937 random(1);
    std::normal_distribution<double> noisy(10.0, 0.5);
    const Sampled s = sample([&] { return std::vector<double>{noisy(random)}; }, quick(), never);
    EXPECT_TRUE(s.converged);
    EXPECT_GT(s.timing.samples_ms.size(), 200u) << "5 % noise needs hundreds of samples for 0.5 %";
    EXPECT_LE(s.timing.summary_ms.relative_ci(), 0.005);
    EXPECT_NEAR(s.timing.summary_ms.median, 10.0, 0.15);
}

/// Samples that resemble their neighbours, as those of a power-limited GPU do: the interval that the sampler stops with
/// holds the true median as often as it says.
TEST(Sampler, IntervalsHoldWhereSamplesResembleTheirNeighbours) {
    constexpr int trials = 1000;
    std::mt19937_64 random(20261122);
    std::normal_distribution<double> normal;
    for (const double rho : {0.0, 0.3, 0.6, 0.9, 0.95, 0.98, 0.99}) {
        int covered = 0, shown = 0;
        for (int trial = 0; trial < trials; ++trial) {
            double state = normal(random);
            const auto chunk = [&] {
                std::vector<double> times(5);
                for (double& time : times) {
                    time = 4 * (1 + 0.01 * state);
                    state = rho * state + std::sqrt(1 - rho * rho) * normal(random);
                }
                return times;
            };
            const Summary summary = sample(chunk, quick(), never).timing.summary_ms;
            shown += summary.has_interval();
            covered += summary.has_interval() && summary.ci_low <= 4 && 4 <= summary.ci_high;
        }
        EXPECT_GE(shown, rho <= 0.98 ? trials : trials * 9 / 10) << "rho " << rho;
        EXPECT_GE(covered, shown * 92 / 100) << "rho " << rho;
        EXPECT_LE(covered, shown * 99 / 100) << "rho " << rho;
        RecordProperty("coverage_at_rho_" + std::to_string(rho), std::to_string(static_cast<double>(covered) / shown));
    }
}

/// Budgets that end after so many samples, with noise that never converges: the sampler goes on for up to three of them
/// until it has an interval, and so looks again and again for one that passes.
TEST(Sampler, IntervalsHoldWhereverTheBudgetEnds) {
    constexpr int trials = 200;
    std::mt19937_64 random(20261126);
    std::normal_distribution<double> normal;
    for (const double rho : {0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97}) {
        int covered_of_all = 0, shown_of_all = 0;
        for (const int budget : {20, 30, 50, 80, 120, 200, 400, 800}) {
            int covered = 0, shown = 0;
            for (int trial = 0; trial < trials; ++trial) {
                SamplerOptions options = quick();
                options.time_budget_s = 7;
                double state = normal(random), now_s = 0;
                const auto chunk = [&] {
                    now_s += options.time_budget_s / budget;
                    state = rho * state + std::sqrt(1 - rho * rho) * normal(random);
                    return std::vector<double>{4 * (1 + 0.1 * state)};
                };
                const Summary summary =
                    sample_by_clock(chunk, options, never, {}, [&] { return now_s; }).timing.summary_ms;
                shown += summary.has_interval();
                covered += summary.has_interval() && summary.ci_low <= 4 && 4 <= summary.ci_high;
            }
            EXPECT_LE(shown - covered, trials * 5 / 100) << "rho " << rho << ", a budget of " << budget;
            if (shown >= trials / 4) {
                EXPECT_GE(covered, shown * 90 / 100) << "rho " << rho << ", " << budget;
            }
            covered_of_all += covered;
            shown_of_all += shown;
        }
        const double coverage = static_cast<double>(covered_of_all) / shown_of_all;
        RecordProperty("coverage_at_rho_" + std::to_string(rho), std::to_string(coverage));
        EXPECT_GE(coverage, 0.92) << "rho " << rho;
        if (rho == 0) {
            EXPECT_GE(shown_of_all, 8 * trials * 99 / 100) << "ten do where samples do not correlate";
        }
    }
}

TEST(Sampler, EndsWithTheBudgetAndSaysThatItDidNotConverge) {
    SamplerOptions options = quick();
    options.time_budget_s = 0.05;
    std::mt19937 random(1);
    std::uniform_real_distribution<double> wild(1.0, 100.0);
    const auto start = std::chrono::steady_clock::now();
    const Sampled s = sample(
        [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return std::vector<double>{wild(random)};
        },
        options, never);
    EXPECT_FALSE(s.converged);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
}

TEST(Sampler, DiscardsAndCountsThrottledSamples) {
    int asked = 0;
    // The first ten chunks are throttled (the sampler asks before and after a chunk).
    const Sampled s =
        sample([&] { return std::vector<double>{asked <= 20 ? 9.0 : 1.0}; }, quick(), [&] { return ++asked <= 10; });
    EXPECT_GT(s.throttled, 0);
    EXPECT_EQ(s.timing.samples_ms.size() >= 20u, true);
    EXPECT_TRUE(s.converged);
}

TEST(Sampler, KeepsThrottledSamplesWhenThereAreNoOthersButDoesNotCallThemGood) {
    SamplerOptions options = quick();
    options.time_budget_s = 0.02;
    const Sampled s = sample([] { return std::vector<double>{3.0}; }, options, [] { return true; });
    EXPECT_FALSE(s.timing.samples_ms.empty());
    EXPECT_FALSE(s.converged);
    EXPECT_GT(s.throttled, 0);
}

/// Calls that say of every third chunk whether the process was starved in one of the last three.
struct Starving {
    std::function<bool(int chunk)> starved;
    int chunks = 0, since = 0;
    bool any = false;

    std::vector<double> chunk() {
        ++chunks;
        ++since;
        any = any || starved(chunks);
        return {starved(chunks) ? 9.0 : 1.0};
    }
    WindowCalls calls() {
        WindowCalls calls;
        calls.begin = [this] {
            since = 0;
            any = false;
        };
        calls.starved = [this](bool last) -> std::optional<bool> {
            if (!last && since < 3) return std::nullopt;
            since = 0;
            return std::exchange(any, false);
        };
        return calls;
    }
};

TEST(Sampler, DiscardsAndRepeatsStarvedSamples) {
    Starving host{[](int chunk) { return chunk % 10 == 0; }};
    SamplerOptions options = quick();
    options.min_samples = options.max_samples = 40;
    const Sampled s = sample([&] { return host.chunk(); }, options, never, host.calls());
    ASSERT_EQ(s.timing.samples_ms.size(), 40u);
    EXPECT_EQ(s.timing.summary_ms.max, 1.0) << "with those around them, of which nobody knows";
    EXPECT_GT(s.starved, 9);
    EXPECT_EQ(s.ended_s.size(), 40u);
    EXPECT_FALSE(s.kept_starved);
    EXPECT_EQ(s.throttled, 0);
}

TEST(Sampler, TheLastChunksAreSettledBeforeTheyCount) {
    Starving host{[](int chunk) { return chunk == 20; }};
    SamplerOptions options = quick();
    options.min_samples = options.max_samples = 20;  // no multiple of three
    const Sampled s = sample([&] { return host.chunk(); }, options, never, host.calls());
    EXPECT_EQ(s.timing.samples_ms.size(), 20u);
    EXPECT_EQ(s.timing.summary_ms.max, 1.0);
}

TEST(Sampler, KeepsStarvedSamplesWhereTooFewOthersCameAndDoesNotCallThemGood) {
    Starving host{[](int chunk) { return chunk > 4; }};
    SamplerOptions options = quick();
    options.time_budget_s = 0.02;
    const auto start = std::chrono::steady_clock::now();
    const Sampled s = sample([&] { return host.chunk(); }, options, never, host.calls());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_TRUE(s.kept_starved);
    EXPECT_FALSE(s.converged);
    EXPECT_EQ(s.starved, 0) << "none is left out";
    EXPECT_EQ(s.timing.samples_ms.size() + 1, static_cast<std::size_t>(host.chunks)) << "but the warm-up";
    EXPECT_TRUE(std::ranges::is_sorted(s.ended_s));
    EXPECT_GE(seconds, 0.06) << "for three time budgets it tried";
    EXPECT_LT(seconds, 1);
}

TEST(Sampler, EnoughCleanSamplesEndItWithTheBudget) {
    Starving host{[](int chunk) { return chunk > 31; }};
    SamplerOptions options = quick();
    options.time_budget_s = 0.05;
    options.min_samples = 1000000;
    const Sampled s = sample([&] { return host.chunk(); }, options, never, host.calls());
    EXPECT_EQ(s.timing.samples_ms.size(), 30u) << "a median of 20 and more is one";
    EXPECT_EQ(s.timing.summary_ms.max, 1.0);
    EXPECT_LT(s.ended_s.back(), 0.05);
    EXPECT_FALSE(s.kept_starved);
}

/// Samples of as long as `each`.
Sampled slow(std::chrono::milliseconds each, double budget_s, const WindowCalls& calls = {}) {
    SamplerOptions options;
    options.warm_up_s = 0;
    options.time_budget_s = budget_s;
    options.trial_budget_s = 0.01;
    return sample(
        [&] {
            std::this_thread::sleep_for(each);
            return std::vector<double>{1.0};
        },
        options, never, calls);
}

TEST(Sampler, SlowWorkHasFiveSamplesHoweverShortTheBudget) {
    using namespace std::chrono_literals;
    double all_s = 0, one_s = 0;
    WindowCalls calls;
    calls.takes_longer = [&](double all, double one) {
        all_s = all;
        one_s = one;
    };
    EXPECT_EQ(slow(100ms, 0.02, calls).timing.samples_ms.size(), 5u);
    EXPECT_GE(one_s, 0.1) << "and whoever waits is told";
    EXPECT_DOUBLE_EQ(all_s, 5 * one_s);
}

TEST(Sampler, ATrialEndsAfterThreeBudgets) {
    using namespace std::chrono_literals;
    EXPECT_LE(slow(10ms, 0.005).timing.samples_ms.size(), 2u);
}

/// Samples of half a millisecond whose figures are `ms` of their number, under a budget of 0.1 s.
Sampled numbered(const std::function<double(int)>& ms, double trial_budget_s, std::size_t max_samples = 20000) {
    SamplerOptions options = quick();
    options.max_samples = max_samples;
    options.time_budget_s = 0.1;
    options.trial_budget_s = trial_budget_s;
    options.target_relative_ci = 0;
    int number = 0;
    return sample(
        [&] {
            std::this_thread::sleep_for(std::chrono::microseconds(500));
            return std::vector<double>{ms(number++)};
        },
        options, never);
}

TEST(Sampler, GoesOnForUpToThreeBudgetsWhereTooFewAreIndependent) {
    const auto rising = [](int number) { return 1 + 1e-3 * number; };
    const Sampled few = numbered(rising, 0.01);
    EXPECT_FALSE(few.timing.summary_ms.has_interval());
    EXPECT_GT(few.ended_s.back(), 0.25);
    EXPECT_LT(numbered(rising, 1).ended_s.back(), 0.25) << "a trial does not";
    for (const std::size_t most : {100, 150, 180})
        EXPECT_LE(numbered(rising, 0.01, most).timing.samples_ms.size(), most);
    std::mt19937 random(1);
    std::normal_distribution<double> noise(1, 0.01);
    const Sampled enough = numbered([&](int) { return noise(random); }, 0.01);
    EXPECT_TRUE(enough.timing.summary_ms.has_interval());
    EXPECT_LT(enough.ended_s.back(), 0.25);
}

TEST(Sampler, TheWindowBeginsAfterTheWarmUpAndEndsWithTheLastSample) {
    SamplerOptions options = quick();
    options.warm_up_s = 0.01;
    std::string order;
    const auto write = [&order](char what) {
        if (order.empty() || order.back() != what) order += what;
    };
    sample(
        [&] {
            write('c');
            return std::vector<double>{1.0};
        },
        options,
        [&] {
            write('t');
            return false;
        },
        {[&] { write('b'); }, [&] { write('e'); }});
    EXPECT_EQ(order.substr(0, 5), "cbtct") << "chunks of the warm-up, begin, and the first sample";
    EXPECT_EQ(order.substr(order.size() - 3), "cte");
    EXPECT_EQ(std::count(order.begin(), order.end(), 'b'), 1);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'e'), 1);
}

TEST(Sampler, NotesWhenEachSampleEndedAndHowMuchOfTheWindowTheyAre) {
    SamplerOptions options = quick();
    options.min_samples = options.max_samples = 40;
    int chunks = 0;
    const auto chunk = [&] {
        ++chunks;
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
        return std::vector<double>{1.0, 1.0};
    };
    // Chunks 2 to 6, the first ones behind the warm-up, are discarded.
    const auto start = std::chrono::steady_clock::now();
    const Sampled s = sample(chunk, options, [&] { return chunks >= 2 && chunks <= 6; });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_EQ(s.ended_s.size(), s.timing.samples_ms.size());
    EXPECT_GE(s.ended_s.front(), 0.004 * s.throttled / 2 + 0.002) << "discarded samples take their time";
    for (std::size_t i = 2; i < s.ended_s.size(); ++i)
        EXPECT_GE(s.ended_s[i] - s.ended_s[i - 2], 0.002) << "two samples a chunk " << i;
    EXPECT_LE(s.ended_s.back(), seconds);
    EXPECT_GT(s.throttled, 0);
    const double all_s = 1e-3 * static_cast<double>(s.timing.samples_ms.size() + static_cast<std::size_t>(s.throttled));
    EXPECT_GE(s.timed_share, all_s / seconds) << "of discarded samples, too";
    EXPECT_LE(s.timed_share, 0.5) << "a chunk of two samples of 1 ms takes 4 ms or more";
}

TEST(Sampler, SamplesForAtLeastTheMinimumTime) {
    SamplerOptions options = quick();
    options.min_time_s = 0.1;
    const auto start = std::chrono::steady_clock::now();
    sample(
        [] {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            return std::vector<double>{1.0};
        },
        options, never);
    EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 0.1);
}

}  // namespace
}  // namespace kbench
