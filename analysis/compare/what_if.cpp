// Two models of a step on another machine, one where losses scale with the roof time and one where they stay.
#include "analysis/compare/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/roof_times.h"
#include "analysis/facts/point_facts.h"
#include "analysis/result/match.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr double bytes_per_mib = 1024 * 1024;

const RoofTime* at(const std::vector<RoofTime>& roof_times, std::optional<Level> level) {
    const auto found = std::ranges::find(roof_times, level, &RoofTime::level);
    return found == roof_times.end() ? nullptr : &*found;
}

/// The SMs' clocks while the point ran; both or none.
struct Clocks {
    double here_mhz = 0, there_mhz = 0;
    bool known() const { return here_mhz > 0; }
};

Clocks clocks_of(const Point& point, const WhatIfMachine& source, const WhatIfMachine& target,
                 std::optional<double> there_mhz) {
    const std::optional<double> here_mhz = point.conditions.sm_clock_mhz.value;
    const bool on_gpus = source.roofs.backend() == "cuda" && target.roofs.backend() == "cuda";
    const bool both = on_gpus && here_mhz.value_or(0) > 0 && there_mhz.value_or(0) > 0;
    return both ? Clocks{*here_mhz, *there_mhz} : Clocks{};
}

/// All but DRAM runs at the SMs' clock; 0: that of the roof's measurement.
double at_clock(const RoofTime& roof_time, double clock_mhz) {
    const bool follows = roof_time.level != Level::dram && roof_time.roof.clock_mhz > 0 && clock_mhz > 0;
    return follows ? roof_time.us * roof_time.roof.clock_mhz / clock_mhz : roof_time.us;
}

/// What one step is expected from.
class Transfer {
  public:
    Transfer(const WhatIfMachine& source, const WhatIfMachine& target, const Clocks& clocks)
        : source_(source),
          target_(target),
          clocks_(clocks),
          derates_(target.roofs.origin() == Origin::estimated && source.roofs.origin() == Origin::measured &&
                   source.datasheet) {}

    bool derates() const { return derates_; }
    const Clocks& clocks() const { return clocks_; }
    /// Whether what stays in a cache there may differ from what stays here.
    bool other_cache() const {
        return !source_.l2_bytes || !target_.l2_bytes || *source_.l2_bytes != *target_.l2_bytes;
    }

    /// Why the target cannot compute the step; empty when it can.
    std::string refusal(const StepFacts& facts) const {
        const StepResult& step = *facts.step;
        const std::vector<RoofTime> there = roof_times_of(facts, target_.roofs);
        if (step.cost.flops > 0 && at(there, {}) == nullptr)
            return fmt::format("{} has no roof for {} in {}", target_.name, step.op, name(step.precision));
        if (step.cost.bytes() > 0 && at(there, Level::dram) == nullptr)
            return fmt::format("{} has no roof for the bandwidth of its memory", target_.name);
        return {};
    }

    WhatIfStep expect(const StepFacts& step, const StepRoofTimes& here, double here_us) const {
        WhatIfStep result;
        result.step = step.step;
        result.here_us = here_us;
        const std::vector<RoofTime> there = roof_times_there(step, here);
        if (there.empty() || here.work.empty() || !(here_us > 0)) {
            result.there_us = Interval::exactly(here_us);
            return result;
        }
        result.ceiling_here = here.binding()->roof.ceiling;
        result.ceiling_there = there.front().roof.ceiling;
        result.roof_here_us = at_clock(*here.binding(), clocks_.here_mhz);
        result.roof_there_us = there.front().us;
        const double lost_us = std::max(0.0, here_us - result.roof_here_us);
        const double share = std::min(1.0, result.roof_here_us / here_us);
        const auto same_share = [&](double roof_us) { return roof_us / share; };
        const auto same_loss = [&](double roof_us) { return roof_us + lost_us; };
        const double least = result.roof_there_us, most = highest_roof_time(*step.step, here, there);
        result.there_us = {same_share(least), std::min(same_share(least), same_loss(least)),
                           std::max(same_share(most), same_loss(most))};
        return result;
    }

