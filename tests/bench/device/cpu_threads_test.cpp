// How many threads a run has, on machines and under schedulers that are not here.
#include "bench/device/cpu_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <memory>

#include "bench/device/device.h"
#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// 16 cores of two logical CPUs each.
ThreadSurroundings sixteen_cores() {
    ThreadSurroundings found;
    found.cores = 16;
    found.cpus = 32;
    return found;
}

CpuQuota quota_of(double cpus) { return {cpus, 0.1, "/sys/fs/cgroup"}; }

TEST(ThreadChoice, IsOneACoreWhereNothingSaysOtherwise) {
    const ThreadChoice choice = choose_threads(sixteen_cores());
    EXPECT_EQ(choice.threads, 16);
    EXPECT_EQ(choice.from, "cores");
    EXPECT_THAT(choice.warnings, IsEmpty());
}

TEST(ThreadChoice, TheOptionOutranksTheEnvironment) {
    ThreadSurroundings found = sixteen_cores();
    found.asked = 32;
    found.omp_num_threads = "4";
    const ThreadChoice choice = choose_threads(found);
    EXPECT_EQ(choice.threads, 32) << "more than cores: two a core";
    EXPECT_EQ(choice.from, "--threads");
    EXPECT_THAT(choice.warnings, IsEmpty());
}

TEST(ThreadChoice, TheOptionAsksForNoMoreThanCanBeHad) {
    ThreadSurroundings found = sixteen_cores();
    found.asked = 33;
    EXPECT_EQ(error_line<UsageError>([&] { choose_threads(found); }),
              "--threads 33: this process may use 32 CPUs; must be 1 to 32");
    found.cpus = found.cores = 1;
    EXPECT_EQ(error_line<UsageError>([&] { choose_threads(found); }),
              "--threads 33: this process may use 1 CPU; must be 1 to 1");
    found = sixteen_cores();
    found.asked = 4;
    found.thread_limit = 2;
    EXPECT_EQ(error_line<UsageError>([&] { choose_threads(found); }),
              "--threads 4: OMP_THREAD_LIMIT=2 lets no more start; ask for fewer or unset it");
}

TEST(ThreadChoice, TheVariableGivesSoManyThreads) {
    ThreadSurroundings found = sixteen_cores();
    for (const auto& [text, threads] : {std::pair{"1", 1}, {"4", 4}, {" 4 , 2 ", 4}, {"4,2", 4}, {"32", 32}}) {
        found.omp_num_threads = text;
        const ThreadChoice choice = choose_threads(found);
        EXPECT_EQ(choice.threads, threads) << text;
        EXPECT_THAT(choice.from, testing::StartsWith("OMP_NUM_THREADS=")) << text;
        EXPECT_THAT(choice.warnings, IsEmpty()) << text;
    }
    found.omp_num_threads = "";
    EXPECT_EQ(choose_threads(found).from, "cores") << "as unset";
}

TEST(ThreadChoice, AVariableThatSaysNothingIsIgnoredWithAWarning) {
    ThreadSurroundings found = sixteen_cores();
    for (const char* text : {"0", "-1", "four", "4x", "4,", ",4", "4,x", "4,,2", "1e3", "99999999999999999999"}) {
        found.omp_num_threads = text;
        const ThreadChoice choice = choose_threads(found);
        EXPECT_EQ(choice.threads, 16) << text;
        EXPECT_EQ(choice.from, "cores") << text;
        EXPECT_THAT(choice.warnings, ElementsAre(testing::StartsWith(std::string("OMP_NUM_THREADS='") + text)));
    }
}

TEST(ThreadChoice, AVariableForALargerMachineGivesTheCpusThatThereAre) {
    ThreadSurroundings found = sixteen_cores();
    found.omp_num_threads = "64";
    const ThreadChoice choice = choose_threads(found);
    EXPECT_EQ(choice.threads, 32);
    EXPECT_THAT(choice.warnings, ElementsAre("OMP_NUM_THREADS=64: this process may use 32 CPUs, so 32 threads run"));
}

TEST(ThreadChoice, ALimitCountsWhateverElseDecided) {
    ThreadSurroundings found = sixteen_cores();
    found.thread_limit = 1;
    for (const char* text : {static_cast<const char*>(nullptr), "8"}) {
        found.omp_num_threads = text;
        const ThreadChoice choice = choose_threads(found);
        EXPECT_EQ(choice.threads, 1);
        EXPECT_EQ(choice.from, "OMP_THREAD_LIMIT=1");
    }
}

