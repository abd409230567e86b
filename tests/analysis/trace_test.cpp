// trace.json: that viewers can nest what it holds, that no track is missing without a word, that times are those of the
// result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analysis/result_json.h"
#include "analysis/write/trace_timeline.h"
#include "analysis/write/writers.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

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
    std::map<std::string, std::map<std::string, std::vector<json>>> counters;  ///< by process and name

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
        if (phase == "C") trace.counters[trace.processes.at(pid)][name].push_back(event);
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

TEST(Trace, AProfiledPointHasEveryTrack) {
    const Trace trace = parse(write_trace(example::profiled_result()));
    for (const char* name : {"layer", "step", "kernel", "copies"})
        EXPECT_FALSE(trace.track(gpu_name, name).slices.empty()) << name;
    EXPECT_EQ(trace.counter_names(gpu_name), (std::set<std::string>{"Compute % (derived)", "theoretical occupancy %"}));
    EXPECT_EQ(trace.counter_names(std::string("conditions of the timing run: ") + gpu_name),
              (std::set<std::string>{"SM clock MHz", "memory clock MHz", "power W", "temperature C"}));
}

}  // namespace
}  // namespace kbench
