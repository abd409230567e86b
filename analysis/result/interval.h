// A figure with its 95 % interval, and the arithmetic that carries the interval along.
#pragma once

#include "kbench/statistics.h"

namespace kbench {

/// In the unit of whoever holds it. Sums and quotients take the ends together, as if all parts erred the same way:
/// wider than independent errors would give, never narrower.
struct Interval {
    double value = 0, low = 0, high = 0;

    static Interval exactly(double value) { return {value, value, value}; }
    /// The median and its interval.
    static Interval of(const Summary& summary) { return {summary.median, summary.ci_low, summary.ci_high}; }

    Interval& operator+=(const Interval& other) {
        value += other.value;
        low += other.low;
        high += other.high;
        return *this;
    }
    bool operator==(const Interval&) const = default;
};

/// Both ends times `factor`, which must not be negative.
inline Interval scaled(const Interval& interval, double factor) {
    return {interval.value * factor, interval.low * factor, interval.high * factor};
}

/// Over a positive interval; all zero where the divisor reaches 0.
inline Interval quotient(const Interval& over, const Interval& under) {
    if (!(under.low > 0)) return {};
    return {over.value / under.value, over.low / under.high, over.high / under.low};
}

}  // namespace kbench
