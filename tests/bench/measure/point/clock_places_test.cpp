// Where the clock is read in a forward, and which step gets which reading.
#include "bench/measure/point/clock_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double shortest_us = 20;

/// Steps of a GPT-2 of so many blocks: long GEMMs with short norms between them.
std::vector<StepToClock> gpt2_steps(int blocks) {
    std::vector<StepToClock> steps{{"wte", 4}};
    for (int block = 0; block < blocks; ++block)
        for (const StepToClock& step :
             {StepToClock{"ln_1", 3}, StepToClock{"c_attn", 60}, StepToClock{"attn", 40}, StepToClock{"c_proj", 25},
              StepToClock{"ln_2", 3}, StepToClock{"c_fc", 80}, StepToClock{"mlp.c_proj", 75}})
            steps.push_back(step);
    steps.push_back({"ln_f", 3});
    steps.push_back({"lm_head", 150});
    return steps;
}

double length_us(const std::vector<StepToClock>& steps, const ClockInterval& interval) {
    double us = 0;
    for (std::size_t s = interval.from; s < interval.to; ++s) us += steps[s].us;
    return us;
}

/// What must hold of any spreading.
void expect_sound(const std::vector<StepToClock>& steps, const std::vector<std::vector<ClockInterval>>& graphs) {
    for (const std::vector<ClockInterval>& graph : graphs) {
        EXPECT_FALSE(graph.empty());
        EXPECT_LE(places_of(graph).size(), most_clock_places);
        for (std::size_t i = 0; i < graph.size(); ++i) {
            EXPECT_LT(graph[i].from, graph[i].to);
            EXPECT_LE(graph[i].to, steps.size());
            EXPECT_GE(length_us(steps, graph[i]), shortest_us);
            if (i > 0) {
                EXPECT_LE(graph[i - 1].to, graph[i].from) << "intervals of a graph overlap";
            }
        }
    }
}

std::set<std::string> kinds_read(const std::vector<StepToClock>& steps,
                                 const std::vector<std::vector<ClockInterval>>& graphs, bool alone) {
    std::set<std::string> kinds;
    for (const std::vector<ClockInterval>& graph : graphs)
        for (const ClockInterval& interval : graph)
            for (std::size_t s = interval.from; s < interval.to; ++s)
                if (!alone || interval.to == interval.from + 1) kinds.insert(steps[s].kind);
    return kinds;
}

TEST(ClockPlaces, EveryKindIsReadAndLongStepsAlone) {
    const std::vector<StepToClock> steps = gpt2_steps(36);
    const auto graphs = spread_clock_intervals(steps, 8, shortest_us);
    expect_sound(steps, graphs);
    EXPECT_EQ(kinds_read(steps, graphs, false).size(), 10u);
    EXPECT_THAT(kinds_read(steps, graphs, true),
                ElementsAre("attn", "c_attn", "c_fc", "c_proj", "lm_head", "mlp.c_proj"));
}

TEST(ClockPlaces, AKindIsReadFourTimesSpreadOverTheForward) {
    const std::vector<StepToClock> steps = gpt2_steps(36);
    std::vector<std::size_t> at;
    for (const auto& graph : spread_clock_intervals(steps, 8, shortest_us))
        for (const ClockInterval& interval : graph)
            if (interval.to == interval.from + 1 && steps[interval.from].kind == "c_fc") at.push_back(interval.from);
    ASSERT_EQ(at.size(), 4u);
    std::ranges::sort(at);
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
        EXPECT_GE(at[quarter], quarter * steps.size() / 4);
        EXPECT_LE(at[quarter], (quarter + 1) * steps.size() / 4);
    }
}

TEST(ClockPlaces, WhereThereIsRoomForOneGraphEachOfFewKindsIsReadOnce) {
    std::vector<StepToClock> steps;
    for (int i = 0; i < 200; ++i) steps.push_back({"kind " + std::to_string(i % 7), 50});
    const auto graphs = spread_clock_intervals(steps, 1, shortest_us);
    expect_sound(steps, graphs);
    ASSERT_EQ(graphs.size(), 1u);
    EXPECT_EQ(kinds_read(steps, graphs, true).size(), 7u);
}

