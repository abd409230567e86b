// Ceilings that are no roofs: what a probe reached by a slower instruction, or by a part of the unit.
#include "analysis/machine/usable_roofs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "analysis/explain/explain.h"
#include "analysis/explain/roof_breach.h"
#include "analysis/machine/ceilings.h"
#include "analysis/machine/machine.h"
#include "analysis/report/render/render.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

GpuInfo gpu_of(int major, int minor) {
    GpuInfo gpu;
    gpu.name = "a GPU";
    gpu.compute_capability_major = major;
    gpu.compute_capability_minor = minor;
    return gpu;
}

TEST(UsableRoofs, AreNoneWhereTheFastestTensorInstructionHasNoProbe) {
    EXPECT_THAT(no_tensor_roof(gpu_of(10, 3)), AllOf(HasSubstr("capability 10.3"), HasSubstr("tcgen05")));
    EXPECT_THAT(no_tensor_roof(gpu_of(13, 0)), HasSubstr("capability 13.0")) << "nobody knows";
    for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {9, 0}, {12, 0}})
        EXPECT_EQ(no_tensor_roof(gpu_of(major, minor)), "");
}

/// A product that needs 2.5 times the time at the roof that mma.sync reaches, as tcgen05 can, with a layer norm at 80 %
/// of DRAM's roof; measured by a kbench that took mma.sync's for the roof.
Result faster_than_mma_sync() {
    Result result = known::result_of({Step{.op = "gemm", .us = 400, .compute = 2.5, .dram = 0.1, .unfused = 0.1},
                                      Step{.us = 100, .dram = 0.8, .unfused = 0.8}});
    result.ceilings.ceilings.push_back(known::ceiling("fp64_tensor", 5));
    result.ceilings.ceilings.push_back(known::ceiling("fp16_mma_sync", 100));
    return result;
}

TEST(UsableRoofs, ACorrectRunOnTensorCoresThatNoProbeReachesIsNotImpossible) {
    Result result = faster_than_mma_sync();
    EXPECT_THAT(ExplainedResult(result).impossible(), Not(IsEmpty())) << "where mma.sync is the fastest";
    EXPECT_TRUE(worst_breach(ExplainedResult(result)));

    result.environment.gpu = gpu_of(10, 0);
    const ExplainedResult explained(result);
    EXPECT_THAT(explained.impossible(), IsEmpty());
    EXPECT_FALSE(worst_breach(explained)) << "a live run would measure its roofs again";
    const Explanation& explanation = explained.of(0);
    const Roofs& roofs = explanation.facts.roofs;
    EXPECT_FALSE(roofs.matrix(Precision::fp16));
    EXPECT_FALSE(roofs.matrix_by_mma_sync(Precision::fp16));
    EXPECT_TRUE(roofs.roof("fp16_mma_sync")) << "that is what it says";
    EXPECT_TRUE(roofs.matrix(Precision::fp64)) << "tcgen05 has no fp64";
    EXPECT_TRUE(roofs.bandwidth(Level::dram));

    const Verdict& product = explanation.verdicts.steps[0];
    EXPECT_NE(product.bound, Bound::compute);
    EXPECT_NE(product.bound, Bound::bandwidth);
    EXPECT_THAT(product.evidence, testing::Contains(HasSubstr("no roof of the unit")));
    EXPECT_EQ(explanation.verdicts.steps[1].bound, Bound::bandwidth) << "all else is still said";
    EXPECT_THAT(explanation.answer[1], HasSubstr("the units of steps with 80 % of it have no roof: tensor cores of"));
    EXPECT_NEAR(explanation.breakdown.end_to_end_us, 500, 1e-6);
    EXPECT_TRUE(explanation.breakdown.roofs_unavailable.empty());
    for (const std::string& text :
         {write_terminal(explained, 400), write_markdown(explained), page_document(write_html(explained)).dump()}) {
        EXPECT_THAT(text, Not(HasSubstr("impossible: ")));
        EXPECT_THAT(text, HasSubstr("tcgen05"));
    }
}

