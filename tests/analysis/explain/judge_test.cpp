// Verdicts on points whose bound is known by construction: every line of the rule table decides somewhere, and every
// threshold has a case below, at and above it
// (verdict_rules_test.cpp). scripts/verification/mutate_analysis.py breaks each and looks on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "analysis/explain/verdict.h"
#include "analysis/explain/verdict_rules.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::bandwidth, known::compute, known::latency, known::launch, known::occupancy, known::unknown;
using known::judged, known::letters, known::Step;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct StepCase {
    std::string name;
    Step step;
    std::string rule;
    Bound bound;
    std::string level;
    std::string hypotheses;
    CeilingRun roofs = known::gpu_roofs();
    double run_clock_mhz = known::clock_mhz;
};
void PrintTo(const StepCase& c, std::ostream* out) { *out << c.name; }

const std::vector<StepCase>& step_cases() {
    using known::cpu_roofs, known::gpu_roofs, known::without;
    static const std::vector<StepCase> cases{
        // Roofs.
        {"DramCopy", {.dram = 0.92, .l2 = 0.23, .l1 = 0.1, .issue = 0.05}, "memory-roof", bandwidth, "DRAM", "CRRRR"},
        {"ReadOnlyStream", {.compute = 0.02, .dram = 0.98, .l2 = 0.25}, "memory-roof", bandwidth, "DRAM", "CRRRR"},
        {"StreamFromL2", {.dram = 0.01, .l2 = 0.85, .l1 = 0.4}, "memory-roof", bandwidth, "L2", "CRRRR"},
        {"StreamFromL1", {.dram = 0.01, .l2 = 0.02, .l1 = 0.9, .issue = 0.3}, "memory-roof", bandwidth, "L1", "CRRRR"},
        {"PureFma", {.compute = 0.97, .issue = 0.98}, "compute-roof", compute, "fp32_plain", "RCRRR"},
        {"SharedMemoryAtItsRoof",
         {.issue = 0.3, .shared = 0.9, .load_store = 0.25},
         "memory-roof",
         bandwidth,
         "shared memory",
         "CRRRR"},
        {"SharedMemoryBesideL2",
         {.l2 = 0.69, .issue = 0.3, .shared = 0.7, .load_store = 0.2},
         "memory-roof",
         bandwidth,
         "shared memory or L2",
         "CR?RR"},
        {"SpecialFunctionsAtTheirRoof",
         {.issue = 0.2, .special = 0.95},
         "compute-roof",
         compute,
         "special-function unit",
         "RCRRR"},
        {"ShufflesAtTheirRoof",
         {.issue = 0.3, .load_store = 0.95},
         "compute-roof",
         compute,
         "load-store unit",
         "RCRRR"},
        {"FmaBesideSpecialFunctions",
         {.compute = 0.79, .issue = 0.6, .special = 0.8},
         "compute-roof",
         compute,
         "special-function unit or fp32_plain",
         "RCRRR"},
        {"TensorCoresBesideSharedMemory",
         {.op = "gemm", .compute = 0.68, .issue = 0.3, .shared = 0.70},
         "tensor-pipeline",
         compute,
         "fp16_tensor and shared memory",
         "?C?RR"},
        {"SharedMemoryFarAboveTensorCores",
         {.op = "gemm", .compute = 0.64, .issue = 0.3, .shared = 0.95},
         "memory-roof",
         Bound::bandwidth,
         "shared memory",
         "C?RRR"},
        {"FmaBesideSharedMemory", {.compute = 0.655, .issue = 0.7, .shared = 0.63}, "two-roofs", unknown, "", "???RR"},
        {"FmaBesideSharedMemoryWithBusySchedulers",
         {.compute = 0.655, .issue = 0.89, .shared = 0.63},
         "busy-unit",
         compute,
         "issue slots",
         "?CRRR"},
        {"FmaBesideL2WithBusierSchedulers",  // an H200: neither roof is what the issue slots are
         {.compute = 0.80, .l2 = 0.87, .issue = 0.97},
         "busy-unit",
         compute,
         "issue slots",
         "?CRRR"},
        {"FmaLongerThanL2WithBusySchedulers",
         {.compute = 0.87, .l2 = 0.80, .issue = 0.97},
         "compute-roof",
         compute,
         "fp32_plain",
         "?CRRR"},
        {"PureFp64",
         {.precision = Precision::fp64, .compute = 0.49, .issue = 0.98},
         "compute-roof",
         compute,
         "fp64_plain",
         "RCRRR"},
        {"TensorGemm",
         {.op = "gemm", .compute = 0.8, .dram = 0.2, .l2 = 0.25, .occupancy_pct = 12},
         "compute-roof",
         compute,
         "fp16_tensor",
         "RCRRR"},
        {"GemmUnderPowerLimit",
         {.op = "gemm", .compute = 0.5, .occupancy_pct = 12},
         "compute-roof",
         compute,
         "fp16_tensor",
         "RC?R?",
         gpu_roofs(),
         800},  // 0.5 * 1000 / 800 = 62.5 % at the run's clock; active: 125 %
        {"GemmWithHigherClockThanItsRoof",
         {.op = "gemm", .compute = 0.66, .active = 1.25, .occupancy_pct = 40},
         "within-error",
         unknown,
         "",
         "R??RR",
         gpu_roofs(),
         1250},  // between 0.66 * 0.8 = 52.8 % and 66 %: a clock that is read is not sure to be had; active 100 %
        {"ComputeOvertakesMemoryAtTheRunsClock",
         {.op = "gemm", .compute = 0.59, .dram = 0.62, .active = 0.8},
         "compute-roof",
         compute,
         "fp16_tensor",
         "?C?RR",
         gpu_roofs(),
         800},  // 0.59 / 0.8 = 74 %
        {"PaddingCountsAsWork",
         {.op = "gemm", .compute = 0.5, .active = 1, .executed = 0.15},
         "compute-roof",
         compute,
         "fp16_tensor",
         "RC?RR"},
        {"TwoRoofsTooNear", {.compute = 0.80, .dram = 0.78, .issue = 0.75}, "two-roofs", unknown, "", "??RRR"},
        {"TwoRoofsMemoryLonger",
         {.compute = 0.73, .dram = 0.80, .issue = 0.75},
         "memory-roof",
         bandwidth,
         "DRAM",
         "C?RRR"},
        {"TwoRoofsComputeLonger",
         {.compute = 0.80, .dram = 0.73, .issue = 0.8},
         "compute-roof",
         compute,
         "fp32_plain",
         "?CRRR"},
        // Launches.
        {"EmptyKernels", {.us = 1.0, .gap_us = 0.2, .active = 0.1, .issue = 0.01}, "gap", launch, "", "RRRCR"},
        {"ChainOfDependentGaps", {.us = 10, .gap_us = 12, .dram = 0.8}, "gap", launch, "", "?RRCR"},
        {"ManyShortKernelsInAStep",
         {.us = 12, .gap_us = 0, .kernels = 8, .dram = 0.2, .counted = true},
         "empty-kernel",
         launch,
         "",
         "RR?CR"},
        {"ShortKernelUncounted", {.us = 1.5, .gap_us = 0.1, .counted = false}, "empty-kernel", launch, "", "???C?"},
        // Losses above the roofs.
        {"OneBlock",
         {.compute = 0.005, .active = 0.0076, .issue = 0.005, .occupancy_pct = 50},
         "idle-sms",
         occupancy,
         "",
         "R?RRC"},  // its one SM issues in two thirds of its cycles
        {"OneWavePlusOneBlock",
         {.compute = 0.48, .active = 0.504, .issue = 0.49, .occupancy_pct = 50},
         "idle-sms",
         occupancy,
         "",
         "R?RRC"},
        {"FewWarpsWaiting", {.dram = 0.25, .issue = 0.1, .occupancy_pct = 12}, "few-warps", occupancy, "", "RR?RC"},
        {"PointerChase", {.dram = 0.1, .l2 = 0.1, .issue = 0.02, .occupancy_pct = 98}, "waiting", latency, "", "RRCRR"},
        // Time steps.
        {"RecurrentLayer",  // few warps, as it keeps its weights in registers
         {.us = 1500, .compute = 0.1, .dram = 0.05, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500},
         "time-steps",
         latency,
         "serial chain of time steps",
         "RRCR?"},
        {"RecurrentLayerWhoseWarpsPoll",
         {.us = 1500, .l2 = 0.3, .issue = 0.5, .occupancy_pct = 12, .time_steps = 500},
         "time-steps",
         latency,
         "serial chain of time steps",
         "??CR?"},  // 30 % of a roof is half of what it takes, schedulers issue in half of the cycles
        {"RecurrentLayerOfOneStep",
         {.us = 1500, .compute = 0.1, .dram = 0.05, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 1},
         "few-warps",
         occupancy,
         "",
         "RR?RC"},
        {"RecurrentLayerOfFewSteps",
         {.us = 1500, .compute = 0.1, .dram = 0.05, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 15},
         "few-warps",
         occupancy,
         "",
         "RR?RC"},
        {"RecurrentLayerAtAUnitsRoof",
         {.op = "gemm", .us = 1500, .compute = 0.9, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500},
         "compute-roof",
         compute,
         "fp16_tensor",
         "RCRRR"},
        {"RecurrentLayerThatRereadsItsWeights",
         {.us = 1500, .compute = 0.1, .l2 = 0.9, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500},
         "memory-roof",
         bandwidth,
         "L2",
         "CRRRR"},
        {"RecurrentLayerOfRoofsInTurn",  // 70 % together, though no roof has 30 %
         {.us = 1500, .compute = 0.25, .dram = 0.2, .l2 = 0.25, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500},
         "few-warps",
         occupancy,
         "",
         "RR?RC"},
        {"RecurrentLayerOfSharedMemoryInTurn",  // that no cost model knows of
         {.us = 1500, .l2 = 0.25, .issue = 0.1, .occupancy_pct = 12, .shared = 0.29, .time_steps = 500},
         "few-warps",
         occupancy,
         "",
         "RR?RC"},
        {"RecurrentLayerWithABusyUnit",
         {.us = 1500, .issue = 0.1, .occupancy_pct = 12, .units = {{"tensor_pipe_active", 70}}, .time_steps = 500},
         "half-busy",
         unknown,
         "tensor pipe",
         "R??R?"},
        {"RecurrentLayerWhoseSchedulersAreBusy",
         {.us = 1500, .issue = 0.75, .occupancy_pct = 12, .time_steps = 500},
         "no-bottleneck",
         unknown,
         "",
         "R??R?"},
        {"RecurrentLayerOnOneSm",
         {.us = 1500, .active = 0.0076, .issue = 0.001, .occupancy_pct = 12, .time_steps = 500},
         "idle-sms",
         occupancy,
         "",
         "RR?RC"},
        {"RecurrentLayerOfManyKernels",  // two for each time step, which take 40 % of the time empty
         {.us = 1500, .kernels = 600, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 300},
         "few-warps",
         occupancy,
         "",
         "RR??C"},
        {"RecurrentLayerUncounted",
         {.us = 1500, .compute = 0.1, .unfused = 0.05, .counted = false, .time_steps = 500},
         "no-bottleneck",
         unknown,
         "",
         "???R?"},
        {"RecurrentLayerOfUncountedUnits",
         {.us = 1500, .l2 = 0.2, .issue = 0.05, .occupancy_pct = 12, .units_counted = false, .time_steps = 500},
         "no-bottleneck",
         unknown,
         "units not counted",
         "R??R?"},
        {"RecurrentLayerUnrecorded",  // how many kernels it has is not known
         {.us = 1500, .kernels = 0, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500},
         "few-warps",
         occupancy,
         "",
         "RR??C"},
        {"CpuRecurrentLayer",
         {.us = 1500, .kernels = 0, .compute = 0.1, .unfused = 0.1, .counted = false, .time_steps = 500},
         "no-bottleneck",
         unknown,
         "",
         "?????",
         cpu_roofs()},
        {"IssueSlots",
         {.compute = 0.2, .dram = 0.1, .issue = 0.9, .occupancy_pct = 80},
         "busy-unit",
         compute,
         "issue slots",
         "RCRRR"},
        {"MmaAtThePipesPace",  // few warps, which mostly wait, and a tensor pipe that has no time for more
         {.op = "gemm", .compute = 0.5, .issue = 0.3, .occupancy_pct = 12, .units = {{"tensor_pipe_active", 85}}},
         "busy-unit",
         compute,
         "tensor pipe",
         "RCRRR"},
        {"MmaNearThePipesPace",
         {.op = "gemm", .compute = 0.4, .issue = 0.2, .occupancy_pct = 12, .units = {{"tensor_pipe_active", 70}}},
         "half-busy",
         unknown,
         "tensor pipe",
         "R??R?"},
        {"SharedMemory",
         {.dram = 0.1, .issue = 0.2, .occupancy_pct = 80, .units = {{"pipe_shared_memory", 92}}},
         "busy-memory",
         bandwidth,
         "shared memory",
         "CRRRR"},
        {"SpecialFunctions",
         {.dram = 0.1, .issue = 0.2, .occupancy_pct = 80, .units = {{"pipe_xu", 95}}},
         "busy-unit",
         compute,
         "special-function unit",
         "RCRRR"},
        {"HalfTheSmsAtTheirPipesPace",
         {.compute = 0.48, .active = 0.5, .issue = 0.48, .units = {{"pipe_fma", 96}}},
         "idle-sms",
         occupancy,
         "",
         "R?RRC"},
        {"UnitsUncounted",
         {.dram = 0.1, .l2 = 0.1, .issue = 0.02, .occupancy_pct = 98, .units_counted = false},
         "no-bottleneck",
         unknown,
         "units not counted",
         "R??RR"},
        {"WaitingMoreThanIssuing", {.issue = 0.45, .occupancy_pct = 80}, "waiting", latency, "", "R?CRR"},
        {"WaitingMoreThanIdle", {.active = 0.65, .issue = 0.05, .occupancy_pct = 80}, "waiting", latency, "", "RRCR?"},
        {"NothingBinds",
         {.compute = 0.25, .dram = 0.35, .active = 0.8, .issue = 0.55, .occupancy_pct = 60},
         "no-bottleneck",
         unknown,
         "",
         "???R?"},
        // What is not known.
        {"GpuWithoutCounters",
         {.compute = 0.1, .unfused = 0.2, .counted = false},
         "no-bottleneck",
         unknown,
         "",
         "???R?"},
        {"GpuWithoutCountersOnARoof",
         {.compute = 0.95, .unfused = 0.02, .counted = false},
         "compute-roof",
         compute,
         "fp32_plain",
         "?CRRR"},
        {"WaitingNeedsOccupancy", {.issue = 0.1, .occupancy_pct = {}}, "no-bottleneck", unknown, "", "RR?R?"},
        {"NoRoofsAtAll", {.compute = 0.9, .dram = 0.9, .issue = 0.2}, "no-bottleneck", unknown, "", "????R"},
        {"NoRoofOfL2", {.dram = 0.1, .l2 = 0.9, .issue = 0.1}, "no-bottleneck", unknown, "", "?R?RR"},
        {"NoRoofOfL2OfDependentSteps",
         {.us = 1500, .dram = 0.1, .l2 = 0.9, .issue = 0.1, .time_steps = 500},
         "no-bottleneck",
         unknown,
         "",
         "?R?RR"},
        {"Untimed", {.us = 0, .kernels = 0, .counted = false}, "no-bottleneck", unknown, "", "?????"},
        // CPUs: no kernels, the cost model's bytes.
        {"CpuCompute",
         {.kernels = 0, .compute = 0.75, .unfused = 0.05, .counted = false},
         "compute-roof",
         compute,
         "avx512_fp32",
         "RC???",
         cpu_roofs()},
        {"CpuComputeManyBytes",
         {.kernels = 0, .compute = 0.75, .unfused = 0.1, .counted = false},
         "compute-roof",
         compute,
         "avx512_fp32",
         "?C???",
         cpu_roofs()},
        {"CpuBandwidth",
         {.kernels = 0, .compute = 0.1, .unfused = 0.9, .counted = false},
         "memory-roof",
         bandwidth,
         "DRAM",
         "CRR?R",
         cpu_roofs()},
        {"CpuUnknown",
         {.kernels = 0, .compute = 0.2, .unfused = 0.2, .counted = false},
         "no-bottleneck",
         unknown,
         "",
         "?????",
         cpu_roofs()},
        {"CpuWithoutAUnitsRoof",
         {.precision = Precision::fp64, .kernels = 0, .compute = 0.2, .unfused = 0.2, .counted = false},
         "no-bottleneck",
         unknown,
         "",
         "?????",
         cpu_roofs()},
    };
    return cases;
}

