// Programs of several processes, and kernels that wait for other ranks: which are told of, what of each run is joined,
// what is counted and what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "analysis/program/program_launches.h"
#include "analysis/program/program_point.h"
#include "analysis/result/result_json.h"
#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const all_reduce = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";

/// A rank of a program whose iteration is `kernels`, each launched by a call.
ProgramFile rank_of(const nlohmann::json& more, const std::vector<std::string>& kernels, int iterations = 5,
                    std::int64_t pid = 1) {
    WrittenProgram program("records", pid, more);
    for (int i = 0; i < iterations; ++i) {
        program.host_works(20'000);
        for (const std::string& kernel : kernels) program.launch(kernel);
        program.synchronise();
    }
    return program.end().read();
}

ProgramFile rank_of(std::int64_t rank, const std::vector<std::string>& kernels, int iterations = 5) {
    return rank_of({{"rank", rank}}, kernels, iterations, 10 + rank);
}

/// Counters of the launch calls `launches` of an iteration that begins with call `first` of the process.
ProgramFile counted(const nlohmann::json& more, std::int64_t first, const std::vector<std::int64_t>& launches,
                    double value) {
    WrittenProgram program("counters", 1, more);
    program.line({{"kind", "counters"},
                  {"counters", {"dram__bytes_read.sum"}},
                  {"passes", 1},
                  {"seconds", 1.5},
                  {"first_launch", first}});
    for (const std::int64_t launch : launches)
        program.line({{"kind", "counted"}, {"launch", launch}, {"values", {value + static_cast<double>(launch)}}});
    return program.end().read();
}

ProgramPoints points_of(const ProgramRuns& runs) {
    ProgramOptions options;
    options.metrics_of = [](const std::map<std::string, double>& counters) { return counters; };
    options.counters.requested = {"core"};
    return program_points(runs, options, GpuInfo{});
}

double bytes_of(const StepResult& step) { return step.counters.at("dram__bytes_read.sum"); }

TEST(Ranks, EachIsAPointWithItsRank) {
    const ProgramPoints made = points_of({.records = {rank_of(0, {"a", "b"}), rank_of(1, {"a", "b"}, 6)}});
    ASSERT_EQ(made.points.size(), 2u);
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        const Point& point = made.points[static_cast<std::size_t>(rank)];
        EXPECT_EQ(point.axes.count("rank"), rank);
        EXPECT_EQ(point.program->processes, 2);
        EXPECT_EQ(point.program->iterations, 4 + rank);
    }
    EXPECT_THAT(made.warnings, IsEmpty());
    Result result;
    result.points = made.points;
    EXPECT_EQ(parse_result(to_json(result).dump(), "result.json").points[0].axes, made.points[0].axes);
}

TEST(Ranks, OneProcessHasNone) {
    const ProgramPoints made = points_of({.records = {rank_of(0, {"a", "b"})}});
    ASSERT_EQ(made.points.size(), 1u);
    EXPECT_EQ(made.points[0].axes.find("rank"), nullptr);
}

TEST(Ranks, WhoDidLittleIsLeftOutAndSaidToBe) {
    const ProgramPoints made = points_of({.records = {rank_of(0, {"a", "b"}, 100), rank_of(1, {"set up"}, 1)}});
    ASSERT_EQ(made.points.size(), 1u);
    EXPECT_EQ(made.points[0].steps[0].layer, "a");
    EXPECT_THAT(made.points[0].program->notes, Contains(HasSubstr("1 process more did little on the GPU")));
}

TEST(Ranks, AreNumberedWhereNoLauncherToldThemApart) {
    const nlohmann::json none = nlohmann::json::object();
    for (const nlohmann::json& more : {none, nlohmann::json{{"rank", 0}}}) {  // a batch system's, the same in all
        const ProgramPoints made =
            points_of({.records = {rank_of(more, {"a", "b"}, 5, 10), rank_of(more, {"a", "b"}, 6, 11)}});
        ASSERT_EQ(made.points.size(), 2u);
        EXPECT_EQ(made.points[1].axes.count("rank"), 1);
        EXPECT_EQ(made.points[1].program->iterations, 5);
        EXPECT_THAT(made.warnings, ElementsAre(HasSubstr("no launcher told the ranks of 2 processes")));
    }
}

TEST(Ranks, ThatLaunchOtherWorkAreWarnedOf) {
    const ProgramPoints made =
        points_of({.records = {rank_of(0, {"a", "b"}), rank_of(1, {"b", "a"}), rank_of(2, {"a", "b", "c"})}});
    EXPECT_THAT(
        made.warnings,
        ElementsAre("rank 2 launches other work than rank 0: kernel 3 of an iteration is c 1x1x1 of 128x1x1, not "
                    "nothing more"))
        << "rank 1 begins its iterations elsewhere, and does the same";
}

TEST(Ranks, HaveEachTheNamesTimesAndCountersOfTheSameRank) {
    ProgramRuns runs{.records = {rank_of(0, {"a", "b"}), rank_of(1, {"a", "b"})}};
    for (const std::int64_t rank : {1, 0}) {  // as the processes may end
        const nlohmann::json more{{"rank", rank}};
        runs.counters.push_back(counted(more, 2, {0, 1}, static_cast<double>(100 * rank)));
        WrittenProgram bare("bare", 1, more);
        for (int i = 0; i < 5; ++i)
            bare.line({{"kind", "mark"}, {"launches", 2 * i}, {"at_ns", 1000 + i * 1'000'000 * (rank + 1)}});
        runs.bare.push_back(bare.end().read());
        WrittenProgram names("names", 1, more);
        for (int i = 0; i < 5; ++i)
            names.host_works(20'000)
                .open(module_text(fmt::format("layer {}", rank), "Linear"))
                .launch("a")
                .launch("b")
                .close();
        runs.names.push_back(names.end().read());
    }
    const ProgramPoints made = points_of(runs);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        const Point& point = made.points[rank];
        EXPECT_DOUBLE_EQ(point.program->bare_ms, static_cast<double>(rank + 1));
        EXPECT_THAT(point.steps[0].layer, HasSubstr(fmt::format("layer {}", rank)));
        EXPECT_EQ(bytes_of(point.steps[0]), 200 * static_cast<double>(rank) + 1) << "the sum over both kernels";
    }
}

