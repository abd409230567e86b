// Greedy, in the order of importance: every kind once, then again elsewhere in the forward.
#include "bench/measure/point/clock_places.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace kbench {
namespace {

/// Readings of one kind, so that a clock that moves within a forward is seen.
constexpr std::size_t readings_of_kind = 4;

double us_of(std::span<const StepToClock> steps, const ClockInterval& interval) {
    double us = 0;
    for (std::size_t s = interval.from; s < interval.to; ++s) us += steps[s].us;
    return us;
}

/// Grows towards the shorter neighbour, so that the step remains as large a part as it can. Nothing where all steps are
/// too short.
std::optional<ClockInterval> interval_around(std::span<const StepToClock> steps, std::size_t step, double shortest_us) {
    ClockInterval interval{step, step + 1};
    while (us_of(steps, interval) < shortest_us) {
        const bool has_before = interval.from > 0, has_after = interval.to < steps.size();
        if (!has_before && !has_after) return std::nullopt;
        if (has_before && (!has_after || steps[interval.from - 1].us < steps[interval.to].us))
            --interval.from;
        else
            ++interval.to;
    }
    return interval;
}

bool has_room(const std::vector<ClockInterval>& graph, const ClockInterval& interval) {
    const auto overlaps = [&](const ClockInterval& other) {
        return interval.from < other.to && other.from < interval.to;
    };
    if (std::ranges::any_of(graph, overlaps)) return false;
    std::vector<ClockInterval> with = graph;
    with.push_back(interval);
    return places_of(with).size() <= most_clock_places;
}

std::vector<std::vector<std::size_t>> steps_by_kind(std::span<const StepToClock> steps) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> kinds;
    for (std::size_t s = 0; s < steps.size(); ++s) {
        auto known = std::ranges::find(kinds, steps[s].kind, &std::pair<std::string, std::vector<std::size_t>>::first);
        if (known == kinds.end()) known = kinds.insert(known, {steps[s].kind, {}});
        known->second.push_back(s);
    }
    std::vector<std::vector<std::size_t>> positions;
    for (auto& [kind, members] : kinds) positions.push_back(std::move(members));
    return positions;
}

}  // namespace

std::vector<std::vector<ClockInterval>> spread_clock_intervals(std::span<const StepToClock> steps,
                                                               std::size_t most_graphs, double shortest_us) {
    std::vector<std::vector<ClockInterval>> graphs;
    const auto is_taken = [&](const ClockInterval& interval) {
        return std::ranges::any_of(graphs, [&](const auto& graph) { return std::ranges::count(graph, interval) > 0; });
    };
    const auto place = [&](const ClockInterval& interval) {
        auto graph = std::ranges::find_if(graphs, [&](const auto& one) { return has_room(one, interval); });
        if (graph == graphs.end()) {
            if (graphs.size() == most_graphs) return;
            graph = graphs.insert(graph, std::vector<ClockInterval>());
        }
        graph->push_back(interval);
    };
    const std::vector<std::vector<std::size_t>> kinds = steps_by_kind(steps);
    for (std::size_t reading = 0; reading < readings_of_kind; ++reading)
        for (const std::vector<std::size_t>& members : kinds) {
            const std::size_t member = members[(2 * reading + 1) * members.size() / (2 * readings_of_kind)];
            const std::optional<ClockInterval> interval = interval_around(steps, member, shortest_us);
            if (interval && !is_taken(*interval)) place(*interval);
        }
    for (std::vector<ClockInterval>& graph : graphs) std::ranges::sort(graph, {}, &ClockInterval::from);
    return graphs;
}

int clock_rounds(double seconds, double forward_s, std::size_t graphs) {
    const double round_s = forward_s * static_cast<double>(graphs + 1);
    return static_cast<int>(std::clamp(std::round(seconds / round_s), 2.0, 1e6));
}

std::vector<std::size_t> places_of(std::span<const ClockInterval> intervals) {
    std::vector<std::size_t> places;
    for (const ClockInterval& interval : intervals) {
        places.push_back(interval.from);
        places.push_back(interval.to);
    }
    std::ranges::sort(places);
    const auto doubled = std::ranges::unique(places);
    places.erase(doubled.begin(), doubled.end());
    return places;
}

std::vector<double> clock_by_step(std::span<const StepToClock> steps, std::span<const ReadInterval> read) {
    std::vector<double> mhz(steps.size(), 0);
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const ReadInterval* best = nullptr;
        for (const ReadInterval& interval : read) {
            if (s < interval.steps.from || s >= interval.steps.to) continue;
            if (best == nullptr || us_of(steps, interval.steps) < us_of(steps, best->steps)) best = &interval;
        }
        if (best == nullptr) continue;
        double sum = 0, count = 0;
        for (const ReadInterval& interval : read) {
            if (interval.steps != best->steps) continue;
            sum += interval.mhz;
            ++count;
        }
        mhz[s] = sum / count;
    }
    return mhz;
}

}  // namespace kbench
