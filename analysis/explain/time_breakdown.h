// The time breakdown: end-to-end latency as kernels, the gaps between them, what recording added, and what none of
// these explains. What the kernels' time is made of are two accounts beside it, neither of which takes from the other:
// the roof times (roof_times.h) and the cycles (cycles.h). docs/method.md has the rules and their limits.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// Where the end-to-end time goes.
enum class Line {
    kernels,  ///< as they were recorded; without records the steps' own times
    copies,   ///< copies and fills of a program
    overlap,  ///< what several streams of a program did at the same time, which the lines above count twice; negative
    launch,   ///< gaps up to the latency of a graph's node for each kernel
    dependency,  ///< gaps beyond that
    host_wait,   ///< a program's gaps before work that was launched only meanwhile
    queued,      ///< a program's other gaps
    recording,   ///< what records add to the sum of kernels and gaps, calibrated; negative
    records,     ///< a program's iteration without records, less one with them: its kernels have no calibration
    drift,       ///< the timing run against the runs between the records: the machine's state (clock, power) moved
    residual,    ///< what is left
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
    double gaps_us() const {
        return (*this)[Line::launch] + (*this)[Line::dependency] + (*this)[Line::host_wait] + (*this)[Line::queued];
    }
    Lines& operator+=(const Lines& other);
};

/// One step's lines: kernels and gaps; zero where it was not timed.
Lines lines_of(const StepFacts& step);

/// Steps summed: one op kind, one layer of all blocks, or the model.
struct BreakdownGroup {
    std::string name;
    std::size_t steps = 0;
    double time_us = 0;
    Lines lines;
    RoofTimeSums roof_times;
};

/// The time breakdown's share of an op kind beside its marginal cost.
struct MarginalCheck {
    std::string op;
    /// Kernels, gaps and recording of its steps; the interval holds what the time breakdown does not know of them: the
    /// correction for records, and as large a share of them as residual and drift have of the whole.
    double breakdown_ms = 0, breakdown_low_ms = 0, breakdown_high_ms = 0;
    double marginal_ms = 0, marginal_low_ms = 0, marginal_high_ms = 0;
    bool agrees = true;   ///< the intervals meet
    std::string finding;  ///< where they do not: by how much, and what would explain it
};

struct TimeBreakdown {
    std::string unavailable;   ///< why there is none (the point has no times); empty when there is one
    double end_to_end_us = 0;  ///< headline median, without a profiler
    Lines total;               ///< sums to end_to_end_us
    RoofTimeSums roof_times;   ///< those of all steps
    double starts_us = 0;      ///< those of all steps
    std::vector<BreakdownGroup> by_layer, by_op;  ///< slowest first; without recording, drift and residual
    std::vector<MarginalCheck> marginal;
    std::string roofs_unavailable;  ///< why there are no roof times; empty when there are
    double residual_share() const;
    /// Drift and residual, each without its sign, of the end-to-end time: neither is explained, and the headline's own
    /// time is in one of them, so that they cannot cancel.
    double unexplained_share() const;
    bool closes() const;  ///< there is one, and what is unexplained is within closing_tolerance
};
inline constexpr double closing_tolerance = 0.02;

/// `roof_times` and `units`: one a step; none where the point was not timed.
TimeBreakdown break_down(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                         std::span<const UnitActivity> units, const CycleAccounts& cycles);

}  // namespace kbench
