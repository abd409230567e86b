// Events around a captured row of runs, and marks of the clock around these: the clock is that of the very sample.
#include "bench/measure/point/timed_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

namespace kbench {
namespace {

/// A graph holds as many runs as take this long.
constexpr double graph_us = 600;
constexpr std::size_t most_runs_a_graph = 500;
/// A GPU rests before each sample for so many times what the last one took.
constexpr double rest_times = 3;
/// Ten independent samples make an interval. Slow work gets fewer rather than this many times the time it was given.
constexpr int fewest_turns = 6, wanted_turns = 12;
constexpr double patience = 5;

}  // namespace

std::size_t runs_a_graph(double us) {
    return std::clamp(static_cast<std::size_t>(std::ceil(graph_us / us)), std::size_t{1}, most_runs_a_graph);
}

TimedRuns::TimedRuns(Device& device, std::size_t runs, std::function<void()> run)
    : device_(device),
      runs_(runs),
      begin_(device.make_event()),
      end_(device.make_event()),
      marks_(make_clock_marks(device, 2)),
      graph_(capture_between(device, marks_.get(), [this, run = std::move(run)] {
          // A GPU is busy when the first event comes.
          if (device_.is_gpu()) run();
          begin_->record();
          for (std::size_t i = 0; i < runs_; ++i) run();
          end_->record();
      })) {}

double TimedRuns::launch_us() {
    graph_->launch();
    device_.synchronize();
    last_us_ = end_->ms_since(*begin_) * 1e3;
    return last_us_;
}

void TimedRuns::warm_up() { launch_us(); }

double TimedRuns::us() {
    if (device_.is_gpu()) {
        device_.synchronize();
        std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(rest_times * last_us_));
    }
    const double us = launch_us();
    if (marks_) marks_->keep();
    return std::round(us * 1e4 / static_cast<double>(runs_)) / 1e4;
}

Quantity TimedRuns::clock_mhz() { return measured_clock(marks_.get()); }

std::vector<Summary> time_in_turns(const std::vector<TimedRuns*>& all, double seconds,
                                   const std::function<void()>& before) {
    using Clock = std::chrono::steady_clock;
    for (TimedRuns* runs : all) runs->warm_up();
    std::vector<std::vector<double>> samples(all.size());
    const auto start = Clock::now();
    const auto goes_on = [&](int turns) {
        const double over = std::chrono::duration<double>(Clock::now() - start).count() / seconds;
        return turns < fewest_turns || over < 1 || (turns < wanted_turns && over < patience);
    };
    for (int turn = 0; goes_on(turn); ++turn)
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (before) before();
            samples[i].push_back(all[i]->us());
        }
    std::vector<Summary> summaries;
    for (const std::vector<double>& one : samples) summaries.push_back(summarise(one));
    return summaries;
}

}  // namespace kbench
