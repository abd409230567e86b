// Sums of steps on each number of SMs, and the rule that tells what follows.
#include "analysis/explain/elasticity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include "analysis/explain/step_groups.h"

namespace kbench {
namespace {

/// From here on time grows in proportion. Below 1, as the last wave of blocks fills differently: 6 waves on 132 SMs
/// that become 8 on 96 are 0.90, 12 that become 17 are 1.09.
constexpr double in_proportion = 0.8;
/// Up to here it stays: a copy of 1 GiB was at 0.02 on 96 of 132 SMs, and at 0.13 on 64.
constexpr double stays = 0.2;
/// Where the clock rose, what stays by the clock of DRAM seems to grow when it is divided out. Beyond this not even the
/// clock explains it.
constexpr double stays_at_equal_clocks = 0.5;
/// Beyond this blocks do not spread over the SMs that are left: one more wave.
constexpr double faster_than_in_proportion = 1.2;
/// How many numbers of SMs decide: farther away even a copy needs SMs, to ask for its bytes.
constexpr std::size_t deciding = 2;

/// The rule: what each of the nearest numbers of SMs says, and none of them otherwise.
SmFinding finding_of(const std::vector<SmEffect>& effects) {
    const auto nearest = std::span(effects).first(std::min(deciding, effects.size()));
    const auto all = [&](const std::function<bool(const SmEffect&)>& holds) {
        return !nearest.empty() && std::ranges::all_of(nearest, holds);
    };
    // Where the time stays as it was timed, a clock that rose far enough would look like work of SMs.
    if (all([](const SmEffect& e) { return e.at_equal_clocks.low >= in_proportion && e.as_timed.low > stays; }))
        return SmFinding::binds;
    if (const SmEffect* first = nearest.empty() ? nullptr : &nearest.front();
        first != nullptr && first->as_timed.high <= stays && first->high() <= stays_at_equal_clocks)
        return SmFinding::does_not_bind;
    if (all([](const SmEffect& e) { return e.low() > stays && e.high() < in_proportion; }))
        return SmFinding::binds_partly;
    return SmFinding::cannot_tell;
}

std::int64_t blocks_of(const KernelResult& kernel) { return kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; }

/// Steps summed, each on all numbers of SMs.
SmGroup group_of(const PointFacts& facts, std::string name, const std::vector<std::size_t>& steps) {
    const SmTimes &whole = facts.sm_times.front(), &fewer = facts.sm_times[1];
    SmGroup group;
    group.name = std::move(name);
    group.workers = facts.workers;
    group.steps = steps.size();
    group.us = sum_of_steps(whole.step_us, steps);
    for (const SmTimes& times : std::span(facts.sm_times).subspan(1)) {
        const Interval us = sum_of_steps(times.step_us, steps);
        const Interval at_equal_clocks = scaled(us, times.clock_ratio > 0 ? times.clock_ratio : 1);
        const auto elasticity = [&](const Interval& of) {
            return elasticity_of(group.us, of, whole.multiprocessors, times.multiprocessors);
        };
        group.effects.push_back(
            {times.multiprocessors, quotient(us, group.us), elasticity(us), elasticity(at_equal_clocks)});
    }
    group.finding = finding_of(group.effects);
    double few_us = 0, all_us = 0;
    for (const std::size_t s : steps)
        for (const KernelResult& kernel : facts.steps[s].step->kernels) {
            all_us += kernel.time_us;
            if (blocks_of(kernel) <= fewer.multiprocessors) few_us += kernel.time_us;
        }
    group.fills_few = all_us > 0 && few_us > all_us / 2;
    return group;
}

/// What is said of the one kind of workers and not of the other.
struct WorkerWords {
    std::string_view faster;  ///< where time grows faster than they are taken away
    std::string_view own;     ///< what each of them has
    std::string_view shared;  ///< what else may bind
};
constexpr WorkerWords worker_words[] = {
    {"blocks that filled them need a wave more",
     "every SM has of its own: FLOP/s, shared memory, issue slots, or latency with the warps that fit",
     "DRAM, L2, or launching and ending kernels"},
    {"data that fitted the caches of all no longer fits",
     "every core has of its own: FLOP/s, its caches, or the loads that it can have under way",
     "DRAM, the last-level cache, or work of one thread alone"},
};

/// "1.02 [0.98, 1.06] on 96 of 132 SMs".
std::string seen(const SmGroup& group, const SmEffect& effect, int all) {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}] on {} of {} {}", effect.at_equal_clocks.value, effect.low(),
                       effect.high(), effect.multiprocessors, all, name(group.workers));
}

}  // namespace