TEST(ThreadChoice, DynamicTeamsAreNotFollowedAndSaidSo) {
    ThreadSurroundings found = sixteen_cores();
    for (const char* text : {"true", "TRUE", " True "}) {
        found.omp_dynamic = text;
        EXPECT_THAT(choose_threads(found).warnings, ElementsAre(HasSubstr("is not followed: 16 threads run"))) << text;
    }
    for (const char* text : {"false", "", "no"}) {
        found.omp_dynamic = text;
        EXPECT_THAT(choose_threads(found).warnings, IsEmpty()) << text;
    }
}

TEST(ThreadChoice, AVariableOfOpenBlasAloneIsNotFollowedAndSaidSo) {
    ThreadSurroundings found = sixteen_cores();
    found.of_blas = {{"OPENBLAS_NUM_THREADS", "1"}, {"GOTO_NUM_THREADS", nullptr}};
    EXPECT_THAT(choose_threads(found).warnings,
                ElementsAre("OPENBLAS_NUM_THREADS=1 is not followed: products take 16 threads too"));
    found.omp_num_threads = "1";
    EXPECT_THAT(choose_threads(found).warnings, IsEmpty()) << "it says the same";
}

TEST(ThreadChoice, AQuotaBelowTheCoresGivesTheThreadsThatItFeeds) {
    ThreadSurroundings found = sixteen_cores();
    for (const auto& [cpus, threads] : {std::pair{2.0, 2}, {2.5, 2}, {15.9, 15}, {1.0, 1}}) {
        found.quota = quota_of(cpus);
        const ThreadChoice choice = choose_threads(found);
        EXPECT_EQ(choice.threads, threads) << cpus;
        EXPECT_EQ(choice.from, "quota") << cpus;
        EXPECT_THAT(choice.warnings, IsEmpty()) << cpus;
    }
    for (const double cpus : {16.0, 16.5, 64.0}) {
        found.quota = quota_of(cpus);
        EXPECT_EQ(choose_threads(found).threads, 16) << cpus;
        EXPECT_EQ(choose_threads(found).from, "cores") << cpus;
    }
}

TEST(ThreadChoice, AQuotaBelowTheThreadsIsAWarning) {
    ThreadSurroundings found = sixteen_cores();
    found.quota = quota_of(0.2);
    ThreadChoice choice = choose_threads(found);
    EXPECT_EQ(choice.threads, 1);
    EXPECT_THAT(
        choice.warnings,
        ElementsAre(
            "a control group allows 0.2 CPUs of time and 1 thread would use 1: the kernel stops it for up to 80 % of each 100 ms, so times are of the quota and not of the CPU; raise the quota"));
    found.quota = quota_of(2);
    found.omp_num_threads = "8";
    choice = choose_threads(found);
    EXPECT_EQ(choice.threads, 8);
    EXPECT_THAT(choice.warnings, ElementsAre(testing::AllOf(HasSubstr("stops them for up to 75 %"),
                                                            HasSubstr("take --threads 2 or raise the quota"))));
    found.asked = 16;
    EXPECT_EQ(choose_threads(found).threads, 16);
    EXPECT_THAT(choose_threads(found).warnings, ElementsAre(HasSubstr("16 threads would use 16")));
}

TEST(ThreadChoice, OnOneCoreAQuotaStillShowsItsThread) {
    ThreadSurroundings found;
    found.quota = quota_of(1.5);
    EXPECT_EQ(choose_threads(found).threads, 1);
    EXPECT_EQ(choose_threads(found).from, "cores");
    EXPECT_THAT(choose_threads(found).warnings, IsEmpty());
}

/// The first one pinned this thread, whose mask alone would leave the second one core.
TEST(CpuDevices, ASecondOneHasTheThreadsOfTheFirst) {
    const std::unique_ptr<Device> first = make_cpu_device();
    const std::unique_ptr<Device> second = make_cpu_device();
    EXPECT_EQ(second->info().threads, first->info().threads);
    EXPECT_EQ(second->info().cores, first->info().cores);
    EXPECT_EQ(second->info().cpus, first->info().cpus);
    EXPECT_EQ(omp_get_max_threads(), first->info().threads);
}

}  // namespace
}  // namespace kbench
