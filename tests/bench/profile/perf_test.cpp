// Host counters as a whole: all threads or none, a machine without any counter, and what the running kernel gives.
#include "bench/profile/perf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "tests/bench/profile/fake_perf_system.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// ---- Threads

TEST(HostCounterThreads, ThatHaveEndedAreNoLoss) {
    FakeSystem system;
    system.refuse_thread = [](int thread) { return thread == 100 ? ESRCH : 0; };
    HostCounters counters = HostCounters::open(system);
    counters.start();
    system.count_core(100, 100);
    EXPECT_DOUBLE_EQ(counters.stop().cycles.value.value(), 100);
}

TEST(HostCounterThreads, AreCountedAllOrNotAtAll) {
    FakeSystem system;
    system.refuse_thread = [](int thread) { return thread == 101 ? EMFILE : 0; };
    HostCounters counters = HostCounters::open(system);
    EXPECT_TRUE(system.all_closed());
    EXPECT_THAT(counters.why_not().back(), HasSubstr("too many open files"));
    counters.start();
    EXPECT_FALSE(counters.stop().cycles.value);
}

// ---- A machine without counters

TEST(HostCountersLadder, AVirtualMachineWithNothingSaysSoOnEveryRung) {
    FakeSystem system;
    system.refuse = [](const PerfEventSpec&) { return ENOENT; };
    HostCounters counters = HostCounters::open(system);
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_THAT(counters.why_not(), ElementsAre(HasSubstr("memory controllers: no uncore_imc in"),
                                                HasSubstr("last-level-cache misses: no event"),
                                                "core counters: this machine exposes no core PMU (virtual machine?)"));
    for (const std::string& line : counters.why_not()) EXPECT_THAT(line, Not(HasSubstr("\n")));
    counters.start();
    const HostCounts counts = counters.stop();
    for (const Quantity& quantity : {counts.dram_read_bytes, counts.dram_write_bytes, counts.dram_bytes}) {
        EXPECT_FALSE(quantity.value);
        EXPECT_THAT(quantity.reason, HasSubstr("no counter of memory traffic here"));
    }
    for (const Quantity& quantity : {counts.cycles, counts.instructions, counts.cpu_seconds}) {
        EXPECT_EQ(quantity.origin, Origin::unavailable);
        EXPECT_EQ(quantity.reason, "this machine exposes no core PMU (virtual machine?)");
    }
}

// ---- The running kernel

/// At least a million instructions.
void spin() {
    for (int i = 0; i < 1'000'000; ++i) asm volatile("");
}

TEST(LinuxPerfSystemFiles, AreReadBelowItsRoot) {
    const TemporaryDirectory root;
    root.write("sys/a/b", "12\n");
    root.write("sys/a/a", "");
    root.write("sys/a/long", std::string(10'000, 'x') + "\n");
    LinuxPerfSystem system(root / "");
    EXPECT_EQ(system.text("/sys/a/b"), "12");
    EXPECT_EQ(system.text("/sys/a/a"), "");
    EXPECT_EQ(system.text("/sys/a/long").value().size(), 10'000u);
    EXPECT_EQ(system.text("/sys/a/none"), std::nullopt);
    EXPECT_EQ(system.text("/sys/a"), std::nullopt);  // opens, but cannot be read
    EXPECT_THAT(system.entries("/sys/a"), ElementsAre("a", "b", "long"));
    EXPECT_THAT(system.entries("/sys/none"), IsEmpty());
    EXPECT_TRUE(system.exists("/sys/a"));
    EXPECT_FALSE(system.exists("/sys/none"));
}

TEST(LinuxPerfSystemThreads, AreThisProcesss) {
    LinuxPerfSystem system;
    EXPECT_THAT(system.threads(), testing::Contains(getpid()));
}

TEST(LinuxPerfSystemEvents, OfSoftwareCountTime) {
    LinuxPerfSystem system;
    const int fd =
        system.open({.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK, .user_only = true}, 0, -1);
    if (fd < 0) GTEST_SKIP() << "perf_event_open is refused here with errno " << -fd;
    spin();
    PerfReading reading;
    EXPECT_EQ(system.read(fd, reading), static_cast<long>(sizeof reading));
    EXPECT_GT(reading.value, 0u);
    EXPECT_GT(reading.enabled_ns, 0u);
    EXPECT_EQ(reading.running_ns, reading.enabled_ns);
    system.close(fd);
    EXPECT_EQ(system.read(fd, reading), -EBADF);
}

TEST(LinuxPerfSystemEvents, ThatCannotBeGiveAnErrno) {
    LinuxPerfSystem system;
    EXPECT_LT(system.open({.type = 0xffff}, 0, -1), 0);
}

TEST(HostCountersHere, CountOrSayWhyNot) {
    LinuxPerfSystem system;
    HostCounters counters = HostCounters::open(system);
    EXPECT_TRUE(!counters.traffic_source().empty() || counters.why_not().size() >= 2);
    counters.start();
    spin();
    const HostCounts counts = counters.stop();
    for (const Quantity& quantity :
         {counts.dram_read_bytes, counts.dram_write_bytes, counts.dram_bytes, counts.cycles, counts.instructions}) {
        EXPECT_NE(quantity.value.has_value(), quantity.origin == Origin::unavailable);
        EXPECT_EQ(quantity.reason.empty(), quantity.origin == Origin::measured);
    }
    EXPECT_GT(counts.instructions.value.value_or(2e6), 1e6);
}

}  // namespace
}  // namespace kbench
