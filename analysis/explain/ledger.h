// The ledger: end-to-end latency as a sum that closes. What the roofs demand of each step, what is lost above that and
// to what, the time between steps, and what the profiler added. Pure arithmetic on a result; docs/method.md has the
// rules and their limits.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/cycles.h"
#include "analysis/machine/ceilings.h"
#include "kbench/result.h"

namespace kbench {

/// Where time goes. The first four are demand: the largest of the times that the roofs demand, booked on that roof.
enum class Line {
    compute,       ///< FLOPs of the cost model over the roof of the unit
    dram,          ///< bytes over DRAM's bandwidth
    l2,            ///< bytes over L2's bandwidth
    l1,            ///< bytes over L1's bandwidth
    extra_work,    ///< executed beyond the cost model's FLOPs (padding, masks, overhanging tiles), over the same roof;
                   ///< negative where a part of the model's FLOPs ran on another unit (GELU in a GEMM's epilogue)
    clock,         ///< demand of an on-chip roof at the run's clock beyond that at the clock of its measurement;
                   ///< negative where the run's clock was higher
    idle_sms,      ///< SMs without a warp: the last wave, ramps at start and end, grids smaller than the device
    instructions,  ///< issue slots taken beyond what the demand takes: address arithmetic, conversions, reductions
    other,         ///< what is left of SMs with warps: a remainder, which no counter says; see CycleAccount
    rest,          ///< above the demand of a step without counters: not split; negative: the demand exceeds the time
    launch,        ///< gaps and starting and ending kernels, up to the latency of a graph's node for each kernel
    dependency,    ///< gaps beyond that
    recording,     ///< what records add to the sum of kernels and gaps, calibrated; negative
    drift,         ///< the timing run against the runs between the records: the machine's state (clock, power) moved
    residual,      ///< what is left
};
inline constexpr std::size_t line_count = static_cast<std::size_t>(Line::residual) + 1;
struct LineInfo {
    std::string_view name;  ///< in tables, JSON and charts
    std::string_view what;  ///< one sentence for a reader
};
const LineInfo& info(Line line);
constexpr Line line_at(std::size_t i) { return static_cast<Line>(i); }

/// Microseconds by line.
struct Lines {
    std::array<double, line_count> us{};
    double& operator[](Line line) { return us[static_cast<std::size_t>(line)]; }
    double operator[](Line line) const { return us[static_cast<std::size_t>(line)]; }
    double total_us() const;
    double demand_us() const;  ///< the first four
    Lines& operator+=(const Lines& other);
};

/// The time that one roof demands of a step.
struct Demand {
    Roof roof;
    std::optional<Level> level;  ///< of memory; nothing for a compute unit
    double work = 0;             ///< bytes or FLOPs
    double us = 0;               ///< work over the roof
    double run_us = 0;           ///< as it was run: on-chip roofs at the run's clock, units with executed extra work
    Origin origin = Origin::measured;  ///< of the work: counted, or derived from the cost model
};

/// What `roofs` demand of a step, longest run_us first. `dram`: whether DRAM's bytes, where there are counters, were
/// measured or estimated; without counters they are the streaming bytes, derived. `run_clock_mhz`: the run's clock of
/// SMs, for run_us; 0: the roofs' own.
std::vector<Demand> demands_of(const StepResult& step, const Roofs& roofs, Origin dram = Origin::measured,
                               double run_clock_mhz = 0);

/// Whether the bytes of DRAM among the point's counters were counted or estimated; the same for all its steps.
/// measured where there are none.
Origin dram_origin(const Point& point);

struct StepLedger {
    const StepResult* step = nullptr;  ///< into the point
    double time_us = 0;                ///< kernels and the gaps between them; without records the step run's mean
    std::vector<Demand> demands;       ///< longest run_us first; a counted zero is one; empty without roofs
    Lines lines;                       ///< sum to time_us and the gap before the step; zero where it was not timed
    bool split = false;                ///< by counters: idle SMs, instructions and waiting are known, rest is not used
    CycleAccount cycles;               ///< counted, beside the lines
    bool on_gpu = false;
    double starts_us = 0;  ///< of its time: kernels starting and ending, as empty ones do
    /// The longest demand; null where nothing is demanded.
    const Demand* binding() const { return demands.empty() || demands.front().us <= 0 ? nullptr : &demands.front(); }
    /// Share of the step's own time that the binding roof demands; 0 without one.
    double roof_share() const;
};

/// Steps summed: one op kind, one layer of all blocks, or the model.
struct LedgerGroup {
    std::string name;
    std::size_t steps = 0;
    double time_us = 0;
    Lines lines;
};

/// The ledger's share of an op kind beside its marginal cost.
struct MarginalCheck {
    std::string op;
    /// Kernels, gaps and recording of its steps; the interval holds what the ledger does not know of them: the
    /// correction for records, and as large a share of them as residual and drift have of the whole.
    double ledger_ms = 0, ledger_low_ms = 0, ledger_high_ms = 0;
    double marginal_ms = 0, marginal_low_ms = 0, marginal_high_ms = 0;
    bool agrees = true;   ///< the intervals meet
    std::string finding;  ///< where they do not: by how much, and what would explain it
};

struct Ledger {
    std::string unavailable;   ///< why there is none (the point has no times); empty when there is one
    double end_to_end_us = 0;  ///< headline median, without a profiler
    Lines total;               ///< sums to end_to_end_us
    std::vector<StepLedger> steps;
    std::vector<LedgerGroup> by_layer, by_op;  ///< slowest first; without recording, drift and residual
    std::vector<MarginalCheck> marginal;
    std::string roofs_unavailable;  ///< why demand is zero everywhere; empty when it is not
    double residual_share() const;
    /// Drift and residual, each without its sign, of the end-to-end time: neither is explained, and the headline's own
    /// time is in one of them, so that they cannot cancel.
    double unexplained_share() const;
    bool closes() const;  ///< there is one, and what is unexplained is within closing_tolerance
};
inline constexpr double closing_tolerance = 0.02;

/// A step that was faster than a roof allows: the roof was measured too low, or its work was counted too high.
struct RoofBreach {
    std::string step;  ///< "12 h.1.attn"
    std::string ceiling;
    double excess = 0;  ///< its demand over the step's time, less 1
};
inline constexpr double breach_tolerance = 0.02;
/// The step of all points that is furthest above a roof, if any is by more than the tolerance. Bytes count only where
/// they were counted: streaming bytes may never have left a cache.
std::optional<RoofBreach> worst_breach(const Result& result);

/// What a step executes of its kind of FLOPs for each useful one: padding and what a mask hides take time, too.
double executed_over_useful(const StepResult& step);

/// The ledger of one point of a result with these roofs. `point` must outlive it.
Ledger make_ledger(const Point& point, const Roofs& roofs);

}  // namespace kbench