class VerdictOfOneStep : public testing::TestWithParam<StepCase> {};

TEST_P(VerdictOfOneStep, HasTheVerdictThatItWasBuiltFor) {
    StepCase c = GetParam();
    if (c.name == "NoRoofsAtAll") c.roofs.ceilings.clear();
    if (c.name.starts_with("NoRoofOfL2")) c.roofs = known::without(c.roofs, "l2_read");
    const Verdict verdict = judged(known::result_of({c.step}, c.roofs, 0, c.run_clock_mhz)).steps.at(0);
    EXPECT_EQ(verdict.rule, c.rule) << testing::PrintToString(verdict.evidence);
    EXPECT_EQ(name(verdict.bound), name(c.bound));
    EXPECT_EQ(verdict.level, c.level);
    EXPECT_EQ(letters(verdict.hypotheses), c.hypotheses);
    EXPECT_GE(verdict.margin, 0);
    EXPECT_NE(verdict.overturned_by, "");
    EXPECT_FALSE(verdict.evidence.empty());
}
INSTANTIATE_TEST_SUITE_P(Verdict, VerdictOfOneStep, testing::ValuesIn(step_cases()),
                         [](const auto& c) { return c.param.name; });

// Evidence.

TEST(Evidence, NamesEachDemandWithItsOrigin) {
    const Verdict verdict = judged(known::result_of({{.compute = 0.97, .dram = 0.1, .issue = 0.98}})).steps[0];
    EXPECT_THAT(
        verdict.evidence,
        Contains("970 MFLOP (derived) would take 97 % of the time at the roof fp32_plain of 10.0 TFLOP/s (measured)"));
    EXPECT_THAT(
        verdict.evidence,
        Contains(
            "10.0 MB through DRAM (measured) would take 10 % of the time at the roof dram_read of 1,000 GB/s (measured)"));
    EXPECT_THAT(verdict.evidence, Contains("achieved occupancy 50 % (measured)"));
    EXPECT_THAT(verdict.evidence, Not(Contains(HasSubstr("through L2"))));  // a counted zero
    EXPECT_NEAR(verdict.margin, 0.97 / 0.60 - 1, 1e-9);
}

