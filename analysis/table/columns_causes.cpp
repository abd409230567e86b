// Columns of time by cause (analysis/explain/causes.h), one a cause.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "analysis/explain/causes.h"
#include "analysis/table/columns_builders.h"

namespace kbench::column {
namespace {

/// The row's steps by cause; none where the point has none, or one of them was not timed. A point's own row has also
/// what is of no step, and adds up to its latency.
std::optional<CauseLines> cause_lines(Row row) {
    if (row.explanation == nullptr || row.kernel != nullptr) return std::nullopt;
    const Causes& causes = row.explanation->get().causes;
    if (causes.steps.empty() || causes.steps.size() != row.point->steps.size()) return std::nullopt;
    if (whole_explanation(row) != nullptr) return causes.whole.lines;
    CauseLines lines;
    for (const PlacedStep& placed : row.steps) {
        const StepCauses& step = causes.steps[static_cast<std::size_t>(placed.step - row.point->steps.data())];
        if (step.time_us <= 0) return std::nullopt;
        lines += step.lines;
    }
    return lines;
}

auto cause_us(Cause cause) {
    return [cause](Row row) {
        const std::optional<CauseLines> lines = cause_lines(row);
        return lines ? std::optional((*lines)[cause].value) : std::nullopt;
    };
}

std::optional<double> misfit_pct(Row row) {
    const Explanation* whole = whole_explanation(row);
    if (whole == nullptr || whole->causes.steps.empty()) return std::nullopt;
    return 100 * whole->causes.whole.misfit_share();
}

std::optional<double> undecided_pct(Row row) {
    const Explanation* whole = whole_explanation(row);
    if (whole == nullptr || !whole->concludes()) return std::nullopt;
    return 100 * whole->verdicts.model.undecided;
}

std::string column_name(const CauseInfo& cause) {
    std::string name(cause.name);
    std::ranges::replace(name, ' ', '_');
    return name + "_us";
}

}  // namespace

Entries cause_columns() {
    Entries entries;
    for (std::size_t i = 0; i < cause_count; ++i) {
        const CauseInfo& cause = info(cause_at(i));
        entries.push_back({column_name(cause), fmt::format("{} us", cause.name), "us", 3, cause_us(cause_at(i)),
                           fmt::format("by cause: {}", cause.what)});
    }
    entries.push_back(
        {"misfit_pct", "misfit %", "%", 1, misfit_pct,
         "what the lines by cause miss, summed over the steps without signs, over the latency; na in rows of a part of a point"});
    entries.push_back(
        {"undecided_pct", "undecided %", "%", 1, undecided_pct,
         "share of the steps' time whose bottleneck is not identifiable; na in rows of a part of a point, and where no conclusion is drawn"});
    return entries;
}

}  // namespace kbench::column
