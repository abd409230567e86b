// The same work many times in a row as one graph, and several such graphs timed in turns: how a step's times at several
// sizes are measured, of whatever it consists.
//
//     TimedRuns small(device, runs_a_graph(us), [&] { run(1); }), large(device, runs_a_graph(us), [&] { run(2); });
//     const std::vector<Summary> us = time_in_turns({&small, &large}, 0.15);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "bench/device/device.h"
#include "bench/profile/clock_marks.h"
#include "kbench/quantity.h"
#include "kbench/statistics.h"

namespace kbench {

/// How many runs that take so long each are one graph: what its ends cost is then below 1 %.
std::size_t runs_a_graph(double us);

/// Work on the device's stream, captured. It must have run before, so that its kernels are loaded; whatever it runs on
/// must outlive this.
class TimedRuns {
  public:
    TimedRuns(Device& device, std::size_t runs, std::function<void()> run);
    TimedRuns(const TimedRuns&) = delete;
    TimedRuns& operator=(const TimedRuns&) = delete;

    void warm_up();
    /// Microseconds of one run, measured now, after a rest of a GPU: at the power limit its clock swings, and times by
    /// 10 %.
    double us();
    /// The SMs' own during all of us(), mean.
    Quantity clock_mhz();

  private:
    double launch_us();

    Device& device_;
    std::size_t runs_;
    std::unique_ptr<DeviceEvent> begin_, end_;
    std::unique_ptr<ClockMarks> marks_;
    std::unique_ptr<DeviceGraph> graph_;
    double last_us_ = 0;  ///< what the graph took
};

/// Each after the other, again and again for about so long. `before` is called before each.
std::vector<Summary> time_in_turns(const std::vector<TimedRuns*>& all, double seconds,
                                   const std::function<void()>& before = {});

}  // namespace kbench