TEST(Evidence, CountsAUnitsInstructionsInMillions) {
    EXPECT_THAT(
        judged(known::result_of({{.us = 1000, .special = 0.5}})).steps[0].evidence,
        Contains(
            "0.05 million instructions of the special-function unit (measured) would take 50 % of the time at the roof special of 0.1 Ginst/s (measured)"));
}

TEST(Evidence, SaysWhichWayTheClockWas) {
    const Step gemm{.op = "gemm", .compute = 0.7, .executed = 0.1};
    EXPECT_THAT(judged(known::result_of({gemm}, known::gpu_roofs(), 0, 900)).steps[0].evidence,
                Contains(HasSubstr("8 % of the time more at that roof for the run's lower clock")));
    EXPECT_THAT(judged(known::result_of({gemm}, known::gpu_roofs(), 0, 1250)).steps[0].evidence,
                Not(Contains(HasSubstr("clock"))));
    EXPECT_THAT(judged(known::result_of({gemm})).steps[0].evidence,
                Contains(HasSubstr("10 % of the time at that roof for FLOPs beyond the model's")));
}

TEST(Evidence, SaysWhatRanOnAnotherUnit) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.7}});
    result.points[0].steps[0].counters["tensor_fp16_ops"] = 68 * known::tensor_flops;
    EXPECT_THAT(judged(result).steps[0].evidence, Contains(HasSubstr("2 % of the time less at that roof for FLOPs")));
}