  private:
    /// Each `us` at the clock there. Largest first.
    std::vector<RoofTime> roof_times_there(const StepFacts& step, const StepRoofTimes& of_here) const {
        std::vector<RoofTime> there = roof_times_of(step, target_.roofs);
        for (RoofTime& roof_time : there) roof_time.us = at_clock(roof_time, clocks_.there_mhz);
        if (derates_) {
            const std::vector<RoofTime> stated = roof_times_of(step, *source_.datasheet);
            for (RoofTime& roof_time : there) {
                const RoofTime *here = of_here.at(roof_time.level), *sheet = at(stated, roof_time.level);
                if (here != nullptr && sheet != nullptr)
                    roof_time.us /= std::min(1.0, here->roof.per_s / sheet->roof.per_s);
            }
        }
        if (derates_ || clocks_.known()) std::ranges::stable_sort(there, std::greater{}, &RoofTime::us);
        return there;
    }

    /// With no byte spared by a cache, and with the levels that the target has but states no roof of as fast as here.
    double highest_roof_time(const StepResult& step, const StepRoofTimes& here,
                             const std::vector<RoofTime>& there) const {
        double highest = there.front().us;
        if (const RoofTime* dram = at(there, Level::dram); dram != nullptr && other_cache() && dram->work > 0)
            highest = std::max(highest, dram->us * step.cost.bytes() / dram->work);
        for (const RoofTime& roof_time : here.work)
            if (at(there, roof_time.level) == nullptr)
                highest = std::max(highest, at_clock(roof_time, clocks_.here_mhz));
        return highest;
    }

    const WhatIfMachine& source_;
    const WhatIfMachine& target_;
    Clocks clocks_;
    bool derates_;
};

template <class NameOf>
std::vector<WhatIfGroup> group(const std::vector<WhatIfStep>& steps, NameOf name_of) {
    std::vector<WhatIfGroup> groups;
    std::vector<std::vector<std::pair<std::string, double>>> us_by_ceiling;
    for (const WhatIfStep& step : steps) {
        const std::string name = name_of(step);
        std::size_t i = static_cast<std::size_t>(std::ranges::find(groups, name, &WhatIfGroup::name) - groups.begin());
        if (i == groups.size()) {
            groups.emplace_back().name = name;
            us_by_ceiling.emplace_back();
        }
        ++groups[i].steps;
        groups[i].here_ms += step.here_us * 1e-3;
        groups[i].there_ms += scaled(step.there_us, 1e-3);
        auto& sums = us_by_ceiling[i];
        auto sum = std::ranges::find(sums, step.ceiling_there, &std::pair<std::string, double>::first);
        if (sum == sums.end()) sum = sums.insert(sums.end(), {step.ceiling_there, 0});
        sum->second += step.there_us.value;
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto most = std::ranges::max_element(us_by_ceiling[i], {}, &std::pair<std::string, double>::second);
        groups[i].ceiling_there = most->first;
        if (groups[i].there_ms.value > 0)
            groups[i].ceiling_there_share = most->second * 1e-3 / groups[i].there_ms.value;
    }
    std::ranges::stable_sort(groups, std::greater{}, [](const WhatIfGroup& g) { return g.there_ms.value; });
    return groups;
}

