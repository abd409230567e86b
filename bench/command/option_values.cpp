// Parsers of values.
#include "bench/command/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "bench/command/option_table.h"
#include "models/base/error.h"

namespace kbench {

std::vector<std::int64_t> whole_numbers(std::string_view option, const std::string& text) {
    std::vector<std::int64_t> values;
    for (const std::string& part : split(text))
        values.push_back(number<std::int64_t>(option, part, 1, "a whole number"));
    if (values.empty()) throw UsageError(fmt::format("{} '': must be a whole number of at least 1", option));
    return values;
}

std::vector<Precision> parse_precisions(const std::string& text) {
    if (text == "all") return {all_precisions.begin(), all_precisions.end()};
    std::vector<Precision> values;
    for (const std::string& part : split(text)) {
        const std::optional<Precision> precision = parse_precision(part);
        if (!precision)
            throw UsageError(fmt::format("--precision '{}': must be fp16, bf16, tf32, fp32, fp64 or all", part));
        values.push_back(*precision);
    }
    if (values.empty()) throw UsageError("--precision '': must be fp16, bf16, tf32, fp32, fp64 or all");
    return values;
}

void set_counters(CounterRequest& request, const std::string& text) {
    if (text.empty()) throw UsageError("--counters '': must be none, core, full or sets of `kbench list metrics`");
    request.sets = text == "none" ? std::vector<std::string>{} : split(text);
    request.required = text != "none" || !request.metrics.empty();
}

CeilingPolicy parse_ceiling_policy(const std::string& text) {
    const std::string chosen = word("--ceilings", text, ceiling_policy_names);
    return static_cast<CeilingPolicy>(std::ranges::find(ceiling_policy_names, chosen) -
                                      std::begin(ceiling_policy_names));
}

}  // namespace kbench
