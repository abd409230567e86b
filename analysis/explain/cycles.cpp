#include "analysis/explain/cycles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr double noteworthy_lost = 0.02, sampling_tolerance = 0.01;  ///< parts of a step's time
constexpr std::string_view reason_prefix = "stall_";
constexpr std::string_view selected = "selected", not_selected = "not_selected";

/// Warps in an active cycle of a scheduler, mean.
struct Warps {
    double issuing = 0, resident = 0, eligible = 0;
    std::vector<std::pair<std::string, double>> by_state;  ///< resident warps by what they wait for, or do

    double in(std::string_view state) const {
        const auto found = std::ranges::find(by_state, state, [](const auto& s) { return std::string_view(s.first); });
        return found == by_state.end() ? 0 : found->second;
    }
};

std::optional<Warps> warps_of(const StepFacts& step) {
    const Counters& counters = step.counters;
    const std::optional<double> issue = counters.issue_active, resident = counters.warps_active,
                                eligible = counters.warps_eligible;
    if (!issue || !resident || !eligible || *issue <= 0 || *resident <= 0) return std::nullopt;
    Warps warps{*issue / 100, *resident, *eligible, counters_by_state(*step.step, reason_prefix)};
    for (auto& [state, per_issue] : warps.by_state) per_issue *= warps.issuing;
    if (warps.in(selected) <= 0) return std::nullopt;
    return warps;
}

CountAgreement cross_check_of(const Warps& warps) {
    double all = 0;
    for (const auto& [state, count] : warps.by_state) all += count;
    const double ready = warps.in(selected) + warps.in(not_selected);
    return {all / warps.resident - 1, warps.in(selected) / warps.issuing - 1,
            warps.eligible > 0 ? ready / warps.eligible - 1 : 0};
}

double worst_of(const CountAgreement& cross_check) {
    return std::max({std::abs(cross_check.stalls), std::abs(cross_check.selected), std::abs(cross_check.eligible)});
}

/// Warps wait in cycles with an issue, too. If as many are resident in both kinds of cycles, so many wait while another
/// one issues: at most these may be taken from a reason, and at least none.
std::vector<LostCycles> split(const Warps& warps, double not_issuing) {
    const double lost = 1 - warps.issuing;
    const double waiting = warps.resident - warps.eligible;
    const double during_issue = std::max(0.0, warps.resident * warps.issuing - warps.eligible);
    const double during_lost = warps.resident * lost;
    std::vector<LostCycles> reasons;
    if (waiting <= 0 || during_lost <= 0) return reasons;
    for (const auto& [state, count] : warps.by_state) {
        if (state == selected || state == not_selected || count <= 0) continue;
        const double low = std::max(0.0, (count - during_issue) / during_lost),
                     high = std::min(1.0, count / during_lost);
        reasons.push_back(
            {state, not_issuing * std::clamp(count / waiting, low, high), not_issuing * low, not_issuing * high});
    }
    std::ranges::stable_sort(reasons, std::greater{}, &LostCycles::share);
    return reasons;
}

/// PC sampling has words of its own for some of the counters' reasons.
constexpr std::pair<std::string_view, std::string_view> words_of_samples[] = {
    {"no_instructions", "no_instruction"}, {"warpgroup_arrive", "gmma"}, {"dispatch_stall", "dispatch"}};

/// Samples of cycles without an issue by the counters' word for the reason, as parts of all of them.
std::vector<std::pair<std::string, double>> sampled_shares(const StepResult& step) {
    std::vector<std::pair<std::string, double>> shares = counters_by_state(step, sampled_prefix);
    double all = 0;
    for (auto& [reason, count] : shares) {
        for (const auto& [of_samples, of_counters] : words_of_samples)
            if (reason == of_samples) reason = of_counters;
        all += count;
    }
    for (auto& [reason, share] : shares) share = all > 0 ? share / all : 0;
    return shares;
}

/// Adds what samples say to the reasons that were counted, or makes these.
void add_samples(CycleAccount& account, const StepResult& step) {
    const auto shares = sampled_shares(step);
    if (shares.empty()) return;
    for (LostCycles& lost : account.lost) lost.sampled = 0;
    for (const auto& [reason, share] : shares)
        entry(account.lost, &LostCycles::reason, reason).sampled = share * account.not_issuing;
    std::ranges::stable_sort(account.lost, std::greater{}, &LostCycles::best);
    account.not_split.clear();
}

void take_worse(double& worst, double other) {
    if (std::abs(other) > std::abs(worst)) worst = other;
}

