// The cycle account: shares, intervals that hold what a simulated scheduler did, and counts that contradict each other.
#include "analysis/explain/cycles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "kbench/result.h"

namespace kbench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double clock_mhz = 1000;

/// A step of one kernel of 100 us at 1000 MHz: SMs have a warp for 80 us, the longest for 90.
StepResult counted_step() {
    StepResult step;
    step.layer = "h.0.attn";
    step.kernels.emplace_back().time_us = 100;
    step.counters = {{"sm_cycles_active", 80e3},
                     {"sm_cycles_active_max", 90e3},
                     {"sm_cycles_elapsed", 95e3},
                     {"smsp_active", 100 * 76.0 / 95},
                     {"ipc", 1.0}};
    return step;
}

/// What a scheduler does in many cycles: every warp is ready or waits for one of three reasons, as chance has it.
struct Simulated {
    std::array<double, 3> lost{};  ///< mean share of warps that wait for each, over cycles without an issue
    double issuing = 0;
    StepResult step;
    std::map<std::string, double> samples;  ///< from every cycle without an issue
};
Simulated simulate(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform;
    const int warps = 1 + static_cast<int>(random() % 8);
    const double ready = 0.05 + 0.5 * uniform(random);
    std::array<double, 3> of_waiting{uniform(random), uniform(random), uniform(random)};
    constexpr int cycles = 20000;
    double issued = 0, eligible = 0, lost_warps = 0;
    std::array<double, 3> waiting{}, waiting_lost{};
    for (int cycle = 0; cycle < cycles; ++cycle) {
        int now_ready = 0;
        std::array<double, 3> now{};
        for (int warp = 0; warp < warps; ++warp) {
            if (uniform(random) < ready) {
                ++now_ready;
                continue;
            }
            // Which reason prevails changes with time, so that waiting in cycles with an issue differs from the rest.
            const double tilt = cycle % 7 < 3 ? 3 : 1;
            const double all = of_waiting[0] * tilt + of_waiting[1] + of_waiting[2];
            const double draw = uniform(random) * all;
            ++now[draw < of_waiting[0] * tilt ? 0 : draw < of_waiting[0] * tilt + of_waiting[1] ? 1 : 2];
        }
        eligible += now_ready;
        issued += now_ready > 0;
        for (std::size_t r = 0; r < 3; ++r) {
            waiting[r] += now[r];
            if (now_ready == 0) waiting_lost[r] += now[r];
        }
        if (now_ready == 0) lost_warps += warps;
    }
    Simulated simulated;
    simulated.issuing = issued / cycles;
    for (std::size_t r = 0; r < 3; ++r) simulated.lost[r] = lost_warps > 0 ? waiting_lost[r] / lost_warps : 0;
    simulated.step = counted_step();
    const double per_issue = 1 / issued;
    auto& counters = simulated.step.counters;
    counters["issue_active"] = 100 * simulated.issuing;
    counters["warps_active"] = warps;
    counters["warps_eligible"] = eligible / cycles;
    counters["stall_selected"] = 1;
    counters["stall_not_selected"] = (eligible - issued) * per_issue;
    counters["stall_wait"] = waiting[0] * per_issue;
    counters["stall_barrier"] = waiting[1] * per_issue;
    counters["stall_long_scoreboard"] = waiting[2] * per_issue;
    simulated.samples = {{"sampled_wait", waiting_lost[0]},
                         {"sampled_barrier", waiting_lost[1]},
                         {"sampled_long_scoreboard", waiting_lost[2]}};
    return simulated;
}

CycleAccount account_at(const StepResult& step, double mhz) {
    PointFacts run;
    run.clock_mhz = Interval::exactly(mhz);
    return account_of(make_step_facts(step, run));
}

CycleAccounts cycles_of(const Point& point) { return account_cycles(make_facts(point, {})); }

const LostCycles* find(const CycleAccount& account, std::string_view reason) {
    const auto found = std::ranges::find(account.lost, reason, &LostCycles::reason);
    return found == account.lost.end() ? nullptr : &*found;
}

