// Where a point's time goes: its steps summed by op kind and by layer.
#pragma once

#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// Steps that belong together, summed. Only timed steps count, so that times, FLOPs and bytes speak of the same work.
struct StepGroup {
    std::string name;                          ///< the op kind, or the layers with * for each number
    std::vector<std::string> providers;        ///< distinct, in order of appearance
    std::vector<std::string> implementations;  ///< likewise
    std::vector<std::string> ops;              ///< kinds of all ops computed, likewise
    std::size_t steps = 0;
    double time_us = 0;  ///< sum of the steps' medians
    double flops = 0, bytes = 0;
    double share = 0;  ///< its part of the time of all groups

    double tflop_per_s() const;
    double gb_per_s() const;
};

struct StepSums {
    std::vector<StepGroup> groups;  ///< slowest first
    double time_us = 0;             ///< sum over all groups
    std::size_t untimed_steps = 0;
};

/// By the kind of the op that names each step, and its provider.
StepSums by_op_kind(const Point& point);

/// By layer, the same layer of all blocks together.
StepSums by_layer(const Point& point);

}  // namespace kbench
