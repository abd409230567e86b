#include "analysis/explain/units.h"

#include <algorithm>

namespace kbench {
namespace {

constexpr std::string_view l2_unit = "L2";

struct Unit {
    CounterOf counter;
    std::string_view name;
};
constexpr Unit units[] = {
    {&Counters::tensor_pipe_active, "tensor pipe"},
    {&Counters::pipe_alu, "ALU pipe"},
    {&Counters::pipe_fma, "FMA pipe"},
    {&Counters::pipe_fma_heavy, "FMA pipe"},
    {&Counters::pipe_fma_lite, "FMA pipe"},
    {&Counters::pipe_fp64, "FP64 pipe"},
    {&Counters::pipe_xu, unit::special_functions},
    {&Counters::pipe_lsu, unit::load_store},
    {&Counters::pipe_uniform, "uniform pipe"},
    {&Counters::pipe_shared_memory, unit::shared_memory},
    {&Counters::l2_lookups, l2_unit},
    {&Counters::l2_tags, l2_unit},
    {&Counters::l2_data, l2_unit},
    {&Counters::l2_atomics, l2_unit},
    {&Counters::l2_to_sms, l2_unit},
    {&Counters::sms_to_l2, l2_unit},
};
constexpr double cycles_of_an_instruction = 2;  // in the ALU or FMA pipe, of 16 lanes a scheduler

/// The part of the active cycles with an issue.
std::optional<double> issue_share(const Counters& counters) {
    if (counters.issue_active) return *counters.issue_active / 100;
    return counters.ipc ? std::optional(*counters.ipc / schedulers) : std::nullopt;
}

std::vector<BusyUnit> busy_units(const Counters& counters, const std::optional<double>& issue) {
    std::vector<BusyUnit> busy;
    const auto take = [&busy](std::string_view name, double share) {
        auto found = std::ranges::find(busy, name, &BusyUnit::name);
        if (found == busy.end()) found = busy.insert(busy.end(), BusyUnit{name, share, name != l2_unit});
        found->share = std::max(found->share, share);
    };
    for (const Unit& unit : units)
        if (const auto pct = counters.*unit.counter) take(unit.name, *pct / 100);
    if (issue) take(unit::issue_slots, *issue);
    return busy;
}

bool is_memory(std::string_view name) { return name == unit::shared_memory || name == l2_unit; }

}  // namespace

bool is_unit(std::string_view level) {
    return level == unit::issue_slots || std::ranges::find(units, level, &Unit::name) != std::end(units);
}

UnitActivity unit_activity(const StepFacts& step) {
    const Counters& counters = step.counters;
    const std::optional<double> issue = issue_share(counters);
    UnitActivity activity;
    activity.all = busy_units(counters, issue);
    for (const BusyUnit& unit : activity.all) {
        BusyUnit& busiest = is_memory(unit.name) ? activity.memory : activity.pipe;
        if (unit.share > busiest.share || busiest.name.empty()) busiest = unit;
    }
    const auto has = [&](CounterOf counter) { return (counters.*counter).has_value(); };
    const bool few_issues = issue && *issue * cycles_of_an_instruction < half_busy_unit_share;
    // fp64 may have a pipe of a 64th of the width, and tcgen05 one that no counter here is of.
    activity.known = issue && counters.tensor_pipe_active && std::ranges::all_of(needed_units, has) &&
                     (std::ranges::all_of(arithmetic_units, has) || few_issues) &&
                     (step.step->precision != Precision::fp64 || counters.pipe_fp64) &&
                     counters.tcgen05_inst.value_or(0) == 0;
    return activity;
}

}  // namespace kbench
