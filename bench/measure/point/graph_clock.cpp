// The SMs' clock inside the graph: the same forward, captured again with readings of the clock between steps.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "analysis/explain/causes.h"
#include "analysis/facts/point_facts.h"
#include "bench/measure/point/clock_places.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/profile/clock_marks.h"
#include "bench/profile/clock_readings.h"
#include "kbench/error.h"

namespace kbench {
namespace {

constexpr std::size_t most_clock_graphs = 8;
/// Launches of each graph that are worth more than another graph.
constexpr double launches_before_graphs = 3;
/// All launches of an interval together: the timer, which may tick only once a microsecond, is then known to 0.5 %.
constexpr double interval_sum_us = 220;

struct MarkedGraph {
    std::vector<ClockInterval> intervals;
    std::vector<std::size_t> places;
    std::unique_ptr<ClockMarks> marks;
    std::unique_ptr<DeviceGraph> graph;
};

std::vector<StepToClock> steps_to_clock(const Point& point) {
    std::vector<StepToClock> steps;
    for (const StepResult& step : point.steps)
        steps.push_back({fmt::format("{} {} {}", layer_group(step.layer), step.op, name(step.direction)),
                         step.device_us().value_or(0)});
    return steps;
}

MarkedGraph marked_graph(const PartContext& at, std::vector<ClockInterval> intervals, int launches) {
    MarkedGraph marked{std::move(intervals), {}, nullptr, nullptr};
    marked.places = places_of(marked.intervals);
    marked.marks = make_clock_marks(at.device, static_cast<int>(marked.places.size()), launches);
    const std::vector<WorkRange> ranges = ranges_of(at.plan, at.device);
    marked.graph = at.device.capture([&] {
        std::size_t place = 0;
        for (std::size_t s = 0; s <= ranges.size(); ++s) {
            if (place < marked.places.size() && marked.places[place] == s) marked.marks->put(static_cast<int>(place++));
            if (s < ranges.size()) enqueue(ranges[s]);
        }
    });
    return marked;
}

/// Launches the plain graph and each of `marked` in turn, without a pause in which clocks could rise, so often. What a
/// place costs, microseconds, is each difference to the plain launch of its round.
Summary launch_in_turn(Device& device, DeviceGraph& plain, std::vector<MarkedGraph>& marked, int rounds) {
    struct Timed {
        std::unique_ptr<DeviceEvent> begin, end;
    };
    const auto launch = [&](DeviceGraph& graph) {
        Timed timed{device.make_event(), device.make_event()};
        timed.begin->record();
        graph.launch();
        timed.end->record();
        return timed;
    };
    std::vector<Timed> all;
    for (int round = 0; round < rounds; ++round) {
        all.push_back(launch(plain));
        for (MarkedGraph& one : marked) {
            all.push_back(launch(*one.graph));
            one.marks->keep();
        }
    }
    device.synchronize();
    const auto us = [](const Timed& timed) { return timed.end->ms_since(*timed.begin) * 1e3; };
    std::vector<double> cost_us;
    for (std::size_t first = 0; first < all.size(); first += marked.size() + 1)
        for (std::size_t g = 0; g < marked.size(); ++g)
            cost_us.push_back((us(all[first + 1 + g]) - us(all[first])) / static_cast<double>(marked[g].places.size()));
    return summarise(cost_us);
}

std::vector<ReadInterval> read_intervals(const std::vector<MarkedGraph>& marked) {
    std::vector<ReadInterval> read;
    for (const MarkedGraph& one : marked) {
        const auto place = [&](std::size_t position) {
            return static_cast<int>(std::ranges::find(one.places, position) - one.places.begin());
        };
        for (const ClockInterval& interval : one.intervals)
            if (const std::optional<double> mhz = one.marks->mhz(place(interval.from), place(interval.to)))
                read.push_back({interval, *mhz});
    }
    return read;
}

void read_graph_clock(const PartContext& at, Forward& forward, GraphClock& clock) {
    const double seconds = at.options.graph_clock_s;
    const double read_s = is_at_power_limit(at.point.conditions) ? std::max(seconds, power_swing_s) : seconds;
    const double forward_s = at.point.end_to_end->latency.summary_ms.median * 1e-3;
    const double graphs_in_time = seconds / forward_s / launches_before_graphs - 1;
    const auto graphs = static_cast<std::size_t>(std::clamp(graphs_in_time, 1.0, 1.0 * most_clock_graphs));
    const auto rounds_of = [&](std::size_t count) {
        return std::min(clock_rounds(read_s, forward_s, count), kept_clock_launches);
    };
    const std::vector<StepToClock> steps = steps_to_clock(at.point);
    const double shortest_us = std::max(shortest_clock_interval_us, interval_sum_us / rounds_of(graphs));
    std::vector<std::vector<ClockInterval>> spread = spread_clock_intervals(steps, graphs, shortest_us);
    if (spread.empty()) {
        clock.unavailable =
            fmt::format("all steps together are shorter than {:.0f} us, too short for the GPU's timer", shortest_us);
        return;
    }
    const int rounds = rounds_of(spread.size());
    std::vector<MarkedGraph> marked;
    for (std::vector<ClockInterval>& intervals : spread)
        marked.push_back(marked_graph(at, std::move(intervals), rounds));
    // It has cooled since it was timed.
    for (double s = 0; s < read_s; s += forward_s) forward.graph().launch();
    clock.cost_us = launch_in_turn(at.device, forward.graph(), marked, rounds).median;
    clock.graphs = static_cast<int>(marked.size());
    for (const MarkedGraph& one : marked) clock.places += static_cast<int>(one.places.size());
    clock.step_mhz = clock_by_step(steps, read_intervals(marked));
    if (std::ranges::none_of(clock.step_mhz, [](double mhz) { return mhz > 0; })) {
        clock = {};
        clock.unavailable = "between no two places the GPU's timer told the clock";
    }
}

}  // namespace

void measure_graph_clock(const PartContext& at, Forward& forward) {
    if (at.options.graph_clock_s <= 0 || !at.device.is_gpu() || at.point.steps.empty()) return;
    at.begin("clock in the graph");
    const PhaseTimer timer(at.point, "graph_clock");
    GraphClock& clock = at.point.graph_clock.emplace();
    try {
        read_graph_clock(at, forward, clock);
    } catch (const Error& error) {
        at.require_device();
        clock = {};
        clock.unavailable = error.what();
    }
}

}  // namespace kbench
