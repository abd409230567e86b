// The figures that follow from a result's fields.
#include "kbench/result.h"

#include <numeric>

namespace kbench {
namespace {

double per_us(double amount, const std::optional<double>& us) { return us && *us > 0 ? amount / *us : 0; }

}  // namespace

std::optional<double> StepResult::device_us() const {
    if (kernels.empty()) return time_us ? std::optional(time_us->median) : std::nullopt;
    double us = kernels.front().time_us;
    for (std::size_t k = 1; k < kernels.size(); ++k) us += kernels[k].gap_us + kernels[k].time_us;
    return us;
}

std::optional<double> StepResult::time_step_us() const {
    const std::optional<double> us = device_us();
    if (!us || time_steps.value_or(1) < 2) return std::nullopt;
    return *us / static_cast<double>(*time_steps);
}

double StepResult::tflop_per_s() const { return per_us(cost.flops, device_us()) * 1e-6; }

double StepResult::gb_per_s() const { return per_us(cost.bytes(), device_us()) * 1e-3; }

Precision Point::precision() const { return parse_precision(axes.text("precision")).value_or(Precision::fp32); }

std::int64_t MemoryPlan::total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

}  // namespace kbench
