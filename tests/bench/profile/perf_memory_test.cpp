// Memory traffic of made-up machines: which source is taken, what its counts mean, and what is said otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/profile/perf.h"
#include "tests/bench/profile/fake_perf_system.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// ---- The ladder

TEST(HostCountersLadder, TakesTheMemoryControllersOfIntelFirst) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 106);
    system.add_imc("uncore_imc_0", 20, "0,28");
    system.add_imc("uncore_imc_1", 21, "0,28");
    system.add_umc();
    system.add_resctrl();
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), AllOf(HasSubstr("uncore_imc cas_count_read + cas_count_write"),
                                                 HasSubstr("8 counters"), HasSubstr("the whole machine")));
    EXPECT_THAT(counters.why_not(), IsEmpty());

    counters.start();
    system.count(20, imc_read, 1000);
    system.count(21, imc_read, 500);
    system.count(20, imc_write, 10);
    system.count(21, imc_write, 0);  // an empty channel
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 2 * 1500 * 64);
    EXPECT_DOUBLE_EQ(counts.dram_write_bytes.value.value(), 2 * 10 * 64);
    EXPECT_DOUBLE_EQ(counts.dram_bytes.value.value(), 2 * 1510 * 64);
    EXPECT_EQ(counts.dram_bytes.origin, Origin::measured);
}

TEST(HostCountersLadder, OpensControllersForTheMachineAndNotForUserModeOnly) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20, "0,28-29");
    const HostCounters counters = HostCounters::open(system);
    std::vector<int> cpus;
    for (const FakeSystem::Event& event : system.events)
        if (event.spec == PerfEventSpec{.type = 20, .config = imc_read}) {
            EXPECT_EQ(event.pid, -1);
            cpus.push_back(event.cpu);
        }
    EXPECT_THAT(cpus, ElementsAre(0, 28, 29));
}

struct IntelNames {
    std::string pmu;
    std::vector<std::string> events;
};
class IntelMemoryControllers : public testing::TestWithParam<IntelNames> {};

TEST_P(IntelMemoryControllers, AreFoundUnderTheirOtherNames) {
    FakeSystem system;
    system.add_pmu(GetParam().pmu, 22, "0");
    int code = 1;
    for (const std::string& event : GetParam().events)
        system.add_event(GetParam().pmu, event, "event=0x" + std::to_string(code++));
    HostCounters counters = HostCounters::open(system);
    ASSERT_THAT(counters.traffic_source(), HasSubstr(GetParam().events.back()));
    counters.start();
    for (int config = 1; config < code; ++config) system.count(22, static_cast<std::uint64_t>(config), 100);
    EXPECT_NEAR(counters.stop().dram_bytes.value.value(), 6400. * (code - 1), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Names, IntelMemoryControllers,
                         testing::Values(IntelNames{"uncore_imc", {"data_reads", "data_writes"}},
                                         IntelNames{"uncore_imc_free_running", {"data_read", "data_write"}},
                                         IntelNames{"uncore_imc_free_running_0", {"read", "write"}},
                                         IntelNames{"uncore_imc_0",
                                                    {"cas_count_read_sch0", "cas_count_read_sch1",
                                                     "cas_count_write_sch0", "cas_count_write_sch1"}}));

TEST(HostCountersLadder, KnowsTheEncodingsOfSapphireRapidsForKernelsWithoutNames) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 207);
    system.add_pmu("uncore_imc_0", 20, "0");
    HostCounters counters = HostCounters::open(system);
    counters.start();
    system.count(20, 0xcf05, 3);
    system.count(20, 0xf005, 2);
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 3 * 64);
    EXPECT_DOUBLE_EQ(counts.dram_write_bytes.value.value(), 2 * 64);
}

TEST(HostCountersLadder, GuessesNoEncodingForAnUnknownIntelCpu) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 250);
    system.add_pmu("uncore_imc_0", 20, "0");
    const HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.why_not().at(0), HasSubstr("uncore_imc: uncore_imc_0/cas_count_read is not in sysfs"));
}

TEST(HostCountersLadder, TakesTheMemoryControllersOfAmdNext) {
    FakeSystem system;
    system.add_df(26, "config:0-7,32-37", "config:8-15,24-27", "0");
    system.add_umc();
    system.add_resctrl();
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), HasSubstr("amd_umc umc_cas_cmd.rd + umc_cas_cmd.wr"));
    EXPECT_THAT(counters.why_not(), ElementsAre(HasSubstr("uncore_imc: no uncore_imc in /sys/bus/event_source")));
    counters.start();
    system.count(30, 0x10a, 7);
    system.count(30, 0x20a, 5);
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 7 * 64);
    EXPECT_DOUBLE_EQ(counts.dram_write_bytes.value.value(), 5 * 64);
}

