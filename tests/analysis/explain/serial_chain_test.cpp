// Time steps on points whose figures are known by construction.
#include "analysis/explain/serial_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "analysis/report/writers.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::latency, known::Step;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Step layer(std::string name, double us, std::int64_t time_steps) {
    return {.layer = std::move(name),
            .op = "lstm",
            .us = us,
            .dram = 0.05,
            .l2 = 0.2,
            .issue = 0.1,
            .time_steps = time_steps};
}

TEST(SerialChain, ArePutTogetherByLayerOfAllBlocks) {
    const Result result = known::result_of({{.us = 100, .dram = 0.9},
                                            layer("rnns.0.rnn", 1500, 500),
                                            layer("rnns.1.rnn", 1700, 500),
                                            layer("top", 90, 20)});
    const std::vector<SerialChain> groups = explain(result, result.points[0]).time_steps;
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].layer, "rnns.*.rnn");
    EXPECT_EQ(groups[0].op, "lstm");
    EXPECT_THAT(groups[0].steps, testing::ElementsAre(1u, 2u));
    EXPECT_EQ(groups[0].each, 500);
    EXPECT_DOUBLE_EQ(groups[0].us(), 3.2);
    EXPECT_NEAR(groups[0].together_us_of_one(), 0.25 * 3.2, 1e-9);
    EXPECT_NEAR(groups[0].together_share(), 0.25, 1e-9);
    EXPECT_TRUE(groups[0].is_complete);
    EXPECT_EQ(groups[0].bound, latency);
    EXPECT_EQ(roofs_of_one(groups[0]), "L2 0.64, DRAM 0.16");
    EXPECT_DOUBLE_EQ(groups[1].us(), 4.5);
    const SerialChain all = together(groups).value();
    EXPECT_DOUBLE_EQ(all.us(), 3290.0 / 1020);
    EXPECT_EQ(all.each, 0) << "500 and 20";
    EXPECT_EQ(all.layer, "");
    EXPECT_EQ(all.op, "lstm");
    EXPECT_NEAR(all.together_share(), 0.25, 1e-9);
    EXPECT_EQ(together({}), std::nullopt);
}

TEST(SerialChain, OfAnotherLayerOpOrNumberStandApart) {
    Step gru = layer("a.0", 400, 500);
    gru.op = "gru";
    const Result result = known::result_of(
        {layer("a.0", 1000, 500), layer("b.0", 800, 500), layer("a.1", 600, 250), gru, layer("a.2", 200, 500)});
    const std::vector<SerialChain> groups = explain(result, result.points[0]).time_steps;
    ASSERT_EQ(groups.size(), 4u);
    EXPECT_THAT(groups[0].steps, testing::ElementsAre(0u, 4u)) << "of a.0 and a.2";
    EXPECT_EQ(groups[1].layer, "b.*");
    EXPECT_EQ(groups[2].each, 250);
    EXPECT_EQ(groups[3].op, "gru");
}

TEST(SerialChain, AreNoneOfStepsWithOneOrWithoutATime) {
    const Result result = known::result_of({layer("a", 100, 1), {.us = 0, .kernels = 0, .time_steps = 500}});
    EXPECT_TRUE(explain(result, result.points[0]).time_steps.empty());
    const Result of_two = known::result_of({layer("a", 100, 2)});
    ASSERT_EQ(explain(of_two, of_two.points[0]).time_steps.size(), 1u);
    EXPECT_THAT(explain(of_two, of_two.points[0]).verdicts.steps[0].evidence,
                testing::Contains(HasSubstr("2 time steps take 50.0 us each")));
}

/// The product of a weight gradient sums over all time steps at once.
TEST(SerialChain, OfAWeightGradientAreNone) {
    Result result = known::result_of({layer("rnns.0.rnn", 2000, 500)});
    EXPECT_EQ(explain(result, result.points[0]).time_steps.size(), 1U);
    result.points[0].steps[0].direction = Direction::wgrad;
    EXPECT_TRUE(explain(result, result.points[0]).time_steps.empty());
}

TEST(SerialChain, SayWhereARoofsWorkIsNotKnown) {
    Step uncounted = layer("a", 1500, 500);
    uncounted.counted = false;
    const Result result = known::result_of({uncounted});
    const SerialChain group = explain(result, result.points[0]).time_steps.at(0);
    EXPECT_FALSE(group.is_complete);
    EXPECT_NE(group.bound, latency);
    EXPECT_THAT(write_markdown(result), HasSubstr("Not all work was counted"));
    const Result one_of_two = known::result_of({layer("a", 1500, 500), uncounted});
    EXPECT_FALSE(explain(one_of_two, one_of_two.points[0]).time_steps.at(0).is_complete);
}

TEST(SerialChain, ThatDemandNothingAreNotSetBesideRoofs) {
    const Result result = known::result_of({{.op = "lstm", .us = 1500, .issue = 0.1, .time_steps = 500}});
    const Explanation explanation = explain(result, result.points[0]);
    EXPECT_EQ(explanation.time_steps.at(0).together_us, 0);
    for (const auto* texts : {&explanation.answer, &explanation.verdicts.steps[0].evidence})
        EXPECT_THAT(*texts, testing::AllOf(testing::Contains(HasSubstr("time steps")),
                                           testing::Each(Not(HasSubstr("one after another")))));
}

