// Times single steps and kinds of steps, and finds where time steps spend their time.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/explain/step_sums.h"
#include "analysis/machine/cpu_share.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/sampler.h"
#include "bench/profile/starvation.h"
#include "kbench/error.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

/// How many times the time for marginal costs may be exceeded for the fewest samples that make an interval.
constexpr double marginal_patience = 15;
constexpr std::size_t fewest = 6;

/// Op kinds with less than this share of the steps' time have no marginal cost: it would be lost in the noise.
constexpr double marginal_share = 0.01;

/// As many runs as are wanted, or as the time budget allows. Those during which the process lacked its CPUs are
/// repeated, and used where there are too few others.
std::vector<StepTimes> step_runs(const PartContext& at, Forward& forward, RoofWatch* roofs) {
    std::vector<StepTimes> kept, starved, undecided;
    StarvationWatch watch(at.profiler.machine_state());
    const auto decide = [&](bool last) {
        const std::optional<bool> lacked = watch.lacked(last);
        if (!lacked) return;
        std::vector<StepTimes>& runs = *lacked ? starved : kept;
        runs.insert(runs.end(), undecided.begin(), undecided.end());
        undecided.clear();
    };
    const auto wanted = static_cast<std::size_t>(at.options.step_runs);
    const double headline_ms = at.point.end_to_end ? at.point.end_to_end->latency.summary_ms.median : 0;
    const std::function<void()> refill = [&forward] { forward.step_times(); };
    watch.begin();
    const auto start = Clock::now();
    while (kept.size() < wanted) {
        at.begin("steps");
        if (roofs != nullptr) roofs->look(headline_ms < short_forward_ms ? refill : std::function<void()>());
        undecided.push_back(forward.step_times());
        const bool late =
            std::chrono::duration<double>(Clock::now() - start).count() > at.options.sampler.time_budget_s;
        decide(late || kept.size() + undecided.size() >= wanted);
        if (late) break;
    }
    if (kept.size() >= std::min(wanted, fewest_slow_samples) || starved.empty()) return kept;
    kept.insert(kept.end(), starved.begin(), starved.end());
    if (const std::optional<CpuShare> share = watch.share(true))
        if (const std::string warning = starvation_warning(*share, "its steps were timed"); !warning.empty())
            at.warn(warning);
    return kept;
}

}  // namespace

void time_steps(const PartContext& at, Forward& forward, RoofWatch* roofs) {
    const PhaseTimer timer(at.point, "steps");
    std::vector<std::vector<double>> times(at.point.steps.size());
    std::vector<double> overheads, whole_ms;
    for (const StepTimes& run : step_runs(at, forward, roofs)) {
        overheads.push_back(run.overhead_us);
        if (run.whole_us > 0) whole_ms.push_back(run.whole_us * 1e-3);
        for (std::size_t s = 0; s < run.us.size(); ++s) times[s].push_back(run.us[s]);
    }
    std::size_t too_short = 0;
    for (std::size_t s = 0; s < times.size(); ++s) {
        const Summary us = summarise(times[s]);
        if (us.median > 0)
            at.point.steps[s].time_us = us;
        else
            ++too_short;
    }
    if (too_short > 0)
        at.warn(fmt::format("{} of {} steps took no longer than an interval without work, {:.4g} us, and have no time",
                            too_short, times.size(), summarise(overheads).median));
    at.point.step_overhead_us = Quantity::measured(summarise(overheads).median);
    if (!whole_ms.empty()) at.point.activity.unprofiled_ms = summarise(whole_ms).mean;  // as the steps' times add up
}

void measure_marginal_costs(const PartContext& at, Forward& forward) {
    if (at.options.marginal_s <= 0) return;
    at.begin("marginal costs");
    const PhaseTimer timer(at.point, "marginal");
    std::vector<std::function<std::vector<double>()>> chunks;
    std::vector<std::vector<double>> differences;
    std::vector<MarginalCost> costs;  // the point has them when they are measured: one that fails before has none
    const StepSums sums = by_op_kind(at.point);
    const auto is_small = [&](const std::string& op) {
        double share = 0;
        for (const StepGroup& group : sums.groups)
            if (group.name == op) share += group.share;
        return share < marginal_share;
    };
    for (const StepResult& s : at.point.steps) {
        if (is_small(s.op)) continue;
        auto known = std::ranges::find(costs, s.op, &MarginalCost::op);
        if (known == costs.end()) {
            known = costs.insert(known, MarginalCost{s.op, 0, {}});
            chunks.push_back(forward.doubled(s.op));
        }
        ++known->steps;
    }
    differences.resize(chunks.size());
    constexpr double forwards_a_sample = 2;
    const double least_s = at.point.end_to_end->latency.summary_ms.median * 1e-3 * forwards_a_sample *
                           static_cast<double>(fewest * chunks.size());
    if (least_s > marginal_patience * at.options.marginal_s) return;
    const auto start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    while (!chunks.empty() && (differences.back().size() < fewest || seconds() < at.options.marginal_s))
        for (std::size_t op = 0; op < chunks.size(); ++op) {
            at.begin("marginal costs");
            const std::vector<double> more = chunks[op]();
            differences[op].insert(differences[op].end(), more.begin(), more.end());
        }
    for (std::size_t op = 0; op < chunks.size(); ++op)
        costs[op].difference_ms = {differences[op], summarise(differences[op])};
    at.point.marginal = std::move(costs);
}

void account_for_steps(const PartContext& at) {
    std::vector<StepResult>& steps = at.point.steps;
    const auto has_several = [](const StepResult& step) { return step.time_steps.has_value(); };
    // Only GPUs have such kernels. With --latency-only nothing more is measured of a step.
    if (!at.device.is_gpu() || at.options.activity_runs == 0 || std::ranges::none_of(steps, has_several)) return;
    at.begin("accounts of steps");
    const PhaseTimer timer(at.point, "accounts");
    try {
        // Runs all steps in their order, as later steps overwrite a step's operands.
        for (std::size_t s = 0; s < steps.size(); ++s) {
            const std::size_t planned = at.plan.first_timed() + s;
            at.plan.run_step(planned, at.device.stream());
            if (has_several(steps[s])) steps[s].account = at.plan.account_of_step(planned, at.device.stream());
        }
        at.device.synchronize();
    } catch (const Error& error) {
        at.require_device();
        at.warn(fmt::format("where time steps spend their time is not known: {}", error.what()));
    }
}

}  // namespace kbench