TEST(HostCountersLadder, TakesAmdsDataFabricWithoutMemoryControllers) {
    FakeSystem system;
    system.add_df(26, "config:0-7,32-37", "config:8-15,24-27", "0");
    system.add_resctrl();
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), HasSubstr("amd_df local_or_remote_socket_read_data_beats_dram"));
    counters.start();
    for (std::uint64_t channel = 0; channel < 12; ++channel) {
        const std::uint64_t code = 0x1f + 0x40 * channel;
        const std::uint64_t event = (code & 0xff) | (code >> 8) << 32;
        system.count(31, event | 0xfe << 8 | std::uint64_t{0xf} << 24, 10);
        system.count(31, event | 0xff << 8 | std::uint64_t{0xf} << 24, 1);
    }
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 12 * 10 * 64);
    EXPECT_DOUBLE_EQ(counts.dram_write_bytes.value.value(), 12 * 64);
}

TEST(HostCountersLadder, CountsTheOtherPackagesTrafficOfZen4OnlyWhereThereIsOne) {
    for (const auto& [cpumask, events] : {std::pair<std::string, int>{"0", 24}, {"0,96", 96}}) {
        FakeSystem system;
        system.add_df(25, "config:0-7,32-37", "config:8-15,24-27", cpumask);
        EXPECT_THAT(HostCounters::open(system).traffic_source(), HasSubstr(std::to_string(events) + " counters"));
    }
}

TEST(HostCountersLadder, TellsZen3FromZen4ByTheWidthOfItsMask) {
    FakeSystem system;
    system.add_df(25, "config:0-7,32-35,59-60", "config:8-15", "0");
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), HasSubstr("amd_df dram_channel_data_controller: 8 counters"));
    counters.start();
    for (std::uint64_t code = 0x07; code <= 0x1c7; code += 0x40)
        system.count(31, (code & 0xff) | 0x3800 | (code >> 8) << 32, 2);
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_bytes.value.value(), 8 * 2 * 64);
    EXPECT_THAT(counts.dram_read_bytes.reason, HasSubstr("counts reads and writes together"));
    EXPECT_FALSE(counts.dram_write_bytes.value);
}

TEST(HostCountersLadder, TakesResctrlWithoutMemoryControllers) {
    FakeSystem system;
    system.add_resctrl();
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), AllOf(HasSubstr("resctrl mbm_total_bytes"), HasSubstr("/sys/fs/resctrl")));
    EXPECT_THAT(counters.why_not(), ElementsAre(HasSubstr("uncore_imc: "), HasSubstr("amd_umc, amd_df: ")));
    counters.start();
    system.files["/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"] = "1640";
    system.files["/sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes"] = "5360";
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_bytes.value.value(), 1000);
    EXPECT_EQ(counts.dram_bytes.origin, Origin::measured);
    EXPECT_EQ(counts.dram_read_bytes.reason, "resctrl counts reads and writes together");
    EXPECT_FALSE(counts.dram_write_bytes.value);
}

TEST(HostCountersLadder, TakesCacheMissesLast) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 106);
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), AllOf(HasSubstr("last-level-cache misses"), HasSubstr("a lower bound")));
    EXPECT_THAT(counters.why_not(), ElementsAre(HasSubstr("uncore_imc: "), HasSubstr("amd_umc, amd_df: "),
                                                "resctrl: this CPU or kernel has none"));
    counters.start();
    system.count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 100);
    const HostCounts counts = counters.stop();
    EXPECT_DOUBLE_EQ(counts.dram_read_bytes.value.value(), 2 * 100 * 64);  // two threads
    EXPECT_EQ(counts.dram_read_bytes.origin, Origin::estimated);
    EXPECT_EQ(counts.dram_read_bytes.reason, "last-level-cache misses times 64 B: a lower bound, without prefetches");
    for (const Quantity& quantity : {counts.dram_write_bytes, counts.dram_bytes}) {
        EXPECT_FALSE(quantity.value);
        EXPECT_EQ(quantity.reason, "last-level-cache misses say nothing of writes");
    }
}

