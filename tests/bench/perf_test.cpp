// Host counters with made-up machines: which source of traffic is taken, what counts mean, and what is said otherwise.
#include "bench/perf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::uint64_t ms = 1'000'000;  // in ns
const std::string pmus = "/sys/bus/event_source/devices/";
const std::string paranoid = "/proc/sys/kernel/perf_event_paranoid";

/// A machine that is made of files and of a rule for each perf_event_open.
class FakeSystem final : public PerfSystem {
  public:
    struct Event {
        PerfEventSpec spec;
        int pid, cpu;
        PerfReading reading;
        long answer = sizeof(PerfReading);  ///< what read() returns
        bool open = true;
    };

    std::map<std::string, std::string> files;
    std::function<int(const PerfEventSpec&)> refuse = [](const PerfEventSpec&) { return 0; };  ///< an errno
    std::function<int(int)> refuse_thread = [](int) { return 0; };
    std::vector<int> thread_ids{100, 101};
    std::vector<Event> events;

    int open(const PerfEventSpec& spec, int pid, int cpu) override {
        if (const int error = refuse(spec)) return -error;
        if (const int error = pid >= 0 ? refuse_thread(pid) : 0) return -error;
        events.push_back({spec, pid, cpu, {}});
        return static_cast<int>(events.size()) - 1;
    }
    long read(int fd, PerfReading& reading) override {
        Event& event = events.at(static_cast<std::size_t>(fd));
        EXPECT_TRUE(event.open) << "read after close";
        if (event.answer == sizeof reading) reading = event.reading;
        return event.answer;
    }
    void close(int fd) noexcept override {
        EXPECT_TRUE(std::exchange(events[static_cast<std::size_t>(fd)].open, false)) << "closed twice";
    }
    std::optional<std::string> text(const std::filesystem::path& file) override {
        const auto found = files.find(file.string());
        return found == files.end() ? std::nullopt : std::optional(found->second);
    }
    std::vector<std::string> entries(const std::filesystem::path& directory) override {
        std::vector<std::string> names;
        const std::string prefix = directory.string() + "/";
        for (const auto& [path, content] : files) {
            if (!path.starts_with(prefix)) continue;
            const std::string name = path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
            if (names.empty() || names.back() != name) names.push_back(name);
        }
        return names;
    }
    bool exists(const std::filesystem::path& path) override { return text(path) || !entries(path).empty(); }
    std::vector<int> threads() override { return thread_ids; }

    void add_pmu(const std::string& name, int type, const std::string& cpumask) {
        files[pmus + name + "/type"] = std::to_string(type);
        files[pmus + name + "/cpumask"] = cpumask;
        files[pmus + name + "/format/event"] = "config:0-7";
        files[pmus + name + "/format/umask"] = "config:8-15";
    }
    void add_event(const std::string& pmu, const std::string& name, const std::string& terms,
                   const std::string& scale = "6.103515625e-5", const std::string& unit = "MiB") {
        const std::string file = pmus + pmu + "/events/" + name;
        files[file] = terms;
        if (!scale.empty()) files[file + ".scale"] = scale;
        if (!unit.empty()) files[file + ".unit"] = unit;
    }
    void add_imc(const std::string& name, int type, const std::string& cpumask = "0") {
        add_pmu(name, type, cpumask);
        add_event(name, "cas_count_read", "event=0x04,umask=0x03");
        add_event(name, "cas_count_write", "event=0x04,umask=0x0c");
    }
    void set_cpu(const std::string& vendor, int family, int model) {
        files["/proc/cpuinfo"] = "processor\t: 0\nvendor_id\t: " + vendor +
                                 "\ncpu family\t: " + std::to_string(family) + "\nmodel\t\t: " + std::to_string(model) +
                                 "\nmodel name\t: Some CPU\n\nprocessor\t: 1";
    }
    void add_umc() {
        add_pmu("amd_umc_0", 30, "0");
        files.erase(pmus + "amd_umc_0/format/umask");
        files[pmus + "amd_umc_0/format/rdwrmask"] = "config:8-9";
    }
    void add_df(int family, const std::string& event_bits, const std::string& umask_bits, const std::string& cpumask) {
        set_cpu("AuthenticAMD", family, 1);
        add_pmu("amd_df", 31, cpumask);
        files[pmus + "amd_df/format/event"] = event_bits;
        files[pmus + "amd_df/format/umask"] = umask_bits;
    }
    void add_resctrl(const std::string& group = "/sys/fs/resctrl") {
        files["/sys/fs/resctrl/tasks"] = "";
        files[group + "/mon_data/mon_L3_00/mbm_total_bytes"] = "1000";
        files[group + "/mon_data/mon_L3_01/mbm_total_bytes"] = "5000";
        files[group + "/mon_data/mon_L3_01/llc_occupancy"] = "7";
    }

