// Bytes by role, layer and level on numbers made by hand; the machine is that of known_points.h: 10^6 bytes of DRAM are
// a microsecond.
#include "analysis/explain/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;

/// TimeBreakdowns point into results, so both are kept.
struct Attributed {
    Result result;
    Attribution attribution;
    explicit Attributed(Result from) : result(std::move(from)) {
        const known::Accounts accounts = known::accounts_of(result);
        attribution = attribute_bandwidth(accounts.facts, accounts.roof_times);
    }
    const RoleTraffic& of(Role role) const {
        const auto found = std::ranges::find(attribution.roles, role, &RoleTraffic::role);
        static const RoleTraffic none{};
        EXPECT_NE(found, attribution.roles.end()) << name(role);
        return found == attribution.roles.end() ? none : *found;
    }
};

/// 30 MB of weights, 40 read and 20 written of activations, 10 of scores: 100 MB, 100 us; `dram_mb` were counted in a
/// step of 200 us.
Result one_step(double dram_mb, Step step = {}) {
    step.us = 200;
    step.dram = dram_mb / 200;
    Result result = known::result_of({step});
    Cost& cost = result.points[0].steps[0].cost;
    cost.bytes_read.fill(0);
    cost.bytes_read[static_cast<std::size_t>(Role::weights)] = 30e6;
    cost.bytes_read[static_cast<std::size_t>(Role::activations)] = 40e6;
    cost.bytes_written[static_cast<std::size_t>(Role::activations)] = 20e6;
    cost.bytes_read[static_cast<std::size_t>(Role::scores)] = 10e6;
    return result;
}

TEST(Attribution, BelowStreamingBytesWeightsComeFirst) {
    // 65 MB: weights have 30, and activations 60 of 70 parts of the other 35.
    const Attributed a(one_step(65));
    EXPECT_TRUE(a.attribution.counted);
    ASSERT_EQ(a.attribution.roles.size(), 3);
    EXPECT_NEAR(a.of(Role::weights).attributed_bytes, 30e6, 1);
    EXPECT_NEAR(a.of(Role::activations).attributed_bytes, 30e6, 1);
    EXPECT_NEAR(a.of(Role::scores).attributed_bytes, 5e6, 1);
    EXPECT_NEAR(a.of(Role::activations).unfused_bytes, 60e6, 1);
    EXPECT_NEAR(a.of(Role::activations).dram_ms, 0.030, 1e-9);
    EXPECT_NEAR(a.of(Role::activations).exposed_ms, 0.030, 1e-9);
    EXPECT_NEAR(a.attribution.kept_bytes, 35e6, 1);
    EXPECT_NEAR(a.attribution.kept_ms, 0.035, 1e-9);
    EXPECT_EQ(a.attribution.excess_bytes, 0);
    EXPECT_NEAR(a.attribution.activation_ms, 0.035, 1e-9);
}

TEST(Attribution, FewerBytesThanWeightsAreAllWeights) {
    const Attributed a(one_step(20));
    EXPECT_NEAR(a.of(Role::weights).attributed_bytes, 20e6, 1);
    EXPECT_NEAR(a.of(Role::activations).attributed_bytes, 0, 1);
}

TEST(Attribution, TheCacheComesFirstLikeWeights) {
    const auto with_cache = [](double dram_mb) {
        Result result = one_step(dram_mb);
        result.points[0].steps[0].cost.bytes_read[static_cast<std::size_t>(Role::cache)] = 10e6;
        return result;
    };
    const Attributed all(with_cache(75)), few(with_cache(20));
    EXPECT_NEAR(all.of(Role::cache).attributed_bytes, 10e6, 1);
    EXPECT_NEAR(all.of(Role::weights).attributed_bytes, 30e6, 1);
    EXPECT_NEAR(all.of(Role::activations).attributed_bytes, 30e6, 1) << "60 of 70 parts of the other 35";
    EXPECT_NEAR(few.of(Role::cache).attributed_bytes, 5e6, 1);
    EXPECT_NEAR(few.of(Role::weights).attributed_bytes, 15e6, 1);
    EXPECT_NEAR(few.of(Role::activations).attributed_bytes, 0, 1);
}

