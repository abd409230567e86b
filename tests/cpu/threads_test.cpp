// Cores come from the affinity mask, and pinned threads stay where they are put.
#include "cpu/threads.h"

#include <gmock/gmock.h>
#include <omp.h>
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace kbench::cpu {
namespace {

/// Gives the process's OpenMP threads and their number back as they were.
class Threads : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(sched_getaffinity(0, sizeof(mask_), &mask_), 0);
        threads_ = omp_get_max_threads();
    }
    void TearDown() override {
        const cpu_set_t mask = mask_;
#pragma omp parallel
        sched_setaffinity(0, sizeof(mask), &mask);
        omp_set_num_threads(threads_);
    }
    static void allow(const std::vector<int>& cpus) {
        cpu_set_t mask;
        CPU_ZERO(&mask);
        for (int cpu : cpus) CPU_SET(cpu, &mask);
        ASSERT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
    }

  private:
    cpu_set_t mask_;
    int threads_;
};

TEST_F(Threads, PhysicalCoresAreInOrderAndNoMoreThanTheMaskAllows) {
    const std::vector<int> cores = physical_cores();
    ASSERT_FALSE(cores.empty());
    EXPECT_THAT(cores, testing::WhenSorted(testing::ElementsAreArray(cores)));
    allow({cores.back()});
    EXPECT_THAT(physical_cores(), testing::ElementsAre(cores.back()));
}

/// The statement runs in a new process of this program, which the OpenMP library starts with these variables.
TEST(BoundThreads, AMainThreadThatOpenMPHasBoundLeavesEveryCore) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char* counted = "KBENCH_TEST_CORES";
    setenv(counted, std::to_string(physical_cores().size()).c_str(), 0);  // the new process keeps the first one's
    for (const char* variable : {"OMP_PROC_BIND=close", "OMP_PROC_BIND=spread", "OMP_PLACES=cores"}) {
        SCOPED_TRACE(variable);
        const std::string text = variable, name = text.substr(0, text.find('='));
        setenv(name.c_str(), text.substr(name.size() + 1).c_str(), 1);
        EXPECT_EXIT(
            {
                cpu_set_t mask;
                sched_getaffinity(0, sizeof(mask), &mask);
                const std::string cores = std::to_string(physical_cores().size());
                fprintf(stderr, "%s cores, main bound to %d CPUs\n", cores.c_str(), CPU_COUNT(&mask));
                std::exit(cores == std::getenv(counted) ? 0 : 1);
            },
            testing::ExitedWithCode(0), "");
        unsetenv(name.c_str());
    }
    unsetenv(counted);
}

/// Ends the process with 0 where so many threads came and are told of.
[[noreturn]] void start(int wanted, int came) {
    const int started = start_threads(wanted);
    int found = 0;
#pragma omp parallel reduction(+ : found)
    found += 1;
    fprintf(stderr, "%d started, %d found, %d at most\n", started, found, omp_get_max_threads());
    std::exit(started == came && found == came && omp_get_max_threads() == came ? 0 : 1);
}

/// The OpenMP library of a new process of this program starts with this variable.
void expect_threads(const char* variable, const char* value, int wanted, int came) {
    SCOPED_TRACE(variable);
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv(variable, value, 1);
    EXPECT_EXIT(start(wanted, came), testing::ExitedWithCode(0), "");
    unsetenv(variable);
}

TEST(StartedThreads, AreAsManyAsCame) {
    expect_threads("OMP_THREAD_LIMIT", "1", 4, 1);
    expect_threads("OMP_THREAD_LIMIT", "2", 4, 2);
    expect_threads("OMP_DYNAMIC", "true", 64, 64);  // more than the machine is likely to have cores
    expect_threads("OMP_NUM_THREADS", "1", 4, 4);
}

TEST_F(Threads, PinnedThreadsRunOnTheirCores) {
    const std::vector<int> cores = physical_cores();
    ASSERT_TRUE(pin_threads(cores));
    EXPECT_EQ(omp_get_max_threads(), static_cast<int>(cores.size()));
    std::vector<int> ran(cores.size(), -1);
#pragma omp parallel
    ran[static_cast<std::size_t>(omp_get_thread_num())] = sched_getcpu();
    EXPECT_EQ(ran, cores);
}

TEST_F(Threads, APinnedThreadIsStillAllowedWhatItWasBefore) {
    const std::vector<int> cpus = usable_cpus(), cores = physical_cores();
    for (const int core : {cores.back(), cores.front()}) {  // the second time it is pinned already
        ASSERT_TRUE(pin_threads({core}));
        EXPECT_EQ(usable_cpus(), cpus);
        EXPECT_EQ(physical_cores(), cores);
    }
    if (cores.size() == 1) GTEST_SKIP() << "one core cannot be taken away";
    allow({cores.back()});
    EXPECT_THAT(physical_cores(), testing::ElementsAre(cores.back())) << "others' masks count";
}

TEST_F(Threads, PinningToACpuThatDoesNotExistIsReported) {
    EXPECT_FALSE(pin_threads({8191}));
    EXPECT_FALSE(pin_threads({}));
}

TEST_F(Threads, CpuInfoCountsWhatTheMaskAllows) {
    const CpuInfo info = cpu_info();
    EXPECT_EQ(info.physical_cores, static_cast<int>(physical_cores().size()));
    EXPECT_GE(info.logical_cpus, info.physical_cores);
    EXPECT_GE(info.sockets, 1);
    EXPECT_FALSE(info.model.empty());
    EXPECT_THAT(info.isa,
                testing::IsSubsetOf({"avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"}));
    if (info.l1d_bytes == 0) GTEST_SKIP() << "this system does not tell the sizes of caches";
    EXPECT_GT(info.l2_bytes, info.l1d_bytes);
}

}  // namespace
}  // namespace kbench::cpu
