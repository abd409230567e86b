// How the timeline divides, on planted timelines.
#include "analysis/program/device_time.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

constexpr std::int64_t latency = WrittenProgram::latency_ns;

TEST(OwnTimes, TellAWaitForTheHostFromAQueuedLaunch) {
    WrittenProgram program;
    program.launch("a", {.ns = 10'000}).launch("queued").synchronise().host_works(30'000).launch("late");
    const std::vector<OwnTime> times = own_times(program.end().read());
    ASSERT_EQ(times.size(), 3u);
    EXPECT_EQ(times[1].gap, 0) << "it was called while the kernel before it ran";
    EXPECT_EQ(times[1].host_wait, 0);
    EXPECT_EQ(times[2].gap, 30'000 + latency);
    EXPECT_EQ(times[2].host_wait, times[2].gap) << "a launch that was called in time would have left no gap";
}

TEST(OwnTimes, HaveNoWaitWhereALaunchWasCalledLongAgo) {
    // Called at 100, though it starts 900 ns after the kernel before it has ended.
    ProgramFile file;
    file.launches = {{.index = 0, .correlation = 1, .start_ns = 50, .end_ns = 60},
                     {.index = 1, .correlation = 2, .start_ns = 100, .end_ns = 110}};
    file.activities.resize(2);
    file.activities[0] = {.correlation = 1, .start_ns = 500, .end_ns = 1000};
    file.activities[1] = {.correlation = 2, .start_ns = 1900, .end_ns = 2000};
    const std::vector<OwnTime> times = own_times(file);
    EXPECT_EQ(times[1].gap, 900);
    EXPECT_EQ(times[1].host_wait, 0);
}

TEST(OwnTimes, CountStreamsThatOverlapOnce) {
    WrittenProgram program;
    program.launch("long", {.ns = 10'000, .stream = 1})
        .launch("within", {.ns = 2'000, .stream = 2})
        .launch("over the end", {.ns = 15'000, .stream = 3});
    const std::vector<OwnTime> times = own_times(program.end().read());
    EXPECT_EQ(times[0].busy, 10'000);
    EXPECT_EQ(times[1].total(), 0);
    EXPECT_EQ(times[2].gap, 0);
    EXPECT_EQ(times[2].busy, 15'000 - (10'000 - 2 * WrittenProgram::call_ns));
}

TEST(OwnTimes, DivideTheWholeTimeline) {
    WrittenProgram program;
    for (int i = 0; i < 50; ++i)
        program.launch("a", {.ns = 700 + 37 * (i % 5), .stream = i % 3})
            .host_works(i % 7 == 0 ? 9000 : 100)
            .copy("HtoD", 8);
    const ProgramFile file = program.end().read();
    const std::vector<OwnTime> times = own_times(file);
    std::int64_t begin = file.activities[0].start_ns, end = 0, total = 0;
    for (const ProgramActivity& activity : file.activities) {
        begin = std::min(begin, activity.start_ns);
        end = std::max(end, activity.end_ns);
    }
    for (const OwnTime& time : times) {
        total += time.total();
        EXPECT_LE(time.host_wait.value(), time.gap);
        EXPECT_GE(time.host_wait.value(), 0);
    }
    EXPECT_EQ(total, end - begin);
}

TEST(OwnTimes, OfAGraphHaveAWaitBeforeItsFirstKernelAlone) {
    WrittenProgram program;
    program.launch("a").synchronise().host_works(20'000).launch_graph({"b", "c"});
    const std::vector<OwnTime> times = own_times(program.end().read());
    EXPECT_EQ(times[1].host_wait, times[1].gap);
    EXPECT_GE(times[1].gap, 20'000);
    EXPECT_EQ(times[2].host_wait, 0);
}

TEST(OwnTimes, OfAGraphWhoseCallLastsHaveNoWaitBetweenItsKernels) {
    ProgramFile file;  // the call ends after both have run, as where many launches are queued
    file.launches = {{.index = 0, .correlation = 1, .start_ns = 100, .end_ns = 9'000}};
    file.activities.resize(2);
    file.activities[0] = {.correlation = 1, .graph_node = 1, .start_ns = 500, .end_ns = 1000};
    file.activities[1] = {.correlation = 1, .graph_node = 2, .start_ns = 1400, .end_ns = 2000};
    const std::vector<OwnTime> times = own_times(file);
    EXPECT_EQ(times[1].gap, 400);
    EXPECT_EQ(times[1].host_wait, 0);
}

TEST(OwnTimes, OfACopyHaveAWaitWhereTheLaunchBeforeItTellsOne) {
    WrittenProgram program;
    program.launch("a").synchronise().host_works(20'000).launch("b", {.ns = 10}).host_works(5'000).copy("HtoD", 8);
    const std::vector<OwnTime> times = own_times(program.end().read());
    EXPECT_GT(times[2].gap, 4'000);
    EXPECT_EQ(times[2].host_wait, 0) << "it may have been called right after the launch";
    // The launch call before it ends 700 ns after its kernel, so the copy was called later.
    ProgramFile file;
    file.launches = {{.index = 0, .correlation = 1, .start_ns = 100, .end_ns = 2700}};
    file.activities.resize(2);
    file.activities[0] = {.correlation = 1, .start_ns = 500, .end_ns = 2000};
    file.activities[1] = {.kind = ActivityKind::copy, .correlation = 2, .start_ns = 3500, .end_ns = 3600};
    EXPECT_EQ(own_times(file)[1].host_wait, 1500);
}

TEST(OwnTimes, KnowNoWaitWithoutLaunchCalls) {
    WrittenProgram program;
    program.copy("HtoD", 8).host_works(9000).copy("HtoD", 8);
    const std::vector<OwnTime> times = own_times(program.end().read());
    EXPECT_EQ(times[1].gap, 9000 + WrittenProgram::call_ns - 1000);
    EXPECT_EQ(times[1].host_wait, std::nullopt);
}

}  // namespace
}  // namespace kbench