    /// Lets the events of this config count on; every other event of the same scope sees only time pass.
    void count(std::uint32_t type, std::uint64_t config, std::uint64_t value, std::uint64_t enabled_ns = 10 * ms,
               std::uint64_t running_ns = 10 * ms) {
        for (Event& event : events)
            if (event.spec.type == type && event.spec.config == config) {
                event.reading.value += value;
                event.reading.enabled_ns += enabled_ns;
                event.reading.running_ns += running_ns;
            }
    }
    void count_core(std::uint64_t cycles, std::uint64_t instructions) {
        count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cycles);
        count(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, instructions);
    }
    bool all_closed() const {
        for (const Event& event : events)
            if (event.open) return false;
        return true;
    }
};

constexpr std::uint64_t imc_read = 0x0304, imc_write = 0x0c04;

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

TEST(HostCountersLadder, AVirtualMachineWithNothingSaysSoOnEveryRung) {
    FakeSystem system;
    system.refuse = [](const PerfEventSpec&) { return ENOENT; };
    HostCounters counters = HostCounters::open(system);
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_THAT(counters.why_not(),
                ElementsAre(HasSubstr("uncore_imc: no uncore_imc in"), HasSubstr("amd_umc, amd_df: no amd_umc in"),
                            "resctrl: this CPU or kernel has none", HasSubstr("last-level-cache misses: no event"),
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

TEST(HostCountersReasons, NameTheSettingThatForbidsMemoryControllers) {
    FakeSystem system;
    system.add_imc("uncore_imc_0", 20);
    system.files[paranoid] = "2";
    system.refuse = [](const PerfEventSpec& spec) { return spec.type == 20 ? EACCES : 0; };
    EXPECT_EQ(HostCounters::open(system).why_not().at(0),
              "uncore_imc: perf_event_paranoid is 2: kbench needs 0 or less, or CAP_PERFMON, to count memory "
              "controllers; fix: sysctl kernel.perf_event_paranoid=0");
}

TEST(HostCountersReasons, NameTheSettingThatForbidsOnesOwnThreads) {
    FakeSystem system;
    system.files[paranoid] = "4";
    system.refuse = [](const PerfEventSpec&) { return EPERM; };
    const HostCounters counters = HostCounters::open(system);
    const std::string reason =
        "perf_event_paranoid is 4: kbench needs 2 or less, or CAP_PERFMON, to count its own threads; fix: sysctl "
        "kernel.perf_event_paranoid=2";
    EXPECT_EQ(counters.why_not().back(), "core counters: " + reason);
    EXPECT_EQ(counters.why_not().at(3), "last-level-cache misses: " + reason);
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
        system.refuse = [error = error](const PerfEventSpec&) { return error; };
        EXPECT_THAT(HostCounters::open(system).why_not().back(), HasSubstr("core counters: " + reason));
    }
}

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

TEST(HostCountersReasons, RefuseTwoKindsOfCore) {
    FakeSystem system;
    system.files[pmus + "cpu_core/type"] = "4";
    system.files[pmus + "cpu_atom/type"] = "10";
    HostCounters counters = HostCounters::open(system);
    EXPECT_THAT(counters.why_not().back(), HasSubstr("core counters: this CPU has two kinds of core"));
    EXPECT_EQ(counters.traffic_source(), "");
    EXPECT_THAT(system.events, IsEmpty());
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
    EXPECT_EQ(counters.traffic_source().empty(), counters.why_not().size() >= 4);
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
