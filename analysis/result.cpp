// The figures that follow from a result's fields; see result.h.
#include "analysis/result.h"

#include <numeric>

namespace kbench {
namespace {

/// `amount` per microsecond of the step's median time; 0 without a time.
double per_us(double amount, const std::optional<Summary>& time_us) {
    return time_us && time_us->median > 0 ? amount / time_us->median : 0;
}

}  // namespace

double StepResult::tflop_per_s() const { return per_us(cost.flops, time_us) * 1e-6; }

double StepResult::gb_per_s() const { return per_us(cost.bytes(), time_us) * 1e-3; }

std::int64_t MemoryPlan::total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

}  // namespace kbench
