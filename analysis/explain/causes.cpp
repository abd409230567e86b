// Each cause's line from the figure that measures it, and sums of steps.
#include "analysis/explain/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "analysis/explain/cause_changes.h"
#include "analysis/explain/roof_times.h"
#include "analysis/explain/serial_chain.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::array<CauseInfo, cause_count> cause_infos{{
    {"useful work", "at its roof, at the highest clock",
     "the work that the model asks for, at its roof and at the highest clock",
     "FLOPs of the cost model or counted bytes, over the measured roof"},
    {"clock", "the clock is below its highest",
     "what all that follows the SMs' clock loses where it is below the highest (power, heat)",
     "the SM's clock in the graph, or NVML's, against the highest at which a roof was measured"},
    {"main loop", "kernels below their roof", "what grows with the size of the work and is not at its roof",
     "the slope of time against size, less the lines of useful work, extra work and dependency"},
    {"fixed time", "start, fill, epilogue of kernels",
     "what a kernel takes whatever its size: start, fill, exposed epilogue, drain",
     "the time at size zero of the line through times at several sizes, less the gaps"},
    {"uneven waves", "SMs idle while others finish",
     "SMs that have no work left while others still work, as in a last wave",
     "active cycles of the SM with most, less the mean of all SMs"},
    {"extra work", "padding, masked, overhanging",
     "work beyond what the model asks for: padding, masked elements, overhanging tiles",
     "counted FLOPs, or those that the plan knows of, less the cost model's"},
    {"dependency", "waiting for the time step before", "time steps that wait for the one before them",
     "clocks in the kernel around its waits, or the measured exchange for each time step"},
    {"gaps", "no kernel runs", "no kernel runs", "recorded starts and ends of kernels"},
    {"not explained", "the rest", "what is left, with the misfits of all lines above", "nothing: it is the rest"},
}};

/// Word by which phases of a time step are named in which a block waits for others.
constexpr std::string_view waiting_phase = "wait";
constexpr std::string_view power_limit = "sw_power_cap";
constexpr std::string_view slower_instructions[] = {"mma_sync", "attention_mma"};

Interval plus(const Interval& a, const Interval& b) { return {a.value + b.value, a.low + b.low, a.high + b.high}; }

/// Ends as far apart as they go.
Interval minus(const Interval& a, const Interval& b) { return {a.value - b.value, a.low - b.high, a.high - b.low}; }

Interval times(const Interval& a, const Interval& b) { return {a.value * b.value, a.low * b.low, a.high * b.high}; }

Interval at_least_zero(const Interval& a) {
    return {std::max(0.0, a.value), std::max(0.0, a.low), std::max(0.0, a.high)};
}

/// Whether a roof's work slows down with the SMs' clock.
bool is_on_chip(const RoofTime& roof_time) { return !roof_time.level || *roof_time.level == Level::l1; }

/// How much longer work at the roof takes at the step's clock. Without a clock that was read in the graph itself, one
/// above the roof's is not believed.
Interval slower_by_clock(const RoofTime& roof_time, const StepFacts& step) {
    const Interval& clock = step.own_clock_mhz;
    if (!is_on_chip(roof_time) || roof_time.roof.clock_mhz <= 0 || clock.low <= 0) return Interval::exactly(1);
    const Interval slower = quotient(Interval::exactly(roof_time.roof.clock_mhz), clock);
    if (step.has_graph_clock) return slower;
    return {std::max(1.0, slower.value), std::max(1.0, slower.low), std::max(1.0, slower.high)};
}

/// One step on the way to its lines.
class StepCauseFinder {
  public:
    StepCauseFinder(const PointFacts& point, const StepFacts& step, const StepRoofTimes& roof_times,
                    const CycleAccount& cycles)
        : roofs_(point.roofs), step_(step), roof_times_(roof_times), cycles_(cycles) {}