TEST(Evidence, LeavesOutWhatIsUnderAHundredth) {
    // 2 us inactive, one of them an empty kernel's.
    EXPECT_THAT(judged(known::result_of({{.active = 0.98}})).steps[0].evidence,
                Contains(HasSubstr("1 % of the time SMs were idle")));
    EXPECT_THAT(judged(known::result_of({{.active = 0.981}})).steps[0].evidence,
                Not(Contains(HasSubstr("SMs were idle"))));
}

TEST(Evidence, SaysWhatIsMissing) {
    EXPECT_THAT(judged(known::result_of({{}}, {})).steps[0].evidence, Contains("no roofs: nobody measured them"));
    EXPECT_THAT(
        judged(known::result_of({{.op = "gemm", .compute = 0.1}}, known::without(known::gpu_roofs(), "fp16_tensor")))
            .steps[0]
            .evidence,
        Contains("no roof of the unit that computes it"));
    EXPECT_THAT(judged(known::result_of({{.us = 0, .kernels = 0}})).steps[0].evidence,
                Contains("the step was not timed"));
}

TEST(Evidence, SaysWhatADependentStepTakes) {
    const Step layer{.us = 1500, .dram = 0.05, .l2 = 0.2, .issue = 0.1, .time_steps = 500};
    Result result = known::result_of({layer});
    result.ceilings.ceilings.push_back(known::ceiling("grid_barrier", 0.9));
    EXPECT_THAT(
        judged(result).steps[0].evidence,
        Contains(
            "500 time steps take 3.00 us each; all roofs, one after another, would take 0.75 us of one, 25 % (L2 0.60, DRAM 0.15)"));
    const std::string barrier = "one barrier among all SMs, without any work, takes 0.900 us (grid_barrier, measured)";
    EXPECT_THAT(judged(result).steps[0].evidence, Not(Contains(barrier))) << "of one block";
    result.points[0].steps[0].kernels[0].grid = {2, 3, 1};
    EXPECT_THAT(judged(result).steps[0].evidence, Contains(barrier));
    result = known::result_of({{.us = 1500, .kernels = 600, .l2 = 0.2, .issue = 0.1, .time_steps = 300}});
    EXPECT_THAT(judged(result).steps[0].evidence,
                Contains("as many empty kernels as one time step has take 2.00 us (graph_node, measured)"));
    result = known::result_of({{.us = 1500, .dram = 0.05, .l2 = 0.2, .issue = 0.1}});
    EXPECT_THAT(judged(result).steps[0].evidence, Not(Contains(HasSubstr("time step"))));
    result = known::result_of({{.us = 1500, .compute = 0.1, .unfused = 0.2, .counted = false, .time_steps = 500}});
    EXPECT_THAT(judged(result).steps[0].evidence, Contains(HasSubstr("all roofs that are known, one after another")));
}

