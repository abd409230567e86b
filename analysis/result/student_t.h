// Student's t distribution.
#pragma once

namespace kbench {

/// Where the normal distribution has 97.5 % below: intervals of 95 %.
inline constexpr double normal_975 = 1.959963984540054;

/// Where it has `share` below, from a half up to less than 1; within 0.00045 (Abramowitz and Stegun, 26.2.23).
double normal_quantile(double share);

/// The quantile of Student's t that the normal distribution has at `z`, within 0.3 % from 5 degrees of freedom on
/// (Abramowitz and Stegun, 26.7.5).
double student_t(double z, double degrees);

}  // namespace kbench
