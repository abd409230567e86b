// report.md: the answer, key figures, the ledger and its check by marginal costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/report/markdown_sections.h"
#include "analysis/report/markdown_text.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr int time_digits = 4;  // a median is known to about 0.5 %, differences worth seeing are smaller

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

std::string share_cell(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) : std::string(); }

/// What a line's figure rests on.
std::string_view origin_of(Line line) {
    switch (line) {
        case Line::idle_sms:
        case Line::launch:
        case Line::dependency:
        case Line::drift: return "measured";
        case Line::recording: return "estimated: calibrated on chains of kernels";
        case Line::waiting:
        case Line::rest:
        case Line::residual: return "derived: what is left";
        default: return "derived: work over a roof";
    }
}

/// The line of `lines` with the most time among those from `first` to `last`.
Line largest(const Lines& lines, Line first, Line last) {
    Line most = first;
    for (auto i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(last); ++i)
        if (lines[line_at(i)] > lines[most]) most = line_at(i);
    return most;
}

std::string line_cell(const Lines& lines, Line line, int decimals) {
    return lines[line] > 0 ? fmt::format("{} {}", info(line).name, fixed(lines[line] * 1e-3, decimals)) : std::string();
}

std::string group_table(const std::vector<LedgerGroup>& groups, std::string_view what, double whole_us, int decimals) {
    MarkdownTable table({{std::string(what), Align::left},
                         {"steps"},
                         {"ms"},
                         {"share %"},
                         {"roofs demand ms"},
                         {"longest demand, ms", Align::left},
                         {"largest loss, ms", Align::left}});
    for (const LedgerGroup& group : groups)
        table.add_row({markdown_name(group.name), std::to_string(group.steps), fixed(group.time_us * 1e-3, decimals),
                       share_cell(group.time_us, whole_us), fixed(group.lines.demand_us() * 1e-3, decimals),
                       line_cell(group.lines, largest(group.lines, Line::compute, Line::l1), decimals),
                       line_cell(group.lines, largest(group.lines, Line::extra_work, Line::dependency), decimals)});
    return table.text();
}

/// Rows of the table of key figures.
class Figures {
  public:
    void add(std::string_view what, const std::string& value, std::string_view origin) {
        if (!value.empty()) table_.add_row({std::string(what), value, std::string(origin)});
    }
    void add(std::string_view what, const std::optional<Timing>& timing) {
        if (!timing) return;
        const Summary& ms = timing->summary_ms;
        const TimeUnit unit = time_unit(ms.median);
        const int decimals = decimals_for(ms.median * unit.per_ms, time_digits);
        const auto show = [&](double value_ms) { return fixed(value_ms * unit.per_ms, decimals); };
        const std::string interval =
            ms.has_interval() ? fmt::format(", 95 % interval {} to {}", show(ms.ci_low), show(ms.ci_high)) : "";
        add(what, fmt::format("{} {}{}", show(ms.median), unit.name, interval),
            fmt::format("measured, median of {}", ms.n));
    }
    void add(std::string_view what, const Quantity& quantity, const std::function<std::string(double)>& format) {
        add(what, quantity.value ? format(*quantity.value) : "unavailable", origin_cell(quantity));
    }
    std::string text() const { return table_.text(); }

  private:
    MarkdownTable table_{{{"figure", Align::left}, {"value", Align::left}, {"origin", Align::left}}};
};

std::string closing_statement(const Ledger& ledger, int decimals) {
    const double end_to_end_ms = ledger.end_to_end_us * 1e-3, residual_ms = ledger.total[Line::residual] * 1e-3;
    return fmt::format(
        "The lines add up to the end-to-end median of {} ms. The residual, which nothing explains, is {} ms, "
        "{:.2f} % of it: the ledger {} within {:.0f} %.\n",
        fixed(end_to_end_ms, decimals), fixed(residual_ms, decimals), 100 * ledger.residual_share(),
        ledger.closes() ? "closes" : "does **not** close", 100 * closing_tolerance);
}

}  // namespace

std::string origin_cell(const Quantity& quantity) {
    return quantity.reason.empty() ? std::string(name(quantity.origin))
                                   : fmt::format("{}: {}", name(quantity.origin), markdown_text(quantity.reason));
}

std::string answer_section(const Explanation& explanation, Heading heading) {
    std::string text = heading.text("Why it takes this long") + '\n';
    for (const std::string& sentence : explanation.answer) text += markdown_text(sentence) + '\n';
    return text + '\n';
}

