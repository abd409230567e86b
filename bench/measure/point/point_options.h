// How much of everything is measured of one point.
#pragma once

#include <cstdint>
#include <limits>

#include "bench/measure/point/sampler.h"
#include "bench/profile/counters.h"

namespace kbench {

struct PointOptions {
    SamplerOptions sampler;
    int step_runs = 21;     ///< instrumented runs for per-step times; medians are reported; 0: no times of steps
    int activity_runs = 7;  ///< forwards in which every kernel is recorded; medians are reported; 0: none
    double activity_warm_up_s = 0.5;
    double marginal_s = 1;        ///< time for the marginal costs of all op kinds; 0: none
    double graph_clock_s = 0.2;   ///< time for graphs in which the SMs' clock is read between steps; 0: none
    double sm_scaling_s = 0.3;    ///< time for the forward on each number of SMs or threads, all among them; 0: none
    double size_scaling_s = 0.1;  ///< time for each distinct step at its own size and at larger ones; 0: none
    double theft_s = 0.15;        ///< time for the forward beside each thief, some ten of them; 0: none
    /// On a CPU the last three together end after so long, whatever else they would measure.
    double experiments_s = std::numeric_limits<double>::infinity();
    CounterRequest counters;
    /// Further forwards whose outputs must have the bits of the first; 0: only outputs that are dumped are checked.
    int output_repeats = 4;
    bool verify = true;
    std::uint64_t seed = 1;

    /// What is measured beside the timing run to find causes takes longer than that run.
    void leave_out_experiments() { marginal_s = graph_clock_s = sm_scaling_s = size_scaling_s = theft_s = 0; }
};

}  // namespace kbench
