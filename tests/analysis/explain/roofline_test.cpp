// The marks of the roofline on numbers made by hand; the machine is that of known_points.h.
#include "analysis/explain/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;

Roofline roofline_of(const Result& result) {
    const known::Accounts accounts = known::accounts_of(result);
    return make_roofline(accounts.facts, accounts.roof_times);
}

const RooflinePoint& at(const std::vector<RooflinePoint>& marks, Level level, bool unfused, const std::string& name) {
    const auto found = std::ranges::find_if(marks, [&](const RooflinePoint& mark) {
        return mark.level == level && mark.unfused == unfused && mark.name == name;
    });
    static const RooflinePoint none;
    EXPECT_NE(found, marks.end()) << name;
    return found == marks.end() ? none : *found;
}

TEST(Roofline, HasAMarkALevelAndOneForStreamingBytes) {
    // 100 us: 200 10^6 FLOPs are 20 us; 50, 40 and 30 us of DRAM, L2 and L1; 25 us of unfused traffic.
    const Roofline roofline = roofline_of(
        known::result_of({{.layer = "ln_f", .compute = 0.2, .dram = 0.5, .l2 = 0.4, .l1 = 0.3, .unfused = 0.25}}));
    EXPECT_EQ(roofline.unavailable, "");
    ASSERT_EQ(roofline.steps.size(), 4);
    const RooflinePoint& dram = at(roofline.steps, Level::dram, false, "0 ln_f");
    EXPECT_NEAR(dram.time_us, 100, 1e-9);
    EXPECT_NEAR(dram.flops, 200e6, 1);
    EXPECT_NEAR(dram.bytes, 50e6, 1);
    EXPECT_NEAR(dram.intensity, 4, 1e-9);
    EXPECT_NEAR(dram.flop_per_s, 2e12, 1e3);
    EXPECT_NEAR(dram.roof_share, 0.5, 1e-9);
    EXPECT_EQ(dram.roof, "dram_read") << "whose share that is";
    EXPECT_EQ(dram.step, 0);
    EXPECT_EQ(dram.layer, "ln_f");
    EXPECT_EQ(dram.op, "layernorm");
    EXPECT_NEAR(at(roofline.steps, Level::l2, false, "0 ln_f").bytes, 160e6, 1);
    EXPECT_NEAR(at(roofline.steps, Level::l2, false, "0 ln_f").roof_share, 0.4, 1e-9);
    EXPECT_NEAR(at(roofline.steps, Level::l1, false, "0 ln_f").bytes, 300e6, 1);
    EXPECT_NEAR(at(roofline.steps, Level::dram, true, "0 ln_f").intensity, 8, 1e-9);
    EXPECT_NEAR(at(roofline.steps, Level::dram, true, "0 ln_f").roof_share, 0.25, 1e-9);
}

TEST(Roofline, ShareIsOfTheLowerRoofAtThatIntensity) {
    // Compute has a longer roof time than DRAM: the unit is the roof at this intensity.
    const Roofline roofline = roofline_of(known::result_of({{.layer = "fma", .compute = 0.7, .dram = 0.1}}));
    const RooflinePoint& mark = at(roofline.steps, Level::dram, false, "0 fma");
    EXPECT_NEAR(mark.roof_share, 0.7, 1e-9);
    EXPECT_EQ(mark.roof, "fp32_plain");
    EXPECT_NEAR(mark.roof_share, mark.flop_per_s / std::min(10e12, mark.intensity * 1000e9), 1e-9);
}

