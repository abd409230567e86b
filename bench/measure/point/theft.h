// Work beside a thief, of whatever it consists: what a point's forward and tests of known kernels have in common.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>

#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/measure/point/part_times.h"
#include "bench/measure/point/thief.h"
#include "kbench/result.h"

namespace kbench {

/// What is set beside each other.
struct TheftSetup {
    std::function<RangeTimes(double seconds, const RecordedLaunches& around)> times;  ///< the work's, as of WorkOnPart
    Thief& thief;
    int multiprocessors;    ///< SMs or threads that the thief leaves the work
    const Roofs& roofs;     ///< shares of them are taken; a level without one is left out
    double seconds = 0.15;  ///< for the work beside each thief
    double alone_ms = 0;    ///< the work on all SMs or threads without a thief; 0: not known, and not compared with
    /// A thief that takes 30 % of DRAM and one that computes change places often, if there is time for enough turns:
    /// for one that changes what it takes at once, on a host that others use. Nothing else is taken then.
    bool in_turns = false;
    bool is_short = false;  ///< the largest shares alone, in half as many runs
    /// Runs end when the next one would end later, but not before one beside a thief of the largest share of DRAM;
    /// turns end with it.
    double longest_s = std::numeric_limits<double>::infinity();
    std::function<void(const std::string& text)> begin = {};  ///< called before each, with what comes
};

/// Why steps cannot run where a thief leaves so many SMs; empty where they can. Blocks of a kernel that runs several
/// time steps wait for each other, so all must be resident at once.
std::string why_not_beside_thief(std::span<const StepResult> steps, int multiprocessors);

/// Appends a run beside each thief to `theft`, so that what came before an error stays. Where a thief that takes no
/// bandwidth makes the work far longer, runs beside it say nothing of bandwidth: then there are none, and the reason
/// instead. Throws
/// DeviceError where launches cannot be recorded, or the thief ended before they did.
void run_beside_thieves(const TheftSetup& setup, BandwidthTheft& theft);

}  // namespace kbench
