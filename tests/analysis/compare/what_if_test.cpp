// Expectations on synthetic machines, where the answer is known: steps that one roof bounds scale with that roof.
#include "analysis/compare/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/render/render.h"
#include "analysis/report/what_if.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Values = std::vector<std::pair<const char*, double>>;

constexpr double dram = 1000, tensor = 100, plain = 10;  // GB/s, TFLOP/s
const Values here_roofs = {{"dram_read", dram}, {"fp16_tensor", tensor}, {"fp32_plain", plain}};

WhatIfMachine measured(const char* name, const Values& values, std::string_view backend = "cuda",
                       double l2_bytes = 5e7) {
    CeilingRun run;
    for (const auto& [ceiling, value] : values) {
        run.ceilings.emplace_back().name = ceiling;
        run.ceilings.back().value = Quantity::measured(value);
    }
    return {name, Roofs(run, backend), {}, {}, l2_bytes};
}

/// Roofs that were measured at that clock.
WhatIfMachine at_1000_mhz() {
    CeilingRun run;
    for (const auto& [name, value] : here_roofs) {
        Ceiling& ceiling = run.ceilings.emplace_back();
        ceiling.name = name;
        ceiling.value = Quantity::measured(value);
        ceiling.clock_mhz = 1000;
    }
    return {"at 1000 MHz", Roofs(run, "cuda"), {}, {}, 5e7};
}

MachineFile sheet(const Values& values) {
    MachineFile file;
    file.id = file.name = "paper";
    file.kind = "gpu";
    for (const auto& [ceiling, value] : values) file.roofs.push_back({ceiling, value, "a datasheet"});
    return file;
}

/// A point whose steps are given by FLOPs, bytes and time; the end to end time is their sum unless it is given.
class WhatIfTest : public testing::Test {
  protected:
    WhatIfTest() {
        point_.set("model", "synthetic");
        point_.set("backend", "cuda");
        point_.set("batch", 1);
        point_.set("seq", 128);
        point_.set("precision", Precision::fp16);
    }
    StepResult& add(const char* op, double flops, double bytes, double time_us) {
        StepResult& step = point_.steps.emplace_back();
        step.index = static_cast<int>(point_.steps.size()) - 1;
        step.layer = std::string("h.") + std::to_string(step.index) + "." + op;
        step.op = op;
        step.precision = point_.precision();
        step.cost.flops = flops;
        step.cost.bytes_read[static_cast<std::size_t>(Role::weights)] = bytes;
        step.time_us = summarise(std::vector<double>(9, time_us));
        sum_us_ += time_us;
        return step;
    }
    /// 50 % of the tensor roof when both are in its own numbers: 1e9 FLOPs take 10 us on 100 TFLOP/s.
    StepResult& add_compute() { return add("gemm", 1e9, 1e3, 20); }
    /// 1e8 bytes take 100 us at 1000 GB/s: 80 % of the roof.
    StepResult& add_copy() { return add("layernorm", 1, 1e8, 125); }

    const WhatIf& ask(const WhatIfMachine& target, double end_to_end_us = 0) {
        return ask(measured("here", here_roofs), target, end_to_end_us);
    }
    const WhatIf& ask(const WhatIfMachine& source, const WhatIfMachine& target, double end_to_end_us = 0) {
        const double us = end_to_end_us > 0 ? end_to_end_us : sum_us_;
        point_.end_to_end.emplace().latency.summary_ms = summarise(std::vector<double>(9, us * 1e-3));
        answer_ = what_if(explain({}, point_, source.roofs), source, target);
        return answer_;
    }

    Point point_;
    double sum_us_ = 0;
    WhatIf answer_;
};

TEST_F(WhatIfTest, TheSameMachineTakesTheSameTime) {
    add_compute();
    add_copy();
    add("embedding", 0, 0, 3);
    const WhatIf& answer = ask(measured("there", here_roofs));
    EXPECT_EQ(answer.unavailable, "");
    EXPECT_NEAR(answer.there_ms.value, 0.148, 1e-9);
    EXPECT_NEAR(answer.there_ms.low, 0.148, 1e-9);
    EXPECT_NEAR(answer.there_ms.high, 0.148, 1e-9);
    EXPECT_EQ(answer.origin, Origin::derived);
}

