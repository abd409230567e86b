// Events around a captured row of runs; marks of the clock stand in a graph of their own.
#include "bench/measure/timed_runs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace kbench {
namespace {

constexpr double graph_us = 600;
constexpr std::size_t most_runs_a_graph = 500;
/// Ten independent samples make an interval. Slow work gets fewer rather than this many times the time it was given.
constexpr int fewest_turns = 6, wanted_turns = 12;
constexpr double patience = 5;

}  // namespace

std::size_t runs_a_graph(double us) {
    return std::clamp(static_cast<std::size_t>(std::ceil(graph_us / us)), std::size_t{1}, most_runs_a_graph);
}

TimedRuns::TimedRuns(Device& device, std::size_t runs, std::function<void()> run)
    : device_(device), runs_(runs), run_(std::move(run)), begin_(device.make_event()), end_(device.make_event()) {
    graph_ = device_.capture([this] {
        // A GPU is busy when the first mark comes.
        if (device_.is_gpu()) run_();
        begin_->record();
        run_all();
        end_->record();
    });
    marks_ = make_clock_marks(device_, 2);
    if (marks_) marked_ = capture_between(device_, marks_.get(), [this] { run_all(); });
}

void TimedRuns::run_all() const {
    for (std::size_t run = 0; run < runs_; ++run) run_();
}

double TimedRuns::us() {
    graph_->launch();
    device_.synchronize();
    return std::round(end_->ms_since(*begin_) * 1e7 / static_cast<double>(runs_)) / 1e4;
}

void TimedRuns::read_clock() {
    if (!marks_) return;
    marked_->launch();
    marks_->keep();
}

Quantity TimedRuns::clock_mhz() { return measured_clock(marks_.get()); }

std::vector<Summary> time_in_turns(const std::vector<TimedRuns*>& all, double seconds,
                                   const std::function<void()>& before) {
    using Clock = std::chrono::steady_clock;
    for (TimedRuns* runs : all) runs->us();
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
            if (turn % 2 == 0) all[i]->read_clock();  // a mean needs no more
        }
    std::vector<Summary> summaries;
    for (const std::vector<double>& one : samples) summaries.push_back(summarise(one));
    return summaries;
}

}  // namespace kbench
