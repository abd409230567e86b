// Rules and hypotheses on bare figures, so that every threshold can be met to the last bit: it decides from its own
// value on, and not a hundredth below.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "analysis/explain/verdict_rules.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::bandwidth, known::compute, known::latency, known::launch, known::occupancy, known::unknown;
using testing::HasSubstr;

/// All roofs and counters known, and nothing anywhere near.
VerdictFacts quiet() {
    VerdictFacts f;
    f.time_us = 100;
    f.occupancy_pct = 50;
    f.launched = f.empty_known = f.compute_known = f.memory_known = f.bytes_counted = f.split = true;
    f.units = {{}, {"tensor pipe", 0}, {"shared memory", 0}, true};
    return f;
}

struct Threshold {
    std::string name;
    std::function<void(VerdictFacts&, double)> set;
    double at;
    std::string below, reached;  ///< rules that decide
};
void PrintTo(const Threshold& t, std::ostream* out) { *out << t.name; }

class Thresholds : public testing::TestWithParam<Threshold> {};

TEST_P(Thresholds, DecideFromTheirOwnValueOn) {
    const Threshold& t = GetParam();
    const auto decided_at = [&](double value) {
        VerdictFacts f = quiet();
        t.set(f, value);
        return std::string(deciding_rule(f).shown.id);
    };
    EXPECT_EQ(decided_at(t.at * 0.99), t.below);
    EXPECT_EQ(decided_at(t.at), t.reached);
    EXPECT_EQ(decided_at(t.at * 1.01), t.reached);
}

const Threshold thresholds[] = {
    {"Gap", [](VerdictFacts& f, double x) { f.gap_share = x; }, 0.50, "no-bottleneck", "gap"},
    {"EmptyKernel", [](VerdictFacts& f, double x) { f.empty_share = x; }, 0.60, "no-bottleneck", "empty-kernel"},
    {"TwoRoofsLesserReaches",
     [](VerdictFacts& f, double x) {
         f.compute_share = x;
         f.memory_share = 0.61;
     },
     0.60, "memory-roof", "two-roofs"},
    {"TwoRoofsRatioOfMemory",
     [](VerdictFacts& f, double x) {
         f.compute_share = 1;
         f.memory_share = x;
     },
     0.95, "compute-roof", "two-roofs"},
    {"TwoRoofsRatioOfCompute",
     [](VerdictFacts& f, double x) {
         f.memory_share = 1;
         f.compute_share = x;
     },
     0.95, "memory-roof", "two-roofs"},
    {"TensorPipelineRatio",
     [](VerdictFacts& f, double x) {
         f.is_fed_by_shared = true;
         f.memory_share = 1;
         f.compute_share = x;
     },
     0.80, "memory-roof", "tensor-pipeline"},
    {"TensorPipelineLesserReaches",
     [](VerdictFacts& f, double x) {
         f.is_fed_by_shared = true;
         f.compute_share = 0.65;
         f.memory_share = x;
     },
     0.60, "compute-roof", "tensor-pipeline"},
    {"MemoryRoof", [](VerdictFacts& f, double x) { f.memory_share = x; }, 0.60, "no-bottleneck", "memory-roof"},
    {"ComputeRoof", [](VerdictFacts& f, double x) { f.compute_share = x; }, 0.60, "no-bottleneck", "compute-roof"},
    {"IdleSms", [](VerdictFacts& f, double x) { f.idle_share = x; }, 0.30, "no-bottleneck", "idle-sms"},
    {"IdleSmsEvenWithWaiting",
     [](VerdictFacts& f, double x) {
         f.waiting_share = 0.30;
         f.idle_share = x;
     },
     0.30, "waiting", "idle-sms"},
    {"IdleSmsBesideABusyUnit",
     [](VerdictFacts& f, double x) {
         f.units.pipe.share = 0.95;
         f.waiting_share = 0.50;
         f.idle_share = x;
     },
     0.30, "busy-unit", "idle-sms"},
    {"BusyUnit", [](VerdictFacts& f, double x) { f.units.pipe.share = x; }, 0.80, "no-bottleneck", "busy-unit"},
    {"BusyMemory", [](VerdictFacts& f, double x) { f.units.memory.share = x; }, 0.80, "no-bottleneck", "busy-memory"},
    {"BusyUnitWhereWarpsWait",
     [](VerdictFacts& f, double x) {
         f.waiting_share = 0.9;
         f.units.pipe.share = x;
     },
     0.80, "half-busy", "busy-unit"},
    {"HalfBusyWhereWarpsWait",
     [](VerdictFacts& f, double x) {
         f.waiting_share = 0.9;
         f.units.pipe.share = x;
     },
     0.60, "waiting", "half-busy"},
    {"HalfBusyOfFewWarps",
     [](VerdictFacts& f, double x) {
         f.waiting_share = 0.9;
         f.occupancy_pct = 10;
         f.units.pipe.share = x;
     },
     0.60, "few-warps", "half-busy"},
    {"HalfBusyNeedsWaiting",
     [](VerdictFacts& f, double x) {
         f.units.pipe.share = 0.7;
         f.waiting_share = x;
     },
     0.30, "no-bottleneck", "half-busy"},
    {"DependentSteps",
     [](VerdictFacts& f, double x) {
         f.time_steps = 16;
         f.above_roofs_share = x;
     },
     0.50, "no-bottleneck", "time-steps"},
    {"DependentStepsAreMany",
     [](VerdictFacts& f, double x) {
         f.time_steps = static_cast<std::int64_t>(x);
         f.above_roofs_share = 0.9;
     },
     16, "no-bottleneck", "time-steps"},
    {"DependentStepsWithoutABusyUnit",
     [](VerdictFacts& f, double x) {
         f.time_steps = 500;
         f.above_roofs_share = 0.9;
         f.units.pipe.share = 1.2 - x;  // from the other side: busy is at least
     },
     std::nextafter(0.60, 1.0), "no-bottleneck", "time-steps"},
    {"Waiting", [](VerdictFacts& f, double x) { f.waiting_share = x; }, 0.30, "no-bottleneck", "waiting"},
    {"WaitingOfFewWarps",
     [](VerdictFacts& f, double x) {
         f.occupancy_pct = 20;
         f.waiting_share = x;
     },
     0.30, "no-bottleneck", "few-warps"},
    {"IdleSmsWhileAUnitIsBusy",
     [](VerdictFacts& f, double x) {
         f.idle_share = 0.35;
         f.waiting_share = 0.40;
         f.units.pipe.share = x;
     },
     0.80, "half-busy", "idle-sms"},
    {"FewWarpsAreFew",
     [](VerdictFacts& f, double x) {
         f.occupancy_pct = 60 - x;  // from the other side: few is at most
         f.waiting_share = 0.40;
     },
     30, "waiting", "few-warps"},
};
INSTANTIATE_TEST_SUITE_P(Verdict, Thresholds, testing::ValuesIn(thresholds),
                         [](const auto& c) { return c.param.name; });