TEST(Cycles, AreThoseOfTheTimeAtTheRunsClock) {
    const CycleAccount account = account_at(counted_step(), clock_mhz);
    ASSERT_THAT(account.unavailable, IsEmpty());
    EXPECT_NEAR(account.no_warp, 0.24, 1e-9);  // partitions have a warp for 76 us
    EXPECT_NEAR(*account.ends, 0.10, 1e-9);    // the longest SM for 90
    EXPECT_NEAR(*account.uneven, 0.14, 1e-9);
    EXPECT_NEAR(account.issuing, 0.20, 1e-9);  // an instruction a cycle of 80 us, by four schedulers
    EXPECT_NEAR(account.not_issuing, 0.56, 1e-9);
    EXPECT_THAT(account.lost, IsEmpty());
    EXPECT_THAT(account.not_split, HasSubstr("--counters core,stalls"));
}

/// Older results have neither the longest SM nor its partitions.
TEST(Cycles, OfOlderResultsHaveNoEnds) {
    StepResult step = counted_step();
    for (const char* name : {"sm_cycles_active_max", "smsp_active", "sm_cycles_elapsed"}) step.counters.erase(name);
    const CycleAccount account = account_at(step, clock_mhz);
    EXPECT_NEAR(account.no_warp, 0.2, 1e-9);
    EXPECT_FALSE(account.ends);
    EXPECT_FALSE(account.uneven);
}

TEST(Cycles, TakeIssuesWhereTheyWereCounted) {
    StepResult step = counted_step();
    step.counters["issue_active"] = 50;
    EXPECT_NEAR(account_at(step, clock_mhz).issuing, 0.38, 1e-9);
}

TEST(Cycles, WithoutCountersAreUnavailable) {
    StepResult step = counted_step();
    step.counters.clear();
    EXPECT_THAT(account_at(step, clock_mhz).unavailable, HasSubstr("not counted"));
    step.kernels.clear();
    EXPECT_THAT(account_at(step, clock_mhz).unavailable, HasSubstr("not timed"));
}

/// More active cycles than the time holds show, and are not cut off.
TEST(Cycles, BeyondTheTimeAreNegativeWithoutAWarp) {
    StepResult step = counted_step();
    step.kernels.front().time_us = 70;
    EXPECT_LT(account_at(step, clock_mhz).no_warp, -0.05);
}

TEST(Cycles, IntervalsHoldWhatASimulatedSchedulerDid) {
    int narrow = 0;
    for (unsigned seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        const Simulated simulated = simulate(seed);
        if (simulated.issuing > 0.999) continue;
        const CycleAccount account = account_at(simulated.step, clock_mhz);
        ASSERT_THAT(account.not_split, IsEmpty());
        EXPECT_NEAR(account.issuing, 0.76 * simulated.issuing, 1e-9);
        const std::array names{"wait", "barrier", "long_scoreboard"};
        for (std::size_t r = 0; r < names.size(); ++r) {
            const LostCycles* lost = find(account, names[r]);
            const double truth = account.not_issuing * simulated.lost[r];
            if (lost == nullptr) {
                EXPECT_EQ(truth, 0) << names[r];
                continue;
            }
            EXPECT_LE(lost->low, lost->share);
            EXPECT_LE(lost->share, lost->high);
            EXPECT_LE(lost->low, truth + 1e-9) << names[r];
            EXPECT_GE(lost->high, truth - 1e-9) << names[r];
            narrow += lost->high - lost->low < 0.5 * account.not_issuing;
        }
    }
    EXPECT_GT(narrow, 150);  // an interval from nothing to all would hold as well
}

