// The one place where a counter is found by its name.
#include "analysis/facts/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/format.h"

namespace kbench {

static_assert(std::ranges::is_sorted(counter_fields, {}, &CounterField::name));

namespace {

/// A range ends about a microsecond after its kernel; figures per elapsed cycle that are by up to a tenth too low are
/// still shown. On H200s the ranges of up to a third of the GEMMs were longer, by 20 to 100 us
/// (results/h200-2026-11-25).
constexpr double longest_range = 1.1, range_end_us = 3;

const CounterField* field_named(std::string_view name) {
    const auto field = std::ranges::lower_bound(counter_fields, name, {}, &CounterField::name);
    return field != std::end(counter_fields) && field->name == name ? field : nullptr;
}

/// All that were read.
Counters raw_counters(const StepResult& step) {
    Counters counters;
    for (const auto& [name, value] : step.counters)
        if (const CounterField* field = field_named(name)) counters.*field->value = value;
    return counters;
}

/// How long the kernels were at work in their range: as in the record or, where the range ran at a lower clock or was
/// slower for another reason, as long as the SM that had a warp longest. 0: not known.
double at_work_us(const StepResult& step, const Counters& counters) {
    const double recorded_us = step.kernels.empty() ? 0 : step.device_us().value_or(0);
    if (recorded_us <= 0) return 0;
    const double active = counters.sm_cycles_active_max.value_or(counters.sm_cycles_active.value_or(0));
    const double elapsed = counters.sm_cycles_elapsed.value_or(0);
    const double active_us = elapsed > 0 ? active / elapsed * counters.time.value_or(0) * 1e-3 : 0;
    return std::max(recorded_us, active_us);
}

}  // namespace

std::string elapsed_withheld(const StepResult& step) {
    const Counters counters = raw_counters(step);
    const double range_us = counters.time.value_or(0) * 1e-3, us = at_work_us(step, counters);
    if (us <= 0 || range_us <= longest_range * us + range_end_us) return {};
    return fmt::format("the counters' range took {} us, its kernels {} us: figures per elapsed cycle are withheld",
                       significant(range_us), significant(us));
}

Counters counters_of(const StepResult& step) {
    Counters counters = raw_counters(step);
    if (elapsed_withheld(step).empty()) return counters;
    for (const CounterField& field : counter_fields)
        if (field.per_elapsed) (counters.*field.value).reset();
    return counters;
}

std::optional<double> scheduler_cycles(const StepResult& step) {
    const Counters counters = raw_counters(step);
    if (!counters.smsp_active || !counters.sm_cycles_elapsed) return std::nullopt;
    return *counters.smsp_active / 100 * *counters.sm_cycles_elapsed;
}

std::optional<double> counter_named(const StepResult& step, std::string_view name) {
    const auto found = step.counters.find(std::string(name));
    if (found == step.counters.end()) return std::nullopt;
    const CounterField* field = field_named(name);
    if (field != nullptr && field->per_elapsed && !elapsed_withheld(step).empty()) return std::nullopt;
    return found->second;
}

std::vector<std::pair<std::string, double>> counters_by_state(const StepResult& step, std::string_view prefix) {
    std::vector<std::pair<std::string, double>> found;
    for (const auto& [name, value] : step.counters)
        if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), value);
    return found;
}

std::string_view name_of(CounterOf counter) {
    return std::ranges::find(counter_fields, counter, &CounterField::value)->name;
}

std::optional<double> dram_traffic(const Counters& counters) {
    if (!counters.dram_read_bytes || !counters.dram_write_bytes) return std::nullopt;
    return *counters.dram_read_bytes + *counters.dram_write_bytes;
}

}  // namespace kbench
