// Sums of steps, what the whole has beyond them, and marginal costs beside their share.
#include "analysis/explain/time_breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::array<LineInfo, line_count> line_infos{{
    {"kernels", "as recorded; without records the steps' own times"},
    {"copies", "copies and fills of memory, as recorded"},
    {"overlap", "several streams at the same time, which counts once"},
    {"launch", "gaps up to what an empty kernel takes"},
    {"dependency", "gaps beyond that"},
    {"host wait", "the GPU is idle, and its next work was launched only meanwhile"},
    {"queued", "the GPU is idle although its next work had been launched before"},
    {"recording", "what recording adds to kernels and gaps, calibrated"},
    {"records", "a program's iteration without records, less one with them"},
    {"drift", "the timing run compared with the unrecorded runs in between"},
    {"residual", "not explained"},
}};

/// The accounts of all steps, by their positions.
struct Accounts {
    const PointFacts& facts;
    std::span<const StepRoofTimes> roof_times;
    std::span<const UnitActivity> units;
    const CycleAccounts& cycles;

    /// Units count the cycles in which an SM had a warp, so a step without these has no busy times.
    void add_roof_times(RoofTimeSums& sums, std::size_t i) const {
        const CycleAccount& account = cycles.steps[i];
        const double time_us = facts.steps[i].time_us;
        if (account.unavailable.empty() && time_us > 0)
            sums.add(roof_times[i], time_us, units[i].all, (1 - account.no_warp) * account.time_us);
        else
            sums.add(roof_times[i], time_us);
    }

    std::vector<BreakdownGroup> groups(const std::vector<NamedSteps>& named) const {
        std::vector<BreakdownGroup> groups;
        for (const NamedSteps& of_name : named) {
            BreakdownGroup& group = groups.emplace_back(BreakdownGroup{of_name.name, of_name.steps.size(), 0, {}, {}});
            for (const std::size_t i : of_name.steps) {
                group.time_us += facts.steps[i].time_us;
                group.lines += lines_of(facts.steps[i]);
                add_roof_times(group.roof_times, i);
            }
        }
        std::ranges::stable_sort(groups, std::greater{}, &BreakdownGroup::time_us);
        return groups;
    }
};

/// How a second run of the same step can cost something else than the first. `dram_share`: what the steps' DRAM traffic
/// takes at full bandwidth, a part of the breakdown's share. A cache that spares all of it hardly saves twice as much.
std::string explain_difference(const MarginalCheck& check, std::optional<double> dram_share) {
    constexpr double most_of_latency = 2;
    const double difference = check.marginal_ms / check.breakdown_ms - 1, percent = std::abs(difference) * 100;
    if (difference >= 0)
        return fmt::format(
            "{:.0f} % more than the breakdown's share: the repeated step evicts from the cache what the next one reads, or loses an overlap",
            percent);
    if (dram_share && -difference > most_of_latency * *dram_share + closing_tolerance)
        return fmt::format(
            "{:.0f} % less than the breakdown's share: more than a warm cache can save, as DRAM traffic at full bandwidth is {:.0f} % of that. Their recorded time is too long, or they overlap with their neighbours",
            percent, 100 * *dram_share);
    return fmt::format(
        "{:.0f} % less than the breakdown's share: the repeated step finds its operands in the cache, or overlaps with its neighbours",
        percent);
}