TEST(Cycles, SamplesSayWhatASimulatedSchedulerDid) {
    for (unsigned seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE(seed);
        Simulated simulated = simulate(seed);
        if (simulated.issuing > 0.999) continue;
        simulated.step.counters.insert(simulated.samples.begin(), simulated.samples.end());
        Point point;
        point.conditions.sm_clock_mhz = Quantity::measured(clock_mhz);
        point.steps = {simulated.step};
        const CycleAccounts accounts = cycles_of(point);
        const CycleAccount& account = accounts.steps[0];
        EXPECT_TRUE(account.has_bounds);
        const std::array names{"wait", "barrier", "long_scoreboard"};
        double before = 1;
        for (const LostCycles& lost : account.lost) {
            EXPECT_LE(lost.best(), before) << "the largest first";
            before = lost.best();
        }
        for (std::size_t r = 0; r < names.size(); ++r) {
            const LostCycles* lost = find(account, names[r]);
            if (lost == nullptr) continue;
            EXPECT_NEAR(lost->sampled.value(), account.not_issuing * simulated.lost[r], 1e-9) << names[r];
        }
        EXPECT_EQ(accounts.outside, 0);
    }
}

/// Samples that say something else than the counters are found out, and samples alone are enough for a split.
TEST(Cycles, SamplesOutsideOfTheCountedBoundsAreSaid) {
    Simulated simulated = simulate(3);
    Point point;
    point.conditions.sm_clock_mhz = Quantity::measured(clock_mhz);
    point.steps = {simulated.step};
    point.steps[0].counters.insert({{"sampled_membar", 90}, {"sampled_wait", 10}});
    CycleAccounts accounts = cycles_of(point);
    EXPECT_GE(accounts.outside, 1);
    EXPECT_EQ(accounts.steps[0].lost.front().reason, "membar");
    point.steps = {counted_step()};
    point.steps[0].counters.insert({{"sampled_warpgroup_arrive", 30}, {"sampled_wait", 10}});
    accounts = cycles_of(point);
    EXPECT_EQ(accounts.compared, 0);
    EXPECT_THAT(accounts.steps[0].not_split, IsEmpty());
    EXPECT_FALSE(accounts.steps[0].has_bounds);
    EXPECT_EQ(accounts.steps[0].lost.front().reason, "gmma") << "as the counters call it";
    EXPECT_NEAR(accounts.steps[0].lost.front().sampled.value(), 0.75 * accounts.steps[0].not_issuing, 1e-9);
}

TEST(Cycles, OfAStepWithoutATimeAreUnavailable) {
    StepResult step = counted_step();
    step.kernels[0].time_us = 0;
    EXPECT_EQ(account_at(step, clock_mhz).unavailable, "the step was not timed");
    step.kernels[0].time_us = 100;
    step.counters["sm_cycles_active"] = 0;
    EXPECT_EQ(account_at(step, clock_mhz).unavailable, "active cycles and instructions were not counted");
}

/// Half of the cycles issue, of four warps; `waiting` of them, in the mean, for memory barriers. Samples say that these
/// are `sampled` of the step's time.
Point barrier_waits(double waiting, double sampled) {
    StepResult step = counted_step();
    step.counters = {{"sm_cycles_active", 100e3},   {"sm_cycles_elapsed", 100e3},
                     {"smsp_active", 100},          {"ipc", 2},
                     {"issue_active", 50},          {"warps_active", 4},
                     {"warps_eligible", 0.5},       {"stall_selected", 1},
                     {"stall_membar", 2 * waiting}, {"stall_wait", 2 * (3.5 - waiting)}};
    if (sampled > 0)
        step.counters.insert({{"sampled_membar", 2000 * sampled}, {"sampled_wait", 1000 - 2000 * sampled}});
    Point point;
    point.conditions.sm_clock_mhz = Quantity::measured(clock_mhz);
    point.steps = {step};
    return point;
}

TEST(Cycles, NeedEveryCounterThatTheyAreMadeOf) {
    const StepResult counted = barrier_waits(0.7, 0).steps[0];
    EXPECT_EQ(account_at(counted, clock_mhz).not_split, "");
    const auto without = [&](const char* counter) {
        StepResult step = counted;
        step.counters.erase(counter);
        return account_at(step, clock_mhz);
    };
    for (const char* counter : {"sm_cycles_active", "ipc"})
        EXPECT_THAT(without(counter).unavailable, HasSubstr("were not counted")) << counter;
    for (const char* counter : {"issue_active", "warps_active", "warps_eligible", "stall_selected"}) {
        EXPECT_EQ(without(counter).unavailable, "") << counter;
        EXPECT_THAT(without(counter).not_split, HasSubstr("what warps wait for was not counted")) << counter;
    }
}