TEST(Ranks, NotesOfOneAreNotTheOthers) {
    WrittenProgram noted("counters", 1, {{"rank", 1}});
    noted.line({{"kind", "note"}, {"text", "nothing was counted: pass 1 of 1 had not ended"}});
    const ProgramPoints made = points_of({.records = {rank_of(0, {"a", "b"}), rank_of(1, {"a", "b"})},
                                          .counters = {counted({{"rank", 0}}, 2, {0, 1}, 1), noted.end().read()}});
    EXPECT_THAT(made.points[0].program->notes, ElementsAre(HasSubstr("no run without records")));
    EXPECT_EQ(made.points[0].counters.unavailable, "");
    EXPECT_THAT(made.points[1].program->notes, Contains(HasSubstr("pass 1 of 1 had not ended")));
    EXPECT_EQ(made.points[1].counters.unavailable, "pass 1 of 1 had not ended");
}

TEST(Collectives, AreNotCountedAndLaunchCallsAroundThemAre) {
    const ProgramLaunches launches =
        program_launches({.records = {rank_of(0, {"a", all_reduce, "b", all_reduce})}}, {}).at(0);
    EXPECT_TRUE(launches.ranges_of_calls);
    EXPECT_EQ(launches.ranges, 2);
    EXPECT_EQ(launches.count, 4);
    EXPECT_THAT(launches.waiting, ElementsAre(all_reduce));
    EXPECT_EQ(launches.uncounted, "");
}

TEST(Collectives, HaveTimesAndNoCountersAndLeaveOthersTheirs) {
    const ProgramPoints made = points_of({.records = {rank_of(0, {"a", all_reduce, "b"})},
                                          // Counting began with the last launch of an iteration.
                                          .counters = {counted({{"rank", 0}}, 5, {0, 1}, 100)}});
    const Point& point = made.points.at(0);
    EXPECT_EQ(point.counters.unavailable, "");
    ASSERT_EQ(point.steps.size(), 3u);
    EXPECT_EQ(bytes_of(point.steps[0]), 101);
    EXPECT_THAT(point.steps[1].counters, IsEmpty());
    EXPECT_THAT(point.steps[1].counters_discarded, HasSubstr("waits for other ranks"));
    EXPECT_GT(point.steps[1].kernels[0].time_us, 0);
    EXPECT_EQ(bytes_of(point.steps[2]), 100);
}

TEST(Collectives, RefuseCountersOfAnIterationInWhichTheyWereCounted) {
    const auto unavailable = [](const std::vector<std::int64_t>& launches) {
        return points_of({.records = {rank_of(0, {"a", all_reduce, "b"})},
                          .counters = {counted({{"rank", 0}}, 3, launches, 100)}})
            .points.at(0)
            .counters.unavailable;
    };
    EXPECT_THAT(unavailable({0, 1}), HasSubstr("launch 1 of the counted iteration is one that waits for other ranks"));
    EXPECT_EQ(unavailable({0, 1, 2}), "3 ranges were counted in an iteration of 2 launch calls");
    EXPECT_EQ(unavailable({0, 2}), "");
}

TEST(Collectives, InAGraphAreCountedWithItsLaunch) {
    WrittenProgram program;
    for (int i = 0; i < 5; ++i) program.host_works(20'000).launch_graph({"a", all_reduce}).launch("c").synchronise();
    const ProgramFile file = program.end().read();
    const ProgramLaunches launches = program_launches({.records = {file}}, {}).at(0);
    EXPECT_TRUE(launches.ranges_of_calls);
    EXPECT_EQ(launches.ranges, 2);
    const Point point =
        points_of({.records = {file}, .counters = {counted(nlohmann::json::object(), 2, {0, 1}, 7)}}).points.at(0);
    EXPECT_EQ(bytes_of(point.steps.back()), 8);
    EXPECT_THAT(point.steps[0].counters_discarded, HasSubstr("in one graph launch"));
}

TEST(Collectives, DoNotMakeATimeWithoutRecordsTooShort) {
    // With records a rank waits for another in its collective for as long as that one is behind.
    WrittenProgram program;
    for (int i = 0; i < 5; ++i)
        program.host_works(20'000).launch("a").launch(all_reduce, {.ns = 900'000}).synchronise();
    const ProgramLaunches launches = program_launches({.records = {program.end().read()}}, {}).at(0);
    EXPECT_DOUBLE_EQ(launches.busy_ms, 0.001);
    EXPECT_GT(launches.iteration_ms, 0.9);
}

TEST(Counters, SayWhyThereAreNone) {
    const std::vector<ProgramFile> records{rank_of(0, {"a", "b"})};
    EXPECT_EQ(points_of({.records = records}).points[0].counters.unavailable, "the run for counters gave none");
    EXPECT_EQ(points_of({.records = {rank_of(0, {all_reduce})}}).points[0].counters.unavailable,
              "all its kernels wait for other ranks");
    ProgramFile two = records[0];
    for (std::size_t i = 0; i < two.activities.size(); ++i) two.activities[i].device = static_cast<int>(i % 2);
    EXPECT_THAT(points_of({.records = {two}}).points[0].counters.unavailable, HasSubstr("works on 2 GPUs"));
}

}  // namespace
}  // namespace kbench
