#include "analysis/explain/cross_checks.h"

#include <algorithm>

namespace kbench {
namespace {

bool is_of_tensor_cores(const Demand& demand) {
    const std::string& ceiling = demand.roof.ceiling;
    return ceiling.ends_with("_tensor") || ceiling.ends_with("_mma_sync");
}

/// Sums the steps whose FLOPs are tensor cores' and whose pipe was counted.
Closure tensor_pipe(const PointFacts& facts, std::span<const StepDemands> demands, const CycleAccounts& cycles) {
    Closure closure{
        "FLOPs over the roof of tensor cores, at the run's clock", "active cycles of the tensor pipe", 0, 0,
        "a roof that does not fill the pipe, instructions that take it longer or shorter a FLOP than the roof's, HFMA2.MMA that moves constants"};
    for (std::size_t i = 0; i < demands.size(); ++i) {
        const auto active = facts.steps[i].counters.tensor_pipe_active;
        const Demand* demand = demands[i].at({});
        const CycleAccount& account = cycles.steps[i];
        if (!active || demand == nullptr || !is_of_tensor_cores(*demand) || !account.unavailable.empty()) continue;
        closure.first_us += demand->run_us.value;
        closure.second_us += *active / 100 * (1 - account.no_warp) * account.time_us;
    }
    return closure;
}

/// Sums the kernels that have a grid, in steps whose account has it.
Closure last_waves(const PointFacts& facts, const CycleAccounts& cycles) {
    Closure closure{
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
        closure.first_us += *account.uneven * account.time_us;
        closure.second_us += lost_us;
    }
    return closure;
}

Closure marginal_costs(const PointFacts& facts) {
    Closure closure{"end to end", "marginal costs of all op kinds", facts.end_to_end_us, 0,
                    "steps that overlap with their neighbours, caches that a second run finds warm or leaves evicted"};
    const std::vector<MarginalCost>& costs = facts.point->marginal;
    for (const MarginalCost& cost : costs) closure.second_us += cost.difference_ms.summary_ms.median * 1e3;
    for (const NamedSteps& op : facts.by_op)
        if (std::ranges::find(costs, op.name, &MarginalCost::op) == costs.end()) closure.second_us = 0;
    return closure;
}

}  // namespace

std::vector<Closure> second_accounts(const PointFacts& facts, std::span<const StepDemands> demands,
                                     const CycleAccounts& cycles) {
    std::vector<Closure> closures;
    if (!facts.unavailable.empty()) return closures;
    const auto add = [&closures](Closure closure) {
        if (closure.first_us > 0 && closure.second_us > 0) closures.push_back(std::move(closure));
    };
    add(tensor_pipe(facts, demands, cycles));
    if (cycles.unavailable.empty()) add(last_waves(facts, cycles));
    add(marginal_costs(facts));
    return closures;
}

}  // namespace kbench
