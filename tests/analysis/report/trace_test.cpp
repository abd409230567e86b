// trace.json: that viewers can nest what it holds, that no track is missing without a word, that times are those of the
// result.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/report/trace_timeline.h"
#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsSupersetOf;

/// As Perfetto reads a time: cut to whole nanoseconds.
std::int64_t ns(const json& us) { return static_cast<std::int64_t>(us.get<double>() * 1000); }

struct Track {
    std::string process, name;
    std::vector<json> slices;
};

struct Trace {
    json all;
    std::map<int, std::string> processes;
    std::map<std::tuple<int, int>, Track> tracks;
    struct Sample {
        json ts, value;
    };
    std::map<std::string, std::map<std::string, std::vector<Sample>>> counters;  ///< by process and name

    const Track& track(const std::string& process, const std::string& name) const {
        for (const auto& [id, one] : tracks)
            if (one.process == process && one.name == name) return one;
        throw std::out_of_range(process + " has no track " + name);
    }
    std::set<std::string> counter_names(const std::string& process) const {
        std::set<std::string> names;
        if (counters.contains(process))
            for (const auto& [name, samples] : counters.at(process)) names.insert(name);
        return names;
    }
};

Trace parse(const std::string& text) {
    Trace trace{json::parse(text), {}, {}, {}};
    for (const json& event : trace.all.at("traceEvents")) {
        const std::string phase = event.at("ph"), name = event.at("name");
        const int pid = event.at("pid"), tid = event.at("tid");
        if (phase == "M" && name == "process_name") trace.processes[pid] = event.at("args").at("name");
        if (phase == "M" && name == "thread_name")
            trace.tracks[{pid, tid}] = {trace.processes.at(pid), event.at("args").at("name"), {}};
        if (phase == "X") trace.tracks.at({pid, tid}).slices.push_back(event);
        if (phase != "C") continue;
        for (const auto& [counter, value] : event.at("args").items())
            trace.counters[trace.processes.at(pid)][counter].push_back({event.at("ts"), value});
    }
    return trace;
}

/// What is wrong with the nesting of a track, empty where nothing is. Slices of the same start nest as they stand.
std::string misnested(const Track& track) {
    std::vector<std::int64_t> open;  // ends of the slices around
    std::int64_t last_start = std::numeric_limits<std::int64_t>::min();
    for (const json& slice : track.slices) {
        const std::int64_t start = ns(slice.at("ts")), end = start + ns(slice.at("dur"));
        if (start < last_start) return slice.dump() + " stands before one that begins earlier";
        if (end < start) return slice.dump() + " ends before it begins";
        while (!open.empty() && open.back() <= start) open.pop_back();
        if (!open.empty() && end > open.back()) return slice.dump() + " reaches out of the one around it";
        open.push_back(end);
        last_start = start;
    }
    return {};
}

constexpr const char* gpu_name = "gpt2-large, batch 1, seq 1024, fp16, cuda";
constexpr const char* cpu_name = "gpt2-large, batch 1, seq 1024, bf16, cpu";

TEST(Trace, TheCheckerSeesAnOverlap) {
    const auto track = [](std::vector<std::pair<double, double>> slices) {
        Track one;
        for (const auto& [ts, dur] : slices) one.slices.push_back({{"ts", ts}, {"dur", dur}});
        return one;
    };
    EXPECT_EQ(misnested(track({{0, 10}, {0, 4}, {4, 6}, {10, 1}})), "");
    EXPECT_THAT(misnested(track({{0, 10}, {4, 6.001}})), HasSubstr("reaches out"));
    EXPECT_THAT(misnested(track({{0, 10}, {10, 4}, {9.999, 1}})), HasSubstr("earlier"));
}

TEST(Trace, MatchesTheGoldenFile) {
    Result result = example::profiled_result();
    result.points.erase(result.points.begin() + 1);
    for (Point& point : result.points)
        if (point.steps.size() > 2) point.steps.resize(2);
    expect_golden("trace.json", write_trace(result));
}

TEST(Trace, EverySliceNestsOnItsTrack) {
    for (const Result& result : {example::result(), example::profiled_result()}) {
        const Trace trace = parse(write_trace(result));
        EXPECT_EQ(trace.all.at("displayTimeUnit"), "ns");
        EXPECT_EQ(trace.processes.size(), 6u) << "a forward and its conditions for each of three points";
        for (const auto& [id, track] : trace.tracks) EXPECT_EQ(misnested(track), "") << track.process << track.name;
    }
}

