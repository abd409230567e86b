// A machine of made-up files and counters, on which the tests of perf.h open theirs.
#pragma once

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/profile/perf.h"

namespace kbench {

inline constexpr std::uint64_t ms = 1'000'000;  // in ns
inline const std::string pmus = "/sys/bus/event_source/devices/";

/// A machine that is made of files and of a rule for each perf_event_open. An Intel CPU without memory controllers at
/// first.
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

    FakeSystem() { set_cpu("GenuineIntel", 6, 106); }

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
    /// An AMD CPU with counters of memory that kbench does not read.
    void make_amd() {
        set_cpu("AuthenticAMD", 25, 1);
        add_pmu("amd_umc_0", 30, "0");
        add_pmu("amd_df", 31, "0");
        files["/sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"] = "1000";
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

/// Configs of the events that FakeSystem::add_imc() names.
inline constexpr std::uint64_t imc_read = 0x0304, imc_write = 0x0c04;

}  // namespace kbench
