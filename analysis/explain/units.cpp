// See units.h.
#include "analysis/explain/units.h"

#include <algorithm>
#include <array>

#include "analysis/explain/executed.h"

namespace kbench {
namespace {

struct Unit {
    std::string_view counter, name;
    bool is_memory = false;
};
constexpr Unit units[] = {
    {"tensor_pipe_active", "tensor pipe"},
    {"pipe_alu", "ALU pipe"},
    {"pipe_fma", "FMA pipe"},
    {"pipe_fma_heavy", "FMA pipe"},
    {"pipe_fma_lite", "FMA pipe"},
    {"pipe_fp64", "FP64 pipe"},
    {"pipe_xu", "special-function unit"},
    {"pipe_lsu", "load-store unit"},
    {"pipe_uniform", "uniform pipe"},
    {"pipe_shared_memory", "shared memory", true},
    {"l2_lookups", "L2", true},
    {"l2_tags", "L2", true},
    {"l2_data", "L2", true},
    {"l2_atomics", "L2", true},
    {"l2_to_sms", "L2", true},
    {"sms_to_l2", "L2", true},
};
constexpr std::array arithmetic{"pipe_alu", "pipe_fma", "pipe_fp64"};

constexpr double cycles_of_an_instruction = 2;  // in the ALU or FMA pipe, of 16 lanes a scheduler

}  // namespace

bool is_unit(std::string_view level) {
    return level == issue_slots || std::ranges::find(units, level, &Unit::name) != std::end(units);
}

UnitActivity unit_activity(const StepResult& step) {
    UnitActivity activity;
    const auto take = [](BusyUnit& busiest, std::string_view name, double share) {
        if (share > busiest.share || busiest.name.empty()) busiest = {name, share};
    };
    const auto has = [&](std::string_view name) { return counter(step, name).has_value(); };
    for (const Unit& unit : units)
        if (const auto pct = counter(step, unit.counter))
            take(unit.is_memory ? activity.memory : activity.pipe, unit.name, *pct / 100);
    std::optional<double> issue = counter(step, "issue_active");
    if (issue)
        *issue /= 100;
    else if (const auto ipc = counter(step, "ipc"))
        issue = *ipc / schedulers;
    if (issue) take(activity.pipe, issue_slots, *issue);
    const bool few_issues = issue && *issue * cycles_of_an_instruction < half_busy_share;
    // fp64 may have a pipe of a 64th of the width, and tcgen05 one that no counter here is of.
    activity.known = issue && has("tensor_pipe_active") && std::ranges::all_of(needed_units, has) &&
                     (std::ranges::all_of(arithmetic, has) || few_issues) &&
                     (step.precision != Precision::fp64 || has("pipe_fp64")) &&
                     counter(step, "tcgen05_inst").value_or(0) == 0;
    return activity;
}

}  // namespace kbench
