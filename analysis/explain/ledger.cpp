// See ledger.h.
#include "analysis/explain/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/executed.h"

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

/// Kernels and the gaps between them, without the gap before the first. Without records the mean over the runs with
/// marks: means add up to the mean of the whole, and medians, where now one step is slow and now another, do not.
double own_time_us(const StepResult& step) {
    if (step.kernels.empty() && step.time_us) return step.time_us->mean;
    return step.device_us().value_or(0);
}

double gap_before_us(const StepResult& step) { return step.kernels.empty() ? 0 : step.kernels.front().gap_us; }

/// Books the gaps before the step's kernels, and returns what is left of an empty kernel's time for starting and ending
/// them: an empty kernel's latency is from start to start, and so holds a gap as well.
double split_gaps(StepLedger& entry, const std::optional<double>& graph_node_us) {
    double left_us = 0;
    for (const KernelResult& kernel : entry.step->kernels) {
        const double launch = std::min(kernel.gap_us, graph_node_us.value_or(kernel.gap_us));
        entry.lines[Line::launch] += launch;
        entry.lines[Line::dependency] += kernel.gap_us - launch;
        if (graph_node_us) left_us += *graph_node_us - std::max(0.0, launch);
    }
    return left_us;
}

/// What records add to one kernel of this recorded length: between the calibrated lengths in proportion, beyond them as
/// at the nearest. Files before version 3 counted a part of the launch as well; there, what the record itself is
/// longer.
class Inflation {
  public:
    explicit Inflation(const ActivityRun& run) {
        for (const RecordInflation& chain : run.inflation) {
            const double with = run.unprofiled_ms > 0 ? chain.profiled_us : chain.recorded_us;
            by_length_[chain.recorded_us] = with - chain.kernel_us;
        }
    }
    double us(double recorded_us) const {
        if (by_length_.empty()) return 0;
        const auto above = by_length_.lower_bound(recorded_us);
        if (above == by_length_.begin()) return above->second;
        if (above == by_length_.end()) return std::prev(above)->second;
        const auto below = std::prev(above);
        const double share = (recorded_us - below->first) / (above->first - below->first);
        return below->second + share * (above->second - below->second);
    }

  private:
    std::map<double, double> by_length_;
};

double recording_us(const StepResult& step, const Inflation& inflation) {
    double us = 0;
    for (const KernelResult& kernel : step.kernels) us += inflation.us(kernel.time_us);
    return us;
}

/// Units count the cycles in which an SM had a warp, so a step without these has no busy times.
void add_demands(DemandSums& sums, const StepLedger& entry) {
    const CycleAccount& cycles = entry.cycles;
    const bool counted = cycles.unavailable.empty() && entry.time_us > 0;
    sums.add(*entry.step, entry.demands, entry.unit_demands, entry.time_us,
             counted ? std::optional((1 - cycles.no_warp) * cycles.time_us) : std::nullopt);
}

template <class NameOf>
std::vector<LedgerGroup> group(const std::vector<StepLedger>& steps, NameOf name_of) {
    std::vector<LedgerGroup> groups;
    for (const StepLedger& entry : steps) {
        const std::string name = name_of(*entry.step);
        auto found = std::ranges::find(groups, name, &LedgerGroup::name);
        if (found == groups.end()) found = groups.insert(groups.end(), LedgerGroup{name, 0, 0, {}, {}});
        ++found->steps;
        found->time_us += entry.time_us;
        found->lines += entry.lines;
        add_demands(found->demands, entry);
    }
    std::ranges::stable_sort(groups, std::greater{}, &LedgerGroup::time_us);
    return groups;
}

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

