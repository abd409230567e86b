// A row for each resource: the figures that it is judged by, and their thresholds.
#include "analysis/explain/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "analysis/explain/verdict_rules.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// From here on a clock below the roof's is worth naming.
constexpr double power_share = 0.05;
/// Steps with this part of the time confirm a suspect for the whole.
constexpr double confirming_majority = 0.50;

/// A figure of a step: its share of the time, what it must reach to confirm, and what it is in words.
struct Figure {
    double share = 0, needed = 1;
    std::string_view what;
    bool is_known = true;
    double part() const { return share / needed; }
};
using Figures = std::vector<Figure>;

struct SuspectGrounds {
    StepGrounds step;
    VerdictFacts facts;
    const StepCauses* causes;
    bool at_power_limit;

    double share(double us) const { return us / facts.time_us; }
};

/// The longest roof time whose ceiling's name holds one of the words, or whose level or unit is so called.
Figure roof_figure(const SuspectGrounds& g, std::initializer_list<std::string_view> words) {
    Figure figure{0, bound_share, "its roof time", false};
    for (const RoofTime& roof_time : g.step.roof_times.all())
        for (const std::string_view word : words)
            if (roof_time.name().find(word) != std::string_view::npos)
                figure = {std::max(figure.share, g.share(roof_time.run_us.value)), bound_share, "its roof time", true};
    return figure;
}

Figure busy_figure(const SuspectGrounds& g, std::initializer_list<std::string_view> units) {
    Figure figure{0, busy_unit_share, "busy", false};
    for (const BusyUnit& unit : g.step.units.all)
        for (const std::string_view word : units)
            if (unit.name == word) figure = {std::max(figure.share, unit.share), busy_unit_share, "busy", true};
    return figure;
}

/// A unit that no step without its instructions can be bound by.
Figures unit_figures(const SuspectGrounds& g, std::initializer_list<std::string_view> roofs,
                     std::initializer_list<std::string_view> units) {
    return {roof_figure(g, roofs), busy_figure(g, units)};
}

Figures dram(const SuspectGrounds& g) {
    const RoofTime* roof_time = g.step.roof_times.at(Level::dram);
    if (roof_time == nullptr) return {};
    return {{g.share(roof_time->run_us.value), bound_share, "its roof time", true}};
}
Figures l2(const SuspectGrounds& g) { return unit_figures(g, {name(Level::l2)}, {name(Level::l2)}); }
Figures shared_memory(const SuspectGrounds& g) { return unit_figures(g, {unit::shared_memory}, {unit::shared_memory}); }
Figures issue_slots(const SuspectGrounds& g) { return {busy_figure(g, {unit::issue_slots})}; }
Figures tensor(const SuspectGrounds& g) { return unit_figures(g, {"_tensor", "_mma_sync"}, {"tensor pipe"}); }
Figures amx(const SuspectGrounds& g) { return {roof_figure(g, {"amx_"})}; }
Figures fp32(const SuspectGrounds& g) {
    return unit_figures(g, {"fp32_plain", "avx512_fp32", "avx2_fp32"}, {"FMA pipe", "ALU pipe"});
}
Figures fp64(const SuspectGrounds& g) {
    return unit_figures(g, {"fp64_plain", "avx512_fp64", "avx2_fp64"}, {"FP64 pipe"});
}
Figures special(const SuspectGrounds& g) {
    return unit_figures(g, {unit::special_functions}, {unit::special_functions});
}
Figures sms_without_work(const SuspectGrounds& g) {
    Figures figures;
    if (g.causes != nullptr && g.causes->no_fit.empty())
        figures.push_back({g.share(g.causes->lines[Cause::uneven].value), loss_share, "uneven waves", true});
    if (g.facts.one_block_an_sm) return {{0, loss_share, "one block an SM by design", true}};
    figures.push_back({g.facts.split ? g.facts.idle_share : g.facts.rest_share, loss_share,
                       g.facts.split ? "SMs without a warp" : "all above the roof time", g.facts.split});
    return figures;
}
Figures launch(const SuspectGrounds& g) {
    const bool known = g.facts.launched;
    return {{g.facts.gap_share, rule_called("gap").threshold, "gaps and starts of kernels", known},
            {g.facts.empty_share, rule_called("empty-kernel").threshold, "as many empty kernels",
             known && g.facts.empty_known}};
}
Figures time_steps(const SuspectGrounds& g) {
    if (g.facts.time_steps <= 1) return {{0, loss_share, "there is one time step", true}};
    Figures figures{
        {g.facts.above_roofs_share, rule_called("time-steps").threshold, "above all roofs together", g.facts.split}};
    if (g.causes != nullptr)
        figures.push_back({g.share(g.causes->lines[Cause::dependency].value), loss_share, "its exchanges", true});
    return figures;
}
Figures power(const SuspectGrounds& g) {
    if (g.at_power_limit && !g.facts.compute_known) return {};  // without a roof no time is at its clock
    const double share = g.causes == nullptr ? 0 : g.share(g.causes->lines[Cause::clock].value);
    return {{g.at_power_limit ? share : 0, power_share,
             g.at_power_limit ? "a clock below the roof's" : "no power limit was read", g.causes != nullptr}};
}

enum class Device { any, gpu, cpu };