Interval elasticity_of(const Interval& all_us, const Interval& us, int all, int multiprocessors) {
    const Interval slower = log_ratio(us, all_us);
    const double fewer = std::log(static_cast<double>(all) / multiprocessors);
    return {slower.value / fewer, slower.low / fewer, slower.high / fewer};
}

SmElasticity sm_elasticity(const PointFacts& facts) {
    SmElasticity result;
    result.workers = facts.workers;
    result.unavailable = facts.sm_times_unavailable;
    if (facts.sm_times.empty()) return result;
    std::vector<std::size_t> steps;
    for (std::size_t s = 0; s < facts.steps.size(); ++s)
        if (ran_in_all(facts.sm_times, s)) steps.push_back(s);
    if (steps.empty()) {
        result.unavailable = fmt::format("no step ran kernels on every number of {}", name(facts.workers));
        return result;
    }
    result.multiprocessors = facts.sm_times.front().multiprocessors;
    for (const SmTimes& times : std::span(facts.sm_times).subspan(1)) result.clock_ratios.push_back(times.clock_ratio);
    const auto make = [&](std::string name, const std::vector<std::size_t>& of) {
        return group_of(facts, std::move(name), of);
    };
    result.by_op = groups_longest_first(facts.by_op, facts.sm_times, make);
    result.by_layer = groups_longest_first(facts.by_layer, facts.sm_times, make);
    for (const std::size_t s : steps) result.steps.push_back(group_of(facts, facts.steps[s].step->layer, {s}));
    result.model = group_of(facts, "all steps", steps);
    return result;
}

void withhold(SmElasticity& elasticity) {
    for (auto* groups : {&elasticity.by_op, &elasticity.by_layer, &elasticity.steps})
        for (SmGroup& group : *groups) group.finding = SmFinding::cannot_tell;
    if (elasticity.model) elasticity.model->finding = SmFinding::cannot_tell;
}

std::string sentence(const SmGroup& group, int all) {
    const SmEffect& first = group.effects.front();
    const std::string_view workers = name(group.workers);
    const WorkerWords& words = worker_words[static_cast<int>(group.workers)];
    const std::string figures = seen(group, first, all);
    switch (group.finding) {
        case SmFinding::binds:
            if (first.at_equal_clocks.low > faster_than_in_proportion)
                return fmt::format(
                    "{0} slows down faster than {1} are taken away ({2}), as where {3}. The number of {1} is its bottleneck.",
                    group.name, workers, figures, words.faster);
            return fmt::format("{} slows down as {} are taken away ({}): its bottleneck is what {}.", group.name,
                               workers, figures, words.own);
        case SmFinding::binds_partly:
            return fmt::format(
                "{0} slows down, but less than {1} are taken away ({2}): {1} are the bottleneck of a part of its time.",
                group.name, workers, figures);
        case SmFinding::does_not_bind:
            if (group.fills_few)
                return fmt::format(
                    "{} did not slow down when SMs were taken away ({}), as its kernels have no more blocks than SMs were left: more SMs would not help it, faster ones may.",
                    group.name, figures);
            return fmt::format(
                "{0} did not slow down when {1} were taken away ({2}): {1} are not its bottleneck. {3} may be.",
                group.name, workers, figures, words.shared);
        case SmFinding::cannot_tell: break;
    }
    return fmt::format("{}: cannot tell, {}.", group.name, figures);
}

}  // namespace kbench