    StepCauses find() {
        StepCauses causes;
        if (step_.time_us <= 0) return causes;
        const Interval kernels = kernels_us();
        const Interval whole = plus(kernels, Interval::exactly(step_.gaps_us()));
        causes.time_us = whole.value;
        CauseLines& lines = causes.at_run_clock;
        lines[Cause::gaps] = Interval::exactly(step_.gaps_us());
        // Without a roof of its unit, what is useful of its time is not known, and neither is what its main loop loses.
        const bool is_useful_known = roof_times_.compute_known;
        const RoofTime* roof = is_useful_known ? add_work(causes) : nullptr;
        lines[Cause::dependency] = exchange_us();
        const Interval uneven = uneven_share();
        lines[Cause::uneven] = times(kernels, uneven);
        causes.no_fit = step_.size_fit.unavailable;
        double misfit_us = 0;
        if (causes.no_fit.empty()) {
            const bool follows_clock = roof == nullptr || is_on_chip(*roof);
            const SizeParts& parts = follows_clock ? step_.size_fit.by_clock : step_.size_fit.by_memory;
            misfit_us = parts.misfit_us;
            const Interval even{1 - uneven.value, 1 - uneven.high, 1 - uneven.low};
            lines[Cause::fixed] = times(at_least_zero(minus(parts.fixed_us, lines[Cause::gaps])), even);
            Interval loop = times(parts.slope_us, even);
            for (const Cause cause : {Cause::useful, Cause::extra, Cause::dependency}) loop = minus(loop, lines[cause]);
            if (is_useful_known) lines[Cause::main_loop] = at_least_zero(loop);
        }
        Interval left = whole;
        for (std::size_t i = 0; i + 1 < cause_count; ++i) left = minus(left, lines.us[i]);
        lines[Cause::unexplained] = left;
        causes.misfit_us = std::max(std::abs(left.value), misfit_us);
        causes.lines = lines;
        take_out_clock(causes.lines, roof);
        return causes;
    }

    /// Whether it ran slower instructions than the fastest unit for its precision has.
    bool is_by_slower_unit() const {
        const std::vector<RoofTime> fastest = roof_times_at_fastest(step_, roofs_);
        const auto unit = std::ranges::find(fastest, std::optional<Level>(), &RoofTime::level);
        if (unit == fastest.end()) return false;
        if (const RoofTime* own = roof_times_.at({}); own != nullptr && own->roof.ceiling != unit->roof.ceiling)
            return true;
        // Without counters, the name says it.
        const std::optional<Roof> slower = roofs_.matrix_by_mma_sync(step_.step->precision);
        const auto is_in_name = [&](std::string_view word) {
            return step_.step->implementation.find(word) != std::string::npos;
        };
        return slower && slower->ceiling.ends_with("_mma_sync") && unit->roof.ceiling.ends_with("_tensor") &&
               !step_.counters.tensor_wgmma_inst && std::ranges::any_of(slower_instructions, is_in_name);
    }

  private:
    /// Without what records add.
    Interval kernels_us() const {
        const double recorded = step_.kernels_us, added = step_.recording_us;
        return {recorded - added, recorded - std::max(0.0, added), recorded - std::min(0.0, added)};
    }

    /// Useful and extra work at the roof that takes longest, at the clock of the run.
    const RoofTime* add_work(StepCauses& causes) {
        fastest_ = roof_times_at_fastest(step_, roofs_, step_.own_clock_mhz);
        if (fastest_.empty() || fastest_.front().us <= 0) return nullptr;
        const RoofTime& roof = fastest_.front();
        const double count = roof.origin == Origin::derived ? 0 : count_tolerance;
        const double low_per_s =
            roof.roof.low_per_s > 0 ? std::min(roof.roof.low_per_s, roof.roof.per_s) : roof.roof.per_s;
        const Interval per_s{roof.roof.per_s, low_per_s, std::max(roof.roof.high_per_s, roof.roof.per_s)};
        // FLOPs of the model that ran on another unit are not this roof's.
        const double useful = roof.work + std::min(0.0, roof.extra_work), extra = std::max(0.0, roof.extra_work);
        const Interval one_us = scaled(quotient({1, 1 - count, 1 + count}, per_s), 1e6);
        const Interval slower = slower_by_clock(roof, step_);
        CauseLines& lines = causes.at_run_clock;
        lines[Cause::useful] = times(scaled(one_us, useful), slower);
        lines[Cause::extra] = times(scaled(one_us, extra), slower);
        causes.roof = roof.name();
        causes.is_at_memory = roof.is_memory();
        return &roof;
    }