/// Roof times that are together 48 % of the time with what recording added may be 52 % of the rest.
TEST(WithinErrors, OfRoofsTogetherComeFromRoofsAndRecording) {
    const Step layer{.us = 1500, .l2 = 0.24, .l1 = 0.24, .issue = 0.1, .time_steps = 500};
    Result result = known::result_of({layer});
    EXPECT_EQ(judged(result).steps[0].rule, "time-steps");
    result = known::result_of(
        {{.us = 1500, .l2 = 0.248, .l1 = 0.248, .issue = 0.1, .occupancy_pct = 12, .time_steps = 500}});
    EXPECT_EQ(judged(result).steps[0].rule, "within-error") << "few warps otherwise";
    EXPECT_THAT(judged(result).steps[0].evidence.front(), HasSubstr("few-warps would: occupancy-limited"));
}

/// Within its interval a roof time at 60 % of the time is one at 59 %, where nothing binds.
TEST(WithinErrors, WhatDecidesOnlyPerhapsIsNotToldFor) {
    const auto verdict = [](double share) {
        return judged(known::result_of({{.dram = share, .active = 0.95}})).steps[0];
    };
    EXPECT_EQ(verdict(0.63).bound, known::bandwidth);
    EXPECT_EQ(verdict(0.63).rule, "memory-roof");
    const Verdict near = verdict(0.605);
    EXPECT_EQ(near.bound, known::unknown);
    EXPECT_EQ(near.rule, "within-error");
    EXPECT_THAT(near.evidence.front(),
                HasSubstr("memory-roof decides for bandwidth-bound at 59 to 62 % where 60 % is needed"));
    EXPECT_THAT(near.evidence.front(), HasSubstr("waiting would: latency-bound"));
    for (const Hypothesis& hypothesis : near.hypotheses) EXPECT_NE(hypothesis.finding, Finding::confirmed);
}

