// Ceilings are measured once for a device, its driver and clocks, and a damaged memory of them costs a warning.
#include "bench/measure/machine/ceilings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/machine/ceilings.h"
#include "analysis/result/result_json.h"
#include "bench/command/ceilings_options.h"
#include "kbench/error.h"
#include "tests/bench/refusal.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Environment gpu_environment() {
    Environment environment;
    environment.build_type = "Release";
    environment.host.cpu = "A CPU";
    GpuInfo gpu;
    gpu.name = "A GPU";
    gpu.uuid = "GPU-1";
    gpu.driver = "570.1";
    gpu.max_sm_clock_mhz = Quantity::measured(1980);
    gpu.max_memory_clock_mhz = Quantity::measured(2619);
    gpu.power_limit_w = Quantity::measured(700);
    environment.gpu = gpu;
    return environment;
}

class State final : public MachineState {
  public:
    std::uint64_t mask = 0;
    double waited_s = 0;  ///< by one reading more than by the one before; below 0 where threads do not tell
    MachineReading read() override {
        MachineReading reading;
        reading.throttle_mask = mask;
        return reading;
    }
    std::uint64_t throttle_mask() override { return mask; }
    std::string throttle_unavailable() const override { return {}; }
    std::optional<CpuCounts> cpu_counts() override {
        if (waited_s < 0) return std::nullopt;
        CpuCounts counts;
        counts.at_s = ++asked_;
        counts.threads[1] = {asked_, asked_ * waited_s, 0};
        return counts;
    }

  private:
    double asked_ = 0;
};

/// A device that counts how often it is measured: its ceiling is the number of the measurement.
class CeilingsOfADevice : public testing::Test {
  protected:
    CeilingSource source() {
        return {"cuda", 1,
                [this](double seconds) {
                    seconds_ = seconds;
                    Ceiling ceiling;
                    ceiling.name = "dram_read";
                    ceiling.value = Quantity::measured(++measured_);
                    ceiling.low = 0.5;
                    ceiling.high = 1.5;
                    ceiling.clock_mhz = 1755;
                    Ceiling none;
                    none.name = "fp64_tensor";
                    none.value = Quantity::unavailable("no such unit");
                    return std::vector{ceiling, none};
                },
                &state_};
    }
    CeilingRun obtain(CeilingPolicy policy = CeilingPolicy::automatic) {
        warnings_.clear();
        return obtain_ceilings(source(), environment_, {policy, 2}, file(), warnings_);
    }
    std::filesystem::path file() const { return ceiling_file(directory_ / "cache"); }
    static double value(const CeilingRun& run) { return run.ceilings.at(0).value.value.value(); }

    TemporaryDirectory directory_;
    Environment environment_ = gpu_environment();
    State state_;
    int measured_ = 0;
    double seconds_ = 0;
    std::vector<std::string> warnings_;
};

TEST(CeilingSource, MeasuresWithNothingAttached) {
    OtherProfiler profiler;
    const CeilingSource source = ceiling_source(cpu(), profiler);
    EXPECT_EQ(profiler.detached, 0);
    EXPECT_THAT(source.measure(0.01), testing::Not(IsEmpty()));
    EXPECT_EQ(profiler.detached, 1);
}

TEST_F(CeilingsOfADevice, IsMeasuredOnceAndRememberedWithEveryField) {
    const CeilingRun first = obtain();
    EXPECT_EQ(seconds_, 2);
    EXPECT_EQ(first.device, "A GPU");
    EXPECT_EQ(first.driver, "570.1");
    EXPECT_THAT(first.measured_at, testing::Not(IsEmpty()));
    const CeilingRun second = obtain();
    EXPECT_EQ(measured_, 1);
    EXPECT_EQ(ceilings_to_json(second), ceilings_to_json(first));
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CeilingsOfADevice, IsMeasuredAgainWhenAskedAndThatIsRemembered) {
    obtain();
    EXPECT_EQ(value(obtain(CeilingPolicy::measure)), 2);
    EXPECT_EQ(value(obtain()), 2);
    EXPECT_EQ(measured_, 2);
}

