// The softmax of a query's scores and its sum of values, with their errors: what every form of attention shares.
// Internal to cpu/reference/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cpu/reference/rows.h"

namespace kbench::reference {

// fp16 has a relative precision of 2^-11 down to this number.
inline constexpr double fp16_smallest_normal = 0x1p-14;
inline constexpr double exponential_roundings = 8.0;

/// The softmax of one query's scores, and the errors of its entries, in units relative to each entry.
struct Weights {
    std::vector<double> p;
    std::vector<double> carried;  ///< from the fp32 (fp64) arithmetic of the score
    std::vector<double> inputs;   ///< from rounding q and k, root-sum-square
    double smallest_normal;       ///< below this, an fp16 p loses relative accuracy
    double largest, log_sum;      ///< largest score; logarithm of the sum of exp(score - largest)
};

inline Weights weights_of(const std::vector<Dot>& products, double scale, std::int64_t head_size) {
    // Unnormalised weights are exp(s - max s) <= 1.
    double largest = scale * products[0].value, sum = 0;
    for (const Dot& product : products) largest = std::max(largest, scale * product.value);
    Weights weights;
    for (const Dot& product : products) {
        const double p = std::exp(scale * product.value - largest), magnitude = scale * product.magnitude;
        sum += p;
        weights.p.push_back(p);
        // The sum of products; then s and s - max s, each rounded once relative to its terms.
        weights.carried.push_back(std::sqrt(static_cast<double>(head_size)) * magnitude + 2.0 * magnitude +
                                  std::abs(largest) + exponential_roundings);
        weights.inputs.push_back(scale * std::sqrt(product.squares));
    }
    for (double& p : weights.p) p /= sum;
    weights.smallest_normal = fp16_smallest_normal / sum;
    weights.largest = largest;
    weights.log_sum = std::log(sum);
    return weights;
}

/// The sum of p v, with the errors of p: an error e_j of a score moves the result by p_j (v_j - result) e_j, because
/// the weights still sum to one.
inline Expected weighted_sum(const Weights& weights, const std::vector<double>& v, std::int64_t head_size) {
    double value = 0, magnitude = 0, carried = 0, inner = 0, inputs = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
        value += weights.p[j] * v[j];
        magnitude += weights.p[j] * std::abs(v[j]);
    }
    for (std::size_t j = 0; j < v.size(); ++j) {
        const double effect = weights.p[j] * (v[j] - value);
        carried += square(effect * weights.carried[j]);
        inner += square(std::max(weights.p[j], weights.smallest_normal) * v[j]);
        inputs += square(effect * weights.inputs[j]) + square(weights.p[j] * v[j]);
    }
    // |value| again, for the sum that p is divided by and for the division.
    return {value,
            magnitude + std::abs(value),
            static_cast<std::int64_t>(v.size()) + head_size,
            std::sqrt(carried),
            std::sqrt(inner),
            std::sqrt(inputs)};
}

}  // namespace kbench::reference
