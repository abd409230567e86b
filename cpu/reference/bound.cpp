// The largest error that a correct implementation may show.
#include <algorithm>
#include <cmath>

#include "cpu/reference/reference.h"

namespace kbench::reference {
namespace {

/// What may be lost below the normal range. fp16 keeps subnormals, so half their spacing; other types may flush to
/// zero, once while computing and once while storing.
double underflow(DataType stored) {
    switch (stored) {
        case DataType::fp16: return 0x1p-25;
        case DataType::bf16:
        case DataType::fp32: return 0x1p-125;
        case DataType::fp64: return 0x1p-1021;
        case DataType::int32: break;
    }
    return 0.0;
}

bool on_tensor_cores(Precision precision) {
    return precision == Precision::fp16 || precision == Precision::bf16 || precision == Precision::tf32;
}

/// Effective number of roundings in a sum: the square root, because their signs are random. When there are few, nearly
/// all have the same sign in some of a million sums: a sum of 8 was off by 1.1 times what the root allows.
double roundings(double terms) { return std::min(terms, std::sqrt(terms) + 4.0); }

}  // namespace

double error_bound(const Expected& expected, Precision precision, DataType stored) {
    if (std::isinf(expected.value)) return 0.0;
    const double sum = accumulator_roundoff(precision) * (on_tensor_cores(precision) ? 2.0 : 1.0);
    const double input = precision == Precision::tf32 ? 2.0 * unit_roundoff(precision) : 0.0;
    return unit_roundoff(stored) * std::abs(expected.value) + underflow(stored) +
           sum * (roundings(static_cast<double>(expected.terms)) * expected.magnitude + deviations * expected.carried) +
           deviations * (unit_roundoff(precision) * expected.inner + input * expected.inputs);
}

bool agrees(double computed, const Expected& expected, Precision precision, DataType stored) {
    return computed == expected.value ||
           std::abs(computed - expected.value) <= error_bound(expected, precision, stored);
}

}  // namespace kbench::reference
