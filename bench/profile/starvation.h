// Whether the process lacked its CPUs, asked again and again while samples are taken.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "bench/profile/machine_state.h"

namespace kbench {

class StarvationWatch {
  public:
    /// `machine` must outlive the watch. `now_s` gives the time in seconds, on the clock of its counts (`at_s`).
    explicit StarvationWatch(MachineState& machine, std::function<double()> now_s = steady_s)
        : machine_(machine), now_s_(std::move(now_s)) {}

    /// A window begins here.
    void begin();

    /// Whether the process lacked its CPUs since the answer before, or since the begin. False where nothing can be
    /// told. Nothing while that is too short, unless this is the `last` question: answers are 50 ms apart, and twenty
    /// times what looking takes, so that it takes below 5 %. After a lack they are as near as that alone allows, and
    /// twice as far apart after each answer without one: between the time slices of other work there are clean samples.
    std::optional<bool> lacked(bool last);

    /// The share of CPU in the time of the answers "no" alone, or (`of_all`) of every answer. A quota's periods always
    /// count for every answer.
    /// Nothing where a device does the work.
    std::optional<CpuShare> share(bool of_all) const;

  private:
    static double steady_s();

    MachineState& machine_;
    std::function<double()> now_s_;
    std::optional<CpuCounts> from_;
    double apart_s_ = 0;  ///< from one answer to the next
    CpuUse clean_, all_;
};

}  // namespace kbench