TEST(VerdictRules, MemoryMustDemandMoreThanTheUnit) {
    VerdictFacts f = quiet();
    f.memory_share = f.compute_share = 0.59;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
    f.memory_share = 0.9;
    f.compute_share = 0.7;
    EXPECT_EQ(deciding_rule(f).shown.id, "memory-roof");
    std::swap(f.memory_share, f.compute_share);
    EXPECT_EQ(deciding_rule(f).shown.id, "compute-roof");
}

TEST(VerdictRules, TheirOrderIsThatOfTheTable) {
    VerdictFacts f = quiet();
    f.gap_share = f.empty_share = f.compute_share = f.memory_share = 0.9;
    f.idle_share = f.waiting_share = 0.9;
    f.taken = {Influence::unknown, Influence::binds, Influence::binds};
    f.causes_known = true;
    f.cause_share = 0.5;
    f.occupancy_pct = 10;
    f.time_steps = 500;
    f.above_roofs_share = 0.9;
    const std::vector<std::pair<std::string, std::function<void()>>> order{
        {"gap", [&] { f.gap_share = 0; }},
        {"empty-kernel", [&] { f.empty_share = 0; }},
        {"dram-taken", [&] { f.taken.dram = Influence::none; }},
        {"l2-taken", [&] { f.taken.l2 = Influence::partly; }},
        {"two-roofs", [&] { f.compute_share = 0.8; }},
        {"memory-roof", [&] { f.memory_share = 0; }},
        {"compute-roof", [&] { f.compute_share = 0; }},
        {"largest-cause",
         [&] {
             f.causes_known = false;
             f.units.pipe.share = 0.9;
             f.units.memory.share = 0.95;
         }},
        {"idle-sms", [&] { f.idle_share = 0; }},
        {"busy-memory", [&] { f.units.memory.share = 0; }},
        {"busy-unit", [&] { f.units.pipe.share = 0.7; }},
        {"half-busy", [&] { f.units.pipe.share = 0; }},
        {"time-steps", [&] { f.time_steps = 15; }},
        {"few-warps", [&] { f.occupancy_pct = 90; }},
        {"waiting", [&] { f.waiting_share = 0; }},
        {"no-bottleneck", [] {}},
    };
    for (const auto& [id, remove] : order) {
        EXPECT_EQ(deciding_rule(f).shown.id, id);
        remove();
    }
}