    /// Whether what stands around the work at `roof` follows the SMs' clock. What waits for a memory does not; around
    /// the reads of a product, as of attention, most does. Null: no roof is known.
    bool others_follow_clock(const RoofTime* roof) const {
        return roof != nullptr && (is_on_chip(*roof) || step_.step->matrix_flops > 0);
    }

    /// A line of its own for what the others lose to a clock below the highest.
    void take_out_clock(CauseLines& lines, const RoofTime* roof) const {
        const double highest = roofs_.highest_clock_mhz();
        const Interval& own = step_.own_clock_mhz;
        if (highest <= 0 || own.low <= 0) return;
        const Interval lost = at_least_zero({1 - own.value / highest, 1 - own.high / highest, 1 - own.low / highest});
        const auto take = [&](Cause cause) {
            lines[Cause::clock] += times(lines[cause], lost);
            lines[cause] = scaled(lines[cause], 1 - lost.value);
        };
        if (roof != nullptr && is_on_chip(*roof))
            for (const Cause cause : {Cause::useful, Cause::extra}) take(cause);
        if (others_follow_clock(roof))
            for (const Cause cause : {Cause::main_loop, Cause::fixed, Cause::uneven, Cause::dependency}) take(cause);
    }

    /// A part of the kernels' time; 0 where it was not counted.
    Interval uneven_share() const {
        if (!cycles_.unavailable.empty() || !cycles_.uneven) return {};
        const double share = std::clamp(*cycles_.uneven, 0.0, 1.0), error = count_tolerance + step_.clock_error;
        return {share, share * std::max(0.0, 1 - error), std::min(1.0, share * (1 + error))};
    }

    /// What its time steps wait for each other.
    Interval exchange_us() const {
        const double count = static_cast<double>(step_.chained_steps());
        if (count <= 1) return {};
        if (const std::optional<StepAccount>& account = step_.step->account; account && cycles_of(*account) > 0) {
            double waiting = 0;
            for (const StepPhase& phase : account->phases)
                if (phase.name.starts_with(waiting_phase)) waiting += phase.median_cycles;
            const Interval& clock = step_.own_clock_mhz;
            return clock.low > 0 ? scaled(quotient(Interval::exactly(waiting), clock), count)
                                 : Interval::exactly(count * account->us * waiting / cycles_of(*account));
        }
        const std::optional<Exchange> exchange = exchange_of(step_, roofs_);
        return exchange ? Interval::exactly(count * exchange->us) : Interval{};
    }

    const Roofs& roofs_;
    const StepFacts& step_;
    const StepRoofTimes& roof_times_;
    const CycleAccount& cycles_;
    std::vector<RoofTime> fastest_;
};

void add_part(std::vector<CausePart>& parts, const std::string& name, const Interval& us, bool is_at_memory = false) {
    CausePart& part = entry(parts, &CausePart::name, name);
    part.is_at_memory = is_at_memory;
    part.us += us;
}

void sort_longest(std::vector<CausePart>& parts) {
    std::ranges::stable_sort(parts, std::greater{}, [](const CausePart& part) { return part.us.value; });
}

void add(CauseGroup& group, const StepCauses& step) {
    if (step.time_us <= 0) return;
    ++group.steps;
    group.time_us += step.time_us;
    group.lines += step.lines;
    group.at_run_clock += step.at_run_clock;
    group.misfit_us += step.misfit_us;
    if (!step.no_fit.empty()) group.unfitted_us += step.time_us;
    if (!step.roof.empty())
        add_part(group.at_roofs, step.roof, plus(step.at_run_clock[Cause::useful], step.at_run_clock[Cause::extra]),
                 step.is_at_memory);
    for (std::size_t i = 0; i < cause_count; ++i)
        if (!step.changes[i].empty()) add_part(group.changes[i], step.changes[i], step.lines.us[i]);
}

CauseGroup group_of(std::string name, const std::vector<StepCauses>& all, std::span<const std::size_t> steps) {
    CauseGroup group;
    group.name = std::move(name);
    for (const std::size_t s : steps) add(group, all[s]);
    for (auto& parts : group.changes) sort_longest(parts);
    sort_longest(group.at_roofs);
    return group;
}

