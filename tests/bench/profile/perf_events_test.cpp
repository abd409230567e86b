// Events of the host with made-up counters: what readings mean, and what is said of those that do not open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/profile/perf.h"
#include "tests/bench/profile/fake_perf_system.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string paranoid = "/proc/sys/kernel/perf_event_paranoid";

// ---- Reasons

TEST(HostCountersReasons, NameTheSettingThatForbidsMemoryControllers) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20);
    system.files[paranoid] = "2";
    system.refuse = [](const PerfEventSpec& spec) { return spec.type == 20 ? EACCES : 0; };
    EXPECT_EQ(
        HostCounters::open(system).why_not().at(0),
        "memory controllers: perf_event_paranoid is 2: kbench needs 0 or less, or CAP_PERFMON, to count memory controllers; fix: sysctl kernel.perf_event_paranoid=0");
}

TEST(HostCountersReasons, NameTheSettingThatForbidsOnesOwnThreads) {
    FakeSystem system;
    system.files[paranoid] = "4";
    system.refuse = [](const PerfEventSpec&) { return EPERM; };
    const HostCounters counters = HostCounters::open(system);
    const std::string reason =
        "perf_event_paranoid is 4: kbench needs 2 or less, or CAP_PERFMON, to count its own threads; fix: sysctl kernel.perf_event_paranoid=2";
    EXPECT_EQ(counters.why_not().back(), "core counters: " + reason);
    EXPECT_EQ(counters.why_not().at(1), "last-level-cache misses: " + reason);
}

TEST(HostCountersReasons, DoNotBlameASettingThatAllowsIt) {
    for (const std::string setting : {"2", "-1"}) {
        FakeSystem system;
        system.files[paranoid] = setting;
        system.refuse = [](const PerfEventSpec&) { return EPERM; };
        EXPECT_THAT(HostCounters::open(system).why_not().back(),
                    AllOf(HasSubstr("although perf_event_paranoid is " + setting), HasSubstr("seccomp")));
    }
}

TEST(HostCountersReasons, TellErrorsApart) {
    const std::map<int, std::string> reasons{{ENOENT, "this machine exposes no core PMU (virtual machine?)"},
                                             {EOPNOTSUPP, "this machine exposes no core PMU (virtual machine?)"},
                                             {ENODEV, "this machine exposes no core PMU (virtual machine?)"},
                                             {ENOSYS, "this kernel has no perf_event_open"},
                                             {EMFILE, "too many open files"},
                                             {EINVAL, "perf_event_open: Invalid argument"}};
    for (const auto& [error, reason] : reasons) {
        FakeSystem system;
        system.refuse = [error](const PerfEventSpec&) { return error; };
        EXPECT_THAT(HostCounters::open(system).why_not().back(), HasSubstr("core counters: " + reason));
    }
}

TEST(HostCountersReasons, RefuseTwoKindsOfCore) {
    FakeSystem system;
    system.files[pmus + "cpu_core/type"] = "4";
    system.files[pmus + "cpu_atom/type"] = "10";
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.why_not().back(), HasSubstr("core counters: this CPU has two kinds of core"));
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_THAT(system.events, IsEmpty());
}

// ---- Readings

class HostCounterReadings : public testing::Test {
  protected:
    HostCounterReadings() {
        system_.add_imc("uncore_imc_0", 20);
        counters_.emplace(HostCounters::open(system_));
    }
    FakeSystem::Event& event(std::uint32_t type, std::uint64_t config) {
        for (FakeSystem::Event& event : system_.events)
            if (event.spec.type == type && event.spec.config == config) return event;
        throw std::logic_error("no such event");
    }
    FakeSystem::Event& cycles() { return event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES); }

    FakeSystem system_;
    std::optional<HostCounters> counters_;
};

