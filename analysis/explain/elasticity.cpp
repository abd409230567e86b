// Sums of steps on each number of SMs, and the rule that tells what follows.
#include "analysis/explain/elasticity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include "analysis/explain/breakdown.h"

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

Interval logarithm(const Interval& ratio, double over) {
    return {std::log(ratio.value) / over, std::log(ratio.low) / over, std::log(ratio.high) / over};
}

Interval times_of(const SmCountRun& run, std::size_t step) {
    return {run.step_us[step], run.step_low_us[step], run.step_high_us[step]};
}

bool is_well_formed(const SmScaling& scaling, std::size_t steps) {
    const auto fits = [&](const SmCountRun& run) {
        return run.multiprocessors > 0 && run.step_us.size() == steps && run.step_low_us.size() == steps &&
               run.step_high_us.size() == steps;
    };
    const auto falls = [](const SmCountRun& a, const SmCountRun& b) { return a.multiprocessors <= b.multiprocessors; };
    return std::ranges::all_of(scaling.runs, fits) &&
           std::ranges::adjacent_find(scaling.runs, falls) == scaling.runs.end();
}

double clock_ratio(const SmCountRun& all, const SmCountRun& run) {
    const std::optional<double> whole = all.sm_clock_mhz.value, part = run.sm_clock_mhz.value;
    return whole && part && *whole > 0 ? *part / *whole : 0;
}

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

/// Sums steps, each on all numbers of SMs.
class Sums {
  public:
    explicit Sums(const Point& point) : point_(point), runs_(point.sm_scaling->runs) {}

    SmGroup group(std::string name, const std::vector<std::size_t>& steps) const {
        SmGroup group;
        group.name = std::move(name);
        group.steps = steps.size();
        group.us = sum(runs_.front(), steps);
        for (std::size_t i = 1; i < runs_.size(); ++i) group.effects.push_back(effect(group.us, runs_[i], steps));
        group.finding = finding_of(group.effects);
        double few_us = 0, all_us = 0;
        for (const std::size_t s : steps)
            for (const KernelResult& kernel : point_.steps[s].kernels) {
                all_us += kernel.time_us;
                if (blocks_of(kernel) <= runs_[1].multiprocessors) few_us += kernel.time_us;
            }
        group.fills_few = all_us > 0 && few_us > all_us / 2;
        return group;
    }

    /// Whether the step ran kernels on every number of SMs.
    bool has(std::size_t step) const {
        return std::ranges::all_of(runs_, [&](const SmCountRun& run) { return run.step_low_us[step] > 0; });
    }

  private:
    static Interval sum(const SmCountRun& run, const std::vector<std::size_t>& steps) {
        Interval total;
        for (const std::size_t s : steps) total += times_of(run, s);
        return total;
    }
    SmEffect effect(const Interval& all_us, const SmCountRun& run, const std::vector<std::size_t>& steps) const {
        const SmCountRun& whole = runs_.front();
        const Interval us = sum(run, steps);
        const double clock = clock_ratio(whole, run);
        SmEffect effect;
        effect.multiprocessors = run.multiprocessors;
        effect.ratio = quotient(us, all_us);
        effect.as_timed = elasticity_of(all_us, us, whole.multiprocessors, run.multiprocessors);
        effect.at_equal_clocks =
            elasticity_of(all_us, scaled(us, clock > 0 ? clock : 1), whole.multiprocessors, run.multiprocessors);
        return effect;
    }

    const Point& point_;
    const std::vector<SmCountRun>& runs_;
};

template <class NameOf>
std::vector<SmGroup> groups_by(const Point& point, const Sums& sums, const std::vector<std::size_t>& steps,
                               NameOf name_of) {
    std::vector<std::pair<std::string, std::vector<std::size_t>>> parts;
    for (const std::size_t s : steps) {
        const std::string name = name_of(point.steps[s]);
        auto part = std::ranges::find(parts, name, &std::pair<std::string, std::vector<std::size_t>>::first);
        if (part == parts.end()) part = parts.insert(part, {name, {}});
        part->second.push_back(s);
    }
    std::vector<SmGroup> groups;
    for (const auto& [name, of_part] : parts) groups.push_back(sums.group(name, of_part));
    std::ranges::stable_sort(groups, std::greater{}, [](const SmGroup& g) { return g.us.value; });
    return groups;
}