/// One bound under two rules is no doubt about the bound.
TEST(WithinErrors, TwoRulesOfOneBoundAgree) {
    const Verdict verdict = judged(known::result_of({{.dram = 0.605, .units = {{"pipe_shared_memory", 95}}}})).steps[0];
    EXPECT_EQ(verdict.bound, known::bandwidth);
    EXPECT_EQ(verdict.rule, "memory-roof");
}

/// Cycles are times by the clock: where that went up and down by 4 %, 30 % without a warp are 27 to 33.
TEST(WithinErrors, OfCyclesComeFromTheClock) {
    Result result = known::result_of({{.active = 0.68, .issue = 0.6}});
    EXPECT_EQ(judged(result).steps[0].rule, "idle-sms");
    result.points[0].conditions.blocks = {{1, 0.1, 0.96 * known::clock_mhz, 4}};
    EXPECT_EQ(judged(result).steps[0].rule, "within-error");
}

/// Two clocks that differ by 6 %: nobody knows which is the step's, so 30 % without a warp may be 26.
TEST(WithinErrors, OfTwoClocksAreTheirDifference) {
    Result result = known::result_of({{.active = 0.655, .issue = 0.6}});
    EXPECT_EQ(judged(result).steps[0].rule, "idle-sms");
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 94e3;
    result.points[0].steps[0].counters["time"] = 100e3;
    EXPECT_NEAR(known::accounts_of(result).facts.steps[0].clock_error, 1 / 0.94 - 1, 1e-9);
    EXPECT_EQ(judged(result).steps[0].bound, known::unknown);
}