/// The profiled result with what `--metrics core,speed-of-light,l2_hit_rate` counts.
Result counted_result() {
    Result result = example::profiled_result();
    for (Point& point : result.points) {
        if (point.counters.metrics.empty()) continue;
        point.counters.requested = {"core", "l2_hit_rate"};
        for (const char* metric : {"memory_throughput", "sm_throughput", "achieved_occupancy", "dram_read_bytes",
                                   "dram_write_bytes", "l2_hit_rate"})
            point.counters.metrics.push_back({metric, "", "", Origin::measured, ""});
        for (StepResult& step : point.steps)
            step.counters = {{"memory_throughput", 71}, {"sm_throughput", 12},       {"achieved_occupancy", 24},
                             {"dram_read_bytes", 3e6},  {"dram_write_bytes", 1.5e6}, {"l2_hit_rate", 55}};
    }
    return result;
}

TEST(Trace, ACountedPointHasEveryTrack) {
    const Result result = counted_result();
    const Trace trace = parse(write_trace(result));
    for (const char* name : {"layer", "step", "kernel", "copies"})
        EXPECT_FALSE(trace.track(gpu_name, name).slices.empty()) << name;
    EXPECT_EQ(trace.counter_names(gpu_name),
              (std::set<std::string>{"Memory %", "Compute %", "theoretical occupancy %", "achieved occupancy %",
                                     "DRAM GB/s", "l2_hit_rate"}));
    EXPECT_EQ(trace.counter_names(std::string("conditions of the timing run: ") + gpu_name),
              (std::set<std::string>{"SM clock MHz", "memory clock MHz", "power W", "temperature C"}));

    const Point& point = result.points[0];
    const std::vector<Trace::Sample>& dram = trace.counters.at(gpu_name).at("DRAM GB/s");
    const std::vector<json>& steps = trace.track(gpu_name, "step").slices;
    ASSERT_EQ(dram.size(), point.steps.size() + 1) << "one a step, and the end";
    for (std::size_t i = 0; i < point.steps.size(); ++i) {
        const double gb_per_s = 4.5e6 / *point.steps[i].device_us() * 1e-3;
        EXPECT_EQ(dram[i].ts, steps[i].at("ts"));
        EXPECT_NEAR(dram[i].value, gb_per_s, gb_per_s * 1e-4);
    }
    EXPECT_EQ(dram.back().value, 0);
    EXPECT_EQ(trace.counters.at(gpu_name).at("Memory %").front().value, 71);
    EXPECT_EQ(trace.counters.at(gpu_name).at("Compute %").front().value, 12);
}

TEST(Trace, WithoutSpeedOfLightSharesAreDerivedFromTheRoofsAndSaySo) {
    Result result = counted_result();
    Point& point = result.points[0];
    std::erase_if(point.counters.metrics, [](const auto& metric) { return metric.name.ends_with("_throughput"); });
    for (StepResult& step : point.steps)
        std::erase_if(step.counters, [](const auto& one) { return one.first.ends_with("_throughput"); });
    const Trace trace = parse(write_trace(result));
    const auto& counters = trace.counters.at(gpu_name);
    EXPECT_FALSE(counters.contains("Memory %"));
    EXPECT_FALSE(counters.contains("Compute %"));
    const double us = *point.steps[0].device_us();
    EXPECT_NEAR(counters.at("Memory % (derived)")[0].value, 100 * 4.5e6 / us / 4150e3, 1e-3);
    EXPECT_NEAR(counters.at("Compute % (derived)")[0].value, 100 * point.steps[0].cost.flops / us / 66.1e6, 1e-3);
    EXPECT_THAT(trace.all.at("otherData").at("points")[0].at("forward").at("unavailable"), json::object());
}