TEST(SerialChain, OfACpuHaveCachesThatNobodyCounts) {
    const Result result = known::result_of(
        {{.us = 1500, .kernels = 0, .compute = 0.1, .unfused = 0.1, .counted = false, .time_steps = 500}},
        known::cpu_roofs());
    EXPECT_FALSE(explain(result, result.points[0]).time_steps.at(0).is_complete);
    EXPECT_THAT(write_markdown(result), HasSubstr("; all roofs that are known, one after another, would take"));
}

/// The barrier bounds nothing where a step has a kernel for each time step, and an empty kernel where it has one.
TEST(SerialChain, HaveTheExchangeOfTheirKernels) {
    const auto exchange_of = [](int kernels, int blocks, CeilingRun roofs, double barrier_us = 0.9) {
        Step step = layer("a", 1500, 300);
        step.kernels = kernels;
        roofs.ceilings.push_back(known::ceiling("grid_barrier", barrier_us));
        Result result = known::result_of({step}, roofs);
        for (KernelResult& kernel : result.points[0].steps[0].kernels) kernel.grid = {1, blocks, 1};
        return explain(result, result.points[0]).time_steps.at(0).exchange;
    };
    const CeilingRun roofs = known::gpu_roofs();
    EXPECT_EQ(exchange_of(1, 128, roofs)->ceiling, "grid_barrier");
    EXPECT_DOUBLE_EQ(exchange_of(1, 128, roofs)->us, 0.9);
    EXPECT_FALSE(exchange_of(1, 128, roofs)->is_bound());
    EXPECT_FALSE(exchange_of(1, 1, roofs)) << "a block waits for no other";
    EXPECT_TRUE(exchange_of(1, 2, roofs));
    EXPECT_FALSE(exchange_of(0, 1, roofs)) << "not recorded";
    EXPECT_FALSE(exchange_of(1, 128, known::gpu_roofs(), 5.1)) << "300 of them take longer than the step";
    EXPECT_EQ(exchange_of(299, 128, roofs)->ceiling, "grid_barrier");
    EXPECT_EQ(exchange_of(300, 1, roofs)->ceiling, "graph_node");
    EXPECT_DOUBLE_EQ(exchange_of(450, 128, roofs)->us, 1.5 * known::graph_node_us);
    EXPECT_TRUE(exchange_of(450, 128, roofs)->is_bound());
    EXPECT_FALSE(exchange_of(300, 1, known::without(roofs, "graph_node")));
}

/// The exchange of 300 time steps with one kernel and 100 with three is the mean of all 400.
TEST(SerialChain, HaveAnExchangeTogetherWhereItIsOfOneKind) {
    const auto of_two = [](const Step& one, const Step& other, std::int64_t blocks_of_other) {
        CeilingRun roofs = known::gpu_roofs();
        roofs.ceilings.push_back(known::ceiling("grid_barrier", 0.9));
        Result result = known::result_of({one, other}, roofs);
        for (StepResult& step : result.points[0].steps)
            for (KernelResult& kernel : step.kernels) kernel.grid = {128, 1, 1};
        for (KernelResult& kernel : result.points[0].steps[1].kernels) kernel.grid = {blocks_of_other, 1, 1};
        return together(explain(result, result.points[0]).time_steps)->exchange;
    };
    Step one = layer("a", 1500, 300), three = layer("b", 1500, 100), persistent = layer("c", 1500, 300);
    one.kernels = three.kernels = 300;
    EXPECT_DOUBLE_EQ(of_two(one, three, 128)->us, (300 + 3 * 100) / 400.0);
    EXPECT_FALSE(of_two(one, persistent, 128)) << "a kernel and a barrier";
    EXPECT_FALSE(of_two(persistent, persistent, 1)) << "one of them waits for no other block";
    EXPECT_FALSE(of_two(one, persistent, 1));
}

TEST(SerialChain, AreToldInTheAnswerWhereTheyHaveMuchOfTheTime) {
    const auto answer = [](double us) {
        const Result result = known::result_of({{.us = 1000, .dram = 0.9}, layer("a", us, 500)});
        std::string text;
        for (const std::string& sentence : explain(result, result.points[0]).answer) text += sentence + "\n";
        return text;
    };
    EXPECT_THAT(
        answer(4000),
        AllOf(
            HasSubstr("\nIt is latency-bound (serial chain of time steps)"),
            HasSubstr(
                "\n500 time steps, a serial chain in which each waits for the one before it, take 80 % of the time, 8.00 us each; all roofs, one after another, would take 2.0 us of that.\n"),
            HasSubstr("more sequences at once would take little longer")));
    EXPECT_THAT(answer(260), HasSubstr("500 time steps, a serial chain"));
    EXPECT_THAT(answer(240), Not(HasSubstr("time steps"))) << "19 %";
}