/// One timed step that moved `bytes` in a microsecond, as counted; 1000 bytes a microsecond are 1 GB/s.
Result result_with_step(const CeilingRun& ceilings, double bytes) {
    Result result;
    result.environment = gpu_environment();
    result.ceilings = ceilings;
    Point& point = result.points.emplace_back();
    point.set("backend", "cuda");
    point.status = PointStatus::done;
    point.end_to_end.emplace().latency.summary_ms.median = 0.001;
    StepResult& step = point.steps.emplace_back();
    step.layer = "copy";
    step.time_us.emplace().mean = 1;
    step.time_us->median = 1;
    step.counters = {{"dram_read_bytes", bytes}, {"dram_write_bytes", 0}};
    return result;
}

TEST_F(CeilingsOfADevice, IsMeasuredAgainWhenAStepBeatsItsRoof) {
    Result within = result_with_step(obtain(), 1010);  // 1 % above the first measurement's 1 GB/s
    EXPECT_FALSE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), within));
    EXPECT_EQ(measured_, 1);
    Result mended = result_with_step(obtain(), 1900);  // the second measurement says 2 GB/s
    EXPECT_TRUE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), mended));
    EXPECT_EQ(value(mended.ceilings), 2);
    EXPECT_THAT(mended.warnings, IsEmpty());
    EXPECT_EQ(value(obtain()), 2) << "remembered";
    Result later = result_with_step(obtain(), 3900);  // the third says 3, the fourth 4
    EXPECT_TRUE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), later));
    EXPECT_EQ(value(later.ceilings), 4);
    EXPECT_THAT(later.warnings, IsEmpty());
    EXPECT_EQ(measured_, 4) << "and no more often than needed";
    Result above = result_with_step(obtain(), 10400);  // four more, the last of which says 8
    EXPECT_TRUE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), above));
    EXPECT_THAT(above.warnings,
                ElementsAre(HasSubstr("step 0 copy ran 30 % above the roof dram_read, measured 5 times")));
}

TEST_F(CeilingsOfADevice, KeepsTheHigherOfTwoMeasurements) {
    CeilingRun first = obtain();
    first.ceilings[0].value = Quantity::measured(5);
    Result result = result_with_step(first, 6000);
    EXPECT_TRUE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), result));
    EXPECT_EQ(value(result.ceilings), 5);
}

TEST_F(CeilingsOfADevice, WhatAThrottledMachineGaveTheSecondTimeIsNotRemembered) {
    Result result = result_with_step(obtain(), 1900);
    state_.mask = 0x40;  // hw_thermal_slowdown
    EXPECT_TRUE(mend_low_ceilings(source(), {CeilingPolicy::automatic, 2}, file(), result));
    EXPECT_EQ(value(result.ceilings), 2);
    state_.mask = 0;
    EXPECT_EQ(value(obtain()), 1) << "the first measurement's";
}

