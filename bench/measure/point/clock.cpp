// A CPU's clock is measured once; CUDA states the resolution of its events.
#include "bench/measure/point/clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

/// One of so many ticks is undisturbed. A clock with ticks of 4 ms is read for no longer than this.
constexpr int steps_seen = 200;
constexpr auto longest_look = std::chrono::milliseconds(50);

double measured_tick_ms() {
    double least = std::numeric_limits<double>::infinity();
    const auto begin = Clock::now();
    auto last = begin;
    for (int seen = 0; seen < steps_seen && last - begin < longest_look;) {
        const auto now = Clock::now();
        if (now == last) continue;
        least = std::min(least, std::chrono::duration<double, std::milli>(now - last).count());
        last = now;
        ++seen;
    }
    return least;
}

constexpr double event_tick_ms = 0.5e-3;
constexpr std::size_t most_runs_a_sample = std::size_t{1} << 20;
/// A sample that just reaches the length may be a little shorter next time.
constexpr double reserve = 1.25;

}  // namespace

double clock_tick_ms(bool of_gpu) {
    if (of_gpu) return event_tick_ms;
    static const double tick_ms = measured_tick_ms();
    return tick_ms;
}

std::size_t runs_for_clock(double run_ms, std::size_t runs, double tick_ms) {
    const double least_ms = least_ticks * tick_ms;
    if (run_ms * static_cast<double>(runs) >= least_ms || runs >= most_runs_a_sample) return runs;
    // A time that the clock could not see may be anything below one tick.
    const double needed = reserve * least_ms / std::max(run_ms, tick_ms / static_cast<double>(runs));
    return std::clamp(static_cast<std::size_t>(std::ceil(needed)), runs + 1, most_runs_a_sample);
}

}  // namespace kbench
