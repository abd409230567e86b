// Pairs of runs are looked at a few times; each look has an interval of its own.
#include "analysis/compare/ab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/compare/run_spread.h"
#include "analysis/result/signed_rank.h"
#include "analysis/result/student_t.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// How often one look at one point may err.
constexpr double one_look = 0.025;

double median_of(std::span<const AbPair> pairs, double AbPair::*side) {
    std::vector<double> figures;
    for (const AbPair& pair : pairs) figures.push_back(pair.*side);
    return summarise(figures).median;
}

std::vector<const Point*> done_points(const NamedResult& run) {
    std::vector<const Point*> done;
    for (const Point& point : run.result.points)
        if (is_measured(point)) done.push_back(&point);
    return done;
}

double latency_ms(const NamedResult& run, const Point& point) {
    const double ms = point.end_to_end->latency.summary_ms.median;
    if (!(ms > 0)) throw MeasurementError(fmt::format("{}: a latency of {} ms", run.path, ms));
    return ms;
}

/// B over A of each pair; empty where a figure is not positive.
std::vector<double> ratios_of(std::span<const AbPair> pairs) {
    std::vector<double> ratios;
    for (const AbPair& pair : pairs) {
        if (!(pair.a > 0 && pair.b > 0)) return {};
        ratios.push_back(pair.b / pair.a);
    }
    return ratios;
}

std::vector<double> logarithms_of(std::span<const double> values) {
    std::vector<double> logarithms;
    for (const double value : values) logarithms.push_back(std::log(value));
    return logarithms;
}

/// The mean of the values' logarithms, with the interval of Student's t that misses it in `error` of all cases.
Interval mean_logarithm(std::span<const double> values, double error) {
    const auto count = static_cast<double>(values.size());
    double mean = 0;
    for (const double logarithm : logarithms_of(values)) mean += logarithm / count;
    const double half = student_t(normal_quantile(1 - error / 2), count - 1) * log_deviation(values) / std::sqrt(count);
    return {mean, mean - half, mean + half};
}

/// Half of what one more in the last digit of `figure` adds, of a side that prints with `most` digits.
double half_step(double figure, const Digits& most) {
    const int first_digit = static_cast<int>(std::floor(std::log10(figure)));
    return std::pow(10.0, std::max(-most.decimals, first_digit + 1 - most.significant)) / 2;
}

Digits most_digits(std::span<const AbPair> pairs, Digits AbPair::*side) {
    Digits most{.decimals = std::numeric_limits<int>::min(), .significant = 1};
    for (const AbPair& pair : pairs) {
        most.decimals = std::max(most.decimals, (pair.*side).decimals);
        most.significant = std::max(most.significant, (pair.*side).significant);
    }
    return most;
}

/// The least and the largest ratios of figures that would have been printed as those of `pairs`.
std::pair<std::vector<double>, std::vector<double>> rounded_ratios(std::span<const AbPair> pairs) {
    const Digits a_most = most_digits(pairs, &AbPair::a_digits), b_most = most_digits(pairs, &AbPair::b_digits);
    std::vector<double> least, largest;
    for (const AbPair& pair : pairs) {
        const double a_half = half_step(pair.a, a_most), b_half = half_step(pair.b, b_most);
        least.push_back((pair.b - b_half) / (pair.a + a_half));
        largest.push_back((pair.b + b_half) / (pair.a - a_half));
    }
    return {least, largest};
}

}  // namespace

PairCorrelation pair_correlation(std::span<const AbPair> pairs) {
    const std::vector<double> ratios = ratios_of(pairs);
    if (ratios.empty()) return {};
    PairCorrelation found{correlation_of_neighbours(ratios)};
    const double noise =
        1 / std::sqrt(static_cast<double>(ratios.size()));  // one standard deviation where there is none
    const auto& [value, high] = found.of_ratios;
    const double r = std::clamp(value > noise ? high : value, 0.0, most_pair_correlation);
    found.widening = std::sqrt((1 + r) / (1 - r));
    return found;
}

std::size_t next_ab_look(std::size_t pairs, AbMetric metric) {
    const std::size_t fewest = info(metric).fewest_pairs;
    return pairs < fewest ? fewest : pairs + pairs / 2;
}