TEST_F(HostCounterReadings, AddUpTheThreads) {
    counters_->start();
    system_.count_core(30'000'000, 60'000'000);
    const HostCounts counts = counters_->stop();
    EXPECT_DOUBLE_EQ(counts.cycles.value.value(), 60e6);
    EXPECT_DOUBLE_EQ(counts.instructions.value.value(), 120e6);
    EXPECT_DOUBLE_EQ(counts.cpu_seconds.value.value(), 0.02);
    EXPECT_EQ(counts.cycles.origin, Origin::measured);
    EXPECT_DOUBLE_EQ(core_clock_mhz(counts).value.value(), 3000);
    EXPECT_EQ(core_clock_mhz(counts).origin, Origin::derived);
    EXPECT_DOUBLE_EQ(instructions_per_cycle(counts).value.value(), 2);
}

TEST_F(HostCounterReadings, AreOfUserModeAndOfThreadsToCome) {
    for (const FakeSystem::Event& event : system_.events)
        if (event.spec.type == PERF_TYPE_HARDWARE) {
            EXPECT_TRUE(event.spec.user_only);
            EXPECT_TRUE(event.spec.inherit);
            EXPECT_EQ(event.cpu, -1);
            EXPECT_GE(event.pid, 100);
        }
}

TEST_F(HostCounterReadings, AreOfTheIntervalAlone) {
    system_.count_core(5, 5);
    system_.count(20, imc_read, 5);
    system_.count(20, imc_write, 5);
    counters_->start();
    system_.count_core(100, 200);
    system_.count(20, imc_read, 300);
    system_.count(20, imc_write, 400);
    for (int time = 0; time < 2; ++time) {
        const HostCounts counts = counters_->stop();
        EXPECT_DOUBLE_EQ(counts.cycles.value.value(), 200);
        EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 300 * 64);
        EXPECT_DOUBLE_EQ(counts.dram_write_bytes.value.value(), 400 * 64);
    }
}

TEST_F(HostCounterReadings, AreUnavailableWithoutAStart) {
    system_.count_core(5, 5);
    system_.count(20, imc_read, 5);
    for (int time = 0; time < 2; ++time) {
        const HostCounts counts = counters_->stop();
        EXPECT_EQ(counts.cycles.reason, "start() was not called");
        EXPECT_EQ(counts.dram_read_bytes.reason, "start() was not called");
    }
}

TEST_F(HostCounterReadings, AreScaledUpWhereCountersAreShared) {
    counters_->start();
    system_.count(20, imc_read, 1000, 10 * ms, 4 * ms);
    system_.count(20, imc_write, 1000);
    const HostCounts counts = counters_->stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 2500 * 64);
    EXPECT_EQ(counts.dram_read_bytes.origin, Origin::estimated);
    EXPECT_EQ(counts.dram_read_bytes.reason, "DRAM reads was counted 40 % of the time and scaled up");
    EXPECT_EQ(counts.dram_write_bytes.origin, Origin::measured);
    EXPECT_DOUBLE_EQ(counts.dram_bytes.value.value(), 3500 * 64);
    EXPECT_EQ(counts.dram_bytes.origin, Origin::estimated);
}

TEST_F(HostCounterReadings, OfTheIntervalAreScaledByTheIntervalsTimes) {
    system_.count(20, imc_read, 1000, 90 * ms, 10 * ms);
    counters_->start();
    system_.count(20, imc_read, 1000, 10 * ms, 10 * ms);
    EXPECT_DOUBLE_EQ(counters_->stop().dram_read_bytes.value.value(), 1000 * 64);
}

TEST_F(HostCounterReadings, ScaledCyclesMakeAnEstimatedClock) {
    counters_->start();
    system_.count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 10'000'000, 10 * ms, 5 * ms);
    const Quantity clock = core_clock_mhz(counters_->stop());
    EXPECT_DOUBLE_EQ(clock.value.value(), 2000);
    EXPECT_EQ(clock.origin, Origin::estimated);
    EXPECT_THAT(clock.reason, HasSubstr("50 %"));
}

TEST_F(HostCounterReadings, ThatNeverRanAreUnknown) {
    counters_->start();
    system_.count(20, imc_read, 0, 10 * ms, 0);
    EXPECT_EQ(counters_->stop().dram_read_bytes.reason, "DRAM reads was never counted: other events held its counters");
}