/// Schedulers that issue in 89 % of the cycles are what binds, however two shorter roof times tie.
TEST(VerdictRules, ABusyPipeSpeaksBeforeTwoRoofsThatTie) {
    VerdictFacts f = quiet();
    f.compute_share = 0.65;
    f.memory_share = 0.64;
    EXPECT_EQ(deciding_rule(f).shown.id, "two-roofs");
    f.units.pipe = {"issue slots", 0.89};
    EXPECT_EQ(deciding_rule(f).shown.id, "busy-unit");
    f.memory_share = 0.70;  // one memory's counter a tenth higher
    EXPECT_EQ(deciding_rule(f).shown.id, "busy-unit");
    f.memory_share = 0.90;
    EXPECT_EQ(deciding_rule(f).shown.id, "memory-roof");
}

TEST(VerdictRules, OneBlockAnSmIsNoLackOfWarps) {
    VerdictFacts f = quiet();
    f.occupancy_pct = 10;
    f.waiting_share = 0.9;
    EXPECT_EQ(deciding_rule(f).shown.id, "few-warps");
    f.one_block_an_sm = true;
    EXPECT_EQ(deciding_rule(f).shown.id, "waiting");
    f.idle_share = 0.95;
    f.waiting_share = 0;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
}

TEST(VerdictRules, TheLargestCauseIsOfItsOwnBound) {
    VerdictFacts f = quiet();
    f.causes_known = true;
    f.cause_bound = occupancy;
    f.cause_share = 0.19;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
    f.cause_share = 0.20;
    EXPECT_EQ(deciding_rule(f).shown.id, "largest-cause");
    EXPECT_EQ(bound_of(deciding_rule(f), f), occupancy);
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[4].finding, Finding::confirmed);
    f.causes_known = false;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
}

/// A busy pipe does not hide a memory that is nearly as busy, nor the other way round.
TEST(VerdictRules, TheBusierOfPipeAndMemorySpeaksAndTheOtherStays) {
    VerdictFacts f = quiet();
    f.units.pipe.share = 0.82;
    f.units.memory.share = 0.81;
    EXPECT_EQ(deciding_rule(f).shown.id, "busy-unit");
    f.units.memory.share = 0.82;
    EXPECT_EQ(deciding_rule(f).shown.id, "busy-unit") << "a memory must be the busier one";
    f.units.memory.share = 0.81;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[0].finding, Finding::not_identifiable);
    std::swap(f.units.pipe.share, f.units.memory.share);
    EXPECT_EQ(deciding_rule(f).shown.id, "busy-memory");
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[1].finding, Finding::not_identifiable);
}

TEST(VerdictRules, TheLargerOfWaitingAndIdleSmsSpeaks) {
    for (const std::string_view larger : {"idle-sms", "waiting"}) {
        VerdictFacts f = quiet();
        f.idle_share = larger == "idle-sms" ? 0.4 : 0.32;
        f.waiting_share = larger == "waiting" ? 0.4 : 0.32;
        EXPECT_EQ(deciding_rule(f).shown.id, larger);
    }
    VerdictFacts f = quiet();
    f.occupancy_pct = 10;
    f.waiting_share = 0.32;
    f.idle_share = 0.35;
    EXPECT_EQ(deciding_rule(f).shown.id, "idle-sms");
}

TEST(VerdictRules, WaitingNeedsEveryRoofEveryUnitAndTheSplit) {
    for (const double occupancy_pct : {10.0, 90.0}) {
        VerdictFacts f = quiet();
        f.occupancy_pct = occupancy_pct;
        f.waiting_share = 0.9;
        const std::string_view decided = deciding_rule(f).shown.id;
        EXPECT_EQ(decided, occupancy_pct == 10 ? "few-warps" : "waiting");
        for (bool VerdictFacts::*needed :
             {&VerdictFacts::split, &VerdictFacts::compute_known, &VerdictFacts::memory_known}) {
            f.*needed = false;
            EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
            f.*needed = true;
        }
        f.units.known = false;
        EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
        f.has_units = false;  // a CPU, of which nobody counts them
        EXPECT_EQ(deciding_rule(f).shown.id, decided);
    }
    VerdictFacts f = quiet();
    f.idle_share = 0.9;
    EXPECT_EQ(deciding_rule(f).shown.id, "idle-sms");
    f.split = false;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
}