TEST(Trace, ATrackWithoutDataIsAbsentAndSaysWhy) {
    Result result = example::profiled_result();
    result.points[0].steps[1].counters.clear();
    result.points[0].counters.requested.emplace_back("tensor_pipe_active");
    const Trace trace = parse(write_trace(result));
    const json& points = trace.all.at("otherData").at("points");
    const json& missing = points[0].at("forward").at("unavailable");
    for (const char* name : {"Memory %", "achieved occupancy %", "DRAM GB/s"}) {
        EXPECT_FALSE(trace.counters.at(gpu_name).contains(name)) << name;
        EXPECT_THAT(missing.at(name).get<std::string>(), HasSubstr("not counted")) << name;
    }
    EXPECT_EQ(points[0].at("forward").at("notes").at("tensor_pipe_active"), "1 of 4 steps have no value and show 0");
    EXPECT_EQ(trace.counters.at(gpu_name).at("tensor_pipe_active")[0].value, 41.5);

    EXPECT_EQ(points[2].at("conditions").at("unavailable").at("temperature C"), "no thermal zone");
    EXPECT_EQ(points[2].at("conditions").at("unavailable").at("SM clock MHz"), "the result holds the mean alone");
    EXPECT_EQ(points[2].at("forward").at("unavailable").at("theoretical occupancy %"), "no kernel was recorded");
    EXPECT_EQ(points[3].at("status"), "skipped");
    EXPECT_THAT(points[3].at("reason").get<std::string>(), HasSubstr("AVX512_FP16"));
}

TEST(Trace, BlocksContainTheirLayersAndStepsTheirKernels) {
    Result result = example::profiled_result();
    result.points.resize(1);
    const Trace trace = parse(write_trace(result));
    std::vector<std::string> names;
    for (const json& slice : trace.track(gpu_name, "layer").slices) names.push_back(slice.at("name"));
    EXPECT_THAT(names, testing::ElementsAre("wte+wpe", "h.0", "h.0.ln_1", "h.0.attn.c_attn", "h.0.attn"));
    const std::vector<json>& steps = trace.track(gpu_name, "step").slices;
    const std::vector<json>& kernels = trace.track(gpu_name, "kernel").slices;
    ASSERT_EQ(steps.size(), kernels.size()) << "one kernel a step here";
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].at("ts"), kernels[i].at("ts"));
        EXPECT_EQ(steps[i].at("dur"), kernels[i].at("dur"));
        EXPECT_TRUE(steps[i].at("args").contains("verdict") || steps[i].at("args").contains("like"));
    }
    EXPECT_EQ(steps[0].at("args").at("counters").at("tensor_pipe_active"), 41.5);
    EXPECT_EQ(kernels[0].at("args").at("grid"), json({132, 2, 1}));
    EXPECT_EQ(kernels[0].at("args").at("theoretical_occupancy_pct").at("origin"), "derived");
}

TEST(Trace, CopiesStandAroundTheForward) {
    const Trace trace = parse(write_trace(example::profiled_result()));
    const std::vector<json>& copies = trace.track(gpu_name, "copies").slices;
    const std::vector<json>& steps = trace.track(gpu_name, "step").slices;
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_LE(ns(copies[0].at("ts")) + ns(copies[0].at("dur")), ns(steps.front().at("ts")));
    EXPECT_GE(ns(copies[1].at("ts")), ns(steps.back().at("ts")) + ns(steps.back().at("dur")));
    for (const json& copy : copies) EXPECT_THAT(copy.at("name").get<std::string>(), HasSubstr("median"));
}

TEST(Trace, KernelsThatOverlapAreDrawnOneAfterTheOtherAndSaySo) {
    Result result = example::profiled_result();
    result.points[0].steps[1].kernels[0].gap_us = -0.192;
    const Trace trace = parse(write_trace(result));
    const Track& kernels = trace.track(gpu_name, "kernel");
    EXPECT_EQ(misnested(kernels), "");
    EXPECT_EQ(ns(kernels.slices[1].at("ts")), ns(kernels.slices[0].at("ts")) + ns(kernels.slices[0].at("dur")));
    EXPECT_THAT(kernels.slices[1].at("args").at("overlap").get<std::string>(), HasSubstr("192 ns"));
    EXPECT_FALSE(kernels.slices[0].at("args").contains("overlap"));
}

TEST(Trace, WithoutRecordsStepsStandOneAfterTheOtherByTheirMedians) {
    const Result result = example::profiled_result();
    const Trace trace = parse(write_trace(result));
    EXPECT_THROW(trace.track(cpu_name, "kernel"), std::out_of_range);
    std::int64_t end = 0;
    const std::vector<json>& steps = trace.track(cpu_name, "step").slices;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(ns(steps[i].at("ts")), end);
        EXPECT_EQ(ns(steps[i].at("dur")), std::llround(result.points[2].steps[i].time_us->median * 1e3));
        end += ns(steps[i].at("dur"));
    }
    const json& told = trace.all.at("otherData").at("points")[2];
    EXPECT_THAT(told.at("times").get<std::string>(), HasSubstr("no kernel was recorded"));
}