TEST(Attribution, OfWeightsAloneLeavesNothingToOthers) {
    Result result = one_step(20);
    Cost& cost = result.points[0].steps[0].cost;
    cost.bytes_read.fill(0);
    cost.bytes_written.fill(0);
    cost.bytes_read[static_cast<std::size_t>(Role::weights)] = 30e6;
    const Attributed a(result);
    EXPECT_NEAR(a.of(Role::weights).attributed_bytes, 20e6, 1);
    EXPECT_EQ(a.attribution.activation_ms, 0);
}

TEST(Attribution, BeyondStreamingBytesIsTheStepsExcess) {
    const Attributed a(one_step(140));
    EXPECT_NEAR(a.of(Role::weights).attributed_bytes, 30e6, 1);
    EXPECT_NEAR(a.of(Role::activations).attributed_bytes, 60e6, 1);
    EXPECT_NEAR(a.attribution.excess_bytes, 40e6, 1);
    EXPECT_NEAR(a.attribution.excess_ms, 0.040, 1e-9);
    EXPECT_EQ(a.attribution.kept_bytes, 0);
}

TEST(Attribution, OfACountedZeroIsZero) {
    const Attributed a(one_step(0));
    EXPECT_TRUE(a.attribution.counted);
    EXPECT_EQ(a.of(Role::weights).attributed_bytes, 0);
    EXPECT_NEAR(a.attribution.kept_bytes, 100e6, 1);
    EXPECT_EQ(a.attribution.dram_binding_share, 0);
}

TEST(Attribution, WithoutCountersIsTheCostModels) {
    const Attributed a(one_step(65, {.counted = false}));
    EXPECT_FALSE(a.attribution.counted);
    EXPECT_NEAR(a.of(Role::activations).attributed_bytes, 60e6, 1);
    EXPECT_EQ(a.attribution.excess_bytes + a.attribution.kept_bytes, 0);
    EXPECT_EQ(a.attribution.layers.at(0).finding, "");
    ASSERT_EQ(a.attribution.levels.size(), 1);
    EXPECT_EQ(a.attribution.levels[0].origin, Origin::derived);
}

TEST(Attribution, ExposedIsWhatStepsThatDramBindsMove) {
    // Compute has a roof time of 150 us, DRAM one of 65.
    const Attributed a(one_step(65, {.compute = 0.75}));
    EXPECT_NEAR(a.of(Role::weights).dram_ms, 0.030, 1e-9);
    EXPECT_EQ(a.of(Role::weights).exposed_ms, 0);
    EXPECT_EQ(a.attribution.dram_binding_share, 0);
}

TEST(Attribution, ShareOfTheTimeIsThatOfStepsThatDramBinds) {
    const Attributed a(known::result_of(
        {{.us = 100, .dram = 0.5}, {.us = 200, .compute = 0.5, .dram = 0.4}, {.us = 50, .dram = 0.3, .l2 = 0.5}},
        known::gpu_roofs(), 50));
    EXPECT_NEAR(a.attribution.dram_binding_share, 100.0 / 400, 1e-9);
    ASSERT_EQ(a.attribution.levels.size(), 2);
    EXPECT_EQ(a.attribution.levels[0].level, Level::dram);
    EXPECT_NEAR(a.attribution.levels[0].bytes, 145e6, 1);
    EXPECT_NEAR(a.attribution.levels[0].ms, 0.145, 1e-9);
    EXPECT_NEAR(a.attribution.levels[0].binding_ms, 0.050, 1e-9);
    EXPECT_EQ(a.attribution.levels[0].origin, Origin::measured);
    EXPECT_EQ(a.attribution.levels[1].level, Level::l2);
    EXPECT_NEAR(a.attribution.levels[1].bytes, 100e6, 1);
    EXPECT_NEAR(a.attribution.levels[1].binding_ms, 0.025, 1e-9);
}

