// The sampler stops when it knows enough, repeats what was throttled, and ends when told to.
#include "bench/measure/sampler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

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

TEST(Sampler, StopsAtTheMinimumWhenSamplesAgree) {
    int calls = 0;
    const Sampled s = sample([&] { return ++calls, std::vector<double>{2.0}; }, quick(), never);
    EXPECT_EQ(s.timing.samples_ms.size(), 20u);
    EXPECT_EQ(calls, 21) << "one warm-up run and twenty samples";
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
