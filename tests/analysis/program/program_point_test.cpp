// The point of a program: planted programs, whose iteration, times, names, counters and differences are known.
#include "analysis/program/program_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/program/program_launches.h"
#include "analysis/result/result_json.h"
#include "kbench/error.h"
#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GpuInfo hopper() {
    GpuInfo gpu;
    gpu.compute_capability_major = 9;
    gpu.multiprocessors = 132;
    return gpu;
}

Point point_of(const ProgramRuns& runs, const ProgramOptions& options = {}) {
    return program_points(runs, options, hopper()).points.at(0);
}

ProgramLaunches launches_of(const ProgramRuns& runs, const ProgramOptions& options = {}) {
    return program_launches(runs, options).at(0);
}

/// A training step with or without the hook's ranges: a product, its activation, and their backward.
void training_step(WrittenProgram& program, std::int64_t sequence, bool names) {
    const auto open = [&](const std::string& text) {
        if (names) program.open(text);
    };
    const auto close = [&] {
        if (names) program.close();
    };
    const auto numbered = [](const std::string& name, std::int64_t number, const std::string& sizes) {
        return name + ", seq = " + std::to_string(number) + ", sizes = " + sizes;
    };
    program.on_thread(1).host_works(50'000).copy("HtoD", 4096);
    open(module_text("", "Model"));
    open(module_text("fc", "Linear"));
    open(numbered("aten::addmm", sequence, "[[30], [10, 20], [20, 30]]"));
    program.launch("ampere_h16816gemm_64x64_nn", {.ns = 4000});
    close();
    close();
    open(numbered("aten::relu", sequence + 1, "[[10, 30]]"));
    program.launch("relu_half_kernel", {.ns = 2000});
    close();
    close();
    program.on_thread(2);
    open("autograd::engine::evaluate_function: ReluBackward0");
    open(numbered("ReluBackward0", sequence + 1, "[[10, 30]]"));
    open("aten::threshold_backward, sizes = [[10, 30], [10, 30]]");
    program.launch("relu_backward_half", {.ns = 2500});
    close();
    close();
    close();
    open(numbered("AddmmBackward0", sequence, "[[10, 30]]"));
    open("aten::mm, sizes = [[10, 30], [30, 20]]");
    program.launch("ampere_h16816gemm_64x64_nt", {.ns = 3000});
    close();
    open("aten::mm, sizes = [[20, 10], [10, 30]]");
    program.launch("ampere_h16816gemm_64x64_tn", {.ns = 3000});
    close();
    close();
    program.on_thread(1);
    open("Optimizer.step#AdamW.step");
    program.launch("adamw", {.ns = 1500, .blocks = 7});
    close();
    program.synchronise();
}

WrittenProgram training(const std::string& purpose, int steps, bool names) {
    WrittenProgram program(purpose);
    for (int i = 0; i < 3; ++i) program.launch("set up " + std::to_string(i));
    for (int i = 0; i < steps; ++i) training_step(program, 10 * i, names);
    return program.end();
}

const StepResult& step_named(const Point& point, const std::string& layer, Direction direction) {
    for (const StepResult& step : point.steps)
        if (step.layer == layer && step.direction == direction) return step;
    throw std::out_of_range(layer);
}

/// A view launches nothing, and its backward gathers gradients.
TEST(ProgramPoint, ABackwardNamesItsForwardThoughThatLaunchesNothing) {
    const auto made = [](const std::string& purpose, bool names) {
        WrittenProgram program(purpose);
        for (int i = 0; i < 6; ++i) {
            const std::string number = ", seq = " + std::to_string(10 * i);
            program.on_thread(1).host_works(50'000);
            if (names) program.open(module_text("attn", "Attention")).open("aten::mul").launch("mul").close();
            if (names) program.open("aten::split" + number).close().close();
            if (!names) program.launch("mul");
            program.on_thread(2);
            if (names) program.open("SplitBackward0" + number).open("aten::cat");
            program.launch("cat");
            if (names) program.close().close();
            program.on_thread(1).synchronise();
        }
        return program.end();
    };
    const Point point = point_of({.records = {made("records", false).read()}, .names = {made("names", true).read()}});
    EXPECT_EQ(step_named(point, "attn", Direction::bwd).forward, "attn:split");
}

TEST(ProgramPoint, HasTheStepsOfATrainingStepWithTheirNames) {
    const Point point =
        point_of({.records = {training("records", 6, false).read()}, .names = {training("names", 4, true).read()}},
                 {.command = "python3 bench.py"});
    EXPECT_EQ(point.model(), "bench.py");
    EXPECT_EQ(point.backend(), "cuda");
    EXPECT_EQ(point.direction(), "train");
    EXPECT_EQ(point.precision(), Precision::fp16);
    EXPECT_FALSE(point.verification.enabled);
    ASSERT_TRUE(point.program);
    EXPECT_TRUE(point.program->named);
    EXPECT_EQ(point.program->command, "python3 bench.py");
    EXPECT_EQ(point.program->iterations_unavailable, "");
    EXPECT_EQ(point.program->kernels, 6);
    EXPECT_EQ(point.program->copies, 1);
    EXPECT_EQ(point.program->launches, 6);
    ASSERT_EQ(point.steps.size(), 7u);

    const StepResult& forward = step_named(point, "fc", Direction::fwd);
    EXPECT_EQ(forward.op, "gemm");
    EXPECT_EQ(forward.precision, Precision::fp16);
    EXPECT_EQ(forward.cost.flops, 2 * 10 * 20 * 30 + 10 * 30);
    EXPECT_EQ(forward.shape, "m10n30k20");
    ASSERT_TRUE(forward.call);
    EXPECT_EQ(forward.call->module, "Linear");
    EXPECT_EQ(forward.call->op, "aten::addmm");
    EXPECT_EQ(forward.call->parameters, "[[30], [10, 20], [20, 30]]");
    EXPECT_EQ(forward.call->line, "bench.py:40");
    ASSERT_EQ(forward.kernels.size(), 1u);
    EXPECT_EQ(forward.kernels[0].time_us, 4);
    EXPECT_TRUE(forward.kernels[0].theoretical_occupancy_pct.value);

    const StepResult &dgrad = step_named(point, "fc", Direction::dgrad),
                     &wgrad = step_named(point, "fc", Direction::wgrad);
    EXPECT_EQ(dgrad.forward, "fc:gemm");
    EXPECT_EQ(wgrad.forward, "fc:gemm");
    EXPECT_EQ(dgrad.call->forward_sequence, forward.call->sequence);
    EXPECT_EQ(dgrad.call->thread, 2);
    EXPECT_EQ(step_named(point, "Model", Direction::bwd).op, "relu");
    EXPECT_EQ(step_named(point, "Model", Direction::bwd).forward, "Model:relu");
    EXPECT_EQ(step_named(point, "optimizer", Direction::fwd).op, "adamw");
    EXPECT_EQ(step_named(point, "optimizer", Direction::fwd).cost.flops, 0);

    const StepResult& copy = *std::ranges::find(point.steps, "copy", &StepResult::op);
    EXPECT_EQ(copy.layer, "copy HtoD");
    EXPECT_EQ(copy.kernels[0].moved_bytes, 4096);
    EXPECT_EQ(point.cost.flops, forward.cost.flops + dgrad.cost.flops + wgrad.cost.flops + 2 * 10 * 30);
}

TEST(ProgramPoint, CountsTheCostOfAnOpOfSeveralKernelsOnce) {
    const auto run = [](const std::string& purpose) {
        WrittenProgram program(purpose);
        for (int i = 0; i < 4; ++i) {
            program.host_works(30'000).open(module_text("fc", "Linear"));
            program.open("aten::mm, sizes = [[10, 20], [20, 30]]").launch("splitk_half").launch("reduce").close();
            program.open("aten::mm, sizes = [[10, 20], [20, 40]]").launch("splitk_half").close().close();
        }
        return program.end().read();
    };
    const Point point = point_of({.records = {run("records")}, .names = {run("names")}});
    ASSERT_EQ(point.steps.size(), 2u) << "two calls of one op in one layer are two steps";
    EXPECT_EQ(point.steps[0].kernels.size(), 2u);
    EXPECT_EQ(point.steps[0].cost.flops, 2 * 10 * 20 * 30);
    EXPECT_EQ(point.steps[1].cost.flops, 2 * 10 * 20 * 40);
}

TEST(ProgramPoint, IsAResultThatCanBeReadAgain) {
    Result result;
    result.points.push_back(
        point_of({.records = {training("records", 4, false).read()}, .names = {training("names", 4, true).read()}}));
    const std::string text = to_text(result);
    const Result again = parse_result(text, "again");
    EXPECT_EQ(to_text(again), text);
    EXPECT_EQ(again.points[0].program, result.points[0].program);
    EXPECT_EQ(again.points[0].steps[1].call, result.points[0].steps[1].call);
}

TEST(ProgramPoint, DividesTheTimeOfAnIteration) {
    const Point point = point_of({.records = {training("records", 6, false).read()}});
    const ProgramRun& program = *point.program;
    // As an identity of the code: what is left over has no place of its own.
    EXPECT_DOUBLE_EQ(program.busy_ms + program.host_wait_ms + program.queued_ms, program.recorded_ms);
    EXPECT_NEAR(program.busy_ms, 0.017, 1e-9) << "seven activities one after another";
    // Each iteration waits for the host at its copy, whose call is unknown, and before its first kernel.
    double gaps_us = 0, waits_us = 0;
    for (const StepResult& step : point.steps)
        for (const KernelResult& kernel : step.kernels) {
            gaps_us += kernel.gap_us;
            waits_us += kernel.host_wait_us.value();
        }
    EXPECT_NEAR(gaps_us, 1e3 * (program.host_wait_ms + program.queued_ms), 1e-9);
    EXPECT_NEAR(waits_us, 1e3 * program.host_wait_ms, 1e-9);
    EXPECT_EQ(point.activity.profiled_ms, program.recorded_ms);
    EXPECT_NEAR(point.activity.kernels_ms, program.busy_ms, 1e-9);
}

TEST(ProgramPoint, TellsAWaitForTheHostFromQueuedWork) {
    const auto program_of = [](std::int64_t host_ns) {
        WrittenProgram program;
        for (int i = 0; i < 6; ++i) program.host_works(host_ns).launch("a", {.ns = 5000}).launch("b", {.ns = 5000});
        return *point_of({.records = {program.end().read()}}).program;
    };
    const ProgramRun slow_host = program_of(50'000), fast_host = program_of(10);
    EXPECT_GT(slow_host.host_wait_ms, 0.8 * slow_host.recorded_ms - slow_host.busy_ms);
    EXPECT_NEAR(slow_host.recorded_ms, 0.0502, 1e-9) << "the host's 50 us and two calls";
    EXPECT_EQ(fast_host.host_wait_ms, 0) << "the GPU is behind";
    EXPECT_EQ(fast_host.queued_ms, 0);
    EXPECT_NEAR(fast_host.recorded_ms, 0.010, 1e-9);
}

TEST(ProgramPoint, CountsWorkOnSeveralStreamsOnce) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i)
        program.host_works(40'000).launch("a", {.ns = 9000, .stream = 1}).launch("b", {.ns = 9000, .stream = 2});
    const Point point = point_of({.records = {program.end().read()}});
    EXPECT_NEAR(point.program->busy_ms, 0.0091, 1e-9) << "the second begins one call later";
    EXPECT_NEAR(point.activity.kernels_ms, 0.018, 1e-9);
    EXPECT_EQ(point.steps[1].kernels[0].gap_us, 0);
    EXPECT_DOUBLE_EQ(point.program->busy_ms + point.program->host_wait_ms + point.program->queued_ms,
                     point.program->recorded_ms);
}

TEST(ProgramPoint, TakesMeansOverTheMiddleHalfOfIterationsWithoutTheFirst) {
    WrittenProgram program;
    for (const std::int64_t ns : {90'000, 1000, 3000, 2000, 50'000, 2000})
        program.host_works(200'000).launch("a", {.ns = ns}).launch("b");
    const ProgramFile file = program.end().read();
    const Point point = point_of({.records = {file}});
    EXPECT_EQ(point.program->iterations, 5);
    EXPECT_EQ(point.activity.runs, 5);
    EXPECT_DOUBLE_EQ(point.steps[0].kernels[0].time_us, 7.0 / 3) << "without the one of 1 and that of 50";
    const Point asked = point_of({.records = {file}}, {.iterations = "4:5"});
    EXPECT_EQ(asked.program->iterations, 1);
    EXPECT_EQ(asked.steps[0].kernels[0].time_us, 50);
    EXPECT_THROW(point_of({.records = {file}}, {.iterations = "5:9"}), UsageError);
}

TEST(ProgramPoint, RefusesNamesOfOtherKernelsWithTheFirstDifference) {
    WrittenProgram names("names");
    for (int i = 0; i < 4; ++i) {
        names.host_works(30'000).open(module_text("", "Model"));
        names.launch("a").launch("extra").launch("b").close();
    }
    WrittenProgram records;
    for (int i = 0; i < 4; ++i) records.host_works(30'000).launch("a").launch("b");
    const Point point = point_of({.records = {records.end().read()}, .names = {names.end().read()}});
    EXPECT_FALSE(point.program->named);
    EXPECT_THAT(point.program->notes, Contains(HasSubstr("kernel 2 of an iteration is b 1x1x1 of 128x1x1 without them "
                                                         "and extra 1x1x1 of 128x1x1 with them")));
    EXPECT_EQ(point.steps[0].layer, "a") << "without names a kernel's own is its layer";
    EXPECT_EQ(point.steps[0].op, "kernel");
    EXPECT_EQ(point.steps[0].call, std::nullopt);
}

TEST(ProgramPoint, ComparesNamesThatBeginAtAnotherKernel) {
    const auto run = [](const std::string& purpose, const char* third) {
        WrittenProgram program(purpose);
        for (int i = 0; i < 5; ++i) {
            program.host_works(90'000).launch("clear");
            if (purpose == "names") program.open(module_text("", "Model"));
            program.launch("a").launch("b").launch(third);
            if (purpose == "names") program.close();
        }
        return program.end().read();
    };
    const Point point = point_of({.records = {run("records", "c")}, .names = {run("names", "d")}});
    EXPECT_THAT(point.program->notes, Contains(HasSubstr("kernel 3 of an iteration is c 1x1x1 of 128x1x1 without")));
}

TEST(ProgramPoint, BeginsIterationsWhereTheModelOfTheNamesDoes) {
    const auto run = [](const std::string& purpose, int times) {
        WrittenProgram program(purpose);
        for (int i = 0; i < times; ++i) {
            program.host_works(90'000).launch("clear");
            if (purpose == "names") program.open(module_text("", "Model"));
            program.launch("a").launch("b");
            if (purpose == "names") program.close();
        }
        return program.end().read();
    };
    const Point point = point_of({.records = {run("records", 8)}, .names = {run("names", 5)}});
    EXPECT_TRUE(point.program->named);
    EXPECT_EQ(point.steps.front().kernels.front().name, "a");
    EXPECT_EQ(point.program->iterations, 6) << "of seven that begin with it";
}

TEST(ProgramPoint, BeginsIterationsAtARangeOfTheUsers) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i) {
        program.host_works(90'000).launch("a").open("solve").launch("b").close();
    }
    const ProgramFile file = program.end().read();
    const Point point = point_of({.records = {file}}, {.from = "solve"});
    EXPECT_EQ(point.steps.front().layer, "solve");
    EXPECT_EQ(point.steps.front().kernels.front().name, "b");
    EXPECT_THROW(point_of({.records = {file}}, {.from = "nowhere"}), UsageError);
}

TEST(ProgramPoint, IsTheWholeRunWhereNothingRepeats) {
    WrittenProgram records;
    for (int i = 0; i < 5; ++i) records.launch("kernel " + std::to_string(i));
    const Point point = point_of({.records = {records.end().read()}});
    EXPECT_THAT(point.program->iterations_unavailable, HasSubstr("the whole run is one iteration"));
    EXPECT_EQ(point.program->iterations, 1);
    EXPECT_EQ(point.steps.size(), 5u);
}

TEST(ProgramPoint, HasStepsOfGraphLaunches) {
    WrittenProgram program;
    program.launch("set up");
    for (int i = 0; i < 5; ++i) program.host_works(20'000).launch_graph({"a", "b", "c"}).synchronise();
    const Point point = point_of({.records = {program.end().read()}});
    EXPECT_EQ(point.program->launches, 1);
    EXPECT_EQ(point.program->kernels, 3);
    EXPECT_GT(point.steps[0].kernels[0].host_wait_us.value(), 19);
    EXPECT_EQ(point.steps[1].kernels[0].host_wait_us, 0);
    EXPECT_EQ(point.steps[1].kernels[0].gap_us, 0);
}

WrittenProgram bare_run(int iterations, std::int64_t launches) {
    WrittenProgram program("bare");
    std::int64_t at_ns = 1000;
    for (int i = 0; i <= iterations; ++i)
        program.line({{"kind", "mark"}, {"launches", 3 + i * launches}, {"at_ns", at_ns += 2'000'000 + 1000 * i}});
    return program.end();
}

TEST(ProgramPoint, TakesIterationsTimesFromTheRunWithoutRecords) {
    const Point point = point_of({.records = {training("records", 6, false).read()}, .bare = {bare_run(6, 6).read()}});
    ASSERT_TRUE(point.end_to_end);
    // The first of six iterations is left out: the marks at launches 9, 15, .., 39.
    EXPECT_THAT(point.end_to_end->latency.samples_ms, ElementsAre(2.002, 2.003, 2.004, 2.005, 2.006));
    EXPECT_DOUBLE_EQ(point.program->bare_ms, 2.004);
    EXPECT_DOUBLE_EQ(point.activity.unprofiled_ms, 2.004);
    EXPECT_THAT(point.program->notes, IsEmpty());
}

/// A bare run of blocks of four iterations: without records, with them, and so on. The host works `host_ns`, and while
/// it records 10 us more.
WrittenProgram in_turn(int blocks, std::int64_t host_ns, bool is_as_recorded = true) {
    WrittenProgram program("bare");
    std::int64_t at_ns = 1000;
    for (int i = 0; i <= 4 * blocks; ++i) {
        const bool recorded = i / 4 % 2 == 1;
        nlohmann::json mark{{"kind", "mark"}, {"launches", 2 * i}, {"at_ns", at_ns}};
        if (recorded) mark["recorded"] = true;
        program.line(mark);
        at_ns += host_ns + (recorded ? 10'000 : 0) + (i % 4 == 0 ? 500'000 : 0);  // the change takes time
        program.host_works(host_ns + 10'000);
        if (recorded) program.launch("a", {.ns = 5000}).launch(is_as_recorded ? "b" : "c", {.ns = 7000});
    }
    return program.end();
}

TEST(ProgramPoint, TakesTimesOfBlocksWithRecordsInTurnWithThoseWithout) {
    WrittenProgram records;  // made when the host was busy otherwise
    for (int i = 0; i < 33; ++i) records.host_works(900'000).launch("a", {.ns = 5000}).launch("b", {.ns = 7000});
    const ProgramFile recorded = records.end().read();
    const Point point = point_of({.records = {recorded}, .bare = {in_turn(8, 50'000).read()}});
    EXPECT_NEAR(point.program->recorded_ms, 0.0602, 1e-9);
    EXPECT_NEAR(point.program->bare_ms, 0.050, 1e-9) << "no iteration in which records were begun or ended";
    EXPECT_EQ(point.end_to_end->latency.samples_ms.size(), 12u) << "three of each block";
    EXPECT_NEAR(point.steps[1].kernels[0].time_us, 7, 1e-9);
    const Point others = point_of({.records = {recorded}, .bare = {in_turn(8, 50'000, false).read()}});
    EXPECT_GT(others.program->recorded_ms, 0.9) << "other kernels than those of the first run";
    const Point few = point_of({.records = {recorded}, .bare = {in_turn(3, 50'000).read()}});
    EXPECT_GT(few.program->recorded_ms, 0.9);
}

TEST(BareIteration, IsTheMedianBetweenMarksOfIterations) {
    const ProgramLaunches launches = launches_of({.records = {training("records", 6, false).read()}});
    EXPECT_DOUBLE_EQ(bare_iteration_ms({bare_run(6, 6).read()}, launches), 2.004);
    EXPECT_EQ(bare_iteration_ms({bare_run(6, 5).read()}, launches), 0) << "5 launches are no iteration";
    EXPECT_EQ(bare_iteration_ms({}, launches), 0);
}

TEST(ProgramPoint, TakesTheGpusMarksBeforeTheHosts) {
    WrittenProgram bare("bare");  // the host is far ahead
    for (int i = 0; i <= 6; ++i)
        bare.line({{"kind", "mark"}, {"launches", 3 + i * 6}, {"at_ns", 1000 + i}, {"gpu_ms", 3 * i}});
    const Point point = point_of({.records = {training("records", 6, false).read()}, .bare = {bare.end().read()}});
    EXPECT_THAT(point.end_to_end->latency.samples_ms, ElementsAre(3, 3, 3, 3, 3));
}

TEST(ProgramPoint, DividesMarksThatLieSeveralIterationsApart) {
    const Point point = point_of({.records = {training("records", 6, false).read()}, .bare = {bare_run(3, 12).read()}});
    EXPECT_THAT(point.end_to_end->latency.samples_ms, ElementsAre(testing::DoubleEq(1.001), testing::DoubleEq(1.0015)))
        << "two iterations a mark";
}

TEST(ProgramPoint, TellsThatATimeIsThatOfTheRecords) {
    for (const std::vector<ProgramFile>& bare :
         {std::vector<ProgramFile>{}, std::vector<ProgramFile>{bare_run(6, 5).read()}}) {  // 5 launches: no iteration
        const Point point = point_of({.records = {training("records", 6, false).read()}, .bare = bare});
        EXPECT_EQ(point.program->bare_ms, 0);
        EXPECT_EQ(point.end_to_end->latency.samples_ms.size(), 5u);
        EXPECT_DOUBLE_EQ(point.end_to_end->latency.summary_ms.median, point.program->recorded_ms);
        EXPECT_THAT(point.program->notes, Contains(HasSubstr("no run without records")));
    }
}

/// Counters of an iteration of `launches`, the first of which is launch `first` of the process.
WrittenProgram counted_run(std::int64_t first, std::int64_t launches) {
    WrittenProgram program("counters");
    for (const char* counter : {"dram__bytes_read.sum", "sm__cycles.max"}) {
        program.line(
            {{"kind", "counters"}, {"counters", {counter}}, {"passes", 2}, {"seconds", 1.5}, {"first_launch", first}});
        for (std::int64_t i = 0; i < launches; ++i)
            program.line({{"kind", "counted"}, {"launch", i}, {"values", {100 * (first + i)}}});
    }
    return program.end();
}

std::map<std::string, double> as_they_are(const std::map<std::string, double>& counters) { return counters; }

TEST(ProgramPoint, JoinsCountersOfLaunchesWhereverTheirIterationBegan) {
    // The recorded iteration begins with launch 9; the counted one with launch 23, two launches into an iteration.
    const Point point =
        point_of({.records = {training("records", 6, false).read()}, .counters = {counted_run(23, 6).read()}},
                 {.metrics_of = as_they_are});
    EXPECT_EQ(point.counters.unavailable, "");
    EXPECT_EQ(point.counters.passes, 4);
    EXPECT_EQ(point.counters.seconds, 3);
    EXPECT_THAT(point.steps[0].counters, IsEmpty());
    EXPECT_EQ(point.steps[0].counters_discarded, "it launches no kernel");
    EXPECT_EQ(point.steps[1].counters.at("dram__bytes_read.sum"), 2700) << "launch 27 is the first of its iteration";
    EXPECT_EQ(point.steps[3].counters.at("dram__bytes_read.sum"), 2300);
    EXPECT_EQ(point.steps[3].counters.at("sm__cycles.max"), 2300);
}

TEST(ProgramPoint, JoinsCountersOfAnIterationBeforeTheRecordedOnes) {
    const Point point =
        point_of({.records = {training("records", 6, false).read()}, .counters = {counted_run(4, 6).read()}},
                 {.metrics_of = as_they_are});
    EXPECT_EQ(point.steps[1].counters.at("sm__cycles.max"), 900) << "the recorded iterations begin at launch 9";
    EXPECT_EQ(point.steps[2].counters.at("sm__cycles.max"), 400);
}

TEST(ProgramPoint, HasNoCountersOfAnotherIteration) {
    const Point point =
        point_of({.records = {training("records", 6, false).read()}, .counters = {counted_run(9, 5).read()}},
                 {.metrics_of = as_they_are});
    EXPECT_EQ(point.counters.unavailable, "5 ranges were counted in an iteration of 6 launch calls");
    EXPECT_THAT(point.steps[1].counters, IsEmpty());
}

TEST(ProgramPoint, HasNoCountersOfStepsThatShareAGraphLaunch) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i) program.host_works(20'000).launch_graph({"a", "b"}).launch("c").synchronise();
    const Point point = point_of({.records = {program.end().read()}, .counters = {counted_run(4, 2).read()}},
                                 {.metrics_of = as_they_are});
    EXPECT_THAT(point.steps[0].counters, IsEmpty());
    EXPECT_THAT(point.steps[0].counters_discarded, HasSubstr("in one graph launch"));
    EXPECT_EQ(point.steps[2].counters.at("sm__cycles.max"), 500);
}

TEST(ProgramPoint, AddsOnlyCountersThatAddUpOverTheKernelsOfAStep) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i) {
        program.host_works(20'000).open("solve").launch("a").launch("b").close().open("else").launch("c").close();
    }
    const Point point = point_of({.records = {program.end().read()}, .counters = {counted_run(6, 3).read()}},
                                 {.metrics_of = as_they_are});
    ASSERT_EQ(point.steps.size(), 2u);
    EXPECT_EQ(point.steps[0].counters, (std::map<std::string, double>{{"dram__bytes_read.sum", 1300}}));
    EXPECT_EQ(point.steps[1].counters.size(), 2u);
}

TEST(ProgramLaunches, AreThoseThatLaterRunsMarkAndCount) {
    const ProgramFile file = training("records", 6, false).read();
    const ProgramLaunches launches = launches_of({.records = {file}});
    EXPECT_EQ(launches.first, 9) << "after three of the set up and a first iteration of six";
    EXPECT_EQ(launches.count, 6);
    EXPECT_EQ(launches.iterations, 5);
    EXPECT_EQ(launches.unavailable, "");
    EXPECT_EQ(launches_of({.records = {file}}, {.iterations = "2:4"}).first, 15);
    EXPECT_THROW(program_launches(ProgramRuns{}, {}), UsageError);
}

TEST(ProgramLaunches, NameTheCallThatIsHeardLeast) {
    // Who hears the driver's call hears it within the runtime's, too.
    ProgramFile file = training("records", 6, false).read();
    for (ProgramLaunch& launch : file.launches) {
        const bool is_third = launch.index % 3 == 0;
        launch.call = is_third ? "cuLaunchKernelEx" : launch.index % 3 == 1 ? "cuLaunchKernel" : "cudaLaunchKernel";
        launch.inner = launch.index % 3 == 2 ? "cuLaunchKernel" : "";
    }
    const ProgramLaunches launches = launches_of({.records = {file}});
    EXPECT_EQ(launches.rarest, "cuLaunchKernelEx");
    EXPECT_EQ(launches.rarest_first, 3) << "of the launches 0, 3 and 6 before the first iteration, which begins at 9";
    EXPECT_EQ(launches.rarest_count, 2);
    EXPECT_EQ(launches.ranges, launches.count);
    EXPECT_FALSE(launches.ranges_of_calls);
}

TEST(ProgramPoint, PassesNotesOn) {
    WrittenProgram program;
    for (int i = 0; i < 3; ++i) program.host_works(9000).launch("a").launch("b");
    program.line({{"kind", "note"}, {"text", "clocks moved"}});
    const Point point = point_of({.records = {program.read()}});
    EXPECT_THAT(point.program->notes, Contains("run for records: clocks moved"));
    EXPECT_THAT(point.program->notes, Contains(HasSubstr("run for records: the process ended before")));
}

TEST(ProgramPoint, RefusesRecordsOfNothing) {
    EXPECT_THROW(point_of({}), UsageError);
    EXPECT_THROW(point_of({.records = {WrittenProgram().end().read()}}), UsageError);
}

TEST(ProgramPoint, TellsTheEndOfARunThatIsTooLong) {
    ProgramFile file;
    for (int i = 0; i < 20'003; ++i)
        file.activities.push_back({.kind = ActivityKind::fill,
                                   .correlation = i + 1,
                                   .start_ns = 100 * i,
                                   .end_ns = 100 * i + 50,
                                   .bytes = i + 1});
    const Point point = point_of({.records = {file}});
    EXPECT_EQ(point.program->copies, 20'000);
    EXPECT_EQ(point.steps.back().kernels.back().moved_bytes, 20'003);
    EXPECT_THAT(point.program->notes, Contains(HasSubstr("the last 20000 of the run's 20003")));
}

TEST(ProgramName, IsThatOfTheScriptOrTheBinary) {
    EXPECT_EQ(program_name({"python3", "-u", "-W", "ignore", "models/bench.py", "-m"}), "bench.py");
    EXPECT_EQ(program_name({"/usr/bin/python3.11", "-m", "package.train"}), "package.train");
    EXPECT_EQ(program_name({"python", "-c", "print()"}), "python");
    EXPECT_EQ(program_name({"./build/solver", "input.py"}), "solver");
    EXPECT_EQ(program_name({}), "program");
}

}  // namespace
}  // namespace kbench
