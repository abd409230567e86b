// The answer in the terminal summary; see terminal_tables.h.
#include <fmt/format.h>

#include "analysis/report/terminal_tables.h"
#include "analysis/table/table.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr int time_digits = 4;

/// The unit of the column is that of the end-to-end time, so that all lines add up by eye.
Table ledger_table(const Ledger& ledger) {
    const TimeUnit unit = time_unit(ledger.end_to_end_us * 1e-3);
    const double per_us = unit.per_ms * 1e-3;
    const int decimals = decimals_for(ledger.end_to_end_us * per_us, time_digits);
    Table table({{"ledger", Align::left}, {std::string(unit.name)}, {"share %"}, {"what", Align::left, 1, true}});
    const auto add = [&](std::string_view name, double us, std::string_view what) {
        table.add_row({std::string(name), fmt::format("{:.{}f}", us * per_us, decimals),
                       fmt::format("{:.1f}", 100 * us / ledger.end_to_end_us), std::string(what)});
    };
    for (std::size_t i = 0; i < line_count; ++i) {
        const Line line = line_at(i);
        if (ledger.total[line] != 0 || line == Line::residual)
            add(info(line).name, ledger.total[line], info(line).what);
    }
    add("end to end", ledger.end_to_end_us, "median, without a profiler");
    return table;
}

}  // namespace

std::string why_block(const Explanation& explanation, std::size_t width) {
    const Ledger& ledger = explanation.ledger;
    if (!ledger.unavailable.empty() || ledger.end_to_end_us <= 0) return {};
    std::string text = "\n  why it takes this long\n";
    for (const std::string& sentence : explanation.answer) text += wrap("    ", one_line(sentence), width);
    return text + '\n' + ledger_table(ledger).text(4, width);
}

}  // namespace kbench