TEST(Trace, WhatBlocksRepeatStandsOnceAndIsNamed) {
    Result result = example::long_result();
    const std::string sweep = write_trace(result);
    result.points.resize(1);
    const Trace several = parse(sweep), alone = parse(write_trace(result));
    const std::string process = alone.processes.at(1);
    for (const Trace* trace : {&several, &alone})
        for (const char* name : {"step", "kernel"}) {
            const std::vector<json>&steps = trace->track(process, "step").slices,
                  &slices = trace->track(process, name).slices;
            ASSERT_EQ(slices.size(), steps.size()) << "one kernel a step here";
            std::set<std::string> described;
            for (std::size_t i = 0; i < slices.size(); ++i) {
                const json& args = slices[i].at("args");
                if (args.contains("like"))
                    EXPECT_TRUE(described.contains(args.at("like").get<std::string>())) << args;
                else
                    described.insert(fmt::format("step {}{}", i, name == std::string("kernel") ? ", kernel 0" : ""));
            }
            EXPECT_LT(described.size(), 30u) << "36 blocks are alike";
        }
    const json &last = alone.track(process, "step").slices.at(250).at("args"),
               &short_last = several.track(process, "step").slices.at(250).at("args");
    EXPECT_EQ(last.at("counters").size(), result.points[0].steps[250].counters.size());
    EXPECT_FALSE(short_last.contains("counters")) << "of a sweep only those of the first block";
}

TEST(Trace, ALongSweepIsSmallAndHasSixTracksAPoint) {
    Result result = example::long_result();
    for (Point& point : result.points) point.counters.requested = {"a set"};
    const std::string text = write_trace(result);
    EXPECT_LE(text.size(), 3'000'000u) << "18 points";
    const Trace trace = parse(text);
    EXPECT_EQ(trace.counter_names(trace.processes.at(1)).size(), 6u);
}

TEST(Trace, NamesOfAnyBytesAreValidJson) {
    const std::string hostile = "</script>\"\\\n\x01 \xff\xfe \xe2\x82 | `x`";
    Result result = counted_result();
    Point& point = result.points[0];
    point.set("model", hostile);
    point.steps[0].layer = point.steps[0].provider = point.steps[0].kernels[0].name =
        point.steps[0].kernels[0].short_name = point.counters.metrics[0].name = hostile;
    point.steps[0].counters[hostile] = std::numeric_limits<double>::quiet_NaN();
    point.counters.requested.push_back(hostile);
    point.steps[1].kernels[0].time_us = 1e300;
    point.steps[2].kernels[0].gap_us = std::numeric_limits<double>::infinity();
    const Trace trace = parse(write_trace(result));
    for (const auto& [id, track] : trace.tracks) EXPECT_EQ(misnested(track), "") << track.process << track.name;
    EXPECT_THAT(trace.processes.at(1), HasSubstr("</script>\"\\\n\x01"));
}

TEST(Trace, BlocksEndAtTheFirstNumber) {
    EXPECT_EQ(block_of("h.12.attn.c_attn"), "h.12");
    EXPECT_EQ(block_of("h.12.attn"), "h.12");
    EXPECT_EQ(block_of("rnns.2"), "") << "a layer of its own";
    EXPECT_EQ(block_of("layer4.0.conv1"), "layer4.0");
    EXPECT_EQ(block_of("lm_head"), "");
    EXPECT_EQ(block_of("ln_1.bias"), "");
    EXPECT_EQ(block_of(""), "");
    EXPECT_EQ(block_of("..."), "");
}

TEST(Trace, OfACommittedResultNestsAndAddsUpToTheRecordedForwards) {
    const Result result = example::committed_result("h200-2026-11-21/executed/result.json.gz");
    const Trace trace = parse(write_trace(result));
    for (const auto& [id, track] : trace.tracks) EXPECT_EQ(misnested(track), "") << track.process << track.name;
    int process = 1;
    for (const Point& point : result.points) {
        std::int64_t sum = 0;
        for (const json& kernel : trace.track(trace.processes.at(process), "kernel").slices)
            sum += ns(kernel.at("dur"));
        EXPECT_EQ(sum, std::llround(point.activity.kernels_ms * 1e6)) << trace.processes.at(process);
        EXPECT_THAT(trace.counter_names(trace.processes.at(process)),
                    IsSupersetOf({"theoretical occupancy %", "achieved occupancy %", "DRAM GB/s"}));
        process += 2;
    }
    EXPECT_EQ(process, 11) << "five points with two processes each";
}

}  // namespace
}  // namespace kbench
