// What is confirmed and what is ruled out, resource by resource, of points whose bound is known.
#include "analysis/explain/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::HasSubstr;

Suspect suspect(const Result& result, std::string_view name) {
    for (const Suspect& one : known::accounts_of(result).suspects.whole)
        if (one.name == name) return one;
    ADD_FAILURE() << "no suspect " << name;
    return {};
}
Finding finding(const Step& step, std::string_view name) { return suspect(known::result_of({step}), name).finding; }

TEST(Suspects, AreConfirmedAtTheirRoof) {
    EXPECT_EQ(finding({.dram = 0.9}, "DRAM"), Finding::confirmed);
    EXPECT_EQ(finding({.l2 = 0.9}, "L2"), Finding::confirmed);
    EXPECT_EQ(finding({.shared = 0.9}, "shared memory"), Finding::confirmed);
    EXPECT_EQ(finding({.issue = 0.9}, "issue slots"), Finding::confirmed);
    EXPECT_EQ(finding({.op = "gemm", .compute = 0.9}, "tensor cores"), Finding::confirmed);
    EXPECT_EQ(finding({.compute = 0.9}, "FP32"), Finding::confirmed);
    EXPECT_EQ(finding({.precision = Precision::fp64, .compute = 0.45}, "FP64"), Finding::confirmed);
    EXPECT_EQ(finding({.special = 0.9}, "special-function unit"), Finding::confirmed);
    EXPECT_EQ(finding({.active = 0.5, .issue = 0.5}, "occupancy"), Finding::confirmed);
    EXPECT_EQ(finding({.us = 50, .gap_us = 60}, "launch"), Finding::confirmed);
    EXPECT_EQ(finding({.us = 1000, .issue = 0.1, .time_steps = 100}, "time steps"), Finding::confirmed);
}

TEST(Suspects, ArePutToTheTestEachByItself) {
    const Result result = known::result_of({{.us = 1000, .dram = 0.05, .issue = 0.9}});
    for (const char* name :
         {"DRAM", "L2", "tensor cores", "FP32", "FP64", "special-function unit", "launch", "time steps", "occupancy"})
        EXPECT_EQ(suspect(result, name).finding, Finding::rejected) << name;
    EXPECT_EQ(suspect(result, "issue slots").finding, Finding::confirmed);
    EXPECT_NEAR(suspect(result, "DRAM").most_us, 50, 1e-6);
}

TEST(Suspects, DramIsDecidedAtAnyShareThatWasCounted) {
    for (const double share : {0.05, 0.35, 0.59})
        EXPECT_EQ(finding({.dram = share}, "DRAM"), Finding::rejected) << share;
    EXPECT_EQ(finding({.dram = 0.61}, "DRAM"), Finding::confirmed);
    EXPECT_EQ(finding({.unfused = 0.10, .counted = false}, "DRAM"), Finding::rejected);
    EXPECT_EQ(finding({.unfused = 0.20, .counted = false}, "DRAM"), Finding::not_identifiable);
}

TEST(Suspects, AnInterventionOutranksWhatWasCounted) {
    Result result = known::result_of({{.us = 100, .dram = 0.9}});
    known::add_sm_scaling(result.points[0], 1);
    EXPECT_EQ(suspect(result, "DRAM").finding, Finding::rejected);
    EXPECT_EQ(known::accounts_of(result).interventions.model.sms, Influence::binds);
}

TEST(Suspects, APowerLimitNeedsAClockThatItLowered) {
    Result result = known::result_of({{.op = "gemm", .us = 100, .compute = 0.7}}, known::gpu_roofs(), 0, 900);
    EXPECT_EQ(suspect(result, "power").finding, Finding::rejected);
    result.points[0].conditions.throttle_reasons = {"sw_power_cap"};
    EXPECT_EQ(suspect(result, "power").finding, Finding::confirmed);
    EXPECT_NEAR(suspect(result, "power").most_us, 100 * 0.7 / 9, 1e-6);
    result = known::result_of({{.op = "gemm", .us = 100, .compute = 0.7}});
    result.points[0].conditions.throttle_reasons = {"sw_power_cap"};
    EXPECT_EQ(suspect(result, "power").finding, Finding::rejected);
    result.ceilings = known::without(known::gpu_roofs(), "fp16_tensor");
    EXPECT_EQ(suspect(result, "power").finding, Finding::not_identifiable) << "no time at a roof, none at its clock";
}

TEST(Suspects, AKernelOfOneBlockAnSmDoesNotLackBlocks) {
    Result result = known::result_of({{.active = 0.5, .issue = 0.1}});
    KernelResult& kernel = result.points[0].steps[0].kernels[0];
    kernel.blocks_per_sm = 1;
    kernel.waves = {1.0, Origin::derived, ""};
    EXPECT_EQ(suspect(result, "occupancy").finding, Finding::rejected);
    EXPECT_NE(known::judged(result).steps[0].bound, Bound::occupancy);
    kernel.waves.value = 2;
    EXPECT_EQ(suspect(result, "occupancy").finding, Finding::confirmed);
    kernel.waves.value = 1;
    KernelResult beside = kernel;  // such as one that adds up a bias
    beside.blocks_per_sm = 8;
    beside.time_us = kernel.time_us / 10;
    std::vector<KernelResult>& kernels = result.points[0].steps[0].kernels;
    kernels.push_back(beside);
    EXPECT_EQ(suspect(result, "occupancy").finding, Finding::rejected);
    kernels.back().time_us = kernels.front().time_us * 0.5;
    EXPECT_EQ(suspect(result, "occupancy").finding, Finding::confirmed);
}

TEST(Suspects, OfACpuAreNoneOfAGpusUnits) {
    const Result result = known::result_of(
        {{.us = 100, .kernels = 0, .compute = 0.9, .unfused = 0.05, .counted = false}}, known::cpu_roofs());
    std::string names;
    for (const Suspect& one : known::accounts_of(result).suspects.whole) names += std::string(one.name) + ", ";
    EXPECT_EQ(names, "DRAM, AMX, FP32, FP64, time steps, power, ");
    EXPECT_EQ(suspect(result, "FP32").finding, Finding::confirmed);
    EXPECT_EQ(suspect(result, "AMX").finding, Finding::rejected);
    EXPECT_EQ(suspect(result, "DRAM").finding, Finding::rejected);
}

TEST(Suspects, TheLikeliestMayHaveMostOfTheTime) {
    const Suspects suspects = known::accounts_of(known::result_of({{.op = "gemm",
                                                                    .us = 1000,
                                                                    .compute = 0.4,
                                                                    .issue = 0.2,
                                                                    .occupancy_pct = 12,
                                                                    .units = {{"tensor_pipe_active", 70}}}}))
                                  .suspects;
    const std::vector<Suspect> first = likeliest(suspects, 2);
    ASSERT_FALSE(first.empty());
    EXPECT_EQ(first[0].name, "tensor cores");
    EXPECT_NEAR(first[0].most_us, 700, 1e-6);
    EXPECT_LE(first.size(), 2U);
}

}  // namespace
}  // namespace kbench