TEST_F(HostCounterReadings, OfASleepingThreadAddNothing) {
    counters_->start();
    cycles().reading = {1000, 10 * ms, 10 * ms};  // the other thread's time stands still
    const HostCounts counts = counters_->stop();
    EXPECT_DOUBLE_EQ(counts.cycles.value.value(), 1000);
    EXPECT_DOUBLE_EQ(counts.cpu_seconds.value.value(), 0.01);
}

TEST_F(HostCounterReadings, OfAControllerWhoseTimeStandsStillAreUnknown) {
    system_.count(20, imc_read, 1000);
    counters_->start();
    EXPECT_EQ(counters_->stop().dram_read_bytes.reason, "DRAM reads: its clock stood still");
}

TEST_F(HostCounterReadings, OfZeroAreUnknownWhereSomethingMustHaveBeenCounted) {
    counters_->start();
    system_.count_core(0, 0);
    system_.count(20, imc_read, 0);
    HostCounts counts = counters_->stop();
    EXPECT_THAT(counts.cycles.reason, HasSubstr("has counted nothing since it was opened"));
    EXPECT_THAT(counts.dram_read_bytes.reason, HasSubstr("has counted nothing since it was opened"));
    EXPECT_FALSE(counts.cpu_seconds.value);

    system_.count_core(100, 100);
    system_.count(20, imc_read, 100);
    counters_->start();
    system_.count_core(0, 0);
    system_.count(20, imc_read, 0);
    counts = counters_->stop();
    EXPECT_EQ(counts.cycles.reason, "cycles counted nothing");
    EXPECT_EQ(counts.dram_read_bytes.value, 0);  // this counter works: everything was in the caches
    EXPECT_EQ(core_clock_mhz(counts).reason, "cycles counted nothing");
}

TEST_F(HostCounterReadings, SurviveAWrap) {
    cycles().reading.value = ~std::uint64_t{0} - 9;
    counters_->start();
    cycles().reading = {90, 10 * ms, 10 * ms};
    EXPECT_DOUBLE_EQ(counters_->stop().cycles.value.value(), 100);
}

TEST_F(HostCounterReadings, ThatGoBackAreUnknown) {
    cycles().reading.value = 100;
    counters_->start();
    cycles().reading.value = 99;
    EXPECT_EQ(counters_->stop().cycles.reason, "cycles went back");
}

TEST_F(HostCounterReadings, ThatAreShortAreUnknown) {
    counters_->start();
    system_.count_core(100, 100);
    cycles().answer = 8;
    EXPECT_EQ(counters_->stop().cycles.reason, "cycles gave 8 of 24 bytes");
    cycles().answer = 0;
    EXPECT_EQ(counters_->stop().cycles.reason, "cycles gave 0 of 24 bytes");
    cycles().answer = -EIO;
    EXPECT_THAT(counters_->stop().cycles.reason, HasSubstr("cycles cannot be read: "));
    EXPECT_DOUBLE_EQ(counters_->stop().instructions.value.value(), 200);  // one counter's trouble is its own
}

TEST_F(HostCounterReadings, ThatWereShortAtTheStartStayUnknownUntilTheNext) {
    cycles().answer = 8;
    counters_->start();
    cycles().answer = sizeof(PerfReading);
    system_.count_core(100, 100);
    for (int time = 0; time < 2; ++time) EXPECT_EQ(counters_->stop().cycles.reason, "cycles gave 8 of 24 bytes");
    counters_->start();
    system_.count_core(100, 100);
    EXPECT_DOUBLE_EQ(counters_->stop().cycles.value.value(), 200);
}

TEST_F(HostCounterReadings, LeaveNoFileOpen) {
    HostCounters moved = std::move(*counters_);
    counters_.reset();
    EXPECT_FALSE(system_.all_closed());
    moved.start();
    moved = HostCounters::open(system_);
    moved.start();
    { const HostCounters last = std::move(moved); }
    EXPECT_TRUE(system_.all_closed());
    EXPECT_THAT(system_.events, SizeIs(2 * (2 + 4)));
}

}  // namespace
}  // namespace kbench
