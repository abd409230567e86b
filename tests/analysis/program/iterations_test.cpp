// Where iterations begin: at the host's longest wait, at the model's call, at a range that the user names.
#include "analysis/program/iterations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/program/program_steps.h"
#include "kbench/error.h"
#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Iterations found_in(const ProgramFile& file, const Spans& calls = {}) {
    return find_iterations(file, Symbols().of(file), calls);
}

std::string name_at(const ProgramFile& file, std::size_t place) { return file.text(file.activities[place].name); }

TEST(Iterations, BeginAfterTheHostsLongestWait) {
    WrittenProgram program;
    program.launch("c");  // as if it had begun within an iteration
    for (int i = 0; i < 4; ++i) program.host_works(30'000).launch("a").host_works(2000).launch("b").launch("c");
    const ProgramFile file = program.end().read();
    const Iterations found = found_in(file);
    EXPECT_EQ(found.unavailable, "");
    EXPECT_EQ(found.period, 3u);
    EXPECT_EQ(found.count, 4u);
    EXPECT_EQ(found.begin, 1u);
    EXPECT_EQ(name_at(file, found.at(2)), "a");
}

TEST(Iterations, BeginWithTheCopyThatFeedsThemAndEndWithTheOneThatReads) {
    WrittenProgram program;
    program.launch("set up");
    for (int i = 0; i < 4; ++i)
        program.host_works(30'000)
            .copy("HtoD", 64)
            .launch("a")
            .launch("b", {.ns = 90'000})
            .copy("DtoH", 4)
            .synchronise();
    const ProgramFile file = program.end().read();
    const Iterations found = found_in(file);
    EXPECT_EQ(found.begin, 1u);
    EXPECT_EQ(found.period, 4u);
    EXPECT_EQ(file.activities[found.begin].what, "HtoD");
}

TEST(Iterations, LoseNoneOfTwo) {
    WrittenProgram program;
    program.host_works(9'000).launch("a").launch("b");
    program.launch("a").host_works(50'000).launch("b");
    EXPECT_EQ(found_in(program.end().read()).count, 2u);
}

TEST(Iterations, DoNotDivideAGraphLaunch) {
    for (const std::int64_t host_ns : {1000, -500}) {  // calls of two threads may overlap
        WrittenProgram program;
        program.launch("set up");
        for (int i = 0; i < 3; ++i) program.host_works(host_ns).launch_graph({"a", "b", "c"});
        const Iterations found = found_in(program.end().read());
        EXPECT_EQ(found.begin, 1u);
        EXPECT_EQ(found.period, 3u);
        EXPECT_EQ(found.count, 3u);
    }
}

TEST(Iterations, BeginWithTheModelsCall) {
    WrittenProgram program("names");
    for (int i = 0; i < 4; ++i) {
        program.host_works(90'000).launch("zero gradients");
        program.open(module_text("", "Model")).open(module_text("h", "Block"));
        program.launch("a").launch("b").close().close().launch("optimizer");
    }
    const ProgramFile file = program.end().read("names.1.jsonl");
    const Spans calls = calls_of_model(file);
    EXPECT_THAT(calls, ElementsAre(Pair(1, 2), Pair(5, 6), Pair(9, 10), Pair(13, 14)));
    const Iterations found = found_in(file, calls);
    EXPECT_EQ(name_at(file, found.begin), "a") << "though the host waits before another kernel";
    EXPECT_EQ(found.count, 3u);
}

TEST(Iterations, BeginWithTheModelAndNotWithItsLoss) {
    WrittenProgram program("names");
    for (int i = 0; i < 4; ++i) {
        program.launch("clear").open(module_text("", "Model")).launch("a").launch("b").close();
        program.host_works(90'000).open(module_text("", "Loss")).launch("loss").close();
    }
    const ProgramFile file = program.end().read();
    EXPECT_EQ(name_at(file, found_in(file, calls_of_model(file)).begin), "a");
}

TEST(Iterations, AreNotTheLayersOfOneCall) {
    WrittenProgram program("names");
    program.open(module_text("", "Model")).launch("embedding");
    for (int i = 0; i < 36; ++i) program.launch("norm").launch("gemm").launch("gelu");
    program.launch("head").close();
    const ProgramFile file = program.end().read();
    const Iterations found = found_in(file, calls_of_model(file));
    EXPECT_THAT(found.unavailable, HasSubstr("within one call of the model"));
    EXPECT_EQ(found.period, 110u);
    EXPECT_EQ(found.count, 1u);
    EXPECT_EQ(found_in(file).period, 3u) << "without names the layers are all that repeats";
}

TEST(Iterations, OfGraphsDoNotTakeTheCaptureForACall) {
    WrittenProgram program("names");
    program.open(module_text("", "Model"));
    for (int i = 0; i < 3; ++i) program.launch_graph({"a", "b"});
    program.close();
    EXPECT_TRUE(calls_of_model(program.end().read()).empty());
}

TEST(Iterations, AreTheWholeRunWhereNothingRepeats) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i) program.launch("kernel " + std::to_string(i));
    const Iterations found = found_in(program.end().read());
    EXPECT_THAT(found.unavailable, HasSubstr("no sequence of kernels repeats"));
    EXPECT_EQ(found.begin, 0u);
    EXPECT_EQ(found.period, 5u);
    EXPECT_EQ(found.count, 1u);
}

TEST(IterationsFrom, AreTheLongestStretchOfEqualCallsOfARange) {
    WrittenProgram program;
    const auto step = [&](int kernels) {
        program.open("step");
        for (int i = 0; i < kernels; ++i) program.launch("a");
        program.close();
    };
    step(2);
    step(7);  // warms up
    for (int i = 0; i < 5; ++i) step(3);
    program.launch("at the end");
    const ProgramFile file = program.end().read();
    const Spans calls = calls_of_range(file, "step");
    ASSERT_EQ(calls.size(), 7u);
    const Iterations found = iterations_from(Symbols().of(file), calls);
    EXPECT_EQ(found.begin, 9u);
    EXPECT_EQ(found.period, 3u);
    EXPECT_EQ(found.count, 5u) << "the last one, too, which no other follows";
    EXPECT_TRUE(calls_of_range(file, "nothing").empty());
}

TEST(IterationsFrom, AreTheWholeRunWhereCallsDiffer) {
    WrittenProgram program;
    for (const char* kernel : {"a", "b", "c"}) program.open("step").launch(kernel).close();
    const ProgramFile file = program.end().read();
    EXPECT_THAT(iterations_from(Symbols().of(file), calls_of_range(file, "step")).unavailable, HasSubstr("each time"));
}

TEST(IterationsLike, FindTheLongestStretchBackToBack) {
    const std::vector<Symbol> symbols{1, 2, 1, 2, 9, 1, 2, 1, 2, 1, 2, 7}, iteration{1, 2}, other{2, 2};
    const std::optional<Iterations> found = iterations_like(symbols, iteration);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->begin, 5u);
    EXPECT_EQ(found->count, 3u);
    EXPECT_FALSE(iterations_like(symbols, other));
}

TEST(IterationsLike, FindAnIterationThatBeginsAsItEnds) {
    const std::vector<Symbol> symbols{1, 1, 2, 1, 1, 1, 2, 1}, iteration{1, 1, 2, 1};
    const std::optional<Iterations> found = iterations_like(symbols, iteration);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->begin, 0u);
    EXPECT_EQ(found->count, 2u);
}

TEST(IterationsBehindAnother, AreAllButTheFirstOfEachStretch) {
    const std::vector<Symbol> iteration{1, 2, 1, 3};
    //                               0           4           8  9           13
    const std::vector<Symbol> symbols{1, 2, 1, 3, 1, 2, 1, 3, 9, 1, 2, 1, 3, 1, 2, 1, 3, 1, 2};
    EXPECT_THAT(iterations_behind_another(symbols, iteration), ElementsAre(4, 13));
    EXPECT_THAT(iterations_behind_another(symbols, std::vector<Symbol>{9, 9}), IsEmpty());
    EXPECT_THAT(iterations_behind_another({}, iteration), IsEmpty());
}

TEST(MiddleHalf, LeavesOutTheShortestAndTheLongestQuarter) {
    EXPECT_THAT(middle_half(std::vector<std::int64_t>{5, 1, 4, 9, 3, 2, 8, 7}), ElementsAre(0, 2, 4, 7));
    EXPECT_THAT(middle_half(std::vector<std::int64_t>{5, 1, 4}), ElementsAre(0, 1, 2));
    EXPECT_THAT(middle_half(std::vector<std::int64_t>{7}), ElementsAre(0));
}

TEST(UsedIterations, LeaveOutTheFirstUnlessThereAreFew) {
    EXPECT_THAT(used_iterations({.count = 5}, ""), Pair(1, 5));
    EXPECT_THAT(used_iterations({.count = 2}, ""), Pair(0, 2));
    EXPECT_THAT(used_iterations({.count = 1}, ""), Pair(0, 1));
}

TEST(UsedIterations, AreThoseAskedFor) {
    EXPECT_THAT(used_iterations({.count = 9}, "2:5"), Pair(2, 5));
    EXPECT_THAT(used_iterations({.count = 9}, "2:"), Pair(2, 9));
    EXPECT_THAT(used_iterations({.count = 9}, ":4"), Pair(0, 4));
    EXPECT_THAT(used_iterations({.count = 9}, "6:7"), Pair(6, 7));
    EXPECT_THAT(used_iterations({.count = 9}, "0:9"), Pair(0, 9));
    for (const char* wrong : {"5:3", "5:5", "0:10", "9:", "7", "x", "1:2:3", "-1:2", "1: 2"})
        EXPECT_THROW(used_iterations({.count = 9}, wrong), UsageError) << wrong;
    for (const char* wrong : {"5:3", "5:5", "7", "x", "1:2:3", "-1:2", "1: 2"})
        EXPECT_THROW(iteration_range(wrong), UsageError) << wrong;
}

}  // namespace
}  // namespace kbench