TEST(HostCountersLadder, DoesNotTakeAnotherCachesMissesForTheLastLevels) {
    FakeSystem system;
    system.set_cpu("AuthenticAMD", 25, 1);
    system.refuse = [](const PerfEventSpec& spec) { return spec.type == PERF_TYPE_HW_CACHE ? ENOENT : 0; };
    const HostCounters counters = HostCounters::open(system);
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_EQ(counters.why_not().back(), "last-level-cache misses: no event for them in the core PMU, or no core PMU");
    system.refuse = [](const PerfEventSpec&) { return 0; };
    EXPECT_THAT(HostCounters::open(system).traffic_source(), HasSubstr("last-level-cache misses"));
    EXPECT_EQ(system.events.back().spec.type, std::uint32_t{PERF_TYPE_HARDWARE});  // the core counters come last
}

TEST(HostCountersLadder, FallsToTheLoadMissesWhereThePlainEventIsMissing) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 106);
    system.refuse = [](const PerfEventSpec& spec) {
        return spec.type == PERF_TYPE_HARDWARE && spec.config == PERF_COUNT_HW_CACHE_MISSES ? ENOENT : 0;
    };
    HostCounters counters = HostCounters::open(system);
    counters.start();
    system.count(PERF_TYPE_HW_CACHE, 0x10002, 1);  // LL, read, miss
    EXPECT_DOUBLE_EQ(counters.stop().dram_read_bytes.value.value(), 128);
}

TEST(HostCountersLadder, AControllerThatDoesNotOpenFailsTheRungAndClosesTheOthers) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20);
    system.add_imc("uncore_imc_1", 21);
    system.add_resctrl();
    system.refuse = [](const PerfEventSpec& spec) { return spec.type == 21 ? EBUSY : 0; };
    const HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), HasSubstr("resctrl"));
    EXPECT_THAT(counters.why_not().at(0), HasSubstr("uncore_imc: perf_event_open: "));
    for (const FakeSystem::Event& event : system.events) EXPECT_EQ(event.open, event.spec.type != 20);
}

// ---- Reasons

TEST(HostCountersReasons, RefuseUnitsAndFormatsThatAreNotUnderstood) {
    const std::string event = pmus + "uncore_imc_0/events/cas_count_read";
    const std::vector<std::tuple<std::string, std::string, std::string>> changes{
        {event + ".unit", "Joules", "uncore_imc_0/cas_count_read is in no known unit of bytes"},
        {event + ".scale", "much", "uncore_imc_0/cas_count_read is in no known unit of bytes"},
        {event + ".scale", "0", "uncore_imc_0/cas_count_read is in no known unit of bytes"},
        {event, "event=?", "uncore_imc_0/cas_count_read cannot be encoded"},
        {event, "event=0x104", "uncore_imc_0/cas_count_read cannot be encoded"},  // has 9 bits
        {event, "colour=1", "uncore_imc_0/cas_count_read cannot be encoded"},
        {pmus + "uncore_imc_0/format/event", "", "uncore_imc_0/cas_count_read cannot be encoded"},
        {pmus + "uncore_imc_0/type", "", "uncore_imc_0/cas_count_read cannot be encoded"},
        {pmus + "uncore_imc_0/cpumask", "", "uncore_imc_0 has no cpumask"}};
    for (const auto& [file, content, reason] : changes) {
        FakeSystem system;
        system.add_imc("uncore_imc_0", 20);
        system.files[file] = content;
        EXPECT_THAT(HostCounters::open(system).why_not().at(0), HasSubstr(reason)) << file << ": " << content;
    }
}

TEST(HostCountersReasons, SayWhatResctrlLacks) {
    FakeSystem system;
    system.files["/sys/fs/resctrl/info/last_cmd_status"] = "ok";
    EXPECT_THAT(HostCounters::open(system).why_not().at(2), HasSubstr("resctrl: no mbm_total_bytes"));
    system.add_resctrl();
    system.files["/sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes"] = "Unavailable";
    EXPECT_EQ(HostCounters::open(system).why_not().at(2),
              "resctrl: /sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes says \"Unavailable\"");
}

TEST(HostCountersReasons, SayHowResctrlIsMounted) {
    const TemporaryDirectory root;
    std::filesystem::create_directories(root / "sys/fs/resctrl");
    LinuxPerfSystem system(root / "");
    EXPECT_THAT(HostCounters::open(system).why_not().at(2), HasSubstr("mount -t resctrl resctrl /sys/fs/resctrl"));
}

// ---- Units and formats

