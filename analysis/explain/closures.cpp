// See closures.h.
#include "analysis/explain/closures.h"

#include <algorithm>
#include <set>

#include "analysis/facts/counters.h"

namespace kbench {
namespace {

bool is_of_tensor_cores(const Demand& demand) {
    const std::string& ceiling = demand.roof.ceiling;
    return !demand.level && (ceiling.ends_with("_tensor") || ceiling.ends_with("_mma_sync"));
}

/// Of the steps whose FLOPs are tensor cores' and whose pipe was counted.
Closure tensor_pipe(const Ledger& ledger) {
    Closure closure{
        "FLOPs over the roof of tensor cores, at the run's clock", "active cycles of the tensor pipe", 0, 0,
        "a roof that does not fill the pipe, instructions that take it longer or shorter a FLOP than the roof's, HFMA2.MMA that moves constants"};
    for (const StepLedger& entry : ledger.steps) {
        const auto active = counters_of(*entry.step).tensor_pipe_active;
        const auto demand = std::ranges::find_if(entry.demands, is_of_tensor_cores);
        if (!active || demand == entry.demands.end() || !entry.cycles.unavailable.empty() || entry.time_us <= 0)
            continue;
        closure.first_us += demand->run_us.value;
        closure.second_us += *active / 100 * (1 - entry.cycles.no_warp) * entry.cycles.time_us;
    }
    return closure;
}

/// Of the kernels that have a grid, in steps whose account has it.
Closure last_waves(const Ledger& ledger) {
    Closure closure{
        "SMs without a warp while another one has one", "what grids leave empty in their last wave", 0, 0,
        "an SM with room for several blocks that still has one of them, blocks that take unlike times, a grid that walks over its work"};
    for (const StepLedger& entry : ledger.steps) {
        if (!entry.cycles.uneven || entry.step->kernels.empty()) continue;
        double lost_us = 0;
        const bool known = std::ranges::all_of(entry.step->kernels, [&](const KernelResult& kernel) {
            lost_us += kernel.lost_in_last_wave_pct.value.value_or(0) / 100 * kernel.time_us;
            return kernel.lost_in_last_wave_pct.value.has_value();
        });
        if (!known) continue;
        closure.first_us += *entry.cycles.uneven * entry.cycles.time_us;
        closure.second_us += lost_us;
    }
    return closure;
}

Closure marginal_costs(const Ledger& ledger) {
    Closure closure{"end to end", "marginal costs of all op kinds", ledger.end_to_end_us, 0,
                    "steps that overlap with their neighbours, caches that a second run finds warm or leaves evicted"};
    std::set<std::string> ops;
    for (const StepLedger& entry : ledger.steps) ops.insert(entry.step->op);
    for (const MarginalCheck& check : ledger.marginal) {
        closure.second_us += check.marginal_ms * 1e3;
        ops.erase(check.op);
    }
    if (!ops.empty()) closure.second_us = 0;
    return closure;
}

}  // namespace

std::vector<Closure> second_accounts(const Ledger& ledger, const CycleAccounts& cycles) {
    std::vector<Closure> closures;
    if (!ledger.unavailable.empty()) return closures;
    const auto add = [&closures](Closure closure) {
        if (closure.first_us > 0 && closure.second_us > 0) closures.push_back(std::move(closure));
    };
    add(tensor_pipe(ledger));
    if (cycles.unavailable.empty()) add(last_waves(ledger));
    add(marginal_costs(ledger));
    return closures;
}

}  // namespace kbench
