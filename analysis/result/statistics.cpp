// Samples are few (at most some tens of thousands), so everything is computed from one sort.
#include "kbench/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/result/correlation.h"
#include "analysis/result/student_t.h"
#include "kbench/error.h"

namespace kbench {
namespace {

constexpr std::size_t fewest_blocks = 16, most_blocks = 64, least_block = 3;
constexpr double most_of_blocks = 0.4;  // correlation between neighbouring blocks, where longer ones can be had

/// Type 7 of Hyndman and Fan: the value at fraction `p` of the way along the sorted samples.
double percentile(std::span<const double> sorted, double p) {
    const double position = p * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// What the median's position is known to.
struct MedianSpread {
    double independent;  ///< samples
    double half_width;   ///< half the 95 % interval, as a share of the samples
};

/// The share of samples below the median in each of so many blocks of equal length.
std::vector<double> shares_below(std::span<const double> samples, double median, std::size_t blocks) {
    std::vector<double> below(blocks);
    for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t begin = block * samples.size() / blocks, end = (block + 1) * samples.size() / blocks;
        for (const double sample : samples.subspan(begin, end - begin))
            below[block] += sample < median ? 1 : sample == median ? 0.5 : 0;
        below[block] /= static_cast<double>(end - begin);
    }
    return below;
}

/// Half as many blocks, each twice as long, while neighbours still resemble each other much. Few samples show slow
/// changes badly, so their neighbours' correlation counts as well: at the upper end of what it may be for the width,
/// and for the number of independent samples where they do correlate.
MedianSpread spread_of(std::span<const double> samples, double median, const NeighbourCorrelation& neighbour) {
    const std::size_t n = samples.size();
    const bool correlates = neighbour.high > correlated_from;
    for (std::size_t blocks = std::min(n, std::clamp(n / least_block, fewest_blocks, most_blocks));; blocks /= 2) {
        const std::vector<double> below = shares_below(samples, median, blocks);
        const double count = static_cast<double>(blocks);
        const double mean = std::accumulate(below.begin(), below.end(), 0.0) / count;
        double squares = 0, neighbours = 0;
        for (std::size_t block = 0; block < blocks; ++block) {
            squares += (below[block] - mean) * (below[block] - mean);
            if (block > 0) neighbours += (below[block] - mean) * (below[block - 1] - mean);
        }
        const double seen = squares > 0 ? neighbours / squares : 0;
        // An estimated correlation is too low by (1 + 3 r) / blocks (Kendall, Biometrika 41, 1954).
        const double correlation = std::clamp(seen + (1 + 3 * seen) / count, 0.0, 0.97);
        if (correlation > most_of_blocks && blocks / 2 >= fewest_blocks) continue;
        const double inflation = (1 + correlation) / (1 - correlation);
        const double of_independent = 0.25 / static_cast<double>(n);  // the variance of the share, were all independent
        const double of_blocks = squares / std::max(count - 1, 1.0) / count * inflation;
        const auto variance = [&](double with) { return std::max(of_blocks, of_independent * median_inflation(with)); };
        const double degrees = std::max((count - 1) / inflation, 3.0);
        return {0.25 / variance(correlates ? neighbour.high : neighbour.value),
                student_t(normal_975, degrees) * std::sqrt(variance(neighbour.high))};
    }
}

}  // namespace

bool Summary::has_interval() const { return independent >= fewest_independent; }

double Summary::relative_ci() const {
    if (!has_interval()) return std::numeric_limits<double>::infinity();
    const double distance = std::max(median - ci_low, ci_high - median);
    return distance == 0 ? 0 : distance / std::abs(median);
}

Summary summarise(std::span<const double> samples) {
    if (samples.empty()) throw MeasurementError("no samples to summarise; at least one is needed");
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (!std::isfinite(samples[i]))
            throw MeasurementError(
                fmt::format("sample {} of {} is {}; samples must be finite", i + 1, samples.size(), samples[i]));

    std::vector<double> sorted(samples.begin(), samples.end());
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    const double median = percentile(sorted, 0.50);
    const NeighbourCorrelation neighbour = correlation_of_neighbours(samples);
    const MedianSpread spread = spread_of(samples, median, neighbour);
    const double needed = neighbour.high > correlated_from ? fewest_independent_of_correlated : fewest_independent;
    // So few degrees of freedom that nothing is excluded count as too few samples, whatever their number.
    const bool has_interval = spread.independent >= needed && spread.half_width < 0.5;
    // Too few count in proportion, so that an interval has fewest_independent of any series, and nothing else has.
    const double too_few = std::min(spread.independent * fewest_independent / needed, fewest_independent - 1);
    return {.n = n,
            .min = sorted.front(),
            .max = sorted.back(),
            .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(n),
            .median = median,
            .p25 = percentile(sorted, 0.25),
            .p75 = percentile(sorted, 0.75),
            .p90 = percentile(sorted, 0.90),
            .p95 = percentile(sorted, 0.95),
            .p99 = percentile(sorted, 0.99),
            .independent = has_interval ? spread.independent : too_few,
            .ci_low = has_interval ? percentile(sorted, 0.5 - spread.half_width) : sorted.front(),
            .ci_high = has_interval ? percentile(sorted, 0.5 + spread.half_width) : sorted.back()};
}

}  // namespace kbench
