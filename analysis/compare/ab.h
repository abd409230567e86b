// Two sides run in turn: how much higher a figure is of one than of the other, such as its time, from pairs of runs
// next to each other in time. What differs from run to run is in every pair, what drifts slowly is in neither.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/result/correlation.h"
#include "analysis/result/interval.h"
#include "analysis/result/match.h"

namespace kbench {

/// With how many digits a number was printed: 2 decimals and 3 significant ones of "3.50", -2 and 2 of "1.2e+03".
struct Digits {
    int decimals = 0, significant = 0;  ///< no significant ones: it was not rounded
};

/// Figures of two runs, one of each side: a time in ms, or a number that both printed.
struct AbPair {
    double a = 0, b = 0;
    Digits a_digits = {}, b_digits = {};
};

/// What is compared: the median latency of a kbench's run, the time of a whole command, or a number that it prints.
enum class AbMetric { latency, wall, printed };
struct AbMetricInfo {
    std::string_view name;
    bool is_time;
    /// Fewer say too little of how much pairs differ. Signed ranks take a few ratios that happen to have one sign for a
    /// difference, so that they begin later.
    std::size_t fewest_pairs;
};
inline constexpr AbMetricInfo ab_metrics[] = {{"latency", true, 6}, {"wall", true, 10}, {"printed", false, 10}};
constexpr const AbMetricInfo& info(AbMetric metric) { return ab_metrics[static_cast<int>(metric)]; }
/// After how many pairs to look next, having looked at so many: an interval that is looked at after each run and
/// believed once it is narrow is narrow by chance.
std::size_t next_ab_look(std::size_t pairs, AbMetric metric = AbMetric::latency);

/// The side of run `run`, from 0: A B B A A B B A, so that what drifts evenly adds as much to the one as to the other.
constexpr char ab_side(std::size_t run) { return run % 4 == 0 || run % 4 == 3 ? 'A' : 'B'; }

/// From how much on the ratios of neighbouring pairs may correlate for them to have no interval: they then say less
/// than their number promises, by a factor that so few pairs do not show.
inline constexpr double most_pair_correlation = 0.8;

/// How much ratios of neighbouring pairs correlate, and what that does to the interval of their mean.
struct PairCorrelation {
    NeighbourCorrelation of_ratios;
    /// How many times as wide it makes the interval: the root of (1 + r) / (1 - r), with r at its upper end where it
    /// stands out of the noise.
    double widening = 1;

    bool is_too_much() const { return of_ratios.high > most_pair_correlation; }
};
PairCorrelation pair_correlation(std::span<const AbPair> pairs);

/// B's figure over A's with its interval, which is wider where neighbouring pairs correlate. Latencies are medians of
/// many samples: the mean of the ratios' logarithms, by Student's t. Other figures have outliers: hodges_lehmann() of
/// the logarithms. One look at one point errs in 2.5 %, as there are several looks; of `points` points each has its
/// part of that. Where figures were rounded, an end is that of the least or largest ratios that could have been printed
/// so. A program may leave out zeros, so a side counts as printed with the most decimals or significant digits that any
/// of its figures has, whichever says less. None of fewer than fewest_pairs, where a figure is not positive, or where
/// pairs correlate too much.
std::optional<Interval> paired_ratio(std::span<const AbPair> pairs, std::size_t points = 1,
                                     AbMetric metric = AbMetric::latency);

/// Half its width, in both directions the larger: 0.004 is 0.4 %.
double half_width(const Interval& ratio);
/// The largest difference, either way, that the interval does not exclude: 0.008 is 0.8 %.
double largest_difference(const Interval& ratio);

/// What B is, compared with A.
enum class AbVerdict { higher, lower, small_difference, cannot_tell };

/// "slower" or "faster" of times, "higher" or "lower" of other figures.
std::string_view name(AbVerdict verdict, AbMetric metric);

/// What both sides measured of one point.
struct AbPoint {
    std::string title;  ///< empty where there is one point
    std::vector<AbPair> pairs = {};
    std::size_t among = 1;  ///< points that are compared
    AbMetric metric = AbMetric::latency;

    std::optional<Interval> ratio() const { return paired_ratio(pairs, among, metric); }
    /// As if figures were exact.
    std::optional<Interval> unrounded_ratio() const;
    PairCorrelation correlation() const { return pair_correlation(pairs); }
    /// B compared with A. A small difference: the ratio's interval contains 1 and is within `target` of its middle, so
    /// that neither is known to be higher, and they differ by less than largest_difference().
    AbVerdict verdict(double target) const;
    double a() const;  ///< median of its runs
    double b() const;
};

struct AbSide {
    std::string name;              ///< "A" or "B"
    std::string command;           ///< as it was run, without what kbench ab adds
    std::string revision, device;  ///< those of its first run
};

struct AbComparison {
    AbSide a, b;
    AbMetric metric = AbMetric::latency;
    std::string pattern;    ///< the regular expression that finds what is printed
    double target = 0.005;  ///< wanted half_width of every ratio
    std::optional<double> fail_above, fail_below;
    std::string started_at;
    std::string ended;  ///< why: "every interval is narrow enough", "the budget of 300 s is spent", ...
    bool verified = false;
    std::string machine;  ///< that of commands: its CPU and GPUs
    std::vector<AbPoint> points;

    /// The one of this title, which is made where there is none.
    AbPoint& point(const std::string& title);

    /// Whether every ratio is known well enough.
    bool is_known() const;
    /// Points where B is higher than A by more than fail_above, or lower by more than fail_below, for certain.
    std::vector<const AbPoint*> regressions() const;
};

/// The end-to-end times of two results, by point: those that match; of results of one point, that one, whatever it
/// computes. Throws UsageError where nothing matches, MeasurementError where a point has no time.
std::vector<std::pair<std::string, AbPair>> ab_times(const NamedResult& a, const NamedResult& b);

}  // namespace kbench
