// A backward against its forward: time, FLOPs, bytes at DRAM, occupancy and what binds, by op kind and by layer. What
// binds is said by the rules of verdicts (verdict.h) and by no others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/result/interval.h"
#include "kbench/result.h"

namespace kbench {

/// Steps of one direction, summed.
struct DirectionWork {
    std::vector<std::size_t> steps;  ///< their positions in the point
    /// Sum of their times on the device, see StepResult::device_us; nothing where one of them has none. The ends are
    /// those of the step run's intervals, and lower by what records add.
    std::optional<Interval> time_us;
    bool has_interval = true;             ///< each was timed more than once
    double flops = 0;                     ///< useful ones
    double bytes = 0;                     ///< through DRAM where `is_counted`, else the cost model's unfused traffic
    bool is_counted = true;               ///< by hardware, of every step
    std::optional<double> occupancy_pct;  ///< achieved, weighted by time; nothing where one was not counted
    std::vector<std::string> fused;       ///< op kinds computed along with those that name the steps
    Verdict verdict;                      ///< what binds all of them, as for a layer

    bool empty() const { return steps.empty(); }
};

/// An op kind or a layer of all blocks in both directions.
struct DirectionPair {
    std::string name;
    DirectionWork forward, backward;
    /// The backward's steps by direction, where these are several: "dgrad" and "wgrad".
    std::vector<std::pair<Direction, DirectionWork>> products;
    /// A kind without forward steps of its own has here the kinds within whose steps its forward is computed.
    std::vector<std::string> forward_within;

    /// Backward over forward; nothing where one of them is not there, or not known.
    std::optional<Interval> time_ratio() const;
    std::optional<double> flop_ratio() const;
    std::optional<double> byte_ratio() const;  ///< where the bytes have the same origin
};

struct Directions {
    std::string unavailable;                     ///< why there is nothing; empty where there is
    const Point* forward_point = nullptr;        ///< null: no forward was measured
    bool is_one_point = false;                   ///< both directions are of one training step
    bool is_gpu = false;                         ///< else nothing has an occupancy
    DirectionWork loss;                          ///< steps that compute the loss and its gradient at once
    DirectionWork optimizer;                     ///< steps behind the backward
    DirectionPair whole;                         ///< all forward and all backward steps but these two
    std::vector<DirectionPair> by_op, by_layer;  ///< longest first
    std::vector<std::string> findings;           ///< what it means, one sentence each
    double time_us = 0;                          ///< what all parts of the backward's point take

    bool empty() const { return unavailable.empty() && whole.backward.empty(); }
};

/// Sums of a point with direction train or bwd. `forward`: where the forward steps are: in the same point, in one of
/// direction fwd that is equal otherwise, or nowhere (null). Empty for a point without backward steps.
Directions forward_against_backward(const Explanation* forward, const Explanation& backward);

/// Which forward step computed the op that a backward step is of.
class ForwardSteps {
  public:
    explicit ForwardSteps(const Point& point);
    /// Null where there is none: a backward measured alone, or a loss whose forward and gradient are one step.
    const StepResult* of(const StepResult& backward) const;

  private:
    std::map<std::string, const StepResult*, std::less<>> by_op_, by_layer_;
};

/// What the figures say, a sentence each: directions_findings.cpp.
std::vector<std::string> direction_findings(const Directions& directions, bool has_roofs);

}  // namespace kbench
