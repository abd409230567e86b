// Memory that plans may count on, from planted files of /proc and control groups.
#include "bench/device/host_memory.h"

#include <gtest/gtest.h>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

/// A machine of which 8 GiB are available, whose process lies in the group `/jobs/7`.
class HostMemory : public testing::Test {
  protected:
    HostMemory() { root_.write("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"); }
    void mount_v2(const std::string& group = "/jobs/7", const std::string& seen = "/") {
        root_.write("proc/self/cgroup", "1:cpu,cpuacct:/other\n0::" + group + "\n");
        root_.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n41 31 0:38 " + seen +
                                               " /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
    }
    void mount_v1(const std::string& seen = "/") {
        root_.write("proc/self/cgroup", "5:devices:/elsewhere\n4:hugetlb,memory:/jobs/7\n0::/\n");
        root_.write("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n36 31 0:33 " +
                                               seen + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory,hugetlb\n");
    }
    void v2(const std::string& group, const std::string& max, std::int64_t used, const std::string& stat = "") {
        const std::string folder = "sys/fs/cgroup/" + group;
        root_.write(folder + "memory.max", max + "\n");
        root_.write(folder + "memory.current", std::to_string(used) + "\n");
        root_.write(folder + "memory.stat", stat);
    }
    void v1(const std::string& group, std::int64_t limit, std::int64_t used, const std::string& stat = "") {
        const std::string folder = "sys/fs/cgroup/memory/" + group;
        root_.write(folder + "memory.limit_in_bytes", std::to_string(limit) + "\n");
        root_.write(folder + "memory.usage_in_bytes", std::to_string(used) + "\n");
        root_.write(folder + "memory.stat", stat);
    }
    std::int64_t available_mib() const { return available_host_memory(root_ / "") / mib; }

    TemporaryDirectory root_;
};

TEST_F(HostMemory, WithoutALimitIsTheMachines) {
    EXPECT_EQ(available_mib(), 8192);
    mount_v2();
    v2("jobs/7/", "max", 100 * mib);
    EXPECT_EQ(available_mib(), 8192);
    v2("jobs/7/", std::to_string(std::int64_t{1} << 40), 100 * mib);
    EXPECT_EQ(available_mib(), 8192) << "a group may be allowed more than there is";
}

TEST_F(HostMemory, AGroupsLimitCounts) {
    mount_v2();
    v2("jobs/7/", std::to_string(1024 * mib), 200 * mib);
    EXPECT_EQ(available_mib(), 824);
}

TEST_F(HostMemory, SoDoesTheLimitOfAnyGroupAboveIt) {
    mount_v2();
    v2("jobs/7/", "max", 100 * mib);
    v2("jobs/", std::to_string(512 * mib), 112 * mib);
    EXPECT_EQ(available_mib(), 400);
    v2("", std::to_string(300 * mib), 100 * mib);
    EXPECT_EQ(available_mib(), 200) << "of a container, the outermost that it sees";
    v2("jobs/6/", std::to_string(1 * mib), 0);
    EXPECT_EQ(available_mib(), 200) << "of a neighbour's nothing follows";
}

TEST_F(HostMemory, FilesThatAGroupHasCachedAreFree) {
    mount_v2();
    v2("jobs/7/", std::to_string(1024 * mib), 1000 * mib,
       "anon 104857600\ninactive_file 524288000\nactive_file 104857600\nslab 1\n");
    EXPECT_EQ(available_mib(), 624);
    v2("jobs/7/", std::to_string(1024 * mib), 2000 * mib);
    EXPECT_EQ(available_mib(), 0) << "a limit that was lowered below what is used";
}

TEST_F(HostMemory, GroupsOfTheFirstVersionCountToo) {
    mount_v1();
    v1("jobs/7/", 9223372036854771712, 100 * mib);
    EXPECT_EQ(available_mib(), 8192);
    v1("jobs/", 1024 * mib, 600 * mib, "inactive_file 0\ntotal_inactive_file 52428800\ntotal_active_file 52428800\n");
    EXPECT_EQ(available_mib(), 524);
    v1("jobs/7/", 500 * mib, 100 * mib);
    EXPECT_EQ(available_mib(), 400);
}

TEST_F(HostMemory, InAContainerTheGroupIsWhereItIsMounted) {
    mount_v1("/jobs/7");
    v1("", 300 * mib, 100 * mib);
    EXPECT_EQ(available_mib(), 200);
    mount_v2("/../../jobs/7");
    v2("", std::to_string(200 * mib), 100 * mib);
    EXPECT_EQ(available_mib(), 100) << "a group outside of what the container's name space shows";
}

TEST_F(HostMemory, WithoutProcIsWhatIsFree) {
    const TemporaryDirectory nothing;
    EXPECT_GT(available_host_memory(nothing / ""), mib);
}

}  // namespace
}  // namespace kbench
