// Comparison of results: how much longer the second takes, which of its steps, whether that follows the machines'
// bandwidth or their FLOP/s, what it costs, and whether it is a regression. Pure arithmetic; docs/compare.md has the
// rules and their limits. Every ratio is the later run's value over the first one's unless it says otherwise.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/run_spread.h"
#include "analysis/explain/in_short.h"
#include "analysis/explain/verdict.h"
#include "analysis/machine/ceilings.h"
#include "analysis/result/interval.h"
#include "analysis/result/match.h"

namespace kbench {

/// What one row of the steps is.
enum class CompareBy { layer, op, step };
inline constexpr std::string_view compare_by_names[] = {"layer", "op", "step"};

struct CompareOptions {
    CompareBy by = CompareBy::layer;
    std::optional<double> fail_above;      ///< 0.03: a regression is more than 3 % slower
    std::map<std::string, double> prices;  ///< dollars an hour, by the result's name
};

/// Which ratio of roofs a ratio of times follows.
enum class Fit { bandwidth, flops, either, neither, untested };
inline constexpr std::string_view fit_names[] = {"bandwidth", "FLOP/s", "either", "neither", "untested"};
inline constexpr std::size_t fit_count = std::size(fit_names);
constexpr std::string_view name(Fit fit) { return fit_names[static_cast<int>(fit)]; }

/// A ratio of times follows a ratio of roofs when that lies in its interval widened by this factor either way: two
/// machines seldom reach the same share of a roof. Two ratios of roofs within this factor cannot be told apart.
inline constexpr double fit_tolerance = 1.3;

/// Roofs within this factor are those of one machine, measured twice.
inline constexpr double same_roofs_tolerance = 1.05;

/// What the ratio of times would be if one roof bound both runs alike: the first run's roof over the later one's.
struct RatioTest {
    std::optional<double> bandwidth, flops;
    bool fits_bandwidth = false, fits_flops = false;  ///< each by itself
    Fit fit = Fit::untested;                          ///< both together
};
/// `either` when both fit, or when one does and the two are within fit_tolerance of each other.
RatioTest test_ratio(const Interval& times, std::optional<double> bandwidth, std::optional<double> flops);

/// One run's steps of a group.
struct GroupSide {
    std::size_t steps = 0;
    Interval time_us;  ///< device time; the interval is the step run's, in proportion
    double flops = 0;  ///< the cost model's
    double dram_bytes = 0;
    Origin dram_origin = Origin::measured;  ///< the weakest of its steps'; derived: the cost model's bytes
    double compute_us = 0;                  ///< the roof times of its units; 0 without roofs
    std::array<double, std::size(bound_names)> bound_us{};  ///< its time by the verdict of each step

    Interval tflop_per_s() const;
    Interval dram_gb_per_s() const;
    /// The verdict with the most time; nothing without verdicts.
    std::optional<Bound> bound() const;
    double bound_share(Bound bound) const;  ///< a part of its time
};

/// Steps that compute the same ops in both runs, summed by layer (of all blocks), by op kind, or not at all.
struct GroupComparison {
    std::string name;  ///< the first run's steps' name, and the later one's where they differ
    GroupSide a, b;
    Interval ratio;  ///< later time over first
    RatioTest test;
};

enum class Change { regression, improvement, within_limit, cannot_tell };
inline constexpr std::string_view change_names[] = {"regression", "improvement", "within the limit", "cannot tell"};
constexpr std::string_view name(Change change) { return change_names[static_cast<int>(change)]; }
/// A regression when the whole interval is above 1 + limit, an improvement when all of it is below 1; `cannot_tell`
/// when it reaches from within the limit to beyond it.
Change judge_change(const Interval& ratio, double limit);

/// A sentence and what it speaks of.
struct Evidence {
    std::string about;  ///< naive test, by step, time breakdowns, answer
    std::string text;
};

/// The roofs that one point meets in one run.
struct PointRoofs {
    std::optional<Roof> bandwidth, matrix, plain;
    std::string unavailable;
};

/// One run's part in the comparison of a point.
struct PointSide {
    const Point* point = nullptr;
    std::string letter;  ///< "A", or the later run's
    Interval ms;         ///< end to end
    GroupSide all = {};  ///< all its steps, matched or not
    PointRoofs roofs = {};
    std::array<double, fit_count> fit = {};  ///< share of its matched steps' time by fit, judged by layer
    double unmatched_us = 0;                 ///< steps whose ops the other plan does not have
    std::optional<Verdict> verdict = {};     ///< what binds the model, where there are roofs
    BandwidthBound bandwidth = {};           ///< as the side's own report answers it

