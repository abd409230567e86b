// The one place where a counter is found by its name.
#include "analysis/facts/counters.h"

#include <algorithm>

namespace kbench {

static_assert(std::ranges::is_sorted(counter_fields, {}, &CounterField::name));

Counters counters_of(const StepResult& step) {
    Counters counters;
    for (const auto& [name, value] : step.counters) {
        const auto field = std::ranges::lower_bound(counter_fields, std::string_view(name), {}, &CounterField::name);
        if (field != std::end(counter_fields) && field->name == name) counters.*field->value = value;
    }
    return counters;
}

std::optional<double> counter_named(const StepResult& step, std::string_view name) {
    const auto found = step.counters.find(std::string(name));
    return found == step.counters.end() ? std::nullopt : std::optional(found->second);
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