/// What records add may be in the recorded time: 59 % of it is 62 % of the time without them.
TEST(WithinErrors, OfTheTimeComeFromRecording) {
    Result result = known::result_of({{.us = 10, .compute = 0.59, .issue = 0.3}});
    EXPECT_EQ(judged(result).steps[0].bound, known::latency);
    result.points[0].activity.inflation = {{9.5, 10, 10.0}};
    EXPECT_EQ(judged(result).steps[0].rule, "within-error");
}

/// An empty kernel takes 1 us from start to start on the known machine, of which the gap before it is a quarter; its
/// records add 0.55 us, or nothing.
Verdict short_kernel(double us, bool recording_adds) {
    Result result = known::result_of({{.us = us, .gap_us = 0.25, .active = 0.2, .issue = 0.01}});
    Point& point = result.points[0];
    point.activity.unprofiled_ms = point.end_to_end->latency.summary_ms.median;
    const double profiled_us = recording_adds ? 1.55 : 1.0;
    point.activity.inflation = {{.kernel_us = 1.0, .recorded_us = us, .profiled_us = profiled_us}};
    return judged(result).steps.at(0);
}

/// A record of 1.9 us, 0.55 of them its own, is of a kernel that starting takes 62 % of, and idle SMs do not.
TEST(Judge, SetsStartingAKernelAgainstItsTimeWithoutRecords) {
    const Verdict verdict = short_kernel(1.9, true);
    EXPECT_EQ(verdict.bound, launch);
    EXPECT_EQ(verdict.rule, "gap");
    EXPECT_NEAR(verdict.margin, 1 / (1.9 + 0.25 - 0.55) / 0.5 - 1, 1e-9);
    // Without records that add, starting is 47 % of it; and a kernel twice as long is no empty one.
    EXPECT_EQ(short_kernel(1.9, false).rule, "idle-sms");
    EXPECT_EQ(short_kernel(3.8, true).rule, "idle-sms");
}

