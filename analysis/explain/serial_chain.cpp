#include "analysis/explain/serial_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

bool has_several(const StepFacts& facts) { return facts.chained_steps() > 1 && facts.time_us > 0; }

SerialChain described(const StepFacts& facts, const StepRoofTimes& roof_times, const UnitActivity& units,
                      const Roofs& roofs) {
    const StepResult& step = *facts.step;
    SerialChain one{.layer = layer_group(step.layer), .op = step.op, .each = *step.time_steps};
    one.time_steps = static_cast<double>(*step.time_steps);
    one.time_us = facts.time_us;
    one.roof_times.add(roof_times, facts.time_us);
    one.together_us = roof_times.together().value;
    one.is_complete = roof_times.compute_known && roof_times.memory_known && units.known;
    one.exchange = exchange_of(facts, roofs);
    one.account = step.account;
    return one;
}

/// The mean of two means of so many steps each; nothing where they are of different phases.
std::optional<StepAccount> mean_of(const std::optional<StepAccount>& a, std::size_t of_a,
                                   const std::optional<StepAccount>& b, std::size_t of_b) {
    if (!a || !b || !std::ranges::equal(a->phases, b->phases, {}, &StepPhase::name, &StepPhase::name))
        return std::nullopt;
    const double part = static_cast<double>(of_b) / static_cast<double>(of_a + of_b);
    StepAccount mean = *a;
    mean.blocks = std::min(a->blocks, b->blocks);
    mean.us = std::lerp(a->us, b->us, part);
    mean.start_us = std::lerp(a->start_us, b->start_us, part);
    for (std::size_t i = 0; i < mean.phases.size(); ++i) {
        StepPhase& phase = mean.phases[i];
        const StepPhase& other = b->phases[i];
        phase.median_cycles = std::lerp(phase.median_cycles, other.median_cycles, part);
        phase.least_cycles = std::min(phase.least_cycles, other.least_cycles);
        phase.most_cycles = std::max(phase.most_cycles, other.most_cycles);
    }
    return mean;
}

/// "by clocks in its kernel a step's cycles are wait for h 34 %, cell 21 %".
std::string account_text(const StepAccount& account) {
    std::vector<StepPhase> phases = account.phases;
    std::ranges::stable_sort(phases, std::greater{}, &StepPhase::median_cycles);
    const std::string shares = joined(phases, ", ", [&](const StepPhase& phase) {
        const double share = phase.median_cycles / cycles_of(account);
        return share >= 0.005 ? fmt::format("{} {}", phase.name, percent(share)) : "";
    });
    return shares.empty() ? "" : "by clocks in its kernel a step's cycles are " + shares;
}

void add_to(SerialChain& sum, const SerialChain& other) {
    if (sum.each != other.each) sum.each = 0;
    if (sum.bound != other.bound) sum.bound = Bound::not_identifiable;
    if (sum.exchange && other.exchange && sum.exchange->ceiling == other.exchange->ceiling)
        sum.exchange->us = (sum.exchange->us * sum.time_steps + other.exchange->us * other.time_steps) /
                           (sum.time_steps + other.time_steps);
    else
        sum.exchange.reset();
    sum.account = mean_of(sum.account, sum.steps.size(), other.account, other.steps.size());
    sum.steps.insert(sum.steps.end(), other.steps.begin(), other.steps.end());
    sum.time_steps += other.time_steps;
    sum.time_us += other.time_us;
    sum.together_us += other.together_us;
    sum.is_complete = sum.is_complete && other.is_complete;
    sum.roof_times += other.roof_times;
}

}  // namespace

std::optional<Exchange> exchange_of(const StepFacts& facts, const Roofs& roofs) {
    const StepResult& step = *facts.step;
    if (!facts.on_gpu || step.kernels.empty()) return std::nullopt;
    const double kernels = static_cast<double>(step.kernels.size()), time_steps = static_cast<double>(*step.time_steps);
    const bool is_by_kernels = kernels >= time_steps;
    const auto has_one_block = [](const KernelResult& kernel) {
        return kernel.grid[0] * kernel.grid[1] * kernel.grid[2] <= 1;  // 0: not known
    };
    if (!is_by_kernels && std::ranges::all_of(step.kernels, has_one_block)) return std::nullopt;
    const std::string ceiling = is_by_kernels ? "graph_node" : "grid_barrier";
    const std::optional<double> us = roofs.latency_us(ceiling);
    if (!us) return std::nullopt;
    // Its blocks do not wait for all others in each time step, or it would have taken longer.
    if (!is_by_kernels && time_steps * *us > facts.time_us) return std::nullopt;
    return Exchange{ceiling, is_by_kernels ? *us * kernels / time_steps : *us};
}

double cycles_of(const StepAccount& account) {
    double cycles = 0;
    for (const StepPhase& phase : account.phases) cycles += phase.median_cycles;
    return cycles;
}

std::string roofs_of_one(const SerialChain& group) {
    return joined(group.roof_times.by_roof, ", ", [&](const RoofTimeSum& sum) {
        const double us = sum.us.value / group.time_steps;
        return us >= 0.01 * group.us() ? fmt::format("{} {}", sum.name, significant(us, 2)) : "";
    });
}

std::vector<SerialChain> serial_chains_of(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                          std::span<const UnitActivity> units) {
    std::vector<SerialChain> groups;
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        if (!has_several(facts.steps[i])) continue;
        SerialChain one = described(facts.steps[i], roof_times[i], units[i], facts.roofs);
        one.steps = {i};
        const auto found = std::ranges::find_if(groups, [&](const SerialChain& group) {
            return group.layer == one.layer && group.op == one.op && group.each == one.each;
        });
        if (found == groups.end())
            groups.push_back(std::move(one));
        else
            add_to(*found, one);
    }
    std::ranges::stable_sort(groups, std::greater{}, &SerialChain::time_us);
    return groups;
}

std::optional<SerialChain> together(std::span<const SerialChain> groups) {
    if (groups.empty()) return std::nullopt;
    SerialChain sum = groups.front();
    for (const SerialChain& group : groups.subspan(1)) {
        add_to(sum, group);
        sum.layer.clear();
        if (sum.op != group.op) sum.op.clear();
    }
    return sum;
}

std::vector<std::string> serial_chain_evidence(const StepFacts& step, const StepRoofTimes& roof_times,
                                               const UnitActivity& units, const Roofs& roofs) {
    if (!has_several(step)) return {};
    const SerialChain one = described(step, roof_times, units, roofs);
    std::vector<std::string> evidence;
    std::string text = fmt::format("{} time steps take {} us each", one.each, significant(one.us()));
    if (one.together_us > 0)
        text += fmt::format("; all roofs{}, one after another, would take {} us of one, {} ({})",
                            one.is_complete ? "" : " that are known", significant(one.together_us_of_one(), 2),
                            percent(one.together_share()), roofs_of_one(one));
    evidence.push_back(std::move(text));
    if (one.account && cycles_of(*one.account) > 0) evidence.push_back(account_text(*one.account));
    if (!one.exchange) return evidence;
    const std::string us = significant(one.exchange->us);
    evidence.push_back(
        one.exchange->is_bound()
            ? fmt::format("as many empty kernels as one time step has take {} us (graph_node, measured)", us)
            : fmt::format("one barrier among all SMs, without any work, takes {} us (grid_barrier, measured)", us));
    return evidence;
}

}  // namespace kbench