TEST_F(WhatIfTest, AComputeStepScalesWithTheFlopRatio) {
    add_compute();
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", dram}, {"fp16_tensor", 4 * tensor}, {"fp32_plain", plain}}));
    EXPECT_NEAR(answer.there_ms.value, 0.020 / 4, 1e-9) << "the same share of a roof four times as high";
    EXPECT_NEAR(answer.there_ms.low, 0.020 / 4, 1e-9);
    EXPECT_NEAR(answer.there_ms.high, 0.0025 + 0.010, 1e-9) << "2.5 us are the roof time, 10 us above it stay";
    EXPECT_EQ(answer.steps[0].ceiling_there, "fp16_tensor");
}

TEST_F(WhatIfTest, ASlowerMachineHasTheUnchangedLossAsItsLowEnd) {
    add_compute();
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", dram}, {"fp16_tensor", tensor / 4}, {"fp32_plain", plain}}));
    EXPECT_NEAR(answer.there_ms.value, 0.080, 1e-9);
    EXPECT_NEAR(answer.there_ms.low, 0.040 + 0.010, 1e-9);
    EXPECT_NEAR(answer.there_ms.high, 0.080, 1e-9);
}

TEST_F(WhatIfTest, ACopyScalesWithTheBandwidthAloneWhateverTheFlops) {
    add_copy();
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", 2 * dram}, {"fp16_tensor", 100 * tensor}, {"fp32_plain", 100 * plain}}));
    EXPECT_NEAR(answer.there_ms.value, 0.0625, 1e-9);
    EXPECT_EQ(answer.steps[0].ceiling_there, "dram_read");
}

TEST_F(WhatIfTest, TheBindingRoofMayBeAnotherThere) {
    add("gemm", 1e9, 5e6, 20);  // 10 us of FLOPs, 5 us of bytes
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", dram / 4}, {"fp16_tensor", tensor}, {"fp32_plain", plain}}));
    EXPECT_EQ(answer.steps[0].ceiling_here, "fp16_tensor");
    EXPECT_EQ(answer.steps[0].ceiling_there, "dram_read");
    EXPECT_NEAR(answer.steps[0].roof_there_us, 20, 1e-9);
    EXPECT_NEAR(answer.there_ms.value, 0.040, 1e-9);
    EXPECT_NEAR(answer.there_ms.low, 0.030, 1e-9);
}

TEST_F(WhatIfTest, NothingIsExpectedBelowTheDemand) {
    add("gemm", 1e9, 1e3, 8);  // measured 2 us below its roof time: a share of 100 % at most
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", dram}, {"fp16_tensor", tensor / 2}, {"fp32_plain", plain}}));
    EXPECT_NEAR(answer.there_ms.low, 0.020, 1e-9);
    EXPECT_NEAR(answer.there_ms.value, 0.020, 1e-9);
}

TEST_F(WhatIfTest, GapsStayAndWhatRecordingAddedIsSpread) {
    KernelResult kernel;
    kernel.time_us = 20;
    kernel.gap_us = 4;
    add_compute().kernels = {kernel};
    const WhatIf& answer = ask(measured("there", here_roofs), 22);  // 24 us recorded, 22 us without records
    EXPECT_NEAR(answer.gaps_ms, 0.004, 1e-9);
    EXPECT_NEAR(answer.steps[0].here_us, 18, 1e-9);
    EXPECT_NEAR(answer.there_ms.value, 0.022, 1e-9);
    const WhatIf& faster =
        ask(measured("there", {{"dram_read", dram}, {"fp16_tensor", 2 * tensor}, {"fp32_plain", plain}}), 22);
    EXPECT_NEAR(faster.there_ms.value, 0.004 + 0.009, 1e-9);
}

TEST_F(WhatIfTest, BytesThatACacheSparedComeBackInTheHighEndOfAnotherCache) {
    StepResult& step = add_copy();
    point_.counters.metrics.push_back({"dram_read_bytes", "byte", "", Origin::measured, ""});
    step.counters = {{"dram_read_bytes", 2e7}, {"dram_write_bytes", 0}};  // 1e8 unfused ones: 20 us of 125
    const WhatIf& answer = ask(measured("there", here_roofs, "cuda", 4e7));
    EXPECT_NEAR(answer.there_ms.value, 0.125, 1e-9);
    EXPECT_NEAR(answer.there_ms.high, 0.625, 1e-9) << "five times the bytes at the same share";
    EXPECT_THAT(answer.assumptions, Contains(HasSubstr("cache of another size")));
    const WhatIf& same = ask(measured("there", here_roofs));
    EXPECT_NEAR(same.there_ms.high, 0.125, 1e-9);
    EXPECT_THAT(same.assumptions, Contains(HasSubstr("L2 has the same size")));
}