std::optional<Interval> paired_ratio(std::span<const AbPair> pairs, std::size_t points, AbMetric metric) {
    const std::vector<double> ratios = ratios_of(pairs);
    if (ratios.size() < info(metric).fewest_pairs) return std::nullopt;
    const PairCorrelation correlation = pair_correlation(pairs);
    if (correlation.is_too_much()) return std::nullopt;
    const double error = one_look / static_cast<double>(points);
    const auto interval_of = [&](std::span<const double> of) -> std::optional<Interval> {
        const std::optional<Interval> centre =
            metric == AbMetric::latency ? mean_logarithm(of, error) : hodges_lehmann(logarithms_of(of), error);
        if (!centre) return std::nullopt;
        const auto& [value, low, high] = *centre;
        return Interval{std::exp(value), std::exp(value - (value - low) * correlation.widening),
                        std::exp(value + (high - value) * correlation.widening)};
    };
    std::optional<Interval> ratio = interval_of(ratios);
    if (!ratio || pairs.front().a_digits.significant == 0) return ratio;
    const auto& [least, largest] = rounded_ratios(pairs);
    ratio->low = interval_of(least)->low;
    ratio->high = interval_of(largest)->high;
    return ratio;
}

std::optional<Interval> AbPoint::unrounded_ratio() const {
    std::vector<AbPair> exact = pairs;
    for (AbPair& pair : exact) pair.a_digits = pair.b_digits = {};
    return paired_ratio(exact, among, metric);
}

double half_width(const Interval& ratio) {
    return std::max(ratio.high - ratio.value, ratio.value - ratio.low) / ratio.value;
}

double largest_difference(const Interval& ratio) { return std::max(ratio.high - 1, 1 - ratio.low); }

std::string_view name(AbVerdict verdict, AbMetric metric) {
    switch (verdict) {
        case AbVerdict::higher: return info(metric).is_time ? "slower" : "higher";
        case AbVerdict::lower: return info(metric).is_time ? "faster" : "lower";
        case AbVerdict::small_difference: return "a small difference";
        case AbVerdict::cannot_tell: break;
    }
    return "cannot tell";
}

AbVerdict AbPoint::verdict(double target) const {
    const std::optional<Interval> known = ratio();
    if (!known) return AbVerdict::cannot_tell;
    if (known->low > 1) return AbVerdict::higher;
    if (known->high < 1) return AbVerdict::lower;
    return half_width(*known) <= target ? AbVerdict::small_difference : AbVerdict::cannot_tell;
}

double AbPoint::a() const { return median_of(pairs, &AbPair::a); }
double AbPoint::b() const { return median_of(pairs, &AbPair::b); }

AbPoint& AbComparison::point(const std::string& title) {
    auto found = std::ranges::find(points, title, &AbPoint::title);
    if (found == points.end()) found = points.insert(found, AbPoint{.title = title, .metric = metric});
    return *found;
}

bool AbComparison::is_known() const {
    return !points.empty() && std::ranges::all_of(points, [this](const AbPoint& point) {
        const std::optional<Interval> ratio = point.ratio();
        return ratio && half_width(*ratio) <= target;
    });
}

std::vector<const AbPoint*> AbComparison::regressions() const {
    std::vector<const AbPoint*> found;
    for (const AbPoint& point : points) {
        const std::optional<Interval> ratio = point.ratio();
        if (!ratio) continue;
        if ((fail_above && ratio->low > 1 + *fail_above) || (fail_below && ratio->high < 1 - *fail_below))
            found.push_back(&point);
    }
    return found;
}

std::vector<std::pair<std::string, AbPair>> ab_times(const NamedResult& a, const NamedResult& b) {
    const auto of_a = done_points(a), of_b = done_points(b);
    if (a.result.points.size() == 1 && b.result.points.size() == 1 && of_a.size() == 1 && of_b.size() == 1)
        return {{"", {latency_ms(a, *of_a.front()), latency_ms(b, *of_b.front())}}};
    std::vector<std::pair<std::string, AbPair>> times;
    for (const auto& [mine, theirs] : match_points(a, b))
        times.push_back({match_title(*mine), {latency_ms(a, *mine), latency_ms(b, *theirs)}});
    return times;
}

}  // namespace kbench