struct Row {
    std::string_view name;
    Device of;
    Figures (*figures)(const SuspectGrounds&);
    Influence Influences::*taken = nullptr;  ///< what decides before any figure
    bool is_decided = false;                 ///< a figure that is known either confirms it or rejects it
};
constexpr Row rows[] = {
    {"DRAM", Device::any, dram, &Influences::dram, true},
    {"L2", Device::gpu, l2, &Influences::l2},
    {"shared memory", Device::gpu, shared_memory},
    {"issue slots", Device::gpu, issue_slots},
    {"tensor cores", Device::gpu, tensor},
    {"AMX", Device::cpu, amx},
    {"FP32", Device::any, fp32},
    {"FP64", Device::any, fp64},
    {"special-function unit", Device::gpu, special},
    {"occupancy", Device::gpu, sms_without_work},
    {"launch", Device::gpu, launch},
    {"time steps", Device::any, time_steps},
    {"power", Device::any, power},
};

/// What taking SMs away says of a resource that each of them has of its own, or that all share.
std::optional<Finding> by_intervention(const Row& row, const Influences& taken) {
    if (row.taken == nullptr) return std::nullopt;
    if (taken.*row.taken == Influence::binds) return Finding::confirmed;
    if (taken.*row.taken == Influence::none || taken.sms == Influence::binds) return Finding::rejected;
    return std::nullopt;
}

Suspect judge_row(const Row& row, const SuspectGrounds& g) {
    Suspect suspect{row.name, Finding::not_identifiable, g.facts.time_us, "not measured"};
    Figures figures = row.figures(g);
    const bool is_counted = row.is_decided ? g.facts.bytes_counted : true;
    std::ranges::stable_sort(figures, std::greater{}, &Figure::part);
    const auto known = std::ranges::find_if(figures, &Figure::is_known);
    const bool all_known = !figures.empty() && (std::ranges::all_of(figures, &Figure::is_known) || row.is_decided);
    if (known != figures.end()) {
        const double part = known->part() * (is_counted ? 1 : uncounted_bytes_factor);
        suspect.why = fmt::format("{}{}: {} where {} is needed", is_counted ? "" : "uncounted, ", known->what,
                                  percent(known->share), percent(known->needed));
        if (all_known || known->share >= known->needed)
            suspect.most_us = std::min(1.0, known->share * (is_counted ? 1 : uncounted_bytes_factor)) * g.facts.time_us;
        if (known->share >= known->needed)
            suspect.finding = Finding::confirmed;
        else if (part < (row.is_decided ? 1 : rejecting_part) && (all_known || g.step.units.known))
            suspect.finding = Finding::rejected;
    } else if ((g.step.units.known || !g.facts.has_units) && !figures.empty()) {
        // Every unit that may be busy was counted, and this one is none of them; a CPU's is that of the work.
        suspect.finding = Finding::rejected;
        suspect.why = "it has no work";
        suspect.most_us = 0;
    }
    if (const std::optional<Finding> decided = by_intervention(row, g.step.taken)) {
        suspect.finding = *decided;
        suspect.why = fmt::format(
            "{} ({})", *decided == Finding::confirmed ? "taken away, the time grows" : "an intervention rules it out",
            suspect.why);
        suspect.most_us = *decided == Finding::confirmed ? g.facts.time_us : 0;
    }
    return suspect;
}

}  // namespace

Suspects find_suspects(const Grounds& grounds, bool at_power_limit) {
    Suspects suspects;
    double steps_us = 0;
    const Device device = grounds.facts.point->backend() == "cuda" ? Device::gpu : Device::cpu;
    std::vector<Row> asked;
    std::ranges::copy_if(rows, std::back_inserter(asked),
                         [&](const Row& row) { return row.of == Device::any || row.of == device; });
    std::vector<double> confirmed(asked.size()), rejected(asked.size());
    for (const Row& row : asked) suspects.whole.push_back({row.name, Finding::not_identifiable, 0, ""});
    for (std::size_t i = 0; i < grounds.roof_times.size(); ++i) {
        StepGrounds step{grounds.facts.steps[i], grounds.roof_times[i], grounds.units[i], grounds.cycles.steps[i]};
        if (grounds.interventions != nullptr) step.taken = grounds.interventions->steps[i];
        const bool has_causes = grounds.causes != nullptr && i < grounds.causes->steps.size();
        const SuspectGrounds g{step, facts_of(step), has_causes ? &grounds.causes->steps[i] : nullptr, at_power_limit};
        std::vector<Suspect>& of_step = suspects.steps.emplace_back();
        if (g.facts.time_us <= 0) continue;
        steps_us += g.facts.time_us;
        for (std::size_t r = 0; r < asked.size(); ++r) {
            const Suspect& one = of_step.emplace_back(judge_row(asked[r], g));
            suspects.whole[r].most_us += one.most_us;
            (one.finding == Finding::confirmed ? confirmed : rejected)[r] +=
                one.finding == Finding::not_identifiable ? 0 : g.facts.time_us;
        }
    }
    for (std::size_t r = 0; r < asked.size() && steps_us > 0; ++r) {
        Suspect& whole = suspects.whole[r];
        whole.finding = confirmed[r] >= confirming_majority * steps_us ? Finding::confirmed
                        : rejected[r] >= rejecting_majority * steps_us ? Finding::rejected
                                                                       : Finding::not_identifiable;
        whole.why = fmt::format("steps with {} of the time confirm it, with {} reject it",
                                percent(confirmed[r] / steps_us), percent(rejected[r] / steps_us));
    }
    return suspects;
}

std::vector<Suspect> likeliest(const Suspects& suspects, std::size_t most) {
    std::vector<Suspect> left = suspects.whole;
    std::erase_if(left, [](const Suspect& s) { return s.finding == Finding::rejected || s.most_us <= 0; });
    std::ranges::stable_sort(left, std::greater{}, &Suspect::most_us);
    if (left.size() > most) left.resize(most);
    return left;
}

}  // namespace kbench