TEST(SerialChain, AreToldWithTheirExchangeInTwoDigits) {
    const auto answer = [](int kernels, double barrier_us) {
        Step step = layer("a", 1500, 300);
        step.kernels = kernels;
        CeilingRun roofs = known::gpu_roofs();
        roofs.ceilings.push_back(known::ceiling("grid_barrier", barrier_us));
        Result result = known::result_of({step}, roofs);
        for (KernelResult& kernel : result.points[0].steps[0].kernels) kernel.grid = {128, 1, 1};
        return explain(result, result.points[0]).answer.at(2);
    };
    EXPECT_THAT(answer(1, 0.937), HasSubstr("us of that, and one barrier among all SMs 0.94 us."));
    EXPECT_THAT(answer(450, 0.937), HasSubstr("us of that, and as many empty kernels 1.5 us."));
}

TEST(SerialChain, OfMuchWorkAreNotSaidToWantMoreWarps) {
    const auto answer = [](std::int64_t time_steps) {
        Step step = layer("a", 4000, time_steps);
        step.dram = 0.45;
        step.l2 = 0.5;
        step.occupancy_pct = 12;
        const Result result = known::result_of({step});
        return explain(result, result.points[0]).answer.back();
    };
    EXPECT_THAT(answer(1), HasSubstr("more blocks or more warps an SM"));
    EXPECT_THAT(answer(500), AllOf(HasSubstr("these figures do not tell"), Not(HasSubstr("more warps"))));
}

TEST(SerialChain, StandInTheSummaryAndInTheReport) {
    const Result result = known::result_of({layer("rnns.0.rnn", 1500, 500), layer("rnns.1.rnn", 1500, 500)});
    EXPECT_THAT(write_terminal(result, 120), HasSubstr("time steps    2 x 500 of lstm, 3.00 us each\n"));
    EXPECT_THAT(
        write_markdown(result),
        AllOf(
            HasSubstr("## Time steps\n"),
            HasSubstr("| `rnns.*.rnn` | lstm | 2 | 500 | 3.00 | 0.750 | 25.0 | L2 0.60, DRAM 0.15 | latency-bound |")));
    const Result plain = known::result_of({layer("rnns.0.rnn", 1500, 1)});
    EXPECT_THAT(write_terminal(plain, 120) + write_markdown(plain), Not(HasSubstr("ependent step")));
}

/// Each block's first thread has 1000 cycles a microsecond: 4 us of 2400 + 1600 cycles.
StepAccount account(double wait_cycles, double gemm_cycles) {
    return {.blocks = 128,
            .us = (wait_cycles + gemm_cycles) / 1000,
            .start_us = 12,
            .phases = {{"wait for h", wait_cycles, 0.5 * wait_cycles, 2 * wait_cycles},
                       {"step GEMM", gemm_cycles, 0.9 * gemm_cycles, 1.1 * gemm_cycles}}};
}

TEST(SerialChain, OfSeveralLayersHaveTheMeanAccountOfAll) {
    Result result = known::result_of(
        {layer("rnns.0.rnn", 1500, 500), layer("rnns.1.rnn", 1500, 500), layer("rnns.2.rnn", 1500, 500)});
    std::vector<StepResult>& steps = result.points[0].steps;
    steps[0].account = account(1000, 2000);
    steps[1].account = account(2000, 2000);
    steps[2].account = account(3000, 500);
    const SerialChain group = explain(result, result.points[0]).time_steps.at(0);
    ASSERT_TRUE(group.account);
    EXPECT_DOUBLE_EQ(group.account->phases[0].median_cycles, 2000);
    EXPECT_DOUBLE_EQ(group.account->phases[1].median_cycles, 1500);
    EXPECT_DOUBLE_EQ(group.account->phases[0].least_cycles, 500);
    EXPECT_DOUBLE_EQ(group.account->phases[0].most_cycles, 6000);
    EXPECT_NEAR(group.account->us, 3.5, 1e-12);
    EXPECT_DOUBLE_EQ(cycles_of(*group.account), 3500);
    steps[2].account.reset();
    EXPECT_FALSE(explain(result, result.points[0]).time_steps.at(0).account) << "of a part only";
    steps[2].account = account(1, 1);
    steps[2].account->phases[0].name = "another";
    EXPECT_FALSE(explain(result, result.points[0]).time_steps.at(0).account) << "of other phases";
}

TEST(SerialChain, SayWhereTheirTimeGoesInReportAndEvidence) {
    Result result = known::result_of({layer("rnns.0.rnn", 2000, 500)});
    result.points[0].steps[0].account = account(3000, 1000);
    const std::string text = write_markdown(result);
    EXPECT_THAT(text, AllOf(HasSubstr("A step takes 4.00 us with the clocks and 4.00 without. A launch takes 12 us"),
                            HasSubstr("| wait for h | 3000 | 1500 | 6000 | 75.0 |"),
                            HasSubstr("| step GEMM | 1000 | 900 | 1100 | 25.0 |")));
    EXPECT_THAT(explain(result, result.points[0]).verdicts.steps[0].evidence,
                testing::Contains("by clocks in its kernel a step's cycles are wait for h 75 %, step GEMM 25 %"));
    result.points[0].steps[0].account.reset();
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("clocks")));
}

}  // namespace
}  // namespace kbench