TEST_F(CeilingsOfADevice, IsNotMeasuredWhereNoneAreWanted) {
    const CeilingRun run = obtain(CeilingPolicy::none);
    EXPECT_EQ(measured_, 0);
    EXPECT_THAT(run.unavailable, HasSubstr("--ceilings none"));
    EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(CeilingsOfADevice, IsAnotherOneWithAnotherDriverClockOrProbe) {
    const std::vector<void (*)(Environment&, CeilingSource&)> changes = {
        [](Environment&, CeilingSource&) {},
        [](Environment& e, CeilingSource&) { e.gpu->driver = "580.2"; },
        [](Environment& e, CeilingSource&) { e.gpu->name = "another GPU"; },
        [](Environment& e, CeilingSource&) { e.gpu->uuid = "GPU-2"; },
        [](Environment& e, CeilingSource&) { e.gpu->multiprocessors_of_device = 132; },
        [](Environment& e, CeilingSource&) { e.gpu->max_sm_clock_mhz = Quantity::measured(1410); },
        [](Environment& e, CeilingSource&) { e.gpu->max_memory_clock_mhz = Quantity::unavailable("no permission"); },
        [](Environment& e, CeilingSource&) { e.gpu->power_limit_w = Quantity::measured(500); },
        [](Environment& e, CeilingSource&) { e.build_type = "Debug"; },
        [](Environment&, CeilingSource& s) { s.probe_version = 2; },
        [](Environment&, CeilingSource& s) { s.backend = "cpu"; },
    };
    std::set<std::string> keys;
    for (const auto& change : changes) {
        Environment environment = gpu_environment();
        CeilingSource device = source();
        change(environment, device);
        EXPECT_TRUE(keys.insert(ceiling_key(device, environment)).second) << ceiling_key(device, environment);
    }
    obtain();
    environment_.gpu->driver = "580.2";
    EXPECT_EQ(value(obtain()), 2);
    environment_.gpu->driver = "570.1";
    EXPECT_EQ(value(obtain()), 1) << "both are remembered";
    EXPECT_EQ(measured_, 2);
}

/// A CPU of two threads whose two triads are `values[n]` in measurement n; the last of them from then on.
class RoofsOfTwoCores : public testing::Test {
  protected:
    CeilingRun obtain(std::vector<std::pair<double, double>> values) {
        const CeilingSource source{"cpu", 1,
                                   [this, values](double) {
                                       const std::size_t n =
                                           std::min(values.size() - 1, static_cast<std::size_t>(measured_++));
                                       Ceiling all, one;
                                       all.name = "cpu_dram_triad";
                                       all.value = Quantity::measured(values[n].first);
                                       all.threads = 2;
                                       one.name = "cpu_dram_triad_one_core";
                                       one.value = Quantity::measured(values[n].second);
                                       one.threads = 1;
                                       return std::vector{all, one};
                                   },
                                   nullptr};
        Environment environment;
        environment.host.threads = 2;
        measured_ = 0;
        warnings_.clear();
        return obtain_ceilings(source, environment, {CeilingPolicy::automatic, 2}, file(), warnings_);
    }
    std::filesystem::path file() const { return directory_ / "ceilings.json"; }

    TemporaryDirectory directory_;
    int measured_ = 0;
    std::vector<std::string> warnings_;
};

TEST_F(RoofsOfTwoCores, SayHowManyThreadsMadeThem) {
    const CeilingRun run = obtain({{40, 25}});
    EXPECT_EQ(measured_, 1);
    EXPECT_EQ(run.threads, 2);
    EXPECT_EQ(run.ceilings[0].threads, 2);
    EXPECT_THAT(warnings_, IsEmpty());
    EXPECT_EQ(obtain({{80, 25}}).ceilings[0].value.value, 40) << "remembered";
}

TEST_F(RoofsOfTwoCores, ThatContradictEachOtherAreMeasuredAgain) {
    const CeilingRun run = obtain({{12, 25}, {38, 20}});
    EXPECT_EQ(measured_, 2);
    EXPECT_EQ(run.ceilings[0].value.value, 38);
    EXPECT_EQ(run.ceilings[1].value.value, 25) << "the better of both";
    EXPECT_THAT(warnings_, IsEmpty());
    EXPECT_TRUE(std::filesystem::exists(file()));
}

TEST_F(RoofsOfTwoCores, ThatStillDoAreNoRoofsAndNotRemembered) {
    const CeilingRun run = obtain({{83, 25.3}});
    EXPECT_EQ(measured_, 2) << "once more, not for ever";
    EXPECT_FALSE(run.ceilings[0].value.value);
    EXPECT_THAT(run.ceilings[0].value.reason, HasSubstr("83 GB/s by 2 threads is more than 2 times the 25.3 GB/s"));
    EXPECT_THAT(warnings_, ElementsAre(testing::StartsWith("no roof cpu_dram_triad: 83 GB/s by 2 threads")));
    EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST(CpuKey, NamesModelCoresThreadsAndIsa) {
    const CeilingSource source{"cpu", 1, {}, nullptr};
    Environment environment;
    environment.host.cpu = "A CPU";
    std::set<std::string> keys = {ceiling_key(source, environment)};
    const auto differs = [&] { return keys.insert(ceiling_key(source, environment)).second; };
    environment.host.physical_cores = 16;
    EXPECT_TRUE(differs());
    environment.host.threads = 8;
    EXPECT_TRUE(differs());
    environment.host.pinned = true;
    EXPECT_TRUE(differs());
    environment.host.cpu_quota = 0.5;
    EXPECT_TRUE(differs());
    environment.host.isa = {"avx2"};
    EXPECT_TRUE(differs());
    environment.host.governor = "powersave";
    EXPECT_TRUE(differs());
    environment.host.cpu = "another CPU";
    EXPECT_TRUE(differs());
    environment.gpu = gpu_environment().gpu;
    EXPECT_FALSE(differs()) << "a GPU beside it changes nothing";
}

TEST_F(CeilingsOfADevice, ADamagedFileCostsAWarningAndIsReplaced) {
    const std::string good = R"({"schema": "kbench.ceilings/1", "machines": {"k": )";
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("[]"), std::string("{\"schema\": 1}"),
          std::string(R"({"schema": "kbench.result/4", "machines": {}})"),
          std::string(R"({"schema": "kbench.ceilings/1"})"), good + "7}}",
          good + R"({"unavailable": "", "device": "", "driver": "", "measured_at": "", "seconds": 0, "ceilings": [
                     {"name": "warp_speed", "value": {"value": 1, "origin": "measured", "reason": ""}, "low": 1,
                      "high": 1, "clock_mhz": 0,
                      "datasheet": {"value": null, "origin": "unavailable", "reason": ""}}]}}})"}) {
        directory_.write("cache/ceilings.json", text);
        measured_ = 0;
        obtain();
        EXPECT_EQ(measured_, 1) << text;
        EXPECT_THAT(warnings_, ElementsAre(HasSubstr("ceilings.json ignored: "))) << text;
        obtain();
        EXPECT_EQ(measured_, 1) << "replaced: " << text;
        EXPECT_THAT(warnings_, IsEmpty());
    }
}

