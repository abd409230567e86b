// See units.h.
#include "analysis/explain/units.h"

#include <algorithm>
#include <array>

#include "analysis/explain/executed.h"

namespace kbench {
namespace {

constexpr std::string_view l2 = "L2";

struct Unit {
    std::string_view counter, name;
};
constexpr Unit units[] = {
    {"tensor_pipe_active", "tensor pipe"},
    {"pipe_alu", "ALU pipe"},
    {"pipe_fma", "FMA pipe"},
    {"pipe_fma_heavy", "FMA pipe"},
    {"pipe_fma_lite", "FMA pipe"},
    {"pipe_fp64", "FP64 pipe"},
    {"pipe_xu", special_functions},
    {"pipe_lsu", load_store},
    {"pipe_uniform", "uniform pipe"},
    {"pipe_shared_memory", shared_memory},
    {"l2_lookups", l2},
    {"l2_tags", l2},
    {"l2_data", l2},
    {"l2_atomics", l2},
    {"l2_to_sms", l2},
    {"sms_to_l2", l2},
};
constexpr std::array arithmetic{"pipe_alu", "pipe_fma", "pipe_fp64"};

constexpr double cycles_of_an_instruction = 2;  // in the ALU or FMA pipe, of 16 lanes a scheduler

/// Of the active cycles, those with an issue.
std::optional<double> issue_share(const StepResult& step) {
    if (const auto counted = counter(step, "issue_active")) return *counted / 100;
    const auto ipc = counter(step, "ipc");
    return ipc ? std::optional(*ipc / schedulers) : std::nullopt;
}

bool is_memory(std::string_view name) { return name == shared_memory || name == l2; }

}  // namespace

bool is_unit(std::string_view level) {
    return level == issue_slots || std::ranges::find(units, level, &Unit::name) != std::end(units);
}

std::vector<BusyUnit> busy_units(const StepResult& step) {
    std::vector<BusyUnit> busy;
    const auto take = [&busy](std::string_view name, double share) {
        auto found = std::ranges::find(busy, name, &BusyUnit::name);
        if (found == busy.end()) found = busy.insert(busy.end(), BusyUnit{name, share, name != l2});
        found->share = std::max(found->share, share);
    };
    for (const Unit& unit : units)
        if (const auto pct = counter(step, unit.counter)) take(unit.name, *pct / 100);
    if (const auto issue = issue_share(step)) take(issue_slots, *issue);
    return busy;
}

UnitActivity unit_activity(const StepResult& step) {
    UnitActivity activity;
    for (const BusyUnit& unit : busy_units(step)) {
        BusyUnit& busiest = is_memory(unit.name) ? activity.memory : activity.pipe;
        if (unit.share > busiest.share || busiest.name.empty()) busiest = unit;
    }
    const auto has = [&](std::string_view name) { return counter(step, name).has_value(); };
    const std::optional<double> issue = issue_share(step);
    const bool few_issues = issue && *issue * cycles_of_an_instruction < half_busy_share;
    // fp64 may have a pipe of a 64th of the width, and tcgen05 one that no counter here is of.
    activity.known = issue && has("tensor_pipe_active") && std::ranges::all_of(needed_units, has) &&
                     (std::ranges::all_of(arithmetic, has) || few_issues) &&
                     (step.precision != Precision::fp64 || has("pipe_fp64")) &&
                     counter(step, "tcgen05_inst").value_or(0) == 0;
    return activity;
}

}  // namespace kbench