TEST(Cycles, SamplesAreComparedFromAFiftiethOfTheTimeOnWithinAHundredth) {
    using Counts = std::pair<std::size_t, std::size_t>;
    const auto compared = [](double sampled) {
        const CycleAccounts accounts = cycles_of(barrier_waits(0.1, sampled));
        return Counts{accounts.compared, accounts.outside};
    };
    EXPECT_EQ(compared(0.0195), Counts(1, 0)) << "waiting for anything else alone";
    EXPECT_EQ(compared(0.0205), Counts(2, 0));
    // At most 0.1 of two warps wait in half of the cycles, 2.5 %; all others at least in 47.5 %.
    EXPECT_EQ(compared(0.0345), Counts(2, 0));
    EXPECT_EQ(compared(0.0355), Counts(2, 2));
}

TEST(Cycles, OfALayerAreSumsOfWhatItsStepsLost) {
    Point point = barrier_waits(0.7, 0);
    point.steps.push_back(barrier_waits(1.4, 0).steps[0]);
    for (auto& [name, count] : point.steps[1].counters)
        if (name.starts_with("sm_cycles")) count *= 3;
    point.steps[1].kernels[0].time_us = 300;
    const CycleAccounts accounts = cycles_of(point);
    ASSERT_EQ(accounts.by_layer.size(), 1u);
    for (const CycleGroup* group : {&accounts.total, &accounts.by_layer[0]}) {
        ASSERT_EQ(group->lost.size(), 2u);
        EXPECT_EQ(group->lost[1].reason, "membar");
        // A fifth and two fifths of the half of the time in which nothing issues.
        EXPECT_NEAR(group->lost[1].share, 0.1 * 100 + 0.2 * 300, 1e-9);
        EXPECT_NEAR(group->lost[1].high, 0.5 * 0.35 * 100 + 0.5 * 0.7 * 300, 1e-9);
        EXPECT_NEAR(group->lost[1].low, 0, 1e-9);
        EXPECT_NEAR(group->lost[0].low, 0.5 * 0.65 * 100 + 0.5 * 0.3 * 300, 1e-9);
    }
}

/// As an H200 counted native_mma at 8192 x 8192 x 8192 in fp16, worked out by hand.
TEST(Cycles, OfARealMatrixProduct) {
    StepResult step = counted_step();
    step.kernels.front().time_us = 2435.649;
    step.counters = {{"sm_cycles_active", 3600953},
                     {"sm_cycles_active_max", 3716637},
                     {"sm_cycles_elapsed", 3753933},
                     {"smsp_active", 96.4417},
                     {"ipc", 1.2221},
                     {"issue_active", 30.5615},
                     {"warps_active", 1.99958},
                     {"warps_eligible", 0.4158},
                     {"stall_barrier", 0.369114},
                     {"stall_branch_resolving", 0.016684},
                     {"stall_dispatch", 0.049529},
                     {"stall_long_scoreboard", 0.299162},
                     {"stall_math_pipe_throttle", 1.879664},
                     {"stall_mio_throttle", 0.302827},
                     {"stall_no_instruction", 0.013233},
                     {"stall_not_selected", 0.360442},
                     {"stall_selected", 1},
                     {"stall_short_scoreboard", 0.125423},
                     {"stall_wait", 2.110241}};
    const CycleAccount account = account_at(step, 1686.667);
    ASSERT_THAT(account.not_split, IsEmpty());
    // 3,600,953 cycles at 1,686.667 MHz are 2,134.95 us of 2,435.65; 3,716,637 are 2,203.54.
    EXPECT_NEAR(*account.ends, 0.0953, 2e-4);
    EXPECT_NEAR(account.no_warp, 0.1235, 1e-4);
    EXPECT_NEAR(account.issuing, 0.2679, 1e-4);
    const auto expect = [&](const char* reason, double low, double share, double high) {
        const LostCycles* lost = find(account, reason);
        ASSERT_NE(lost, nullptr) << reason;
        EXPECT_NEAR(lost->low / account.not_issuing, low, 0.005) << reason;
        EXPECT_NEAR(lost->share / account.not_issuing, share, 0.005) << reason;
        EXPECT_NEAR(lost->high / account.not_issuing, high, 0.005) << reason;
    };
    expect("wait", 0.324, 0.407, 0.464);
    expect("math_pipe_throttle", 0.274, 0.363, 0.414);
    expect("barrier", 0, 0.071, 0.081);
    EXPECT_EQ(account.lost.front().reason, "wait");
}