TEST_F(CeilingsOfADevice, ThatWasTooHotIsNotRemembered) {
    state_.mask = 0x040;
    const CeilingRun run = obtain();
    EXPECT_EQ(value(run), 1);
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("hw_thermal_slowdown")));
    EXPECT_FALSE(std::filesystem::exists(file()));
    state_.mask = 0x004;  // a power cap is how the machine runs
    obtain();
    EXPECT_TRUE(std::filesystem::exists(file()));
    EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CeilingsOfADevice, ThatLackedItsCpusIsNotRemembered) {
    state_.waited_s = 0.4;
    const CeilingRun run = obtain();
    EXPECT_NEAR(run.lacked_share.value(), 0.4, 1e-9);
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("this process lacked its CPUs for 40 % of the time: they may be")));
    EXPECT_FALSE(std::filesystem::exists(file()));
    state_.waited_s = 0.01;
    EXPECT_NEAR(obtain().lacked_share.value(), 0.01, 1e-9);
    EXPECT_TRUE(std::filesystem::exists(file()));
    EXPECT_THAT(warnings_, IsEmpty());
    EXPECT_NEAR(obtain().lacked_share.value(), 0.01, 1e-9) << "as remembered";
    state_.waited_s = -1;
    EXPECT_FALSE(obtain(CeilingPolicy::measure).lacked_share);
}

TEST_F(CeilingsOfADevice, ThatCannotBeMeasuredIsNotRememberedAndSaysWhy) {
    CeilingSource broken = source();
    broken.measure = [](double) -> std::vector<Ceiling> { throw DeviceError("the device fell off the bus"); };
    const CeilingRun run = obtain_ceilings(broken, environment_, {}, file(), warnings_);
    EXPECT_EQ(run.unavailable, "the device fell off the bus");
    EXPECT_THAT(run.ceilings, IsEmpty());
    broken.measure = [](double) { return std::vector<Ceiling>(); };
    EXPECT_THAT(obtain_ceilings(broken, environment_, {}, file(), warnings_).unavailable, HasSubstr("measures none"));
    EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(CeilingsOfADevice, IsUsedThoughItsCeilingsCannotBeWritten) {
    const std::filesystem::path below_a_file = directory_.write("taken", "x") / "ceilings.json";
    const CeilingRun run = obtain_ceilings(source(), environment_, {}, below_a_file, warnings_);
    EXPECT_EQ(value(run), 1);
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("measured again next time")));
}

TEST(CeilingsOptions, AreParsedAndMistakesSayWhatWouldBeRight) {
    const CeilingsRequest r =
        parse_ceilings_command({"--backend", "cpu", "--remeasure", "--seconds", "1.5", "--format", "markdown"}).request;
    EXPECT_EQ(r.device.backend, "cpu");
    EXPECT_EQ(r.ceilings.policy, CeilingPolicy::measure);
    EXPECT_EQ(r.ceilings.seconds, 1.5);
    EXPECT_EQ(r.format, CeilingFormat::markdown);
    EXPECT_THAT(refusal_of([] { parse_ceilings_command({"--backend", "tpu"}); }), HasSubstr("auto, cuda, cpu"));
    EXPECT_THAT(refusal_of([] { parse_ceilings_command({"file"}); }), HasSubstr("kbench ceilings --help"));
}

TEST(CeilingsOptions, TheReferenceInDocsIsTheTables) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/docs/ceilings.md";
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << ceilings_markdown();
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), ceilings_markdown()) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

}  // namespace
}  // namespace kbench