std::vector<MarginalCheck> check_marginal(const Point& point, const Ledger& ledger, const Inflation& inflation) {
    std::vector<MarginalCheck> checks;
    for (const MarginalCost& cost : point.marginal) {
        MarginalCheck check;
        check.op = cost.op;
        double recording = 0;
        for (const StepLedger& entry : ledger.steps) {
            if (entry.step->op != cost.op) continue;
            check.ledger_ms += (entry.time_us + gap_before_us(*entry.step)) * 1e-3;
            recording += recording_us(*entry.step, inflation) * 1e-3;
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

Lines& Lines::operator+=(const Lines& other) {
    for (std::size_t i = 0; i < line_count; ++i) us[i] += other.us[i];
    return *this;
}

double StepLedger::roof_share() const { return binding() != nullptr && time_us > 0 ? binding()->us / time_us : 0; }

double Ledger::residual_share() const { return end_to_end_us > 0 ? total[Line::residual] / end_to_end_us : 0; }

double Ledger::unexplained_share() const {
    return end_to_end_us > 0 ? (std::abs(total[Line::drift]) + std::abs(total[Line::residual])) / end_to_end_us : 0;
}

bool Ledger::closes() const { return unavailable.empty() && unexplained_share() <= closing_tolerance; }

double executed_over_useful(const StepResult& step) {
    const double needed = step.needed_flops();
    return needed > 0 ? 1 + step.padding_flops / needed : 1;
}

std::optional<RoofBreach> worst_breach(const Result& result) {
    const Roofs roofs(result);
    std::optional<RoofBreach> worst;
    for (const Point& point : result.points)
        for (const StepLedger& entry : make_ledger(point, roofs).steps)
            for (const Demand& demand : entry.demands) {
                // Bytes that nobody counted may never have left a cache.
                if (entry.time_us <= 0 || (demand.level && demand.origin != Origin::measured)) continue;
                const double executed = demand.level ? 1 : executed_over_useful(*entry.step);
                const double excess = demand.us * executed / entry.time_us - 1;
                if (excess > std::max(breach_tolerance, worst ? worst->excess : 0))
                    worst = {fmt::format("{} {}", entry.step->index, entry.step->layer), demand.roof.ceiling, excess};
            }
    return worst;
}

Ledger make_ledger(const Point& point, const Roofs& roofs) {
    Ledger ledger;
    if (!point.end_to_end) {
        ledger.unavailable = point.reason.empty() ? "the point was not timed" : point.reason;
        return ledger;
    }
    ledger.roofs_unavailable = roofs.unavailable();
    if (std::ranges::none_of(point.steps, [](const StepResult& step) { return own_time_us(step) > 0; }))
        ledger.unavailable = "its steps were not timed";
    ledger.end_to_end_us = point.end_to_end->latency.summary_ms.median * 1e3;
    const Inflation inflation(point.activity);
    const Interval clock_mhz = run_clock(point);
    const std::optional<double> graph_node_us = roofs.latency_us("graph_node");
    const Origin dram = dram_origin(point);
    for (const StepResult& step : point.steps) {
        StepLedger& entry = ledger.steps.emplace_back();
        entry.step = &step;
        entry.time_us = own_time_us(step);
        entry.demands = demands_of(step, roofs, dram, clock_mhz);
        entry.unit_demands = unit_demands_of(step, roofs, clock_mhz);
        if (entry.time_us <= 0) continue;
        entry.on_gpu = point.backend() == "cuda";
        const double start_and_end_us = split_gaps(entry, graph_node_us);
        entry.kernels_us = entry.time_us + gap_before_us(step) - entry.lines.gaps_us();
        entry.lines[Line::kernels] = entry.kernels_us;
        entry.recording_us = recording_us(step, inflation);
        entry.cycles = account_of(step, clock_mhz.value);
        if (const double mhz = step_clock_mhz(step, clock_mhz.value); clock_mhz.value > 0 && mhz > 0)
            entry.clock_error = std::max(clock_mhz.high / mhz - 1, 1 - clock_mhz.low / mhz);
        if (entry.cycles.unavailable.empty())
            entry.starts_us =
                std::clamp(entry.cycles.no_warp * entry.cycles.time_us, 0.0, std::max(0.0, start_and_end_us));
        ledger.total += entry.lines;
        ledger.total[Line::recording] -= entry.recording_us;
        ledger.starts_us += entry.starts_us;
        add_demands(ledger.demands, entry);
    }
    if (point.activity.unprofiled_ms > 0)
        ledger.total[Line::drift] = ledger.end_to_end_us - point.activity.unprofiled_ms * 1e3;
    ledger.total[Line::residual] = ledger.end_to_end_us - ledger.total.total_us();
    ledger.by_layer = group(ledger.steps, [](const StepResult& step) { return layer_group(step.layer); });
    ledger.by_op = group(ledger.steps, [](const StepResult& step) { return step.op; });
    ledger.marginal = check_marginal(point, ledger, inflation);
    return ledger;
}

}  // namespace kbench
