// Where the SMs' clock is read in a forward: which steps lie between which places of which graph. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kbench {

struct StepToClock {
    std::string kind;  ///< steps of one kind share what is read of any of them
    double us = 0;     ///< about what it takes
};

/// The steps from position `from` up to `to`, which is not among them.
struct ClockInterval {
    std::size_t from = 0, to = 0;
    bool operator==(const ClockInterval&) const = default;
};

/// Places of a graph, so that what they cost does not change what they read.
inline constexpr std::size_t most_clock_places = 15;

/// Intervals by graph, in order. Each kind gets one before any gets a second, up to four, spread over the forward. An
/// interval is one step, with as many of its neighbours as it takes to last `shortest_us`. Those of one graph do not
/// overlap, have at most most_clock_places ends in all, and a place of one never lies within another. No graph where
/// all steps together are shorter. What finds no room in `most_graphs` is left out.
std::vector<std::vector<ClockInterval>> spread_clock_intervals(std::span<const StepToClock> steps,
                                                               std::size_t most_graphs, double shortest_us);

/// At its power limit a GPU's clock swings about its mean for seconds after a pause, with a period of 0.7 to 0.8 s
/// (H100, H200: the first samples of results/h200-2026-11-23/fp16 and later runs). Readings spread over one period have
/// the mean: of a swing by 6 % within 2.5 %, where a forward takes 0.7 ms to 0.2 s. Of shorter ones fewer launches are
/// kept.
inline constexpr double power_swing_s = 0.75;

/// How many rounds of one plain launch and one of each of `graphs` take about `seconds`, and two at least.
int clock_rounds(double seconds, double forward_s, std::size_t graphs);

/// The ends of a graph's intervals, rising: a place at p stands before step p.
std::vector<std::size_t> places_of(std::span<const ClockInterval> intervals);

struct ReadInterval {
    ClockInterval steps;
    double mhz = 0;
};

/// The clock of every step, 0 where it lies in no interval: that of the shortest interval with it, as there it is the
/// largest part. The mean where that one was read in several graphs.
std::vector<double> clock_by_step(std::span<const StepToClock> steps, std::span<const ReadInterval> read);

}  // namespace kbench
