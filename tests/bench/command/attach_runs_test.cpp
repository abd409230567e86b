// The runs of `kbench attach`, by a program that writes prepared files and fails where it is told to: what was measured
// before a failure is kept, and each process is told its own launches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/program/program_point.h"
#include "bench/command/attach/all_runs.h"
#include "kbench/error.h"
#include "tests/analysis/program/written_program.h"
#include "tests/bench/program.h"

#ifdef KBENCH_HAVE_CUDA

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* collective = "ncclDevKernel_AllReduce";

/// Iterations of two kernels and a collective between them, after `set_up` others.
std::string run_of(const std::string& purpose, std::int64_t rank, int set_up, bool has_collective) {
    WrittenProgram program(purpose, rank + 1, {{"rank", rank}});
    for (int i = 0; i < set_up; ++i) program.launch("set up " + std::to_string(i));
    for (int i = 0; i < 5; ++i) {
        if (purpose == "names") program.open("step");
        program.host_works(20'000).launch("a");
        if (has_collective) program.launch(collective);
        program.launch("b");
        if (purpose == "names") program.close();
        program.synchronise();
    }
    return program.end().text();
}

class AttachRuns : public testing::Test {
  protected:
    void write(const std::string& purpose, const std::string& text, const std::string& rank = "0") {
        directory_.write("files/" + purpose + "." + rank + ".jsonl", text);
    }
    /// Files of all runs of one process.
    void write_all() {
        for (const char* purpose : {"records", "names"}) write(purpose, run_of(purpose, 0, 2, false));
        WrittenProgram bare("bare", 1, {{"rank", 0}});
        for (int i = 0; i < 5; ++i)
            bare.line({{"kind", "mark"}, {"launches", 2 + 2 * i}, {"at_ns", 1000 + i * 100'000}});
        write("bare", bare.end().text());
        WrittenProgram counters("counters", 1, {{"rank", 0}});
        counters.line({{"kind", "note"}, {"text", "nothing was counted: pass 1 of 1 had not ended"}});
        write("counters", counters.end().text());
    }
    /// Runs it; the program fails in the run for `failing`.
    AllRuns run(const std::string& failing, const std::string& from = "") {
        const std::string files = (directory_ / "files").string();
        const std::filesystem::path script =
            directory_.write("program",
                             "#!/bin/sh\n"
                             "env | grep ^KBENCH_ATTACH > \"$KBENCH_ATTACH_DIR/environment.txt\"\n"
                             "cp " +
                                 files +
                                 "/$KBENCH_ATTACH_PURPOSE.*.jsonl \"$KBENCH_ATTACH_DIR\"\n"
                                 "[ $KBENCH_ATTACH_PURPOSE = '" +
                                 failing +
                                 "' ] || exit 0\n"
                                 "echo 'it broke'\n"
                                 "exit 7\n");
        std::filesystem::permissions(script, std::filesystem::perms::owner_all);
        AttachRequest request;
        request.command = {script.string()};
        request.quiet = true;
        std::filesystem::create_directory(directory_ / "out");
        return run_program(request, directory_ / "out", {.from = from}, {"dram__bytes_read.sum"});
    }
    std::string environment(const std::string& run) { return read_text(directory_ / "out" / run / "environment.txt"); }

    TemporaryDirectory directory_;
};

TEST_F(AttachRuns, KeepAllWhereAllEndWell) {
    write_all();
    const AllRuns all = run("");
    EXPECT_THAT(all.failures, IsEmpty());
    EXPECT_EQ(all.runs.bare.size(), 1u);
    EXPECT_EQ(all.runs.counters.size(), 1u);
    const Point point = program_points(all.runs, all.options, GpuInfo{}).points.at(0);
    EXPECT_TRUE(point.program->named);
    EXPECT_DOUBLE_EQ(point.program->bare_ms, 0.1);
}

TEST_F(AttachRuns, GoOnAfterOneThatFailed) {
    for (const std::string failing : {"names", "bare", "counters"}) {
        write_all();
        std::filesystem::remove_all(directory_ / "out");
        const AllRuns all = run(failing);
        EXPECT_THAT(all.failures, ElementsAre(AllOf(HasSubstr("exit code 7 in the run for " + failing),
                                                    HasSubstr(failing == "counters" ? "pass 1 of 1" : "it broke"))));
        EXPECT_FALSE(all.runs.records.empty());
        EXPECT_EQ(all.runs.counters.size(), 1u) << "the last run is made in any case";
        EXPECT_EQ(program_points(all.runs, all.options, GpuInfo{}).points.size(), 1u);
    }
}

TEST_F(AttachRuns, GoOnAfterOneWhoseFilesAreNone) {
    write_all();
    write("names", "{\"kind\":\"process\"\n");
    const AllRuns all = run("");
    EXPECT_THAT(all.failures, ElementsAre(HasSubstr("is not JSON")));
    EXPECT_EQ(all.runs.bare.size(), 1u);
    EXPECT_FALSE(program_points(all.runs, all.options, GpuInfo{}).points.at(0).program->named);
}

TEST_F(AttachRuns, FindIterationsThemselvesWithoutTheNamesOfARange) {
    write_all();
    std::filesystem::remove(directory_ / "files/names.0.jsonl");
    const AllRuns all = run("names", "step");
    EXPECT_THAT(all.failures, ElementsAre(HasSubstr("run for names"), HasSubstr("no iteration begins with 'step'")));
    EXPECT_EQ(program_points(all.runs, all.options, GpuInfo{}).points.at(0).program->iterations, 4);
}

TEST_F(AttachRuns, EndWhereThereAreNoRecords) {
    write_all();
    EXPECT_THAT(error_line<MeasurementError>([&] { run("records"); }),
                AllOf(HasSubstr("exit code 7 in the run for records"), HasSubstr("it broke")));
}

TEST_F(AttachRuns, TellEachRankItsLaunchesAndWhichKernelsWait) {
    write("records", run_of("records", 0, 2, true), "0");
    write("records", run_of("records", 1, 5, true), "1");
    run("");
    EXPECT_THAT(environment("4-counters"),
                AllOf(HasSubstr("KBENCH_ATTACH_FIRST_0=5\n"), HasSubstr("KBENCH_ATTACH_FIRST_1=8\n"),
                      HasSubstr("KBENCH_ATTACH_PERIOD_1=3\n"), HasSubstr("KBENCH_ATTACH_RANGES_1=2\n"),
                      HasSubstr("KBENCH_ATTACH_RANGES_OF_CALLS_1=1\n"),
                      HasSubstr("KBENCH_ATTACH_WAITING_0=ncclDevKernel_AllReduce\n"),
                      HasSubstr("KBENCH_ATTACH_MOST_PASS_SECONDS_0=20\n"), Not(HasSubstr("KBENCH_ATTACH_PERIOD="))));
}

}  // namespace
}  // namespace kbench

#endif
