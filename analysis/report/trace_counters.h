// The counter tracks of a trace: how busy the machine was over the forward, and its state during the timing run.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/report/trace_timeline.h"
#include "kbench/result.h"

namespace kbench {

struct CounterTrack {
    struct Sample {
        Nanoseconds at = 0;
        double value = 0;  ///< from `at` to the next sample
    };
    std::string name;         ///< with the unit, and "(derived)" where it was not counted as such
    std::string unavailable;  ///< why there are no samples
    std::string note;         ///< where it shows 0 that nobody counted
    std::vector<Sample> samples;
};

/// Over the forward, one sample a step or kernel and 0 at its end: Memory % and Compute % (speed-of-light metrics, or
/// else derived: counted DRAM bytes and the cost model's FLOPs over their roofs), both occupancies, DRAM GB/s, and
/// as far as six tracks go what --metrics named, or of a set what was counted.
std::vector<CounterTrack> forward_counters(const Explanation& explanation, const Timeline& timeline);

/// Clocks, power and temperature from the start of the timing run: `all` readings, or about a hundred of them.
std::vector<CounterTrack> condition_counters(const Conditions& conditions, bool all);

}  // namespace kbench
