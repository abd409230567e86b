// Sums of steps, what the whole has beyond them, and marginal costs beside their share.
#include "analysis/explain/time_breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kbench {
namespace {

constexpr std::array<LineInfo, line_count> line_infos{{
    {"kernels", "as recorded; without records the steps' own times"},
    {"launch", "gaps up to what an empty kernel takes"},
    {"dependency", "gaps beyond that"},
    {"recording", "what recording adds to kernels and gaps, calibrated"},
    {"drift", "the timing run against the runs beside the recorded ones"},
    {"residual", "not explained"},
}};

/// The accounts of all steps, by their positions.
struct Accounts {
    const PointFacts& facts;
    std::span<const StepDemands> demands;
    std::span<const UnitActivity> units;
    const CycleAccounts& cycles;

    /// Units count the cycles in which an SM had a warp, so a step without these has no busy times.
    void add_demands(DemandSums& sums, std::size_t i) const {
        const CycleAccount& account = cycles.steps[i];
        const double time_us = facts.steps[i].time_us;
        if (account.unavailable.empty() && time_us > 0)
            sums.add(demands[i], time_us, units[i].all, (1 - account.no_warp) * account.time_us);
        else
            sums.add(demands[i], time_us);
    }

    std::vector<LedgerGroup> groups(const std::vector<NamedSteps>& named) const {
        std::vector<LedgerGroup> groups;
        for (const NamedSteps& of_name : named) {
            LedgerGroup& group = groups.emplace_back(LedgerGroup{of_name.name, of_name.steps.size(), 0, {}, {}});
            for (const std::size_t i : of_name.steps) {
                group.time_us += facts.steps[i].time_us;
                group.lines += lines_of(facts.steps[i]);
                add_demands(group.demands, i);
            }
        }
        std::ranges::stable_sort(groups, std::greater{}, &LedgerGroup::time_us);
        return groups;
    }
};

/// How a second run of the same step can cost something else than the first.
std::string explain_difference(const MarginalCheck& check) {
    const double percent = (check.marginal_ms / check.ledger_ms - 1) * 100;
    return percent < 0
               ? fmt::format(
                     "{:.0f} % less than the ledger's share: the repeated step finds its operands in the cache, or overlaps with its neighbours",
                     -percent)
               : fmt::format(
                     "{:.0f} % more than the ledger's share: the repeated step evicts from the cache what the next one reads, or loses an overlap",
                     percent);
}

std::vector<MarginalCheck> check_marginal(const PointFacts& facts, const Ledger& ledger) {
    std::vector<MarginalCheck> checks;
    for (const MarginalCost& cost : facts.point->marginal) {
        MarginalCheck check;
        check.op = cost.op;
        double recording = 0;
        for (const StepFacts& step : facts.steps) {
            if (step.step->op != cost.op) continue;
            check.ledger_ms += (step.time_us + step.gap_before_us) * 1e-3;
            recording += step.recording_us * 1e-3;
        }
        // The correction for records is itself uncertain, and so is what the whole ledger leaves unexplained; drift is
        // that of the machine between the runs, and the marginal cost was measured in yet another.
        const double unexplained = ledger.unexplained_share() * check.ledger_ms;
        check.ledger_low_ms = check.ledger_ms - std::max(0.0, recording) - unexplained;
        check.ledger_high_ms = check.ledger_ms - std::min(0.0, recording) + unexplained;
        check.ledger_ms -= recording;
        check.marginal_ms = cost.difference_ms.summary_ms.median;
        check.marginal_low_ms = cost.difference_ms.summary_ms.ci_low;
        check.marginal_high_ms = cost.difference_ms.summary_ms.ci_high;
        check.agrees = check.marginal_low_ms <= check.ledger_high_ms && check.ledger_low_ms <= check.marginal_high_ms;
        if (!check.agrees && check.ledger_ms > 0) check.finding = explain_difference(check);
        checks.push_back(std::move(check));
    }
    return checks;
}

}  // namespace

const LineInfo& info(Line line) { return line_infos[static_cast<std::size_t>(line)]; }

double Lines::total_us() const {
    double sum = 0;
    for (const double value : us) sum += value;
    return sum;
}

Lines lines_of(const StepFacts& step) {
    Lines lines;
    if (step.time_us <= 0) return lines;
    lines[Line::kernels] = step.kernels_us;
    lines[Line::launch] = step.launch_us;
    lines[Line::dependency] = step.dependency_us;
    return lines;
}

Lines& Lines::operator+=(const Lines& other) {
    for (std::size_t i = 0; i < line_count; ++i) us[i] += other.us[i];
    return *this;
}

double Ledger::residual_share() const { return end_to_end_us > 0 ? total[Line::residual] / end_to_end_us : 0; }

double Ledger::unexplained_share() const {
    return end_to_end_us > 0 ? (std::abs(total[Line::drift]) + std::abs(total[Line::residual])) / end_to_end_us : 0;
}

bool Ledger::closes() const { return unavailable.empty() && unexplained_share() <= closing_tolerance; }

Ledger make_ledger(const PointFacts& facts, std::span<const StepDemands> demands, std::span<const UnitActivity> units,
                   const CycleAccounts& cycles) {
    Ledger ledger;
    ledger.unavailable = facts.unavailable;
    if (!facts.point->end_to_end) return ledger;
    ledger.roofs_unavailable = facts.roofs.unavailable();
    ledger.end_to_end_us = facts.end_to_end_us;
    const Accounts accounts{facts, demands, units, cycles};
    for (std::size_t i = 0; i < demands.size(); ++i) {
        const StepFacts& step = facts.steps[i];
        if (step.time_us <= 0) continue;
        ledger.total += lines_of(step);
        ledger.total[Line::recording] -= step.recording_us;
        ledger.starts_us += cycles.steps[i].starts_us;
        accounts.add_demands(ledger.demands, i);
    }
    if (const double unprofiled_ms = facts.point->activity.unprofiled_ms; unprofiled_ms > 0)
        ledger.total[Line::drift] = ledger.end_to_end_us - unprofiled_ms * 1e3;
    ledger.total[Line::residual] = ledger.end_to_end_us - ledger.total.total_us();
    ledger.by_layer = accounts.groups(facts.by_layer);
    ledger.by_op = accounts.groups(facts.by_op);
    ledger.marginal = check_marginal(facts, ledger);
    return ledger;
}

}  // namespace kbench