/// A planted lie in any one of the counts withholds the reasons.
TEST(Cycles, CountsThatContradictEachOtherAreNotSplit) {
    for (const char* name : {"stall_wait", "stall_selected", "warps_eligible", "warps_active"}) {
        Simulated simulated = simulate(3);
        simulated.step.counters[name] *= 1.2;
        const CycleAccount account = account_at(simulated.step, clock_mhz);
        EXPECT_THAT(account.lost, IsEmpty()) << name;
        EXPECT_THAT(account.not_split, HasSubstr("apart")) << name;
    }
}

TEST(Cycles, OfAModelAreThoseOfItsStepsByTime) {
    Point point;
    point.conditions.sm_clock_mhz = Quantity::measured(clock_mhz);
    point.steps = {simulate(1).step, counted_step(), counted_step()};
    point.steps[1].layer = "ln_f";
    point.steps[1].kernels.front().time_us = 300;
    point.steps[2].counters.clear();
    const CycleAccounts accounts = cycles_of(point);
    ASSERT_EQ(accounts.steps.size(), 3u);
    ASSERT_EQ(accounts.by_layer.size(), 2u);
    EXPECT_EQ(accounts.by_layer[0].name, "ln_f");
    EXPECT_NEAR(accounts.total.time_us, 400, 1e-9);
    EXPECT_NEAR(accounts.total.no_warp_us, 24 + 224, 1e-6);
    EXPECT_NEAR(accounts.total.no_warp_us + accounts.total.issuing_us + accounts.total.not_issuing_us, 400, 1e-6);
    EXPECT_NEAR(accounts.total.not_split_us, accounts.by_layer[0].not_issuing_us, 1e-9);
    EXPECT_NEAR(accounts.uncounted_us, 100, 1e-9);
    EXPECT_TRUE(accounts.has_ends);
}

std::string shown(const std::vector<StepResult>& steps) {
    Result result;
    Point& point = result.points.emplace_back();
    point.conditions.sm_clock_mhz = Quantity::measured(clock_mhz);
    point.steps = steps;
    Explanation explanation;
    explanation.cycles = cycles_of(point);
    const ExplainedResult explained(result, {std::move(explanation)});
    return render_markdown({"", {section_called("cycles", {explained})}});
}

TEST(Cycles, AreShownByLayerWithIntervalsOrWhyThereAreNone) {
    const std::string split = shown({simulate(1).step});
    EXPECT_THAT(split, ContainsRegex("h.\\*.attn. \\| 0.1000 \\| 24.0 \\| 10.0 \\| 14.0 \\|"));
    EXPECT_THAT(split, ContainsRegex("long..?scoreboard [0-9]+ ..?[0-9]+, [0-9]+"));
    EXPECT_THAT(split, HasSubstr("reasons and resident warps 0.0 %"));
    EXPECT_THAT(split, Not(ContainsRegex("not split [0-9]")));
    const std::string whole = shown({counted_step()});
    EXPECT_THAT(whole, HasSubstr("not split 56"));
    EXPECT_THAT(whole, HasSubstr("Not split: what warps wait for was not counted"));
    StepResult uncounted = counted_step();
    uncounted.counters.clear();
    EXPECT_THAT(shown({counted_step(), uncounted}), HasSubstr("Steps with 0.100 ms have no such counters."));
    EXPECT_THAT(shown({uncounted}), Not(HasSubstr("Cycles")));
}

}  // namespace
}  // namespace kbench