std::vector<CauseGroup> groups_of(const std::vector<NamedSteps>& named, const std::vector<StepCauses>& all) {
    std::vector<CauseGroup> groups;
    for (const auto& [name, steps] : named)
        if (CauseGroup group = group_of(name, all, steps); group.steps > 0) groups.push_back(std::move(group));
    std::ranges::stable_sort(groups, std::greater{}, &CauseGroup::time_us);
    return groups;
}

/// What products without an activation have as their fixed time, mean of those that have a fit.
std::optional<double> plain_fixed_us(const PointFacts& facts, const std::vector<StepCauses>& causes) {
    double sum = 0, steps = 0;
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const StepResult& step = *facts.steps[i].step;
        if (step.op != "gemm" || !activation_of(step).empty() || causes[i].time_us <= 0 || !causes[i].no_fit.empty())
            continue;
        sum += causes[i].lines[Cause::fixed].value;
        ++steps;
    }
    return steps > 0 ? std::optional(sum / steps) : std::nullopt;
}

}  // namespace

const CauseInfo& info(Cause cause) { return cause_infos[static_cast<std::size_t>(cause)]; }

double CauseLines::total_us() const {
    double sum = 0;
    for (const Interval& line : us) sum += line.value;
    return sum;
}

CauseLines& CauseLines::operator+=(const CauseLines& other) {
    for (std::size_t i = 0; i < cause_count; ++i) us[i] += other.us[i];
    return *this;
}

bool CauseGroup::is_explanation() const { return time_us > 0 && misfit_share() < explanation_tolerance; }

std::string CauseGroup::change(Cause cause) const {
    constexpr double noteworthy = 0.25;  // a part of the line
    const double line_us = lines[cause].value;
    return joined(changes[static_cast<std::size_t>(cause)], "; ", [&](const CausePart& part) {
        return part.us.value >= noteworthy * line_us && part.us.value > 0 ? part.name : "";
    });
}

Causes find_causes(const PointFacts& facts, std::span<const StepRoofTimes> roof_times, const CycleAccounts& cycles) {
    Causes result;
    result.unavailable = facts.unavailable;
    if (!facts.unavailable.empty() || roof_times.empty()) return result;
    std::vector<bool> by_slower_unit;
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        StepCauseFinder finder(facts, facts.steps[i], roof_times[i], cycles.steps[i]);
        result.steps.push_back(finder.find());
        by_slower_unit.push_back(finder.is_by_slower_unit());
    }
    const std::optional<double> plain_us = plain_fixed_us(facts, result.steps);
    const bool at_power_limit = is_at_power_limit(facts.point->conditions);
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
        all.push_back(i);
        StepCauses& step = result.steps[i];
        if (step.time_us <= 0) continue;
        result.has_fits = result.has_fits || step.no_fit.empty();
        const bool has_activation = plain_us && !activation_of(*facts.steps[i].step).empty() && step.no_fit.empty();
        const ChangeGrounds grounds{facts.steps[i], step, by_slower_unit[i], at_power_limit,
                                    has_activation ? step.lines[Cause::fixed].value - *plain_us : 0};
        for (std::size_t c = 0; c < cause_count; ++c)
            if (step.lines.us[c].value > 0) step.changes[c] = change_of(cause_at(c), grounds);
    }
    result.by_op = groups_of(facts.by_op, result.steps);
    result.by_layer = groups_of(facts.by_layer, result.steps);
    result.whole = group_of("whole", result.steps, all);
    // Drift and the residual of the records: what the steps do not add up to.
    const double beyond_us = facts.end_to_end_us - result.whole.time_us;
    result.whole.lines[Cause::unexplained] += Interval::exactly(beyond_us);
    result.whole.at_run_clock[Cause::unexplained] += Interval::exactly(beyond_us);
    result.whole.time_us = facts.end_to_end_us;
    result.whole.misfit_us += std::abs(facts.drift_us) + std::abs(beyond_us - facts.drift_us);
    return result;
}

bool is_at_power_limit(const Conditions& conditions) { return contains(conditions.throttle_reasons, power_limit); }

void withhold(Causes& causes) {
    for (StepCauses& step : causes.steps) step.changes = {};
    for (auto* groups : {&causes.by_op, &causes.by_layer})
        for (CauseGroup& group : *groups) group.changes = {};
    causes.whole.changes = {};
}

}  // namespace kbench