    const Summary& summary() const { return point->end_to_end->latency.summary_ms; }
};

struct PointComparison {
    PointSide a, b;
    std::string title = {};
    Interval ratio = {};        ///< end to end, later time over first
    Interval steps_ratio = {};  ///< the same of all steps' times
    RatioTest naive = {};       ///< the end-to-end ratio against the roofs; FLOP/s of matrix products
    bool same_roofs = false;
    std::vector<GroupComparison> groups = {};  ///< as asked for; the largest difference in time first
    std::vector<std::string> impossible = {};  ///< figures of either side that cannot be: then nothing is concluded
    std::vector<std::string> missing = {};     ///< what either side's figures lack for a conclusion, with its letter
    std::vector<Evidence> evidence = {};       ///< is it bandwidth?
    std::optional<Change> change = {};  ///< with fail_above; `cannot_tell`, too, where a side has fewer than 6 samples
    std::optional<RunSpread> spread = {};  ///< what single runs differ by; `change` is judged with it where it is known
    bool other_card = false;               ///< both GPUs are of one kind, but not the same one
    bool has_interval = false;  ///< both medians have one; else one of both `ms` has the range of all samples instead

    std::array<const PointSide*, 2> sides() const { return {&a, &b}; }
    /// Whether the figures of both carry conclusions on what binds.
    bool concludes() const { return impossible.empty() && missing.empty(); }
};

/// A later run beside the first.
struct PairComparison {
    std::size_t b = 0;  ///< its place among the runs
    std::vector<PointComparison> points;
    std::vector<std::string> left_out;  ///< points that only one of them measured
};

/// What a point costs on one of the machines.
struct ValueRow {
    std::size_t run = 0;
    Interval latency_ms;
    std::optional<double> sequences_per_s;  ///< like prices and energy nothing where the point has no sequences
    std::optional<Interval> dollars_per_million_sequences, dollars_per_million_tokens;
    std::optional<double> latency_bandwidth_gb;  ///< latency times DRAM's roof: what it could have moved meanwhile
    std::optional<Quantity> energy_per_sequence_j;
};
/// A point that all runs measured.
struct ValueTable {
    const Point* point = nullptr;  ///< the first run's
    std::vector<ValueRow> rows;    ///< cheapest first, without prices fastest first
};

struct Comparison {
    std::vector<const NamedResult*> runs;  ///< the first is the one that all others are set against
    CompareOptions options;
    std::vector<PairComparison> pairs;
    std::vector<ValueTable> values;
    std::vector<std::string> regressions;  ///< one line each
};

/// `runs`, two or more of distinct names, must outlive the comparison. Throws UsageError, one line, when two have no
/// point in common or a price names none of them.
Comparison compare(std::span<const NamedResult> runs, const CompareOptions& options);

/// "A" for the first run, "B" for the second.
std::string run_letter(std::size_t run);

/// Is it bandwidth? The naive test, the test by step, what both time breakdowns say, and the answer or why there is
/// none.
std::vector<Evidence> evidence_of(const PointComparison& point);

/// The rows of every point that all runs measured.
std::vector<ValueTable> value_tables(std::span<const NamedResult> runs, const std::map<std::string, double>& prices);

}  // namespace kbench
