// What if: the latency expected on another machine, from each step's roof times there and from how near the step
// comes to its roof here. Pure arithmetic; the assumptions come with the figures. docs/machines.md has the rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/machine/machine.h"
#include "analysis/result/interval.h"

namespace kbench {

/// A machine as what_if compares them.
struct WhatIfMachine {
    std::string name;
    Roofs roofs;
    std::optional<Roofs> datasheet;  ///< beside measured roofs: what the machine's maker states, where known
    std::optional<double> memory_bytes, l2_bytes;
};
/// The machine of a result: its measured ceilings, else its datasheet.
WhatIfMachine what_if_machine(const Result& result);
WhatIfMachine what_if_machine(const MachineFile& machine);

/// Why nothing is expected from one of these machines for the other, whatever the point; empty where something may be.
std::string why_not_between(const WhatIfMachine& source, const WhatIfMachine& target);

struct WhatIfStep {
    const StepResult* step = nullptr;  ///< into the point
    double here_us = 0;                ///< the time breakdown's time with its part of recording, drift and residual
    double roof_here_us = 0, roof_there_us = 0;
    std::string ceiling_here, ceiling_there;  ///< the roofs with the longest roof time; empty without one
    Interval there_us;
};

/// Steps summed: one op kind or one layer of all blocks.
struct WhatIfGroup {
    std::string name;
    std::size_t steps = 0;
    double here_ms = 0;
    Interval there_ms;
    std::string ceiling_there;       ///< what binds the steps with most of the expected time
    double ceiling_there_share = 0;  ///< its part of the group's expected time
};

struct WhatIf {
    std::string unavailable;  ///< why nothing can be expected; empty when something can
    const Point* point = nullptr;
    std::string source, target;  ///< names of the machines
    Origin origin = Origin::derived;
    double here_ms = 0, gaps_ms = 0;  ///< gaps are in both times
    Interval there_ms;
    std::vector<WhatIfStep> steps;
    std::vector<WhatIfGroup> by_layer, by_op, by_ceiling;  ///< longest expected first; by the binding roof there
    std::vector<std::string> assumptions;                  ///< sentences
};

/// How far expectations on fewer SMs of one GPU were from what was then measured: the table in docs/machines.md, as
/// scripts/what-if-check printed it.
struct WhatIfTested {
    int expectations = 0, inside = 0;        ///< how many, and how many had the measurement in their interval
    double least_error = 0, most_error = 0;  ///< expected over measured, less 1
};
/// As of results/h200-2026-11-23/what-if.json.gz; nothing: not tested, and every answer says so.
inline constexpr std::optional<WhatIfTested> what_if_tested = WhatIfTested{9, 4, -0.182, 0.060};
/// What every answer of GPUs says of itself: one or two sentences.
std::string tested_text(const std::optional<WhatIfTested>& tested);
/// The same by backend, cuda or cpu.
std::string tested_text(std::string_view backend);

/// Expects a point, which was measured and explained on `source`, on `target`. For each step the longest roof time of
/// the target's roofs (same FLOPs, same bytes at each level that the target has a roof for) over the share that the
/// binding roof has of the step's time here. The interval's other end: the roof time there plus the time above the roof
/// time here, unchanged. Neither is ever below the roof time there. Nothing is expected between a GPU and a CPU.
///
/// `clock_there_mhz`: of the target's SMs while the point ran there, where that is known. With the clock of the run
/// here it is divided out: roofs of what runs at the SMs' clock are then taken at the clocks of the two runs, instead
/// of those at which the roofs were measured. The point must outlive the answer.
WhatIf what_if(const Explanation& here, const WhatIfMachine& source, const WhatIfMachine& target,
               std::optional<double> clock_there_mhz = std::nullopt);

/// The expectation beside a measurement of the same point on the target.
struct WhatIfCheck {
    std::string unavailable;  ///< why they cannot be compared: what differs
    double expected_ms = 0, measured_ms = 0;
    double error = 0;     ///< expected over measured, less 1
    bool inside = false;  ///< the measured median is in the expected interval
};
WhatIfCheck check_what_if(const WhatIf& expected, const Point& measured);

}  // namespace kbench
