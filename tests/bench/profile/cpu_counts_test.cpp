// What the kernel counts of a process, from a made-up /proc and made-up control groups of both versions.
#include "bench/profile/cpu_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class CpuCountFiles : public testing::Test {
  protected:
    /// Times in milliseconds.
    void thread(int id, long ran, long waited, long arrivals = 1) {
        root_.write("proc/self/task/" + std::to_string(id) + "/schedstat", std::to_string(ran * 1000000) + " " +
                                                                               std::to_string(waited * 1000000) + " " +
                                                                               std::to_string(arrivals) + "\n");
    }
    /// In ticks of 10 ms, of two CPUs.
    void stat(long user, long idle, long steal) {
        root_.write("proc/stat", "cpu  " + std::to_string(user) + " 0 0 " + std::to_string(idle) + " 500 0 0 " +
                                     std::to_string(steal) +
                                     " 0 0\ncpu0 1 0 0 1 0 0 0 1 0 0\ncpu1 1 0 0 1\nintr 5 cpu\n");
    }
    void group_v1(long periods, long throttled, long throttled_ns) {
        root_.write("proc/self/cgroup", "4:cpu:/jobs/7\n");
        root_.write("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
        root_.write("sys/fs/cgroup/cpu/jobs/7/cpu.stat", "nr_periods " + std::to_string(periods) + "\nnr_throttled " +
                                                             std::to_string(throttled) + "\nthrottled_time " +
                                                             std::to_string(throttled_ns) + "\n");
        root_.write("sys/fs/cgroup/cpu/jobs/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
    }
    void group_v2(const std::string& stat) {
        root_.write("proc/self/cgroup", "0::/jobs/7\n");
        root_.write("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        root_.write("sys/fs/cgroup/jobs/7/cpu.stat", stat);
    }
    CpuCounts read(double at_s) const {
        CpuCounts counts = CpuCountReader(root_ / "").read();
        counts.at_s = at_s;
        return counts;
    }

    TemporaryDirectory root_;
};

TEST_F(CpuCountFiles, TheThreadThatWaitedTheMostOfThoseThatWorkedCounts) {
    thread(7, 1000, 10);
    thread(8, 1000, 10);
    thread(9, 0, 0);
    const CpuCounts before = read(1);
    thread(7, 1990, 10);
    thread(8, 1600, 410, 101);  // 100 arrivals after a wake-up of up to 50 us each
    thread(9, 1, 30);           // watches: it hardly wants to run
    const CpuShare share = share_of(used(before, read(2)));
    EXPECT_NEAR(share.waited_share.value.value(), 0.395, 1e-9);
    EXPECT_TRUE(share.starved());
}

TEST_F(CpuCountFiles, TeamsThatAreWokenOftenDoNotLackTheirCpus) {
    thread(7, 1, 0);
    const CpuCounts before = read(1);
    thread(7, 901, 90, 5001);
    EXPECT_EQ(share_of(used(before, read(2))).waited_share.value, 0);
}

TEST_F(CpuCountFiles, AThreadThatBeganMeanwhileCountsFromItsBegin) {
    thread(7, 1000, 0);
    const CpuCounts before = read(1);
    thread(7, 1900, 0);
    thread(8, 500, 250, 0);
    EXPECT_NEAR(share_of(used(before, read(2))).waited_share.value.value(), 0.25, 1e-9);
}

TEST_F(CpuCountFiles, AKernelThatDoesNotCountWaitsSaysNothingOfThem) {
    thread(7, 0, 0, 0);
    const CpuShare share = share_of(used(read(1), read(2)));
    EXPECT_FALSE(share.waited_share.value);
    EXPECT_THAT(share.waited_share.reason, HasSubstr("proc/self/task/*/schedstat does not tell"));
    EXPECT_FALSE(share.lacked()) << "nothing else can be read here";
    EXPECT_FALSE(share.starved());
    EXPECT_THAT(share.steal_share.reason, HasSubstr("proc/stat does not tell"));
    EXPECT_FALSE(share.load.value);
    EXPECT_FALSE(share.pressure_share.value);
}

TEST_F(CpuCountFiles, StealIsOfTheTimeThatCpusWantedToRun) {
    stat(1000, 5000, 100);
    const CpuCounts before = read(1);
    stat(1060, 9000, 142);
    EXPECT_NEAR(share_of(used(before, read(2))).steal_share.value.value(), 0.4 / 1.02, 1e-9)
        << "40 of 102 ticks: one for each CPU may be of time before";
    stat(1005, 9000, 102);
    EXPECT_NEAR(share_of(used(before, read(2))).steal_share.value.value(), 0, 1e-9) << "no tick is certain";
}

TEST_F(CpuCountFiles, AQuotaOfTheFirstVersionHoldsBack) {
    thread(7, 1000, 0);
    group_v1(10, 1, 5000000);
    const CpuCounts before = read(1);
    thread(7, 2000, 0);
    group_v1(128, 112, 4005000000);
    const CpuShare share = share_of(used(before, read(13)));
    EXPECT_EQ(share.quota_periods.value, 118);
    EXPECT_EQ(share.throttled_periods.value, 111);
    EXPECT_NEAR(share.throttled_share.value.value(), 4.0 / 5, 1e-9) << "it ran for 1 s and was held back for 4";
    EXPECT_TRUE(share.starved());
}

TEST_F(CpuCountFiles, AQuotaOfTheSecondVersionHoldsBack) {
    thread(7, 1000, 0);
    group_v2("usage_usec 9\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\n");
    const CpuCounts before = read(1);
    thread(7, 2000, 0);
    group_v2("usage_usec 9\nnr_periods 40\nnr_throttled 20\nthrottled_usec 1000000\nnr_bursts 0\n");
    const CpuShare share = share_of(used(before, read(5)));
    EXPECT_EQ(share.quota_periods.value, 40);
    EXPECT_EQ(share.throttled_periods.value, 20);
    EXPECT_NEAR(share.throttled_share.value.value(), 0.5, 1e-9);
}

TEST_F(CpuCountFiles, WithoutTimesOfThreadsThrottledPeriodsTell) {
    group_v2("nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    const CpuCounts before = read(1);
    group_v2("nr_periods 40\nnr_throttled 20\nthrottled_usec 1000000\n");
    const CpuShare share = share_of(used(before, read(5)));
    EXPECT_DOUBLE_EQ(share.throttled_share.value.value(), 0.5);
    EXPECT_EQ(share.throttled_share.origin, Origin::estimated);
}

TEST_F(CpuCountFiles, AGroupWithoutAQuotaIsLookedAtAndOneThatCannotBeReadIsNot) {
    thread(7, 1000, 0);
    group_v2("usage_usec 9\nuser_usec 8\nsystem_usec 1\n");  // the root, or without the controller
    CpuShare share = share_of(used(read(1), read(2)));
    EXPECT_EQ(share.quota_periods.value, 0);
    EXPECT_EQ(share.throttled_share.value, 0);
    root_.write("proc/self/cgroup", "");
    share = share_of(used(read(1), read(2)));
    EXPECT_THAT(share.throttled_share.reason, HasSubstr("no control group"));
    EXPECT_FALSE(share.quota_periods.value);
}

TEST_F(CpuCountFiles, LoadAndPressureAreTheHosts) {
    root_.write("proc/loadavg", "3.68 1.56 0.61 5/113 21777\n");
    root_.write("proc/pressure/cpu", "some avg10=64.35 avg60=51.29 avg300=19.91 total=1000000\nfull avg10=0 total=7\n");
    const CpuCounts before = read(1);
    root_.write("proc/pressure/cpu", "some avg10=64.35 avg60=51.29 avg300=19.91 total=1500000\nfull avg10=0 total=7\n");
    const CpuShare share = share_of(used(before, read(3)));
    EXPECT_DOUBLE_EQ(share.load.value.value(), 3.68);
    EXPECT_DOUBLE_EQ(share.pressure_share.value.value(), 0.25);
    EXPECT_GE(share.involuntary_switches.value.value(), 0);
}

TEST_F(CpuCountFiles, SumsLeaveOutWhatLiesBetween) {
    thread(7, 1000, 0);
    stat(1000, 0, 0);
    const CpuCounts a = read(1);
    thread(7, 1900, 100, 1);
    const CpuCounts b = read(2);
    thread(7, 2000, 1000, 1);
    const CpuCounts c = read(3);
    thread(7, 3000, 1000, 1);
    CpuUse sum;
    add(sum, used(a, b));
    add(sum, used(c, read(4)));
    EXPECT_DOUBLE_EQ(sum.wall_s, 2);
    EXPECT_NEAR(share_of(sum).waited_share.value.value(), 0.05, 1e-9);
}

/// Here, on this machine: two threads on one CPU get half of it each.
TEST(CpuCounts, ThreadsThatShareACpuWaitForEachOther) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
        if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
    const CpuCountReader reader;
    if (!reader.read().no_threads.empty()) GTEST_SKIP() << reader.read().no_threads;
    std::atomic<bool> stop = false;
    const auto spin = [&] {
        sched_setaffinity(0, sizeof one, &one);
        while (!stop) {
        }
    };
    std::thread first(spin), second(spin);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const CpuCounts before = reader.read();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const CpuShare share = share_of(used(before, reader.read()));
    stop = true;
    first.join();
    second.join();
    EXPECT_GT(share.waited_share.value.value(), 0.3);
    EXPECT_TRUE(share.starved());
}

}  // namespace
}  // namespace kbench