TEST_F(WhatIfTest, ALevelWithoutARoofThereIsAsHereInTheHighEnd) {
    StepResult& step = add_copy();
    step.counters = {{"l2_sm_sectors", 110e-6 * 2e12 / 32}};  // 110 us at 2000 GB/s
    Values roofs = here_roofs;
    roofs.push_back({"l2_read", 2000});
    const WhatIf& answer =
        ask(measured("here", roofs),
            measured("there", {{"dram_read", 10 * dram}, {"fp16_tensor", tensor}, {"fp32_plain", plain}}));
    EXPECT_EQ(answer.steps[0].ceiling_here, "l2_read");
    EXPECT_NEAR(answer.there_ms.value, 0.010 / 0.88, 1e-6);
    EXPECT_GE(answer.there_ms.high, 0.110);
    EXPECT_THAT(answer.assumptions, Contains(HasSubstr("states no roof of L2")));
}

TEST_F(WhatIfTest, ADatasheetIsReachedToTheShareThatWasMeasuredHere) {
    add_copy();
    WhatIfMachine source = measured("here", here_roofs);
    source.datasheet = Roofs(sheet({{"dram_read", dram / 0.8}, {"fp16_tensor", tensor}, {"fp32_plain", plain}}));
    const WhatIfMachine target =
        what_if_machine(sheet({{"dram_read", 2 * dram}, {"fp16_tensor", tensor}, {"fp32_plain", plain}}));
    EXPECT_NEAR(ask(source, target).there_ms.value, 0.0625 / 0.8, 1e-9);
    EXPECT_THAT(answer_.assumptions, Contains(HasSubstr("reach the shares that were measured here")));
    source.datasheet = Roofs(sheet({{"dram_read", dram / 1.05}, {"fp16_tensor", tensor}, {"fp32_plain", plain}}));
    EXPECT_NEAR(ask(source, target).there_ms.value, 0.0625, 1e-9) << "more than all of it nobody reaches";
    source.datasheet.reset();
    EXPECT_NEAR(ask(source, target).there_ms.value, 0.0625, 1e-9);
    EXPECT_THAT(answer_.assumptions, Contains(HasSubstr("face value")));
}

TEST_F(WhatIfTest, NothingIsExpectedBetweenAGpuAndACpu) {
    add_copy();
    const WhatIfMachine cpu = measured("cpu", {{"cpu_dram_read", dram / 10}, {"avx512_fp32", 1}}, "cpu");
    EXPECT_THAT(ask(cpu).unavailable, HasSubstr("nothing is expected between a GPU and a CPU"));
    EXPECT_THAT(ask(cpu, measured("there", here_roofs)).unavailable, HasSubstr("between a GPU and a CPU"));
}

/// The roofs were measured at 1000 MHz; the run here had 800, the run there 900.
TEST_F(WhatIfTest, TheClocksOfTheRunsAreDividedOutWhereBothAreKnown) {
    const WhatIfMachine same = at_1000_mhz();
    add_compute();
    point_.conditions.sm_clock_mhz = Quantity::measured(800);
    point_.end_to_end.emplace().latency.summary_ms = summarise(std::vector<double>(9, 0.020));
    const auto expected_us = [&](std::optional<double> clock_there) {
        return what_if(explain({}, point_, same.roofs), same, same, clock_there).there_ms.value * 1e3;
    };
    EXPECT_NEAR(expected_us(800), 20, 1e-9) << "the same machine at the same clock";
    EXPECT_NEAR(expected_us(900), 20 * 8.0 / 9, 1e-9);
    EXPECT_NEAR(expected_us(std::nullopt), 20, 1e-9) << "the same share of the clock as here";
    EXPECT_THAT(what_if(explain({}, point_, same.roofs), same, same, 900).assumptions,
                Contains(HasSubstr("800 MHz here and 900 MHz there")));
    point_.conditions.sm_clock_mhz = Quantity::unavailable("no NVML");
    EXPECT_NEAR(expected_us(900), 20, 1e-9);
}

