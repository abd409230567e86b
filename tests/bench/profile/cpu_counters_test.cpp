// Counters of ranges on a CPU with a fake of the kernel's interface: measured where it counts, else what the work must
// move.
#include "bench/profile/cpu_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"
#include "tests/bench/profile/fake_perf_system.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// A machine with core counters that rise with every reading, and nothing else.
class CorePmuOnly final : public PerfSystem {
  public:
    bool refuses = false;

    int open(const PerfEventSpec&, int, int) override {
        if (refuses) return -ENOENT;
        return next_++;
    }
    long read(int, PerfReading& reading) override {
        now_ += 1000;
        reading = {now_, now_, now_};
        return sizeof reading;
    }
    void close(int) noexcept override {}
    std::optional<std::string> text(const std::filesystem::path& file) override {
        // The core PMU as an Intel virtual machine shows it.
        if (file == "/sys/bus/event_source/devices/cpu/type") return "4";
        return std::nullopt;
    }
    std::vector<std::string> entries(const std::filesystem::path&) override { return {}; }
    bool exists(const std::filesystem::path& path) override { return path == "/sys/bus/event_source/devices/cpu"; }
    std::vector<int> threads() override { return {1}; }

  private:
    int next_ = 3;
    std::uint64_t now_ = 0;
};

/// Two ranges that note that they ran.
std::vector<WorkRange> two_ranges(std::vector<int>* ran = nullptr) {
    const auto note = [ran](int range) {
        if (ran != nullptr) ran->push_back(range);
    };
    std::vector<WorkRange> ranges(2);
    ranges[0].enqueue = [note] { note(0); };
    ranges[0].least_read_bytes = 1000;
    ranges[0].least_written_bytes = 64;
    ranges[1].enqueue = [note] { note(1); };
    ranges[1].least_read_bytes = 10;
    return ranges;
}

const CountedMetric& find(const RangeCounters& counters, std::string_view name) {
    for (const CountedMetric& metric : counters.run.metrics)
        if (metric.name == name) return metric;
    throw std::out_of_range(std::string(name));
}

TEST(CpuCounters, WithoutHardwareTrafficIsTheLeastAndSaysSo) {
    CorePmuOnly perf;
    perf.refuses = true;
    std::vector<int> ran;
    const RangeCounters counters = count_on_cpu(perf, two_ranges(&ran));
    EXPECT_EQ(ran, (std::vector<int>{0, 1}));
    ASSERT_EQ(counters.by_range.size(), 2u);
    EXPECT_EQ(counters.by_range[0].at("dram_read_bytes"), 1064) << "written lines are read first";
    EXPECT_EQ(counters.by_range[0].at("dram_write_bytes"), 64);
    EXPECT_EQ(counters.by_range[1].at("dram_read_bytes"), 10);
    EXPECT_FALSE(counters.by_range[0].contains("cycles"));
    EXPECT_EQ(find(counters, "dram_read_bytes").origin, Origin::estimated);
    EXPECT_THAT(find(counters, "dram_read_bytes").reason, HasSubstr("no hardware counter of memory traffic"));
    EXPECT_EQ(find(counters, "cycles").origin, Origin::unavailable);
    EXPECT_FALSE(find(counters, "cycles").reason.empty());
}

TEST(CpuCounters, OnACpuWhoseMemoryCountersAreNotSupportedTrafficIsEstimated) {
    FakeSystem amd;
    amd.make_amd();
    const RangeCounters counters = count_on_cpu(amd, two_ranges());
    for (const char* name : {"dram_read_bytes", "dram_write_bytes"}) {
        EXPECT_EQ(find(counters, name).origin, Origin::estimated);
        EXPECT_THAT(find(counters, name).source, HasSubstr("cost model"));
        EXPECT_THAT(find(counters, name).reason, HasSubstr("this CPU's memory counters are not supported"));
    }
    EXPECT_EQ(counters.by_range[0].at("dram_read_bytes"), 1064);
    EXPECT_EQ(counters.by_range[0].at("dram_write_bytes"), 64);
}

TEST(CpuCounters, CoreCountersAreMeasured) {
    CorePmuOnly perf;
    const RangeCounters counters = count_on_cpu(perf, two_ranges());
    EXPECT_EQ(find(counters, "cycles").origin, Origin::measured) << find(counters, "cycles").reason;
    EXPECT_GT(counters.by_range[0].at("cycles"), 0);
    EXPECT_GT(counters.by_range[1].at("ipc"), 0);
}

TEST(CpuCounters, RefusesWhatACpuDoesNotHave) {
    const auto refusal = [](const CounterRequest& request) -> std::string {
        try {
            check_cpu_request(request);
            return "accepted";
        } catch (const UsageError& error) {
            return error.what();
        }
    };
    EXPECT_EQ(refusal({}), "accepted");
    EXPECT_EQ(refusal({{"full"}, {}, true}), "accepted");
    EXPECT_THAT(refusal({{"tensor"}, {}, true}), HasSubstr("--counters 'tensor': a CPU has the set core"));
    EXPECT_THAT(refusal({{}, {"dram__bytes.sum"}, true}), HasSubstr("this runs on the CPU"));
}

}  // namespace
}  // namespace kbench
