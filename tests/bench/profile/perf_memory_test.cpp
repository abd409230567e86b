// Memory traffic of made-up machines: which source is taken, what its counts mean, and what is said otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bench/profile/perf.h"
#include "tests/bench/profile/fake_perf_system.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- The ladder

TEST(HostCountersLadder, TakesTheMemoryControllersOfIntelFirst) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20, "0,28");
    system.add_imc("uncore_imc_1", 21, "0,28");
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
    EXPECT_THAT(counters.why_not().at(0), HasSubstr("memory controllers: uncore_imc_0/cas_count_read is not in sysfs"));
}

TEST(HostCountersLadder, ReadsNoMemoryCountersOfOtherCpusThanIntels) {
    FakeSystem system;
    system.make_amd();
    HostCounters counters = HostCounters::open(system);
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_THAT(
        counters.why_not(),
        ElementsAre(
            "memory controllers: this CPU's memory counters are not supported: kbench knows those of Intel only",
            "last-level-cache misses: no event for them in the core PMU, or no core PMU"));
    counters.start();
    system.count_core(100, 200);
    const HostCounts counts = counters.stop();
    EXPECT_EQ(counts.cycles.origin, Origin::measured);
    EXPECT_FALSE(counts.dram_bytes.value);
}

TEST(HostCountersLadder, TakesCacheMissesLast) {
    FakeSystem system;
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), AllOf(HasSubstr("last-level-cache misses"), HasSubstr("a lower bound")));
    EXPECT_THAT(counters.why_not(),
                ElementsAre(HasSubstr("memory controllers: no uncore_imc in /sys/bus/event_source")));
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
    const PerfEventSpec generic{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CACHE_MISSES};
    FakeSystem arm;
    arm.set_cpu("", 0, 0);
    EXPECT_THAT(HostCounters::open(arm).traffic_source(), HasSubstr("last-level-cache misses"));
    FakeSystem amd;
    amd.make_amd();
    EXPECT_EQ(HostCounters::open(amd).traffic_source(), "");
    for (const FakeSystem* system : {&arm, &amd})
        for (const FakeSystem::Event& event : system->events) {
            EXPECT_FALSE(event.spec.type == generic.type && event.spec.config == generic.config);
            EXPECT_TRUE(system == &arm || event.spec.type == PERF_TYPE_HARDWARE);
        }
}

TEST(HostCountersLadder, FallsToTheLoadMissesWhereThePlainEventIsMissing) {
    FakeSystem system;
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
    system.refuse = [](const PerfEventSpec& spec) { return spec.type == 21 ? EBUSY : 0; };
    const HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.traffic_source(), HasSubstr("last-level-cache misses"));
    EXPECT_THAT(counters.why_not().at(0), HasSubstr("memory controllers: perf_event_open: "));
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

// ---- Readings

TEST(MissReadings, ScaledUpSayBoth) {
    FakeSystem system;
    HostCounters counters = HostCounters::open(system);
    counters.start();
    system.count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 100, 10 * ms, 5 * ms);
    const Quantity bytes = counters.stop().dram_read_bytes;
    EXPECT_DOUBLE_EQ(bytes.value.value(), 2 * 200 * 64);
    EXPECT_THAT(bytes.reason, AllOf(HasSubstr("a lower bound"), HasSubstr("50 % of the time")));
}

}  // namespace
}  // namespace kbench