std::vector<std::string> assumptions_of(const Transfer& transfer, const WhatIfMachine& source,
                                        const WhatIfMachine& target) {
    std::vector<std::string> texts = {
        "Each step runs the same FLOPs and bytes and reaches the same share of its longest roof time as here; the interval's other end keeps the time above the roof time as it is here.",
        "Gaps between kernels are those of here; what recording, drift and the residual of the time breakdown amount to is spread over the steps in proportion to their time."};
    if (target.roofs.origin() == Origin::estimated)
        texts.push_back(fmt::format("The roofs of {} are its datasheet's{}.", target.name,
                                    transfer.derates()
                                        ? ", of which it is taken to reach the shares that were measured here"
                                        : ", taken at their face value, which measured ones stay below"));
    if (source.roofs.origin() == Origin::estimated)
        texts.push_back(fmt::format(
            "The roofs of {} are its datasheet's too, so the shares are lower than those of measured roofs.",
            source.name));
    for (const Level level : {Level::l2, Level::l1})
        if (source.roofs.bandwidth(level) && !target.roofs.bandwidth(level))
            texts.push_back(fmt::format(
                "{} states no roof of {}: the expectation leaves its roof time out, the high end takes it as here.",
                target.name, name(level)));
    if (const Clocks& clocks = transfer.clocks(); clocks.known())
        texts.push_back(fmt::format(
            "NVML's mean clock of the SMs was {:.0f} MHz here and {:.0f} MHz there: roofs of what runs at their clock are taken at these.",
            clocks.here_mhz, clocks.there_mhz));
    texts.push_back(
        transfer.other_cache()
            ? "How much a cache of another size keeps is not modelled: DRAM bytes are those of here, in the high end at least the unfused traffic: no cache spares any."
            : "L2 has the same size on both, so DRAM bytes are taken as here.");
    return texts;
}

std::string refusal(const Explanation& here, const WhatIfMachine& source, const WhatIfMachine& target,
                    const Transfer& transfer) {
    if (!here.breakdown.unavailable.empty()) return here.breakdown.unavailable;
    if (!here.missing.empty()) return joined(here.missing, "; ");
    if (std::string why = why_not_between(source, target); !why.empty()) return why;
    if (!source.roofs.unavailable().empty())
        return fmt::format("{} has no roofs: {}", source.name, source.roofs.unavailable());
    if (!target.roofs.unavailable().empty())
        return fmt::format("{} has no roofs: {}", target.name, target.roofs.unavailable());
    const double planned = static_cast<double>(here.facts.point->memory.total());
    if (target.memory_bytes && planned > *target.memory_bytes)
        return fmt::format("the plan takes {}, {} has {}", format_bytes(planned), target.name,
                           format_bytes(*target.memory_bytes));
    double time_us = 0;
    for (const StepFacts& step : here.facts.steps) {
        time_us += step.time_us;
        if (std::string why = transfer.refusal(step); !why.empty()) return why;
    }
    return time_us > 0 ? "" : "its steps have no times";
}

}  // namespace

WhatIfMachine what_if_machine(const Result& result) {
    Roofs roofs(result);
    const bool gpu = roofs.backend() == "cuda" && result.environment.gpu.has_value();
    WhatIfMachine machine{
        gpu ? device_name(*result.environment.gpu) : result.environment.host.cpu, std::move(roofs), {}, {}, {}};
    if (gpu) {
        const GpuInfo& info = *result.environment.gpu;
        if (info.l2_bytes > 0) machine.l2_bytes = static_cast<double>(info.l2_bytes);
        if (info.memory_bytes > 0) machine.memory_bytes = static_cast<double>(info.memory_bytes);
    } else if (result.environment.host.memory_bytes > 0) {
        machine.memory_bytes = static_cast<double>(result.environment.host.memory_bytes);
    }
    const MachineFile* known = machine_of(result.environment, machine.roofs.backend());
    if (known != nullptr && machine.roofs.origin() == Origin::measured)
        machine.datasheet = Roofs(scaled_to(*known, result.environment));
    return machine;
}

WhatIfMachine what_if_machine(const MachineFile& file) {
    WhatIfMachine machine{file.name, Roofs(file), {}, {}, {}};
    if (file.memory_gb) machine.memory_bytes = *file.memory_gb * 1e9;
    if (file.l2_mb && file.kind == "gpu") machine.l2_bytes = *file.l2_mb * bytes_per_mib;
    return machine;
}

