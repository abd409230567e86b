// Serial correlation by ranks (Wald and Wolfowitz, Annals of Mathematical Statistics 14, 1943).
#include "analysis/result/correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

namespace kbench {
namespace {

constexpr double normal_95 = 1.6448536269514722;
constexpr double most_correlated = 0.995;
constexpr double least_term = 1e-3;  // where the series of correlations is cut off

/// The rank of each sample, less the mean of all ranks.
std::vector<double> centred_ranks(std::span<const double> samples) {
    const std::size_t n = samples.size();
    std::vector<std::pair<double, std::size_t>> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = {samples[i], i};
    std::ranges::sort(order);
    std::vector<double> ranks(n);
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && order[end].first == order[begin].first) ++end;
        for (std::size_t i = begin; i < end; ++i)
            ranks[order[i].second] = 0.5 * static_cast<double>(begin + end - 1) - 0.5 * static_cast<double>(n - 1);
    }
    return ranks;
}

}  // namespace

NeighbourCorrelation correlation_of_neighbours(std::span<const double> samples) {
    const std::vector<double> ranks = centred_ranks(samples);
    double squares = 0, neighbours = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        squares += ranks[i] * ranks[i];
        if (i > 0) neighbours += ranks[i] * ranks[i - 1];
    }
    if (!(squares > 0)) return {};
    const double seen = 2 * std::sin(std::numbers::pi / 6 * neighbours / squares),
                 n = static_cast<double>(ranks.size());
    const double value = std::clamp(seen + (1 + 3 * seen) / n, -1.0, 1.0);
    return {value, std::min(1.0, value + normal_95 * std::sqrt((1 - value * value) / n))};
}

double median_inflation(double correlation) {
    double inflation = 1;
    const double first = std::min(correlation, most_correlated);
    for (double apart = first; apart > least_term; apart *= first) inflation += 4 / std::numbers::pi * std::asin(apart);
    return inflation;
}

}  // namespace kbench
