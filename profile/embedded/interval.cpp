#include "profile/embedded/interval.h"

#include <algorithm>
#include <cmath>

namespace kbench::embedded {
namespace {

/// The 97.5 % quantile of Student's t: tables up to four degrees of freedom, from there on Abramowitz and Stegun,
/// 26.7.5, which is within 0.3 %.
double student_975(double degrees) {
    constexpr double table[] = {12.7062, 4.3027, 3.1824, 2.7764};
    if (degrees < 5) return table[static_cast<int>(degrees) - 1];
    constexpr double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * degrees * degrees * degrees);
}

}  // namespace

Mean mean_of(std::span<const double> samples) {
    Mean mean;
    mean.n = samples.size();
    if (samples.empty()) return mean;
    const auto n = static_cast<double>(samples.size());
    for (const double sample : samples) mean.value += sample;
    mean.value /= n;
    if (samples.size() < 2) return mean;
    double squares = 0, products = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        squares += (samples[i] - mean.value) * (samples[i] - mean.value);
        if (i > 0) products += (samples[i] - mean.value) * (samples[i - 1] - mean.value);
    }
    constexpr double most = 0.99;  // a drift looks like that, and has no interval of any width
    const double correlation = squares > 0 ? std::clamp(products / squares, 0.0, most) : 0;
    const double of_mean = std::sqrt(squares / (n - 1) / n);
    mean.half_width = student_975(n - 1) * of_mean * std::sqrt((1 + correlation) / (1 - correlation));
    return mean;
}

}  // namespace kbench::embedded
