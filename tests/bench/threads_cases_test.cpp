// The built program under what schedulers and module files set: as many threads as they say, stated, or one line why
// not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class ThreadCases : public Program {
  protected:
    /// Gives back what a test before this one may have left pinned to one CPU, and with it all that this one starts.
    ThreadCases() {
        cpu_set_t all;
        std::memset(&all, 0xff, sizeof all);
        sched_setaffinity(0, sizeof all, &all);
        // Each test sets what it asks about; what whoever runs the tests has set would decide in its place.
        for (const char* variable :
             {"OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_DYNAMIC", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS"})
            unsetenv(variable);
    }
    /// With variables such as "OMP_NUM_THREADS=1" before the command.
    Outcome under(const std::string& variables, const std::string& arguments) {
        return shell("env KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " + variables +
                     " " KBENCH_BINARY " " + arguments);
    }
    static std::string small() { return "--config " KBENCH_SOURCE_DIR "/tests/bench/cases/threads/config.json "; }
    std::string out() { return " --out " + (directory_ / ("out" + std::to_string(++runs_))).string(); }
    std::string first_look() {
        return small() + "--seq 16 --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none" + out();
    }
    Json host_of(const std::string& variables, const std::string& arguments) {
        const Outcome outcome = under(variables, first_look() + " --format json " + arguments);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        return Json::parse(outcome.out, nullptr, false)["environment"]["host"];
    }
    int cpus() { return std::atoi(shell("nproc --all").out.c_str()); }

    int runs_ = 0;
};

TEST_F(ThreadCases, TheVariableGivesItsThreadsAndIsNamed) {
    const Outcome outcome = under("OMP_NUM_THREADS=1", first_look());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("1 thread pinned (OMP_NUM_THREADS=1)"));
    const Json host = host_of("OMP_NUM_THREADS=1,2", "");
    EXPECT_EQ(host["threads"], 1) << "of a list the first counts";
    EXPECT_EQ(host["threads_from"], "OMP_NUM_THREADS=1,2");
}

TEST_F(ThreadCases, TheOptionOutranksIt) {
    const Json host = host_of("OMP_NUM_THREADS=2", "--threads 1");
    EXPECT_EQ(host["threads"], 1);
    EXPECT_EQ(host["threads_from"], "--threads");
    if (cpus() < 2) return;
    EXPECT_EQ(host_of("OMP_NUM_THREADS=1", "--threads 2")["threads"], 2);
}

TEST_F(ThreadCases, TheResultSaysWhatTheProcessMayUse) {
    const Json host = host_of("", "");
    EXPECT_EQ(host["threads_from"], host.contains("cpu_quota") ? host["threads_from"] : Json("cores"));
    EXPECT_EQ(host["machine_cpus"], cpus());
    if (cpus() < 2 || shell("taskset -c 0 true").exit_code != 0) GTEST_SKIP() << "one CPU, or no taskset";
    const Outcome one = shell("taskset -c 0 " KBENCH_BINARY " " + first_look());
    EXPECT_EQ(one.exit_code, 0) << one.err;
    const std::string lines = std::regex_replace(one.out, std::regex(R"(\s+)"), " ");
    EXPECT_THAT(lines, HasSubstr("1 core (1 of the machine's " + std::to_string(cpus()) + " CPUs), 1 thread pinned"));
}

TEST_F(ThreadCases, EveryCommandOfACpuTakesTheOptionAndRefusesWhatCannotBeHad) {
    const std::string commands[] = {
        "run " + small(), "study " + small(), "train " + small(), "ceilings ", "micro --op residual --shape r8w8 ",
        "doctor "};
    for (const std::string& command : commands) {
        const std::string on_cpu = command + (command == "doctor " ? "" : "--backend cpu ");
        expect_refusal(on_cpu + "--threads 0", "--threads '0': must be a whole number of at least 1");
        expect_refusal(on_cpu + "--threads two", "--threads 'two': must be a whole number of at least 1");
        expect_refusal(on_cpu + "--threads 99999", "--threads 99999: this process may use ");
    }
    const Outcome limited = under("OMP_THREAD_LIMIT=1", first_look() + " --threads 2");
    EXPECT_EQ(limited.exit_code, 2);
    EXPECT_THAT(limited.err, HasSubstr("--threads 2: ")) << limited.err;
    EXPECT_EQ(std::count(limited.err.begin(), limited.err.end(), '\n'), 1) << limited.err;
}

TEST_F(ThreadCases, WhatIsNotFollowedIsAWarning) {
#ifndef __clang__  // LLVM's OpenMP ends the process before main where that is no number
    const Outcome nonsense = under("OMP_NUM_THREADS=many", first_look());
    EXPECT_EQ(nonsense.exit_code, 0);
    EXPECT_THAT(nonsense.out, HasSubstr("OMP_NUM_THREADS='many' is ignored: must be a whole number from 1"));
#endif
    const Outcome dynamic = under("OMP_DYNAMIC=true", first_look());
    EXPECT_EQ(dynamic.exit_code, 0);
    EXPECT_THAT(dynamic.out, HasSubstr("OMP_DYNAMIC=true is not followed"));
    const Outcome more = under("OMP_NUM_THREADS=5000", first_look());
    EXPECT_EQ(more.exit_code, 0);
    EXPECT_THAT(more.out, HasSubstr("OMP_NUM_THREADS=5000: this process may use "));
    const Outcome trained =
        under("OMP_DYNAMIC=true", "train " + small() + "--backend cpu --batch 1 --seq 16 --steps 1");
    EXPECT_THAT(trained.err, HasSubstr("kbench: OMP_DYNAMIC=true is not followed"));
    EXPECT_THAT(under("", first_look()).out, Not(HasSubstr("OMP_")));
}

TEST_F(ThreadCases, ALimitDecidesAndIsNamed) {
    const Json host = host_of("OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=2", "");
    EXPECT_EQ(host["threads"], 1);
    if (cpus() > 1) {
        EXPECT_EQ(host["threads_from"], "OMP_THREAD_LIMIT=1");
    }
}

TEST_F(ThreadCases, RoofsAreOfTheThreadsThatMadeThemAndRememberedApart) {
    std::string err;  // the last one's: what a busy host spoils is not remembered, and says so
    const auto roofs = [&](const std::string& variables, const std::string& options) {
        const Outcome outcome = under(variables, "ceilings --backend cpu --seconds 0.3 --format json " + options);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        err = outcome.err;
        return Json::parse(outcome.out, nullptr, false);
    };
    const auto named = [](const Json& run, const std::string& name) {
        for (const Json& ceiling : run["ceilings"])
            if (ceiling["name"] == name) return ceiling;
        return Json();
    };
    const Json limited = roofs("OMP_THREAD_LIMIT=1", "");
    EXPECT_EQ(limited["threads"], 1);
    EXPECT_EQ(named(limited, "cpu_dram_triad")["threads"], 1);
    EXPECT_EQ(named(limited, "cpu_dram_triad")["value"], named(limited, "cpu_dram_triad_one_core")["value"])
        << "both are one measurement";
    if (err.empty()) {
        EXPECT_EQ(roofs("", "--threads 1"), limited) << "remembered for one thread";
    }
    if (cpus() < 2) return;
    const Json two = roofs("", "--threads 2");
    EXPECT_EQ(two["threads"], 2);
    EXPECT_EQ(named(two, "cpu_dram_triad")["threads"], 2);
    EXPECT_EQ(named(two, "cpu_dram_triad_one_core")["threads"], 1);
}

}  // namespace
}  // namespace kbench
