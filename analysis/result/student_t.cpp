// Quantiles of Student's t by approximations from Abramowitz and Stegun.
#include "analysis/result/student_t.h"

#include <cmath>

namespace kbench {

double normal_quantile(double share) {
    const double t = std::sqrt(-2 * std::log(1 - share));
    return t -
           (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

double student_t(double z, double degrees) {
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z, z9 = z7 * z * z;
    return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * std::pow(degrees, 3)) +
           (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * std::pow(degrees, 4));
}

}  // namespace kbench