TEST_F(WhatIfTest, TheClockOfSmsSaysNothingOfDram) {
    add_copy();
    point_.conditions.sm_clock_mhz = Quantity::measured(800);
    const WhatIfMachine here = at_1000_mhz();
    point_.end_to_end.emplace().latency.summary_ms = summarise(std::vector<double>(9, 0.125));
    EXPECT_NEAR(what_if(explain({}, point_, here.roofs), here, here, 1600).there_ms.value, 0.125, 1e-9);
}

/// A part of the GPU is a machine: its roofs decide, its SM count is no axis of the point.
TEST_F(WhatIfTest, FewerSmsOfTheSameGpuAreATargetLikeAnyOther) {
    add_compute();
    add_copy();
    Result part;
    GpuInfo& gpu = part.environment.gpu.emplace();
    gpu.name = "NVIDIA H200";
    gpu.multiprocessors = 66;
    gpu.multiprocessors_of_device = 132;
    const Values roofs = {{"dram_read", dram}, {"fp16_tensor", tensor / 2}, {"fp32_plain", plain / 2}};
    for (const auto& [name, value] : roofs) {
        part.ceilings.ceilings.emplace_back().name = name;
        part.ceilings.ceilings.back().value = Quantity::measured(value);
    }
    part.points.push_back(point_);
    const WhatIfMachine target = what_if_machine(part);
    EXPECT_EQ(target.name, "NVIDIA H200, 66 of its 132 SMs");
    const WhatIf& answer = ask(target);
    EXPECT_NEAR(answer.there_ms.value, 0.040 + 0.125, 1e-9) << "the GEMM twice as long, the copy as here";
    Point there = point_;
    there.end_to_end->latency.summary_ms = summarise(std::vector<double>(9, 0.160));
    EXPECT_EQ(check_what_if(answer, there).unavailable, "");
    EXPECT_TRUE(check_what_if(answer, there).inside);
}

TEST_F(WhatIfTest, EveryAnswerSaysHowFarItWasTested) {
    EXPECT_THAT(tested_text(std::nullopt), HasSubstr("not yet tested"));
    EXPECT_EQ(
        tested_text(WhatIfTested{12, 9, -0.11, 0.07}),
        "Tested on fewer SMs of one GPU alone (docs/machines.md): of 12 expectations 9 had the measurement in their interval, and errors were -11 to +7 %. No other architecture was tested.");
    add_compute();
    ask(measured("there", here_roofs));
    const std::vector<CheckedWhatIf> points = {{answer_, {}}};
    EXPECT_THAT(render_terminal(what_if_document(points), 400), HasSubstr(tested_text(what_if_tested)));
}

TEST_F(WhatIfTest, OtherProgramsGetTheSameFigures) {
    add_compute();
    ask(measured("there", here_roofs));
    Point other = point_;
    other.end_to_end->latency.summary_ms = summarise(std::vector<double>(9, 0.025));
    const WhatIfCheck check = check_what_if(answer_, other);
    const auto json_of = [](const WhatIf& answer, std::optional<WhatIfCheck> checked = std::nullopt) {
        const std::vector<CheckedWhatIf> points = {{answer, std::move(checked)}};
        return what_if_json(points).at(0);
    };
    const auto json = json_of(answer_, check);
    EXPECT_EQ(json["target"], "there");
    EXPECT_NEAR(json["expected_ms"], 0.020, 1e-9);
    EXPECT_NEAR(json["check"]["error"], -0.2, 1e-9);
    EXPECT_EQ(json["check"]["inside"], false);
    EXPECT_TRUE(json_of(answer_)["check"].is_null());
    EXPECT_THAT(json_of(ask(measured("x", {})))["unavailable"], HasSubstr("no roofs"));
}

TEST_F(WhatIfTest, APrecisionWithoutAUnitThereIsUnavailable) {
    add_compute();
    EXPECT_EQ(ask(measured("old GPU", {{"dram_read", 100}, {"fp32_plain", 1}})).unavailable,
              "old GPU has no roof for gemm in fp16");
    EXPECT_EQ(ask(measured("x", {{"fp16_tensor", 1}})).unavailable, "x has no roof for the bandwidth of its memory");
    EXPECT_THAT(ask(measured("x", {})).unavailable, HasSubstr("x has no roofs"));
}