void add(CycleGroup& group, const CycleAccount& account, double us) {
    ++group.steps;
    group.time_us += us;
    group.no_warp_us += account.no_warp * us;
    group.ends_us += account.ends.value_or(0) * us;
    group.uneven_us += account.uneven.value_or(0) * us;
    group.issuing_us += account.issuing * us;
    group.not_issuing_us += account.not_issuing * us;
    if (account.lost.empty()) group.not_split_us += account.not_issuing * us;
    for (const LostCycles& lost : account.lost) {
        LostCycles& known = entry(group.lost, &LostCycles::reason, lost.reason);
        known.share += lost.share * us;
        known.low += lost.low * us;
        known.high += lost.high * us;
        if (lost.sampled) known.sampled = known.sampled.value_or(0) + *lost.sampled * us;
    }
}

}  // namespace

CycleAccount account_of(const StepFacts& step) {
    CycleAccount account;
    const Counters& counters = step.counters;
    const double time_us = step.kernels_us;
    if (!step.has_cycles()) {
        account.unavailable = time_us <= 0 ? "the step was not timed"
                              : !step.step->counters_discarded.empty()
                                  ? step.step->counters_discarded
                                  : "active cycles and instructions were not counted";
        return account;
    }
    // Schedulers of an active SM may be without a warp. Where that was not counted they count as having one.
    const double sm_us = *step.active_us, sm_cycles = *counters.sm_cycles_active;
    const double part = std::min(1.0, scheduler_cycles(*step.step).value_or(sm_cycles) / sm_cycles);
    const double active = sm_us / time_us * part;
    const std::optional<Warps> warps = warps_of(step);
    const double issue =
        counters.issue_active ? *counters.issue_active / 100 : std::min(1.0, *counters.ipc / schedulers / part);
    account.time_us = time_us;
    account.no_warp = 1 - active;
    account.starts_us = std::clamp(account.no_warp * time_us, 0.0, std::max(0.0, step.start_and_end_us));
    account.issuing = active * issue;
    account.not_issuing = active - account.issuing;
    if (const std::optional<double> longest = counters.sm_cycles_active_max) {
        const double longest_share = *longest / sm_cycles * sm_us / time_us;
        account.ends = 1 - longest_share;
        account.uneven = longest_share - active;
    }
    if (!warps) {
        account.not_split = "what warps wait for was not counted: --counters core,stalls";
    } else {
        account.cross_check = cross_check_of(*warps);
        if (worst_of(*account.cross_check) > agreement_tolerance)
            account.not_split =
                fmt::format("counts that should be equal are {} apart", percent(worst_of(*account.cross_check)));
        else
            account.lost = split(*warps, account.not_issuing);
    }
    account.has_bounds = !account.lost.empty();
    add_samples(account, *step.step);
    return account;
}

CycleAccounts account_cycles(const PointFacts& facts) {
    CycleAccounts accounts;
    accounts.has_ends = true;
    accounts.total.name = "all";
    for (const StepFacts& step : facts.steps) {
        const CycleAccount& account = accounts.steps.emplace_back(account_of(step));
        const double us = step.kernels_us;
        if (!account.unavailable.empty()) {
            accounts.uncounted_us += us;
            continue;
        }
        accounts.has_ends = accounts.has_ends && account.ends;
        if (account.cross_check) {
            take_worse(accounts.worst.stalls, account.cross_check->stalls);
            take_worse(accounts.worst.selected, account.cross_check->selected);
            take_worse(accounts.worst.eligible, account.cross_check->eligible);
        }
        const bool is_sampled =
            std::ranges::any_of(account.lost, [](const LostCycles& l) { return l.sampled.has_value(); });
        if (is_sampled) accounts.sampled_us += us;
        if (is_sampled && account.has_bounds)
            for (const LostCycles& lost : account.lost) {
                if (std::max(lost.best(), lost.share) < noteworthy_lost) continue;
                ++accounts.compared;
                accounts.outside +=
                    *lost.sampled < lost.low - sampling_tolerance || *lost.sampled > lost.high + sampling_tolerance;
            }
        add(accounts.total, account, us);
    }
    for (const auto& [layer, steps] : facts.by_layer) {
        CycleGroup group;
        group.name = layer;
        for (const std::size_t i : steps)
            if (accounts.steps[i].unavailable.empty()) add(group, accounts.steps[i], facts.steps[i].kernels_us);
        if (group.steps > 0) accounts.by_layer.push_back(std::move(group));
    }
    if (accounts.total.steps == 0)
        accounts.unavailable = accounts.steps.empty() ? "there are no steps" : accounts.steps.front().unavailable;
    std::ranges::stable_sort(accounts.by_layer, std::greater{}, &CycleGroup::time_us);
    for (CycleGroup& group : accounts.by_layer) std::ranges::stable_sort(group.lost, std::greater{}, &LostCycles::best);
    std::ranges::stable_sort(accounts.total.lost, std::greater{}, &LostCycles::best);
    return accounts;
}

}  // namespace kbench