std::string figures_section(const Point& point, const Explanation& explanation, Heading heading) {
    if (!point.end_to_end) return {};
    const EndToEnd& times = *point.end_to_end;
    Figures figures;
    figures.add(point.backend() == "cuda" ? "latency (CUDA graph)" : "latency", times.latency);
    figures.add("latency (stream launches)", times.stream);
    figures.add("host's time to launch", times.enqueue);
    figures.add("tokens to the device", times.host_to_device);
    figures.add("logits to the host", times.device_to_host);
    std::string throughput;
    const auto add_rate = [&](const std::optional<double>& rate, std::string_view unit) {
        if (rate) throughput += fmt::format("{}{} {}", throughput.empty() ? "" : ", ", significant(*rate, 4), unit);
    };
    add_rate(times.sequences_per_s, "sequences/s");
    add_rate(times.tokens_per_s, "tokens/s");
    if (!throughput.empty()) figures.add("throughput", throughput, "derived: at the median");
    const double seconds = times.latency.summary_ms.median * 1e-3;
    const auto rated = [&](const std::string& amount, const std::string& rate) {
        return seconds > 0 ? fmt::format("{}, {}", amount, rate) : amount;
    };
    figures.add("useful work", rated(format_flop(point.cost.flops), format_flop_per_s(point.cost.flops / seconds)),
                "derived: cost model");
    if (point.padding_flops > 0) figures.add("padding", format_flop(point.padding_flops), "derived: plan");
    figures.add("compulsory traffic",
                rated(format_bytes(point.cost.bytes()), format_bytes_per_s(point.cost.bytes() / seconds)),
                "derived: cost model");
    for (const LevelTraffic& level : explanation.attribution.levels)
        if (level.origin != Origin::derived)
            figures.add(fmt::format("{} traffic", name(level.level)),
                        rated(format_bytes(level.bytes), format_bytes_per_s(level.bytes / seconds)),
                        name(level.origin));
    if (point.memory.total() > 0)
        figures.add("memory planned", format_bytes(static_cast<double>(point.memory.total())), "derived: plan");
    if (times.energy_per_sequence_j) figures.add("energy per sequence", *times.energy_per_sequence_j, format_joules);
    if (times.energy_per_token_j) figures.add("energy per token", *times.energy_per_token_j, format_joules);
    const std::string converged =
        times.converged ? "" : "The median's interval had not reached its target when the time budget ended.\n\n";
    return heading.text("Key figures") + figures.text() + converged;
}

std::string ledger_section(const Ledger& ledger, Heading heading) {
    if (!ledger.unavailable.empty())
        return heading.text("Ledger") + "\nUnavailable: " + markdown_text(ledger.unavailable) + ".\n\n";
    const double whole_us = ledger.end_to_end_us;
    const int decimals = decimals_for(whole_us * 1e-3, time_digits);
    MarkdownTable table({{"line", Align::left}, {"ms"}, {"share %"}, {"what", Align::left}, {"origin", Align::left}});
    for (std::size_t i = 0; i < line_count; ++i) {
        const Line line = line_at(i);
        if (ledger.total[line] == 0 && line != Line::residual) continue;
        table.add_row({std::string(info(line).name), fixed(ledger.total[line] * 1e-3, decimals),
                       share_cell(ledger.total[line], whole_us), std::string(info(line).what),
                       std::string(origin_of(line))});
    }
    table.add_row({"**end to end**", fmt::format("**{}**", fixed(whole_us * 1e-3, decimals)), "100.0",
                   "median, without a profiler", "measured"});
    std::string text = heading.text("Ledger") + table.text() + closing_statement(ledger, decimals);
    if (!ledger.roofs_unavailable.empty())
        text += "No roof demands anything: " + markdown_text(ledger.roofs_unavailable) + ".\n";
    text += '\n';
    const std::string layers = group_table(ledger.by_layer, "layer", whole_us, decimals);
    const std::string ops = group_table(ledger.by_op, "op", whole_us, decimals);
    if (!layers.empty()) text += heading.text("By layer (\\* is every block)") + layers;
    if (!ops.empty()) text += heading.text("By op kind") + ops;
    return text;
}

std::string marginal_section(const Ledger& ledger, Heading heading) {
    if (ledger.marginal.empty()) return {};
    MarkdownTable table({{"op", Align::left},
                         {"ledger ms"},
                         {"its interval"},
                         {"marginal ms"},
                         {"95 % interval"},
                         {"agree", Align::left},
                         {"finding", Align::left}});
    for (const MarginalCheck& check : ledger.marginal) {
        const int decimals = decimals_for(std::max(check.ledger_ms, check.marginal_ms), time_digits);
        const auto interval = [&](double low, double high) {
            return fmt::format("{} to {}", fixed(low, decimals), fixed(high, decimals));
        };
        table.add_row({markdown_name(check.op), fixed(check.ledger_ms, decimals),
                       interval(check.ledger_low_ms, check.ledger_high_ms), fixed(check.marginal_ms, decimals),
                       interval(check.marginal_low_ms, check.marginal_high_ms), check.agrees ? "yes" : "**no**",
                       markdown_text(check.finding)});
    }
    return heading.text("Marginal cost") +
           "\nWhat the steps of an op kind add when they run twice, measured without a profiler, beside their share of "
           "the ledger (derived from recorded kernels).\n" +
           table.text();
}

}  // namespace kbench