TEST_F(WhatIfTest, StepsWithoutTimesAreUnavailable) {
    add("gemm", 1e9, 1e3, 20).time_us.reset();
    EXPECT_EQ(ask(measured("there", here_roofs)).unavailable, "its steps were not timed");
    const WhatIfMachine here = measured("here", here_roofs);
    Explanation untimed = explain({}, point_, here.roofs);
    untimed.breakdown.unavailable.clear();
    EXPECT_EQ(what_if(untimed, here, here).unavailable, "its steps have no times");
}

TEST_F(WhatIfTest, SaysWhichRoofsAreADatasheets) {
    add_compute();
    const WhatIfMachine paper = what_if_machine(sheet(here_roofs)), here = measured("here", here_roofs);
    const auto of_datasheet = Contains(HasSubstr("are its datasheet's"));
    EXPECT_THAT(ask(here, here).assumptions, Not(of_datasheet));
    EXPECT_THAT(ask(here, paper).assumptions, Contains(HasSubstr("taken at their face value")));
    EXPECT_THAT(ask(paper, here).assumptions, Contains(HasSubstr("the shares are lower than those of measured roofs")));
    EXPECT_THAT(ask(paper, measured("x", {})).unavailable, HasSubstr("x has no roofs"));
    EXPECT_THAT(ask(measured("y", {}), paper).unavailable, HasSubstr("y has no roofs"));
}

TEST_F(WhatIfTest, GroupsNameTheRoofWithMostOfTheirTimeAndItsShare) {
    add("gemm", 1e9, 1e3, 20);
    add("gemm", 1, 1e7, 12.5).layer = "h.7.gemm";
    const WhatIf& answer = ask(measured("there", here_roofs));
    ASSERT_EQ(answer.by_layer.size(), 1U);
    EXPECT_EQ(answer.by_layer[0].ceiling_there, "fp16_tensor");
    EXPECT_NEAR(answer.by_layer[0].ceiling_there_share, 20 / 32.5, 1e-9);
    EXPECT_NEAR(answer.by_layer[0].here_ms, 0.0325, 1e-9);
    EXPECT_NEAR(answer.by_ceiling[1].ceiling_there_share, 1, 1e-9);
}

TEST_F(WhatIfTest, APlanThatDoesNotFitIsUnavailable) {
    add_compute();
    point_.memory.bytes[0] = 20'000'000'000;
    WhatIfMachine target = measured("small", here_roofs);
    target.memory_bytes = 16e9;
    EXPECT_EQ(ask(target).unavailable, "the plan takes 20.0 GB, small has 16.0 GB");
    target.memory_bytes = 20e9;
    EXPECT_EQ(ask(target).unavailable, "") << "as much as there is";
}

TEST_F(WhatIfTest, GroupsSumToTheTotal) {
    add_compute();
    add_compute();
    add_copy();
    const WhatIf& answer =
        ask(measured("there", {{"dram_read", 2 * dram}, {"fp16_tensor", 3 * tensor}, {"fp32_plain", plain}}));
    for (const auto* groups : {&answer.by_op, &answer.by_layer, &answer.by_ceiling}) {
        double sum = answer.gaps_ms, low = answer.gaps_ms;
        for (const WhatIfGroup& group : *groups) {
            sum += group.there_ms.value;
            low += group.there_ms.low;
        }
        EXPECT_NEAR(sum, answer.there_ms.value, 1e-9);
        EXPECT_NEAR(low, answer.there_ms.low, 1e-9);
    }
    ASSERT_EQ(answer.by_layer.size(), 2U);
    EXPECT_EQ(answer.by_layer[1].name, "h.*.gemm");
    EXPECT_EQ(answer.by_layer[1].steps, 2U);
    EXPECT_EQ(answer.by_ceiling[0].name, "dram_read");
}

TEST_F(WhatIfTest, AMeasurementIsInsideOrOutsideTheInterval) {
    add_compute();
    ask(measured("there", {{"dram_read", dram}, {"fp16_tensor", 4 * tensor}, {"fp32_plain", plain}}));  // 5 to 12.5 us
    Point other = point_;
    const auto at = [&](double us) {
        other.end_to_end->latency.summary_ms = summarise(std::vector<double>(9, us * 1e-3));
        return check_what_if(answer_, other);
    };
    EXPECT_TRUE(at(10).inside);
    EXPECT_NEAR(at(10).error, -0.5, 1e-9);
    EXPECT_FALSE(at(4.9).inside);
    other.end_to_end->latency.summary_ms.median = answer_.there_ms.low;
    EXPECT_TRUE(check_what_if(answer_, other).inside) << "the ends belong to it";
    other.end_to_end->latency.summary_ms.median = answer_.there_ms.high;
    EXPECT_TRUE(check_what_if(answer_, other).inside);
    other.end_to_end->latency.summary_ms.median = 0;
    EXPECT_EQ(check_what_if(answer_, other).error, 0) << "beside no time there is none";
    EXPECT_FALSE(at(13).inside);
    other.set("precision", Precision::fp32);
    EXPECT_EQ(at(10).unavailable, "the precision differs: fp16 and fp32");
    other = point_;
    other.end_to_end.reset();
    EXPECT_EQ(check_what_if(answer_, other).unavailable, "the other point was not timed");
}