TEST(ClockPlaces, MoreKindsThanRoomLeavesOutSomeAndNeverAPlaceTooMany) {
    std::vector<StepToClock> steps;
    for (int i = 0; i < 300; ++i) steps.push_back({"kind " + std::to_string(i), 50});
    const auto graphs = spread_clock_intervals(steps, 3, shortest_us);
    expect_sound(steps, graphs);
    EXPECT_EQ(graphs.size(), 3u);
    EXPECT_EQ(kinds_read(steps, graphs, true).size(), 3 * (most_clock_places - 1)) << "neighbours share places";
}

TEST(ClockPlaces, ShortStepsShareAnIntervalWithTheirShorterNeighbours) {
    const std::vector<StepToClock> steps{{"long", 90}, {"short", 5}, {"middle", 16}, {"other", 90}};
    const auto graphs = spread_clock_intervals(steps, 8, shortest_us);
    expect_sound(steps, graphs);
    EXPECT_THAT(graphs.front(), ElementsAre(ClockInterval{0, 1}, ClockInterval{1, 3}, ClockInterval{3, 4}));
    EXPECT_THAT(places_of(graphs.front()), ElementsAre(0, 1, 3, 4));
}

TEST(ClockPlaces, AForwardTooShortForTheTimerHasNoGraph) {
    EXPECT_THAT(spread_clock_intervals(std::vector<StepToClock>{{"a", 9}, {"b", 10}}, 8, shortest_us), IsEmpty());
    EXPECT_THAT(spread_clock_intervals(std::vector<StepToClock>{}, 8, shortest_us), IsEmpty());
    EXPECT_EQ(spread_clock_intervals(std::vector<StepToClock>{{"a", 9}, {"b", 11}}, 8, shortest_us).size(), 1u);
}

/// What a graph's readings say of a clock that swings by 6 % about 1, in launches one behind the other.
double mean_of_swing(double seconds, double forward_s, std::size_t graphs, std::size_t graph, double phase,
                     double period_s) {
    const int rounds = clock_rounds(seconds, forward_s, graphs);
    const auto passed = [&](double s) {  // the integral of the clock
        const double turn = 2 * std::numbers::pi / period_s;
        return s - 0.06 / turn * std::cos(turn * s + phase);
    };
    double sum = 0;
    for (int round = 0; round < rounds; ++round) {
        const double begin = forward_s * (static_cast<double>(round) * static_cast<double>(graphs + 1) + 1.0 +
                                          static_cast<double>(graph));
        sum += (passed(begin + forward_s) - passed(begin)) / forward_s;
    }
    return sum / rounds;
}

TEST(ClockPlaces, ReadOverAWholeSwingTheClockIsItsMean) {
    double worst = 0, worst_of_a_fifth = 0;
    for (double forward_s = 0.0007; forward_s < 0.2; forward_s *= 1.07) {
        // As many graphs as a forward of this length has by default.
        const auto graphs = static_cast<std::size_t>(std::clamp(0.2 / forward_s / 3 - 1, 1.0, 8.0));
        for (const double period_s : {0.7, power_swing_s, 0.8})
            for (std::size_t graph = 0; graph < graphs; ++graph)
                for (double phase = 0; phase < 6.2; phase += 0.2) {
                    const auto off = [&](double seconds) {
                        return std::abs(mean_of_swing(seconds, forward_s, graphs, graph, phase, period_s) - 1);
                    };
                    worst = std::max(worst, off(power_swing_s));
                    worst_of_a_fifth = std::max(worst_of_a_fifth, off(0.2));
                }
    }
    EXPECT_LT(worst, 0.025);
    EXPECT_GT(worst_of_a_fifth, 0.05) << "nothing swings";
}

TEST(ClockPlaces, AStepHasTheClockOfTheShortestIntervalWithIt) {
    const std::vector<StepToClock> steps{{"norm", 3}, {"gemm", 60}, {"norm", 3}, {"head", 50}, {"end", 1}};
    const std::vector<ReadInterval> read{{{0, 2}, 1600}, {{1, 2}, 1500}, {{1, 2}, 1520}, {{2, 4}, 1700}};
    EXPECT_THAT(clock_by_step(steps, read), ElementsAre(1600, 1510, 1700, 1700, 0));
}

}  // namespace
}  // namespace kbench
