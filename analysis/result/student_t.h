// Student's t distribution.
#pragma once

namespace kbench {

/// Where the normal distribution has 97.5 and 98.75 % below: intervals of 95 and 97.5 %.
inline constexpr double normal_975 = 1.959963984540054, normal_9875 = 2.241402727604947;

/// The quantile of Student's t that the normal distribution has at `z`, within 0.3 % from 5 degrees of freedom on
/// (Abramowitz and Stegun, 26.7.5).
double student_t(double z, double degrees);

}  // namespace kbench