TEST(VerdictRules, DependentStepsNeedEveryRoofEveryUnitTheSplitAndTheKernels) {
    VerdictFacts f = quiet();
    f.time_steps = 500;
    f.above_roofs_share = 0.9;
    EXPECT_EQ(deciding_rule(f).shown.id, "time-steps");
    EXPECT_EQ(deciding_rule(f).shown.bound, latency);
    for (bool VerdictFacts::*needed : {&VerdictFacts::split, &VerdictFacts::compute_known, &VerdictFacts::memory_known,
                                       &VerdictFacts::launched, &VerdictFacts::empty_known}) {
        f.*needed = false;
        EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
        EXPECT_NE(test_hypotheses(f, deciding_rule(f))[2].finding, Finding::confirmed);
        EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[2].why, "time-steps: at most 90 % where 50 % is needed");
        f.*needed = true;
    }
    f.units.known = false;
    EXPECT_EQ(deciding_rule(f).shown.id, "no-bottleneck");
}

TEST(VerdictRules, EveryLineSaysItsThreshold) {
    std::set<std::string_view> ids;
    for (const VerdictRule& rule : verdict_rules()) {
        EXPECT_TRUE(ids.insert(rule.id).second) << rule.id << " stands twice";
        if (rule.threshold == 1) continue;
        EXPECT_THAT(rule.text(), HasSubstr(fmt::format("{:.0f} % or more", rule.threshold * 100)));
    }
    EXPECT_EQ(ids.size(), 23);
}

// Hypotheses.

Finding finding_of(const VerdictFacts& f, Bound bound) {
    for (const Hypothesis& hypothesis : test_hypotheses(f, deciding_rule(f)))
        if (hypothesis.bound == bound) return hypothesis.finding;
    ADD_FAILURE() << "no hypothesis for " << name(bound);
    return Finding::confirmed;
}

struct Rejection {
    std::string name;
    Bound bound;
    std::function<void(VerdictFacts&, double)> set;
    double at;  ///< the smallest figure that rejects no more
};
void PrintTo(const Rejection& r, std::ostream* out) { *out << r.name; }

class Rejections : public testing::TestWithParam<Rejection> {};

TEST_P(Rejections, NeedAFigureUnderHalfOfTheThreshold) {
    const Rejection& r = GetParam();
    const auto found_at = [&](double value) {
        VerdictFacts f = quiet();
        r.set(f, value);
        return finding_of(f, r.bound);
    };
    EXPECT_EQ(found_at(r.at * 0.99), Finding::rejected);
    EXPECT_EQ(found_at(r.at), Finding::not_identifiable);
    EXPECT_EQ(found_at(r.at * 1.01), Finding::not_identifiable);
}

const Rejection rejections[] = {
    {"Bandwidth", bandwidth, [](VerdictFacts& f, double x) { f.memory_share = x; }, 0.30},
    {"BandwidthByUncountedBytes", bandwidth,
     [](VerdictFacts& f, double x) {
         f.memory_share = x;
         f.bytes_counted = false;
     },
     0.075},  // four times as many could be 30 %
    {"ComputeByTheUnit", compute, [](VerdictFacts& f, double x) { f.compute_share = x; }, 0.30},
    {"ComputeByAUnit", compute, [](VerdictFacts& f, double x) { f.units.pipe.share = x; }, 0.40},
    {"BandwidthByAUnit", bandwidth, [](VerdictFacts& f, double x) { f.units.memory.share = x; }, 0.40},
    {"Latency", latency, [](VerdictFacts& f, double x) { f.waiting_share = x; }, 0.15},
    {"LatencyByTheRest", latency,
     [](VerdictFacts& f, double x) {
         f.rest_share = x;
         f.split = false;
     },
     0.15},
    {"LatencyOfDependentSteps", latency,
     [](VerdictFacts& f, double x) {
         f.time_steps = 500;
         f.above_roofs_share = x;
     },
     0.25},
    {"LaunchByGaps", launch, [](VerdictFacts& f, double x) { f.gap_share = x; }, 0.25},
    {"LaunchByEmptyKernels", launch, [](VerdictFacts& f, double x) { f.empty_share = x; }, 0.30},
    {"OccupancyByIdleSms", occupancy, [](VerdictFacts& f, double x) { f.idle_share = x; }, 0.15},
    {"OccupancyByTheRest", occupancy,
     [](VerdictFacts& f, double x) {
         f.rest_share = x;
         f.split = false;
     },
     0.15},
    {"OccupancyByFewWarps", occupancy,
     [](VerdictFacts& f, double x) {
         f.waiting_share = x;
         f.occupancy_pct = 20;
     },
     0.15},
    {"OccupancyByUnknownWarps", occupancy,
     [](VerdictFacts& f, double x) {
         f.waiting_share = x;
         f.occupancy_pct.reset();
     },
     0.15},
};
INSTANTIATE_TEST_SUITE_P(Verdict, Rejections, testing::ValuesIn(rejections),
                         [](const auto& c) { return c.param.name; });

