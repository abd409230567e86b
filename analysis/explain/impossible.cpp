#include "analysis/explain/impossible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/machine/machine.h"
#include "analysis/result/point_name.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

using Findings = std::vector<std::string>;

/// An SM has four schedulers, which issue one instruction a cycle each (CUDA C++ Programming Guide, Architecture, from
/// compute capability 5.0 on). A little above is the counters' own noise.
constexpr double most_ipc = schedulers + 0.05;
/// A card of another maker's clock or memory may be this much above the datasheet.
constexpr double datasheet_tolerance = 1.15;

/// The longest of a step's roof times that no cache can have spared: FLOPs as executed, and bytes that were counted.
double certain_us(const StepFacts& step, const StepRoofTimes& roof_times, Workers workers) {
    double us = 0;
    for (const RoofTime& roof_time : roof_times.work)
        if (!roof_time.level || roof_time.origin == Origin::measured)
            us = std::max(us, roof_time.least_us(workers) * (roof_time.level ? 1 : step.executed_over_useful()));
    return us;
}

std::string placed(const StepResult& step) { return fmt::format("step {} ({}, {})", step.index, step.layer, step.op); }

void find_times(Findings& found, const Point& point) {
    const auto add = [&](std::string_view what, double value, std::string_view unit) {
        found.push_back(fmt::format("{} is {:.4g} {}, and no time is below or at 0", what, value, unit));
    };
    if (point.end_to_end) {
        const Timing& latency = point.end_to_end->latency;
        if (!(latency.summary_ms.median > 0)) add("the median latency", latency.summary_ms.median, "ms");
        const auto wrong = std::ranges::find_if(latency.samples_ms, [](double ms) { return !(ms > 0); });
        if (wrong != latency.samples_ms.end()) add("a sample of the latency", *wrong, "ms");
    }
    for (const StepResult& step : point.steps) {
        if (step.time_us && !(step.time_us->median > 0)) add(placed(step), step.time_us->median, "us");
        for (const KernelResult& kernel : step.kernels)
            if (!(kernel.time_us > 0)) add("a kernel of " + placed(step), kernel.time_us, "us");
        if (found.size() > 3) return;  // more would say no more
    }
}

/// A step whose verification fails ends its point, so that of a finished one every step is within its bound.
void find_verification(Findings& found, const Point& point) {
    constexpr double rounding = 1e-6;  // a ratio beside the two numbers that it is of
    for (const VerifiedStep& step : point.verification.steps) {
        const auto add = [&](const std::string& what) {
            found.push_back(
                fmt::format("the verification of {} {} by {} {}", step.op, step.shape, step.provider, what));
        };
        const double ratio = step.error_over_bound;
        const bool contradict = step.worst_error < 0 || step.bound_there < 0 ||
                                !(std::abs(step.worst_error - ratio * step.bound_there) <=
                                  rounding * std::max(step.worst_error, ratio * step.bound_there));
        if (!(ratio >= 0 && ratio <= 1))
            add(fmt::format("found an error of {:.4g} times its bound; the result is wrong", ratio));
        else if (step.elements_checked <= 0 || step.elements_checked > step.elements_total)
            add(fmt::format("looked at {} of {} elements, so nothing was verified", step.elements_checked,
                            step.elements_total));
        else if (contradict)
            add(fmt::format(
                "says an error of {:.4g}, a bound of {:.4g} and a ratio of {:.4g}, which contradict each other",
                step.worst_error, step.bound_there, ratio));
        else
            continue;
        return;  // more would say no more
    }
}

/// A GPU's roofs are measured while nothing else uses it. A CPU's may be low, where others take cores meanwhile: 187 %
/// were seen on a shared host of a loop that is its own roof.
std::string_view suspects_of(const Point& point) {
    return point.backend() == "cuda"
               ? "the precision that ran, the work that is counted, the roofs, the clock"
               : "the roofs (did other work use the cores?), the precision that ran, the work that is counted";
}

void find_roof_times(Findings& found, const PointFacts& facts, std::span<const StepRoofTimes> roof_times) {
    if (!facts.unavailable.empty() || !(facts.end_to_end_us > 0)) return;
    double certain = 0;
    for (std::size_t i = 0; i < roof_times.size(); ++i)
        certain += certain_us(facts.steps[i], roof_times[i], facts.workers);
    const double share = certain / facts.end_to_end_us;
    if (share > impossible_share)
        found.push_back(
            fmt::format("FLOPs and counted bytes need {:.0f} % of the time at their roofs; suspect, in this order, {}",
                        100 * share, suspects_of(*facts.point)));
}

