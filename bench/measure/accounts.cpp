// Kernels with clocks in them: where the time of a dependent step goes.
#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/parts.h"
#include "bench/measure/progress.h"
#include "kbench/error.h"

namespace kbench {

void account_for_steps(const PartContext& at) {
    std::vector<StepResult>& steps = at.point.steps;
    const auto has_several = [](const StepResult& step) { return step.dependent_steps.has_value(); };
    // Only GPUs have such kernels; and where the latency alone was asked for nothing more is told of a step.
    if (!at.device.is_gpu() || at.options().activity_runs == 0 || std::ranges::none_of(steps, has_several)) return;
    at.begin("accounts of steps");
    const PhaseTimer timer(at.point, "accounts");
    try {
        // All steps in their order: where a step's operands lie others write later.
        for (std::size_t s = 0; s < steps.size(); ++s) {
            const std::size_t planned = at.plan.first_timed() + s;
            at.plan.run_step(planned, at.device.stream());
            if (has_several(steps[s])) steps[s].account = at.plan.account_of_step(planned, at.device.stream());
        }
        at.device.synchronize();
    } catch (const Error& error) {
        at.require_device();
        at.warn(fmt::format("where dependent steps spend their time is not known: {}", error.what()));
    }
}

}  // namespace kbench