TEST(Hypotheses, WithoutTheirDataAreNotRejected) {
    const std::vector<std::pair<bool VerdictFacts::*, Bound>> needs{{&VerdictFacts::launched, launch},
                                                                    {&VerdictFacts::empty_known, launch},
                                                                    {&VerdictFacts::compute_known, compute},
                                                                    {&VerdictFacts::memory_known, bandwidth}};
    for (const auto& [needed, bound] : needs) {
        VerdictFacts f = quiet();
        EXPECT_EQ(finding_of(f, bound), Finding::rejected) << name(bound);
        f.*needed = false;
        EXPECT_EQ(finding_of(f, bound), Finding::not_identifiable) << name(bound);
    }
    VerdictFacts f = quiet();
    f.units.known = false;
    EXPECT_EQ(finding_of(f, compute), Finding::not_identifiable);
    EXPECT_EQ(finding_of(f, bandwidth), Finding::rejected);
    f.has_units = false;
    EXPECT_EQ(finding_of(f, compute), Finding::rejected);
}

TEST(Hypotheses, OfDependentStepsAreAskedWhereThereAreSeveral) {
    VerdictFacts f = quiet();
    f.above_roofs_share = 0.9;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[2].why, "waiting: 0 % where 30 % is needed");
    EXPECT_EQ(finding_of(f, latency), Finding::rejected);
    f.time_steps = 500;
    f.memory_share = 0.8;
    EXPECT_EQ(finding_of(f, latency), Finding::rejected) << "a roof that is reached is what they wait for";
}

/// Where a unit is busy warps wait for their turn, however many wait.
TEST(Hypotheses, OfWaitingAreRejectedByABusyUnit) {
    VerdictFacts f = quiet();
    f.waiting_share = 0.9;
    for (const double occupancy_pct : {10.0, 90.0}) {
        f.occupancy_pct = occupancy_pct;
        f.units.pipe.share = 0.80;
        EXPECT_EQ(finding_of(f, latency), Finding::rejected);
        EXPECT_EQ(finding_of(f, occupancy), Finding::rejected);
        EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[2].why,
                  "waiting: tensor pipe busy in 80 % of the active cycles");
        f.units.pipe.share = 0.79;
        EXPECT_EQ(finding_of(f, latency), Finding::not_identifiable);
        EXPECT_EQ(finding_of(f, compute), Finding::not_identifiable);
    }
    EXPECT_EQ(finding_of(f, occupancy), Finding::rejected);  // occupancy is 90 %
}

TEST(Hypotheses, OfRoofsSayTheirOwnShareWhateverIsBusy) {
    VerdictFacts f = quiet();
    f.compute_share = 0.9;
    f.memory_share = 0.1;
    f.idle_share = 0.2;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[0].why, "memory-roof: 10 % where 60 % is needed");
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[4].why, "idle-sms: 20 % where 30 % is needed");
}

TEST(Hypotheses, OfTwoRulesTheNearestToItsThresholdSaysWhy) {
    VerdictFacts f = quiet();
    f.idle_share = 0.10;
    f.waiting_share = 0.12;
    f.occupancy_pct = 20;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[4].why, "few-warps: 12 % where 30 % is needed");
    f.idle_share = 0.13;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[4].why, "idle-sms: 13 % where 30 % is needed");
    f.idle_share = 0.12;  // equally near: the earlier one
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[4].why, "idle-sms: 12 % where 30 % is needed");
    f.split = false;
    f.rest_share = 0.2;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[2].why, "waiting: at most 20 % where 30 % is needed");
    f.bytes_counted = false;
    f.memory_share = 0.2;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[0].why, "memory-roof: at least 20 % where 60 % is needed");
    f.memory_known = false;
    EXPECT_EQ(test_hypotheses(f, deciding_rule(f))[0].why, "memory-roof: not measured");
}

TEST(Hypotheses, AConfirmedOneSaysWhatDecided) {
    VerdictFacts f = quiet();
    f.memory_share = 0.75;
    f.bytes_counted = false;
    const Hypothesis confirmed = test_hypotheses(f, deciding_rule(f))[0];
    EXPECT_EQ(confirmed.finding, Finding::confirmed);
    EXPECT_EQ(confirmed.why, "memory-roof: 75 % where 60 % is needed");
}

}  // namespace
}  // namespace kbench
