// The CPU time that control groups allow, from planted files of /proc and of both versions of control groups.
#include "bench/device/cpu_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A machine whose process lies in the group `/jobs/7`.
class Quota : public testing::Test {
  protected:
    void mount(const std::string& groups, const std::string& mounts) {
        root_.write("proc/self/cgroup", groups);
        root_.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n" + mounts);
    }
    void mount_v2(const std::string& group = "/jobs/7", const std::string& shown = "/") {
        mount("0::" + group + "\n", "41 31 0:38 " + shown + " /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    }
    void mount_v1(const std::string& shown = "/") {
        mount("5:cpuset:/elsewhere\n4:cpuacct,cpu:/jobs/7\n0::/\n",
              "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n35 31 0:32 " + shown +
                  " /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    }
    void v2(const std::string& group, const std::string& limit) {
        root_.write("sys/fs/cgroup/" + group + "cpu.max", limit + "\n");
    }
    void v1(const std::string& group, const std::string& quota, const std::string& period = "100000") {
        root_.write("sys/fs/cgroup/cpu/" + group + "cpu.cfs_quota_us", quota + "\n");
        root_.write("sys/fs/cgroup/cpu/" + group + "cpu.cfs_period_us", period + "\n");
    }
    double cpus() const {
        const std::optional<CpuQuota> quota = cpu_quota(root_ / "");
        return quota ? quota->cpus : 0;
    }
    std::string folder(const std::string& name) const { return (root_ / name).string(); }

    TemporaryDirectory root_;
};

TEST_F(Quota, ThereIsNoneWithoutALimitOrWithoutGroups) {
    EXPECT_EQ(cpus(), 0);
    EXPECT_THAT(cpu_cgroups(root_ / ""), IsEmpty());
    mount_v2();
    EXPECT_EQ(cpus(), 0) << "the root group has no cpu.max";
    v2("jobs/7/", "max 100000");
    EXPECT_EQ(cpus(), 0);
    mount_v1();
    v1("jobs/7/", "-1");
    EXPECT_EQ(cpus(), 0);
}

TEST_F(Quota, OfTheSecondVersionIsTimeOverPeriod) {
    mount_v2();
    v2("jobs/7/", "20000 100000");
    EXPECT_DOUBLE_EQ(cpus(), 0.2);
    EXPECT_DOUBLE_EQ(cpu_quota(root_ / "")->period_s, 0.1);
    v2("jobs/7/", "150000 50000");
    EXPECT_DOUBLE_EQ(cpus(), 3);
}

TEST_F(Quota, OfTheFirstVersionStandsInTwoFiles) {
    mount_v1();
    v1("jobs/7/", "50000");
    EXPECT_DOUBLE_EQ(cpus(), 0.5);
    v1("jobs/7/", "50000", "10000");
    EXPECT_DOUBLE_EQ(cpus(), 5);
}

TEST_F(Quota, TheSmallestOnTheWayToTheRootCounts) {
    mount_v2();
    v2("jobs/7/", "400000 100000");
    v2("jobs/", "100000 100000");
    v2("jobs/6/", "1000 100000");
    EXPECT_DOUBLE_EQ(cpus(), 1) << "a neighbour's limits nobody else";
    EXPECT_EQ(cpu_quota(root_ / "")->group.string(), folder("sys/fs/cgroup/jobs"));
    v2("jobs/7/", "max 100000");
    EXPECT_DOUBLE_EQ(cpus(), 1);
    mount_v1();
    v1("jobs/7/", "300000");
    v1("", "200000");
    EXPECT_DOUBLE_EQ(cpus(), 2) << "of a container, the outermost that it sees";
}

TEST_F(Quota, OfAHybridHostIsInEitherHierarchy) {
    mount("4:cpu:/jobs/7\n0::/user.slice\n",
          "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    EXPECT_THAT(
        cpu_cgroups(root_ / ""),
        ElementsAre(folder("sys/fs/cgroup/unified/user.slice"), folder("sys/fs/cgroup/unified"),
                    folder("sys/fs/cgroup/cpu/jobs/7"), folder("sys/fs/cgroup/cpu/jobs"), folder("sys/fs/cgroup/cpu")));
    v1("jobs/7/", "50000");
    EXPECT_DOUBLE_EQ(cpus(), 0.5);
    root_.write("sys/fs/cgroup/unified/user.slice/cpu.max", "25000 100000\n");
    EXPECT_DOUBLE_EQ(cpus(), 0.25);
}

TEST_F(Quota, InAContainerTheGroupIsWhereItIsMounted) {
    mount_v1("/jobs/7");
    v1("", "20000");
    EXPECT_DOUBLE_EQ(cpus(), 0.2);
    mount_v2("/../../jobs/7", "/../..");
    v2("jobs/7/", "10000 100000");
    EXPECT_DOUBLE_EQ(cpus(), 0.1);
    mount_v2("/", "/docker/7");
    v2("", "30000 100000");
    EXPECT_DOUBLE_EQ(cpus(), 0.3) << "a name space of its own, over a mount from outside";
}

TEST_F(Quota, OfSeveralMountsTheOneThatShowsTheGroupCounts) {
    mount("0::/jobs/7\n",
          "41 31 0:38 /other /mnt/other rw - cgroup2 cgroup2 rw\n"
          "42 31 0:38 / /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n");
    root_.write("mnt/other/cpu.max", "1000 100000\n");
    root_.write("sys/fs/my groups/jobs/7/cpu.max", "60000 100000\n");
    EXPECT_DOUBLE_EQ(cpus(), 0.6);
}

TEST_F(Quota, FilesThatSayNothingAreNoLimit) {
    mount_v2();
    for (const char* text : {"", "20000", "0 100000", "20000 0", "-1 100000", "nan nan", "words"}) {
        v2("jobs/7/", text);
        EXPECT_EQ(cpus(), 0) << text;
    }
    mount("nonsense\n4\n:::\n", "41 31 - \n - \ncgroup2\n");
    EXPECT_EQ(cpus(), 0);
}

}  // namespace
}  // namespace kbench