/// So few SMs compute no faster than their part of the roof, at whatever clock they run: the roof's is the highest. A
/// CPU's is not: fewer of its cores run at a higher clock than all.
void find_few_sms(Findings& found, const PointFacts& facts, std::span<const StepRoofTimes> roof_times) {
    if (facts.workers != Workers::sms) return;
    for (const SmTimes& times : facts.sm_times) {
        const double part = static_cast<double>(times.multiprocessors) / facts.sm_times.front().multiprocessors;
        double least_us = 0, took_us = 0;
        for (std::size_t i = 0; i < roof_times.size(); ++i) {
            took_us += times.step_us[i].value;
            const RoofTime* unit = roof_times[i].at(std::nullopt);
            if (unit != nullptr && times.step_us[i].value > 0)
                least_us += unit->us * facts.steps[i].executed_over_useful() / part;
        }
        if (took_us <= 0 || least_us <= impossible_share * took_us) continue;
        found.push_back(fmt::format(
            "on {} of {} SMs the FLOPs need {:.0f} % of the time at the roofs of so many; suspect the number of SMs that ran them, then {}",
            times.multiprocessors, facts.sm_times.front().multiprocessors, 100 * least_us / took_us,
            suspects_of(*facts.point)));
        return;  // fewer would say no more
    }
}

void find_counters(Findings& found, const PointFacts& facts) {
    for (const StepFacts& step : facts.steps) {
        const auto &ipc = step.counters.ipc, &active = step.counters.sm_cycles_active,
                   &elapsed = step.counters.sm_cycles_elapsed;
        if (ipc && *ipc > most_ipc)
            found.push_back(fmt::format(
                "{} issues {:.2f} instructions a cycle, and an SM has {:.0f} schedulers; suspect the counters",
                placed(*step.step), *ipc, schedulers));
        if (active && elapsed && *active > impossible_share * *elapsed)
            found.push_back(fmt::format("the SMs are active for {:.0f} % of the cycles of {}; suspect the counters",
                                        100 * *active / *elapsed, placed(*step.step)));
        if (found.size() > 3) return;
    }
}

void find_roofs(Findings& found, const Roofs& roofs) {
    for (std::size_t i = 0; i + 1 < std::size(levels); ++i) {
        const auto slower = roofs.bandwidth(levels[i]), faster = roofs.bandwidth(levels[i + 1]);
        if (slower && faster && slower->per_s > impossible_share * faster->per_s)
            found.push_back(
                fmt::format("the roof of {}, {:.0f} GB/s, is below that of {}, {:.0f} GB/s; suspect the roofs",
                            name(levels[i + 1]), faster->per_s * 1e-9, name(levels[i]), slower->per_s * 1e-9));
    }
}

/// Roofs that were measured, beside what the maker of the device of that name states.
void find_device(Findings& found, const Result& result, const Point& point) {
    if (point.backend() != "cuda" || !result.environment.gpu) return;
    const MachineFile* machine = machine_of(result.environment, "cuda");
    if (machine == nullptr) return;
    const GpuInfo& gpu = *result.environment.gpu;
    if (machine->multiprocessors && gpu.multiprocessors > *machine->multiprocessors)
        found.push_back(fmt::format("{} has {} SMs, and its datasheet states {}; suspect the device's name", gpu.name,
                                    gpu.multiprocessors, *machine->multiprocessors));
    for (const Ceiling& ceiling : result.ceilings.ceilings) {
        const std::optional<double> stated = machine->roof(ceiling.name);
        if (ceiling.value.value && stated && *ceiling.value.value > datasheet_tolerance * *stated) {
            found.push_back(fmt::format(
                "{} reached {:.3g} for {}, {:.1f} times what its datasheet states; suspect the device's name, then the roof",
                gpu.name, *ceiling.value.value, ceiling.name, *ceiling.value.value / *stated));
            return;
        }
    }
}

}  // namespace

std::vector<std::string> impossible_figures(const Result& result, const PointFacts& facts,
                                            std::span<const StepRoofTimes> roof_times) {
    Findings found;
    const Point& point = *facts.point;
    if (point.status != PointStatus::done) return found;
    find_verification(found, point);
    find_times(found, point);
    find_roof_times(found, facts, roof_times);
    find_few_sms(found, facts, roof_times);
    find_counters(found, facts);
    find_roofs(found, facts.roofs);
    find_device(found, result, point);
    return found;
}

std::vector<std::string> each_once(std::span<const Point> points,
                                   const std::vector<std::vector<std::string>>& of_points) {
    Findings told;
    for (std::size_t i = 0; i < points.size(); ++i)
        for (const std::string& one : of_points[i]) {
            const auto in = std::ranges::count_if(of_points, [&](const Findings& list) { return contains(list, one); });
            const std::string text =
                points.size() > 1 && in == 1 ? fmt::format("{}: {}", point_name(points[i]), one) : one;
            add_once(told, text);
        }
    return told;
}

}  // namespace kbench
