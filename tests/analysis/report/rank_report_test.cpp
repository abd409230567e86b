// Reports of a program of several ranks: a row each, what they say together, and one of them in full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/writers.h"
#include "tests/analysis/example_program.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two ranks whose last kernel is a collective; at each rank it takes so long, microseconds.
Result two_ranks(double us_of_rank_0, double us_of_rank_1) {
    Result result = example::program({});
    result.points.push_back(result.points.front());
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        Point& point = result.points[static_cast<std::size_t>(rank)];
        point.set("rank", rank);
        point.program->processes = 2;
        StepResult& last = point.steps.back();
        KernelResult& kernel = last.kernels.front();
        kernel.name = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        kernel.short_name = last.implementation = last.layer = "ncclDevKernel_AllReduce_Sum_f16_RING_LL";
        last.op = "kernel";
        last.counters_discarded = "it waits for other ranks, so it is timed only";
        kernel.time_us = rank == 0 ? us_of_rank_0 : us_of_rank_1;
    }
    return result;
}

TEST(RanksReport, HasARowEachTheLastRankAndTheFirstInFull) {
    const Result result = two_ranks(110, 40);
    expect_golden("screen_ranks_100.txt", write_screen(result, 100));
    for (const std::string& text : {write_screen(result, 100), write_markdown(result)})
        EXPECT_THAT(text, AllOf(HasSubstr("rank 1 comes last"), HasSubstr("wait for it for up to 70.0 us"),
                                HasSubstr("Kernels that wait for other ranks take"), Not(HasSubstr("tokens/s of"))));
    EXPECT_THAT(write_markdown(result), AllOf(HasSubstr("rank 0"), HasSubstr("rank 1")));
}

TEST(RanksReport, SaysWhereNoRankIsBehind) {
    EXPECT_THAT(write_screen(two_ranks(90, 89), 100), HasSubstr("all ranks come at about the same time"));
}

TEST(RanksReport, NamesNoRankOfAProgramWithoutAny) {
    for (const std::string& text : {write_screen(example::program({}), 100), write_markdown(example::program({}))})
        EXPECT_THAT(text, Not(HasSubstr("rank")));
}

}  // namespace
}  // namespace kbench