TEST(HostCountersUnits, ScaleCountsToBytes) {
    const std::vector<std::tuple<std::string, std::string, double>> units{
        {"6.103515625e-5", "MiB", 64}, {"0.0625", "KiB", 64}, {"2", "Bytes", 2}, {"", "Bytes", 1},
        {"1e-3", "MB", 1000},          {"", "", 64}};  // a CAS command moves a line
    for (const auto& [scale, unit, bytes] : units) {
        FakeSystem system;
        system.add_imc("uncore_imc_0", 20);
        const std::string event = pmus + "uncore_imc_0/events/cas_count_read";
        system.files.erase(event + ".scale");
        system.files.erase(event + ".unit");
        system.add_event("uncore_imc_0", "cas_count_read", "event=0x04,umask=0x03", scale, unit);
        HostCounters counters = HostCounters::open(system);
        counters.start();
        system.count(20, imc_read, 1000);
        system.count(20, imc_write, 1);
        EXPECT_NEAR(counters.stop().dram_read_bytes.value.value(), 1000 * bytes, 1e-6) << scale << ' ' << unit;
    }
}

TEST(HostCountersUnits, PutTermsWhereTheFormatSays) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20);
    system.files[pmus + "uncore_imc_0/format/edge"] = "config:18";
    system.files[pmus + "uncore_imc_0/format/filter"] = "config1:0-3,32-35";
    system.add_event("uncore_imc_0", "cas_count_read", "event=4, umask=0xff,edge,filter=0xa5,config2=0x10");
    const HostCounters counters = HostCounters::open(system);
    const PerfEventSpec expected{.type = 20, .config = 0x4ff04, .config1 = 0xa00000005, .config2 = 0x10};
    EXPECT_EQ(system.events.at(0).spec, expected);
}

TEST(HostCountersUnits, FollowTheProcessIntoItsResctrlGroup) {
    FakeSystem system;
    system.add_resctrl("/sys/fs/resctrl/batch/mon_groups/one");
    system.files["/proc/self/cpu_resctrl_groups"] = "res:batch\nmon:one";
    EXPECT_THAT(HostCounters::open(system).traffic_source(), HasSubstr("/sys/fs/resctrl/batch/mon_groups/one"));
    system.add_resctrl();
    system.files["/proc/self/cpu_resctrl_groups"] = "res:/\nmon:";
    EXPECT_THAT(HostCounters::open(system).traffic_source(), Not(HasSubstr("batch")));
}

// ---- Readings

class ResctrlReadings : public testing::Test {
  protected:
    ResctrlReadings() {
        system_.add_resctrl();
        counters_.emplace(HostCounters::open(system_));
    }
    std::string& first() { return system_.files["/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"]; }
    FakeSystem system_;
    std::optional<HostCounters> counters_;
};

TEST_F(ResctrlReadings, AreUnavailableWithoutAStart) {
    EXPECT_EQ(counters_->stop().dram_bytes.reason, "resctrl: no value at start()");
}

TEST_F(ResctrlReadings, ThatDoNotMoveAreUnknown) {
    counters_->start();
    EXPECT_EQ(counters_->stop().dram_bytes.reason, "resctrl: the interval is too short for its counters to move");
}

TEST_F(ResctrlReadings, ThatGoBackAreUnknown) {
    counters_->start();
    first() = "999";
    EXPECT_THAT(counters_->stop().dram_bytes.reason, HasSubstr("mon_L3_00/mbm_total_bytes went back"));
}

TEST_F(ResctrlReadings, ThatWereMissingAtTheStartAreUnknown) {
    first() = "Error";
    counters_->start();
    first() = "2000";
    EXPECT_EQ(counters_->stop().dram_bytes.reason, "resctrl: a value was missing at start()");
}

TEST_F(ResctrlReadings, ThatTurnUnavailableAreUnknown) {
    counters_->start();
    first() = "Error";
    EXPECT_THAT(counters_->stop().dram_bytes.reason, HasSubstr("mon_L3_00/mbm_total_bytes says \"Error\""));
    first() = "2000";
    EXPECT_DOUBLE_EQ(counters_->stop().dram_bytes.value.value(), 1000);
}

TEST(MissReadings, ScaledUpSayBoth) {
    FakeSystem system;
    system.set_cpu("GenuineIntel", 6, 106);
    HostCounters counters = HostCounters::open(system);
    counters.start();
    system.count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 100, 10 * ms, 5 * ms);
    const Quantity bytes = counters.stop().dram_read_bytes;
    EXPECT_DOUBLE_EQ(bytes.value.value(), 2 * 200 * 64);
    EXPECT_THAT(bytes.reason, AllOf(HasSubstr("a lower bound"), HasSubstr("50 % of the time")));
}

}  // namespace
}  // namespace kbench
