// A point against its roofs in a word and a figure, on points whose figures are known by construction.
#include "analysis/explain/point_roofs.h"

#include <gtest/gtest.h>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::breakdown_of;

/// 54 us of products and 38 of bytes in 100 us.
Result products_and_a_copy(CeilingRun roofs = known::gpu_roofs()) {
    return known::result_of({{.op = "gemm", .us = 60, .compute = 0.9, .dram = 0.1}, {.us = 40, .dram = 0.8}},
                            std::move(roofs));
}

TEST(PointRoofs, AreTheShareOfWhatBindsEachStepAndTheRoofWithMostOfIt) {
    const Result result = products_and_a_copy();
    EXPECT_NEAR(roof_share(breakdown_of(result)).value(), 0.54 + 0.32, 1e-9);
    EXPECT_EQ(binding_roof(breakdown_of(result)), "fp16_tensor");
    const Result copies = known::result_of({{.us = 60, .dram = 0.5}, {.us = 40, .dram = 0.8}});
    EXPECT_EQ(binding_roof(breakdown_of(copies)), "DRAM");
    EXPECT_NEAR(roof_share(breakdown_of(known::result_of({{.us = 0.5, .dram = 0.5}}))).value(), 0.5, 1e-9);
}

TEST(PointRoofs, AreNoneWithoutRoofsTimesOrWork) {
    Result untimed = products_and_a_copy();
    untimed.points[0].end_to_end->latency.summary_ms.median = 0;
    Result failed = products_and_a_copy();
    failed.points[0].end_to_end.reset();
    Result of_no_steps = products_and_a_copy();
    for (StepResult& step : of_no_steps.points[0].steps) step.kernels.clear();
    Result idle = known::result_of({{.counted = false}}), without_roofs = products_and_a_copy({});
    for (Result* result : {&untimed, &failed, &of_no_steps, &idle, &without_roofs}) {
        EXPECT_EQ(roof_share(breakdown_of(*result)), std::nullopt);
        EXPECT_EQ(binding_roof(breakdown_of(*result)), "");
    }
}

TEST(PointRoofs, AVerdictIsToldWithItsLevelWhereItHasOne) {
    Verdict verdict;
    verdict.bound = Bound::bandwidth;
    EXPECT_EQ(verdict_text(verdict), "bandwidth-bound");
    verdict.level = "DRAM";
    EXPECT_EQ(verdict_text(verdict), "bandwidth-bound (DRAM)");
}

}  // namespace
}  // namespace kbench