/// "1.02 [0.98, 1.06] on 96 of 132 SMs".
std::string seen(const SmEffect& effect, int all) {
    return fmt::format("{:.2f} [{:.2f}, {:.2f}] on {} of {} SMs", effect.at_equal_clocks.value, effect.low(),
                       effect.high(), effect.multiprocessors, all);
}

}  // namespace

Interval elasticity_of(const Interval& all_us, const Interval& us, int all, int multiprocessors) {
    return logarithm(quotient(us, all_us), std::log(static_cast<double>(all) / multiprocessors));
}

SmElasticity sm_elasticity(const Point& point) {
    SmElasticity result;
    if (!point.sm_scaling) return result;
    const SmScaling& scaling = *point.sm_scaling;
    result.unavailable = scaling.unavailable;
    if (result.unavailable.empty() && scaling.runs.size() < 2)
        result.unavailable = "the GPU was not divided into fewer SMs than it has";
    if (result.unavailable.empty() && !is_well_formed(scaling, point.steps.size()))
        result.unavailable = "the times on fewer SMs are not of the point's steps";
    if (!result.unavailable.empty()) return result;
    const Sums sums(point);
    std::vector<std::size_t> steps;
    for (std::size_t s = 0; s < point.steps.size(); ++s)
        if (sums.has(s)) steps.push_back(s);
    if (steps.empty()) {
        result.unavailable = "no step ran kernels on every number of SMs";
        return result;
    }
    result.multiprocessors = scaling.runs.front().multiprocessors;
    for (std::size_t i = 1; i < scaling.runs.size(); ++i)
        result.clock_ratios.push_back(clock_ratio(scaling.runs.front(), scaling.runs[i]));
    result.by_op = groups_by(point, sums, steps, [](const StepResult& step) { return step.op; });
    result.by_layer = groups_by(point, sums, steps, [](const StepResult& step) { return layer_group(step.layer); });
    for (const std::size_t s : steps) result.steps.push_back(sums.group(point.steps[s].layer, {s}));
    result.model = sums.group("all steps", steps);
    return result;
}

void withhold(SmElasticity& elasticity) {
    for (auto* groups : {&elasticity.by_op, &elasticity.by_layer, &elasticity.steps})
        for (SmGroup& group : *groups) group.finding = SmFinding::cannot_tell;
    if (elasticity.model) elasticity.model->finding = SmFinding::cannot_tell;
}

std::string sentence(const SmGroup& group, int all) {
    const SmEffect& first = group.effects.front();
    switch (group.finding) {
        case SmFinding::binds:
            if (first.at_equal_clocks.low > faster_than_in_proportion)
                return fmt::format(
                    "{} slows down faster than SMs are taken away ({}), as where blocks that filled them need a wave more. The number of SMs binds it.",
                    group.name, seen(first, all));
            return fmt::format(
                "{} slows down as SMs are taken away ({}): what every SM has of its own binds it, be it FLOP/s, shared memory, issue slots or latency with the warps that fit.",
                group.name, seen(first, all));
        case SmFinding::binds_partly:
            return fmt::format("{} slows down, but less than SMs are taken away ({}): they bind a part of its time.",
                               group.name, seen(first, all));
        case SmFinding::does_not_bind:
            if (group.fills_few)
                return fmt::format(
                    "{} did not slow down when SMs were taken away ({}), as its kernels have no more blocks than SMs were left: more SMs would not help it, faster ones may.",
                    group.name, seen(first, all));
            return fmt::format(
                "{} did not slow down when SMs were taken away ({}): SMs do not bind it. DRAM, L2, or launching and ending kernels may.",
                group.name, seen(first, all));
        case SmFinding::cannot_tell: break;
    }
    return fmt::format("{} cannot be told: {}.", group.name, seen(first, all));
}

}  // namespace kbench