TEST(Roofline, SumsStepsOfLayersOpsAndModel) {
    const Roofline roofline =
        roofline_of(known::result_of({{.layer = "h.0.ln_1", .us = 100, .compute = 0.1, .dram = 0.5},
                                      {.layer = "h.0.fc", .op = "gemm", .us = 300, .compute = 0.8, .dram = 0.2},
                                      {.layer = "h.1.ln_1", .us = 100, .compute = 0.3, .dram = 0.7}}));
    // Layer norms: 40 us of FLOPs, 120 us of bytes in 200.
    const RooflinePoint& norms = at(roofline.layers, Level::dram, false, "h.*.ln_1");
    EXPECT_NEAR(norms.time_us, 200, 1e-9);
    EXPECT_NEAR(norms.flops, 400e6, 1);
    EXPECT_NEAR(norms.bytes, 120e6, 1);
    EXPECT_NEAR(norms.roof_share, 0.6, 1e-9);
    EXPECT_EQ(norms.step, -1);
    EXPECT_NEAR(at(roofline.ops, Level::dram, false, "layernorm").bytes, 120e6, 1);
    EXPECT_EQ(at(roofline.ops, Level::dram, false, "layernorm").layer, "h.*.ln_1");
    EXPECT_EQ(at(roofline.ops, Level::dram, false, "layernorm").op, "layernorm");
    EXPECT_EQ(norms.op, "layernorm");
    EXPECT_EQ(norms.layer, "h.*.ln_1");
    // The model: 280 us of FLOPs, 180 of bytes in 500; the tensor cores' roof has most of the roof time.
    ASSERT_EQ(roofline.model.size(), 1);
    EXPECT_NEAR(roofline.model[0].roof_share, 280.0 / 500, 1e-9);
    EXPECT_EQ(roofline.model[0].roof, "fp16_tensor");
    EXPECT_EQ(roofline.model[0].op, "");
    EXPECT_EQ(roofline.model[0].layer, "");
}

TEST(Roofline, ListsTheRoofsThatItsStepsMeet) {
    const Roofline roofline = roofline_of(known::result_of(
        {{.compute = 0.1, .dram = 0.1}, {.op = "gemm", .compute = 0.1, .dram = 0.1}, {.compute = 0.1, .dram = 0.1}}));
    ASSERT_EQ(roofline.bandwidths.size(), 3);
    EXPECT_EQ(roofline.bandwidths[0].ceiling, "dram_read");
    EXPECT_EQ(roofline.bandwidths[1].ceiling, "l2_read");
    EXPECT_EQ(roofline.bandwidths[2].ceiling, "l1_read");
    ASSERT_EQ(roofline.units.size(), 2);
    EXPECT_EQ(roofline.units[0].ceiling, "fp32_plain");
    EXPECT_EQ(roofline.units[1].ceiling, "fp16_tensor");
}

TEST(Roofline, WithoutCountersHasStreamingMarksAlone) {
    const Roofline roofline = roofline_of(
        known::result_of({{.compute = 0.2, .unfused = 0.4, .counted = false}, {.compute = 0.2, .dram = 0.3}}));
    ASSERT_EQ(roofline.steps.size(), 2);
    EXPECT_TRUE(roofline.steps[0].unfused);
    EXPECT_FALSE(roofline.steps[1].unfused);
    // A sum in which a part was not counted has no counted mark.
    ASSERT_EQ(roofline.model.size(), 1);
    EXPECT_TRUE(roofline.model[0].unfused);
}

TEST(Roofline, LeavesOutStepsWithoutATime) {
    Result result = known::result_of({{.compute = 0.2, .dram = 0.4}, {.us = 0, .kernels = 0}});
    result.points[0].steps[1].cost.flops = 1e12;
    const Roofline roofline = roofline_of(result);
    ASSERT_EQ(roofline.steps.size(), 1);
    EXPECT_NEAR(roofline.model[0].flops, 200e6, 1);
}

TEST(Roofline, OfAResultWithoutRoofsOrTimesIsUnavailable) {
    EXPECT_EQ(roofline_of(known::result_of({{}}, {})).unavailable, "nobody measured them");
    Result skipped = known::result_of({{}});
    skipped.points[0].end_to_end.reset();
    EXPECT_EQ(roofline_of(skipped).unavailable, "the point was not timed");
}

}  // namespace
}  // namespace kbench
