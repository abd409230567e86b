#include "analysis/explain/cross_checks.h"

#include <algorithm>

namespace kbench {
namespace {

bool is_of_tensor_cores(const RoofTime& roof_time) {
    const std::string& ceiling = roof_time.roof.ceiling;
    return ceiling.ends_with("_tensor") || ceiling.ends_with("_mma_sync");
}

/// Sums the steps whose FLOPs are tensor cores' and whose pipe was counted.
CrossCheck tensor_pipe(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                       const CycleAccounts& cycles) {
    CrossCheck cross_check{
        "FLOPs over the roof of tensor cores, at the run's clock", "active cycles of the tensor pipe", 0, 0,
        "a roof that does not fill the pipe, instructions that take it longer or shorter a FLOP than the roof's, HFMA2.MMA that moves constants"};
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        const auto active = facts.steps[i].counters.tensor_pipe_active;
        const RoofTime* roof_time = roof_times[i].at({});
        const CycleAccount& account = cycles.steps[i];
        if (!active || roof_time == nullptr || !is_of_tensor_cores(*roof_time) || !account.unavailable.empty())
            continue;
        cross_check.first_us += roof_time->run_us.value;
        cross_check.second_us += *active / 100 * (1 - account.no_warp) * account.time_us;
    }
    return cross_check;
}

/// Sums the kernels that have a grid, in steps whose account has it.
CrossCheck last_waves(const PointFacts& facts, const CycleAccounts& cycles) {
    CrossCheck cross_check{
        "SMs without a warp while another one has one", "what grids leave empty in their last wave", 0, 0,
        "an SM with room for several blocks that still has one of them, blocks that take unlike times, a grid that walks over its work"};
    for (std::size_t i = 0; i < facts.steps.size(); ++i) {
        const std::vector<KernelResult>& kernels = facts.steps[i].step->kernels;
        const CycleAccount& account = cycles.steps[i];
        if (!account.uneven || kernels.empty()) continue;
        double lost_us = 0;
        const bool known = std::ranges::all_of(kernels, [&](const KernelResult& kernel) {
            lost_us += kernel.lost_in_last_wave_pct.value.value_or(0) / 100 * kernel.time_us;
            return kernel.lost_in_last_wave_pct.value.has_value();
        });
        if (!known) continue;
        cross_check.first_us += *account.uneven * account.time_us;
        cross_check.second_us += lost_us;
    }
    return cross_check;
}

CrossCheck marginal_costs(const PointFacts& facts) {
    CrossCheck cross_check{
        "end to end", "marginal costs of all op kinds", facts.end_to_end_us, 0,
        "steps that overlap with their neighbours, caches that a second run finds warm or leaves evicted"};
    const std::vector<MarginalCost>& costs = facts.point->marginal;
    for (const MarginalCost& cost : costs) cross_check.second_us += cost.difference_ms.summary_ms.median * 1e3;
    for (const NamedSteps& op : facts.by_op)
        if (std::ranges::find(costs, op.name, &MarginalCost::op) == costs.end()) cross_check.second_us = 0;
    return cross_check;
}

}  // namespace

std::vector<CrossCheck> cross_check_all(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                        const CycleAccounts& cycles) {
    std::vector<CrossCheck> cross_checks;
    if (!facts.unavailable.empty()) return cross_checks;
    const auto add = [&cross_checks](CrossCheck cross_check) {
        if (cross_check.first_us > 0 && cross_check.second_us > 0) cross_checks.push_back(std::move(cross_check));
    };
    add(tensor_pipe(facts, roof_times, cycles));
    if (cycles.unavailable.empty()) add(last_waves(facts, cycles));
    add(marginal_costs(facts));
    return cross_checks;
}

}  // namespace kbench