TEST(Attribution, ExcessOfOneStepDoesNotPayForWhatAnotherKept) {
    Result result =
        known::result_of({{.us = 100, .dram = 0.5, .unfused = 0.3}, {.us = 100, .dram = 0.1, .unfused = 0.3}});
    const Attributed a(std::move(result));
    EXPECT_NEAR(a.attribution.excess_bytes, 20e6, 1);
    EXPECT_NEAR(a.attribution.kept_bytes, 20e6, 1);
    // On one layer they do: 60 MB of 60.
    EXPECT_NEAR(a.attribution.layers.at(0).excess_ms, 0, 1e-9);
}

TEST(LayerTraffic, IsSummedOverBlocksAndSortedByBytes) {
    const Attributed a(known::result_of({{.layer = "h.0.a", .dram = 0.2, .l2 = 0.1, .unfused = 0.1},
                                         {.layer = "h.0.b", .dram = 0.5, .unfused = 0.5},
                                         {.layer = "h.1.a", .dram = 0.1, .l2 = 0.1, .unfused = 0.1}}));
    ASSERT_EQ(a.attribution.layers.size(), 2);
    EXPECT_EQ(a.attribution.layers[0].layer, "h.*.b");
    EXPECT_EQ(a.attribution.layers[1].layer, "h.*.a");
    EXPECT_NEAR(a.attribution.layers[1].unfused_bytes, 20e6, 1);
    EXPECT_NEAR(a.attribution.layers[1].measured_bytes, 30e6, 1);
    EXPECT_NEAR(a.attribution.layers[1].l2_bytes, 80e6, 1);
    EXPECT_NEAR(a.attribution.layers[1].excess_ms, 0.010, 1e-9);
}

TEST(LayerTraffic, SaysWhatIsATenthOff) {
    const auto finding_at = [](double dram) {
        return Attributed(known::result_of({{.layer = "c_fc", .dram = dram, .unfused = 0.4}}))
            .attribution.layers[0]
            .finding;
    };
    EXPECT_EQ(
        finding_at(0.56),
        "c_fc: while it runs, 1.40 times its unfused traffic moves; 16.0 MB read again, or written back for it or for what ran before it, 16.0 us of DRAM time");
    EXPECT_EQ(finding_at(0.20), "c_fc: while it runs, 0.50 times its unfused traffic moves; L2 kept 20.0 MB");
    EXPECT_NE(finding_at(0.44), "");
    EXPECT_NE(finding_at(0.36), "");
    EXPECT_EQ(finding_at(0.437), "");
    EXPECT_NE(finding_at(0.443), "");
    EXPECT_EQ(finding_at(0.363), "");
    EXPECT_NE(finding_at(0.357), "");
}

TEST(Attribution, OfAResultThatClaimsToTakeNoTimeHasNoShare) {
    Result result = one_step(65);
    result.points[0].end_to_end->latency.summary_ms.median = 0;
    EXPECT_EQ(Attributed(result).attribution.dram_binding_share, 0);
}

TEST(LayerTraffic, WithoutStreamingBytesHasNoRatio) {
    EXPECT_EQ(Attributed(known::result_of({{.dram = 0.3}})).attribution.layers[0].finding, "");
}

TEST(Attribution, IsUnavailableWithoutTimesOrBandwidth) {
    Result skipped = known::result_of({{}});
    skipped.points[0].end_to_end.reset();
    EXPECT_EQ(Attributed(skipped).attribution.unavailable, "the point was not timed");
    EXPECT_EQ(Attributed(known::result_of({{}}, {})).attribution.unavailable, "nobody measured them");
    CeilingRun no_dram = known::without(known::without(known::gpu_roofs(), "dram_read"), "dram_copy");
    EXPECT_EQ(Attributed(known::result_of({{}}, no_dram)).attribution.unavailable, "no DRAM bandwidth was measured");
}

}  // namespace
}  // namespace kbench