std::string why_not_between(const WhatIfMachine& source, const WhatIfMachine& target) {
    if (source.roofs.backend() == target.roofs.backend()) return "";
    return "nothing is expected between a GPU and a CPU: all four expectations that were tried missed the measurement, by 30 to 71 %";
}

std::string tested_text(const std::optional<WhatIfTested>& tested) {
    if (!tested) return "How far such an expectation errs is not yet tested, on this architecture or another.";
    return fmt::format(
        "Tested on fewer SMs of one GPU alone (docs/machines.md): of {} expectations {} had the measurement in their interval, and errors were {:+.0f} to {:+.0f} %. No other architecture was tested.",
        tested->expectations, tested->inside, 100 * tested->least_error, 100 * tested->most_error);
}

std::string tested_text(std::string_view backend) {
    return backend == "cuda" ? tested_text(what_if_tested) : "what is expected of CPUs was never tested.";
}

WhatIf what_if(const Explanation& here, const WhatIfMachine& source, const WhatIfMachine& target,
               std::optional<double> clock_there_mhz) {
    WhatIf answer;
    const PointFacts& facts = here.facts;
    answer.point = facts.point;
    answer.source = source.name;
    answer.target = target.name;
    const Transfer transfer(source, target, clocks_of(*facts.point, source, target, clock_there_mhz));
    answer.unavailable = refusal(here, source, target, transfer);
    if (!answer.unavailable.empty()) return answer;

    double steps_us = 0, gaps_us = 0;
    for (const StepFacts& step : facts.steps) {
        steps_us += step.time_us;
        gaps_us += lines_of(step).total_us() - step.time_us;
    }
    answer.here_ms = facts.end_to_end_us * 1e-3;
    answer.gaps_ms = std::clamp(gaps_us, 0.0, facts.end_to_end_us) * 1e-3;
    const double unprofiled = (answer.here_ms - answer.gaps_ms) * 1e3 / steps_us;
    answer.there_ms = Interval::exactly(answer.gaps_ms);
    for (std::size_t i = 0; i < facts.steps.size(); ++i) {
        const StepFacts& step = facts.steps[i];
        answer.steps.push_back(transfer.expect(step, here.roof_times[i], step.time_us * unprofiled));
        answer.there_ms += scaled(answer.steps.back().there_us, 1e-3);
    }
    answer.by_layer = group(answer.steps, [](const WhatIfStep& s) { return layer_group(s.step->layer); });
    answer.by_op = group(answer.steps, [](const WhatIfStep& s) { return s.step->op; });
    answer.by_ceiling = group(answer.steps, [](const WhatIfStep& s) { return s.ceiling_there; });
    answer.assumptions = assumptions_of(transfer, source, target);
    return answer;
}

WhatIfCheck check_what_if(const WhatIf& expected, const Point& measured) {
    WhatIfCheck check;
    if (!expected.unavailable.empty()) {
        check.unavailable = expected.unavailable;
        return check;
    }
    const Point& point = *expected.point;
    if (const Axis* axis = first_difference(point, measured)) {
        const auto text = [axis](const Point& of) {
            const AxisValue* value = of.axes.find(axis->name);
            return value ? text_of(*value) : std::string("none");
        };
        check.unavailable = fmt::format("the {} differs: {} and {}", axis->in_full(), text(point), text(measured));
    }
    if (check.unavailable.empty() && !measured.end_to_end) check.unavailable = "the other point was not timed";
    if (!check.unavailable.empty()) return check;
    check.expected_ms = expected.there_ms.value;
    check.measured_ms = measured.end_to_end->latency.summary_ms.median;
    check.error = check.measured_ms > 0 ? check.expected_ms / check.measured_ms - 1 : 0;
    check.inside = check.measured_ms >= expected.there_ms.low && check.measured_ms <= expected.there_ms.high;
    return check;
}

}  // namespace kbench