/// A recorded run of gpt2-large in fp16, edited: on a GPU of capability 10.0, by a kbench whose roof of tensor cores
/// was mma.sync's, a quarter of what the products reached.
TEST(UsableRoofs, ARecordedRunEditedToBeOfCapability10IsNotImpossible) {
    Result result = example::committed_result("h200-2026-11-23/fp16/result.json.gz");
    ASSERT_TRUE(result.environment.gpu);
    result.environment.gpu->name = "a GPU that no machine file names";
    for (Ceiling& ceiling : result.ceilings.ceilings) {
        ceiling.datasheet = Quantity::unavailable("no machine file names this device");
        if (ceiling.name == "fp16_tensor")
            for (double* figure : {&*ceiling.value.value, &ceiling.low, &ceiling.high}) *figure *= 0.25;
    }
    EXPECT_THAT(ExplainedResult(result).impossible(), Not(IsEmpty())) << "on capability 9.0";
    result.environment.gpu->compute_capability_major = 10;
    const Result edited = parse_result(to_text(result), "edited");
    const ExplainedResult explained(edited);
    EXPECT_THAT(explained.impossible(), IsEmpty());
    EXPECT_FALSE(worst_breach(explained));
    const Explanation& explanation = explained.of(0);
    std::size_t products = 0;
    for (std::size_t i = 0; i < explanation.facts.steps.size(); ++i) {
        if (explanation.facts.steps[i].step->op != "gemm") continue;
        ++products;
        EXPECT_NE(explanation.verdicts.steps[i].bound, Bound::bandwidth) << i;
        EXPECT_FALSE(explanation.roof_times[i].compute_known) << i;
    }
    EXPECT_GT(products, 100);
    EXPECT_THAT(explanation.answer[1], HasSubstr("have no roof: tensor cores of compute capability 10.0"));
    EXPECT_THAT(write_terminal(explained, 400), Not(HasSubstr("impossible: ")));
}

Ceiling stated(std::string name, double value, double stated, double at_mhz) {
    Ceiling ceiling = known::ceiling(std::move(name), value, at_mhz);
    ceiling.datasheet = {stated, Origin::estimated, "a datasheet"};
    return ceiling;
}

TEST(UsableRoofs, AProbeThatReachesHalfOfItsDatasheetIsNoRoof) {
    MachineFile machine;
    machine.boost_clock_mhz = 1980;
    CeilingRun run;
    run.ceilings = {stated("fp16_plain", 66.7, 133.8, 1980), stated("fp32_plain", 65.7, 66.9, 1980),
                    stated("dram_read", 0.56 * 4800, 4800, 1980), stated("dram_write", 0.54 * 4800, 4800, 990),
                    known::ceiling("l2_read", 1)};
    leave_out_unusable(run, gpu_of(9, 0), &machine);
    EXPECT_FALSE(run.ceilings[0].value.value);
    EXPECT_EQ(run.ceilings[0].value.origin, Origin::unavailable);
    EXPECT_THAT(run.ceilings[0].value.reason, AllOf(HasSubstr("66.7 TFLOP/s"), HasSubstr("50 %")));
    EXPECT_EQ(run.ceilings[0].high, 0);
    EXPECT_TRUE(run.ceilings[1].value.value);
    EXPECT_TRUE(run.ceilings[2].value.value);
    EXPECT_FALSE(run.ceilings[3].value.value) << "DRAM has a clock of its own";
    EXPECT_TRUE(run.ceilings[4].value.value) << "of which no datasheet speaks";
}

TEST(UsableRoofs, ALowClockIsNoPartOfAUnit) {
    MachineFile machine;
    machine.boost_clock_mhz = 1980;
    CeilingRun run;
    run.ceilings = {stated("fp32_plain", 33, 66.9, 990)};
    leave_out_unusable(run, gpu_of(9, 0), &machine);
    EXPECT_TRUE(run.ceilings[0].value.value) << "locked to half of its clock, it reaches all there is";
    leave_out_unusable(run, gpu_of(9, 0), nullptr);
    EXPECT_TRUE(run.ceilings[0].value.value);
}

TEST(UsableRoofs, ACpuHasAllThatWereMeasured) {
    Result result;
    result.ceilings.ceilings = {stated("cpu_dram_read", 100, 400, 0)};
    EXPECT_TRUE(usable_ceilings(result).ceilings[0].value.value) << "a virtual machine has its share of a socket";
}

}  // namespace
}  // namespace kbench