/// Which of two levels has the longest roof time is said only where it can be told.
TEST(WithinErrors, TwoLevelsThatTieAreBothNamed) {
    EXPECT_EQ(judged(known::result_of({{.dram = 0.7, .l2 = 0.69}})).steps[0].level, "DRAM or L2");
    EXPECT_EQ(judged(known::result_of({{.dram = 0.69, .l2 = 0.7}})).steps[0].level, "L2 or DRAM");
    EXPECT_EQ(judged(known::result_of({{.dram = 0.7, .l2 = 0.5}})).steps[0].level, "DRAM");
}

TEST(VerdictRules, EveryLineDecidesSomewhere) {
    std::set<std::string> decided;
    for (const StepCase& c : step_cases()) decided.insert(c.rule);  // VerdictOfOneStep checks that they do
    const Step copy{.dram = 0.9}, fma{.compute = 0.9, .issue = 0.9}, short_one{.us = 50, .gap_us = 50};
    for (const std::vector<Step>& steps : {std::vector{copy}, {copy, fma}, {short_one}})
        decided.insert(judged(known::result_of(steps)).model.rule);
    decided.insert(judged(known::result_of({{.dram = 0.605}})).steps[0].rule);
    for (const double dram : {1.0, 0.0}) {
        Result taken = known::result_of({{.us = 100, .compute = 0.1}});
        known::add_theft(taken.points[0], dram, 1 - dram);
        decided.insert(judged(taken).steps[0].rule);
        EXPECT_EQ(judged(taken).steps[0].level, dram == 1 ? "DRAM" : "L2");
    }
    // Fixed time decides a step, and a whole in which no bound has most of the time.
    Result fixed = known::result_of({{.us = 100, .compute = 0.1}}), thirds = known::result_of({copy, fma, {.us = 150}});
    fixed.points[0].size_scaling = {known::make_sizes({0}, 80, 20)};
    decided.insert(judged(fixed).steps[0].rule);
    thirds.points[0].size_scaling = {known::make_sizes({0, 1}, 5, 95), known::make_sizes({2}, 130, 20)};
    decided.insert(judged(thirds).model.rule);
    Result waits = known::result_of({copy, {.us = 50, .gap_us = 50}});
    waits.points[0].program.emplace();
    waits.points[0].steps[1].kernels[0].host_wait_us = 50;
    decided.insert(judged(waits).model.rule);
    for (const VerdictRule& rule : verdict_rules()) EXPECT_TRUE(decided.contains(std::string(rule.id))) << rule.id;
    EXPECT_GE(step_cases().size(), 30);
}

// The method says all of it.

bool is_of_any_bound(const VerdictRule& rule) {
    return rule.id == "majority" || rule.id == "largest-cause" || rule.id == "model-cause";
}

TEST(Method, ExplainsEveryRuleAndEveryLine) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/method.md");
    const std::string method = (std::ostringstream() << file.rdbuf()).str();
    const auto expect_text = [&](const std::string& text) {
        EXPECT_TRUE(method.find(text) != std::string::npos) << "docs/method.md lacks: " << text;
    };
    for (const VerdictRule& rule : verdict_rules())
        expect_text(fmt::format("| `{}` | {} | {} |\n", rule.id, is_of_any_bound(rule) ? "that one" : name(rule.bound),
                                rule.text()));
    for (std::size_t i = 0; i < cause_count; ++i) {
        const CauseInfo& cause = info(cause_at(i));
        expect_text(fmt::format("| {} | {} | {} |\n", cause.name, cause.what, cause.how));
    }
    for (std::size_t i = 0; i < line_count; ++i)
        expect_text(fmt::format("| {} | {} |\n", info(line_at(i)).name, info(line_at(i)).what));
}

}  // namespace
}  // namespace kbench
