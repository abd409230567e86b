// Order statistics; see statistics.h. Samples are few (at most some thousands), so everything is computed from one
// sort.
#include "kbench/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kbench/error.h"

namespace kbench {
namespace {

constexpr double confidence = 0.95;
constexpr double normal_quantile = 1.959963984540054;  // of (1 + confidence) / 2
constexpr std::size_t smallest_n_with_interval = 6;    // 1 - 2 * 2^-6 = 96.9 %, but 1 - 2 * 2^-5 = 93.8 %
constexpr std::size_t largest_exact_n = 1000;          // 2^-n must stay a normal number

/// Type 7 of Hyndman and Fan: the value at fraction `p` of the way along the sorted samples.
double percentile(std::span<const double> sorted, double p) {
    const double position = p * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// The largest rank r (from 1) for which order statistics r and n + 1 - r enclose the median with the wanted
/// confidence: 1 - 2 P(Binomial(n, 1/2) < r) >= confidence (David and Nagaraja, Order Statistics, 2003, section 7.1).
std::size_t lower_rank(std::size_t n) {
    const double count = static_cast<double>(n);
    if (n > largest_exact_n)  // normal approximation with continuity correction
        return static_cast<std::size_t>((count + 1 - normal_quantile * std::sqrt(count)) / 2);
    double probability = std::ldexp(1.0, -static_cast<int>(n));  // of exactly `rank` samples below the median
    double below = probability;                                  // of at most `rank`
    std::size_t rank = 0;
    while (2 * below <= 1 - confidence) {
        probability *= static_cast<double>(n - rank) / static_cast<double>(rank + 1);
        ++rank;
        below += probability;
    }
    return rank;
}

}  // namespace

bool Summary::has_interval() const { return n >= smallest_n_with_interval; }

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
    const bool has_interval = n >= smallest_n_with_interval;
    const std::size_t rank = has_interval ? lower_rank(n) : 1;
    return {.n = n,
            .min = sorted.front(),
            .max = sorted.back(),
            .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(n),
            .median = percentile(sorted, 0.50),
            .p25 = percentile(sorted, 0.25),
            .p75 = percentile(sorted, 0.75),
            .p90 = percentile(sorted, 0.90),
            .p95 = percentile(sorted, 0.95),
            .p99 = percentile(sorted, 0.99),
            .ci_low = sorted[rank - 1],
            .ci_high = sorted[n - rank]};
}

}  // namespace kbench