std::vector<MarginalCheck> check_marginal(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                          const TimeBreakdown& breakdown) {
    std::vector<MarginalCheck> checks;
    for (const MarginalCost& cost : facts.point->marginal) {
        MarginalCheck check;
        check.op = cost.op;
        double recording = 0, dram_ms = 0;
        bool dram_known = true;
        for (std::size_t i = 0; i < roof_times.size(); ++i) {
            const StepFacts& step = facts.steps[i];
            if (step.step->op != cost.op) continue;
            const RoofTime* dram = roof_times[i].at(Level::dram);
            dram_known = dram_known && dram != nullptr && dram->origin == Origin::measured;
            if (dram != nullptr) dram_ms += dram->run_us.high * 1e-3;
            check.breakdown_ms += (step.time_us + step.gap_before_us) * 1e-3;
            recording += step.recording_us * 1e-3;
        }
        // The correction for records is itself uncertain, and so is what the whole time breakdown leaves unexplained;
        // drift is that of the machine between the runs, and the marginal cost was measured in yet another.
        const double unexplained = breakdown.unexplained_share() * check.breakdown_ms;
        check.breakdown_low_ms = check.breakdown_ms - std::max(0.0, recording) - unexplained;
        check.breakdown_high_ms = check.breakdown_ms - std::min(0.0, recording) + unexplained;
        check.breakdown_ms -= recording;
        check.marginal_ms = cost.difference_ms.summary_ms.median;
        check.marginal_low_ms = cost.difference_ms.summary_ms.ci_low;
        check.marginal_high_ms = cost.difference_ms.summary_ms.ci_high;
        check.agrees =
            check.marginal_low_ms <= check.breakdown_high_ms && check.breakdown_low_ms <= check.marginal_high_ms;
        if (!check.agrees && check.breakdown_ms > 0)
            check.finding = explain_difference(
                check, dram_known ? std::optional(std::min(1.0, dram_ms / check.breakdown_ms)) : std::nullopt);
        checks.push_back(std::move(check));
    }
    return checks;
}

/// What a program's kernels did at the same time: their times less the union of them. On a single stream a small
/// difference is one of medians.
double overlap_us(const PointFacts& facts, const Lines& total) {
    std::vector<std::pair<int, int>> streams;
    for (const StepFacts& step : facts.steps)
        for (const KernelResult& kernel : step.step->kernels)
            add_once(streams, std::pair(kernel.device, kernel.stream));
    const double work_us = total[Line::kernels] + total[Line::copies];
    const double busy_us = facts.point->program->busy_ms * 1e3;
    if (busy_us <= 0 || busy_us >= work_us) return 0;
    return streams.size() > 1 || work_us - busy_us > closing_tolerance * work_us ? work_us - busy_us : 0;
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
    lines[Line::kernels] = step.kernels_us - step.copies_us;
    lines[Line::copies] = step.copies_us;
    lines[Line::launch] = step.launch_us;
    lines[Line::dependency] = step.dependency_us;
    lines[Line::host_wait] = step.host_wait_us;
    lines[Line::queued] = step.queued_us;
    return lines;
}

Lines& Lines::operator+=(const Lines& other) {
    for (std::size_t i = 0; i < line_count; ++i) us[i] += other.us[i];
    return *this;
}

double TimeBreakdown::residual_share() const { return end_to_end_us > 0 ? total[Line::residual] / end_to_end_us : 0; }

double TimeBreakdown::unexplained_share() const {
    return end_to_end_us > 0 ? (std::abs(total[Line::drift]) + std::abs(total[Line::residual])) / end_to_end_us : 0;
}

bool TimeBreakdown::closes() const { return unavailable.empty() && unexplained_share() <= closing_tolerance; }

TimeBreakdown break_down(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                         std::span<const UnitActivity> units, const CycleAccounts& cycles) {
    TimeBreakdown breakdown;
    breakdown.unavailable = facts.unavailable;
    if (!facts.point->end_to_end) return breakdown;
    breakdown.roofs_unavailable = facts.roofs.unavailable();
    breakdown.end_to_end_us = facts.end_to_end_us;
    const Accounts accounts{facts, roof_times, units, cycles};
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        const StepFacts& step = facts.steps[i];
        if (step.time_us <= 0) continue;
        breakdown.total += lines_of(step);
        breakdown.total[Line::recording] -= step.recording_us;
        breakdown.starts_us += cycles.steps[i].starts_us;
        accounts.add_roof_times(breakdown.roof_times, i);
    }
    if (facts.point->program) {
        breakdown.total[Line::overlap] = -overlap_us(facts, breakdown.total);
        breakdown.total[Line::records] = -facts.records_us;
    }
    breakdown.total[Line::drift] = facts.drift_us;
    breakdown.total[Line::residual] = breakdown.end_to_end_us - breakdown.total.total_us();
    breakdown.by_layer = accounts.groups(facts.by_layer);
    breakdown.by_op = accounts.groups(facts.by_op);
    breakdown.marginal = check_marginal(facts, roof_times, breakdown);
    return breakdown;
}

}  // namespace kbench