TEST_F(WhatIfTest, AResultWithoutCeilingsIsItsDatasheetMachine) {
    Result result;
    result.environment.gpu.emplace().name = "NVIDIA H200";
    result.points.push_back(point_);
    const WhatIfMachine machine = what_if_machine(result);
    EXPECT_EQ(machine.roofs.origin(), Origin::estimated);
    EXPECT_FALSE(machine.datasheet);
    result.ceilings.ceilings.emplace_back().name = "dram_read";
    result.ceilings.ceilings.back().value = Quantity::measured(4200);
    const WhatIfMachine own = what_if_machine(result);
    EXPECT_EQ(own.roofs.value("dram_read"), 4200);
    EXPECT_EQ(own.datasheet.value().value("dram_read"), 4800);
}

TEST_F(WhatIfTest, ADatasheetsL2IsInMiB) {
    MachineFile file = sheet(here_roofs);
    file.memory_gb = 80;
    file.l2_mb = 50;
    EXPECT_EQ(what_if_machine(file).l2_bytes, 50.0 * (1 << 20));
    EXPECT_EQ(what_if_machine(file).memory_bytes, 80e9);
    file.kind = "cpu";
    EXPECT_EQ(what_if_machine(file).l2_bytes, std::nullopt) << "of a CPU each core's";
}

TEST_F(WhatIfTest, TheTextSaysWhatIsExpectedAndWhatItRestsOn) {
    add_compute();
    add_copy();
    ask(what_if_machine(machine("a100-sxm4-80gb")));
    Point other = point_;
    const std::vector<CheckedWhatIf> points = {{answer_, check_what_if(answer_, other)}};
    const Document document = what_if_document(points);
    expect_golden("what_if.txt", render_terminal(document, 100));
    expect_golden("what_if.md", render_markdown(document));
}

/// How often `part` stands in `text`.
std::size_t count_in(const std::string& text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST_F(WhatIfTest, WhatAllPointsAssumeIsSaidOnce) {
    add_compute();
    const WhatIfMachine there =
        measured("there", {{"dram_read", dram}, {"fp16_tensor", tensor}, {"fp32_plain", plain}});
    const WhatIf answer = ask(there);
    WhatIf of_clocks = answer;
    of_clocks.assumptions.push_back("The SMs ran at other clocks.");
    WhatIf unavailable = answer;
    unavailable.unavailable = "its steps have no times";
    unavailable.assumptions.clear();
    const std::vector<CheckedWhatIf> points = {{answer, {}}, {of_clocks, {}}, {unavailable, {}}};
    const std::string text = render_terminal(what_if_document(points), 1000);
    for (const std::string& assumption : answer.assumptions) EXPECT_EQ(count_in(text, assumption), 1u) << text;
    EXPECT_EQ(count_in(text, tested_text(what_if_tested)), 1u);
    EXPECT_EQ(count_in(text, "The SMs ran at other clocks."), 1u);
    EXPECT_EQ(count_in(text, "Assumptions of this point alone"), 1u);
}

TEST_F(WhatIfTest, TheTextOfWhatIsUnavailableIsTheReason) {
    add_compute();
    point_.set("model", "<b>\nx");
    ask(measured("x", {}));
    const std::vector<CheckedWhatIf> points = {{answer_, {}}};
    const Document document = what_if_document(points);
    EXPECT_EQ(render_terminal(document, 200),
              "What if: <b> x at batch 1, sequence length 128, fp16: x instead of here\n"
              "  Unavailable: x has no roofs: the result has no ceilings.\n");
    EXPECT_THAT(render_markdown(document), Not(HasSubstr(" <b>")));
}

}  // namespace
}  // namespace kbench
