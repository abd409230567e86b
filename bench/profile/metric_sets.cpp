// The parser of the metric file, and its rows as each chip has them.
#include "bench/profile/metric_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kbench/error.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::string_view format = "set metric unit COUNTER [+ COUNTER...] # what";

/// A metric, with the families that differ, by their first chip.
struct Row {
    std::size_t line;
    Metric metric;
    std::map<std::string, Metric> on{};

    const Metric& of(const std::string& family) const {
        const auto differs = on.find(family);
        return differs == on.end() ? metric : differs->second;
    }
};

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Cuts the first word off `text`; empty at its end.
std::string_view next_word(std::string_view& text) {
    text = trimmed(text);
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    return word;
}

/// Replaces the counters of `metric`, or the reason why it has none. Throws the bare complaint.
void parse_counters(std::string_view text, Metric& metric) {
    metric.counters.clear();
    metric.unavailable.clear();
    text = trimmed(text);
    if (text.starts_with('-')) {
        metric.unavailable = trimmed(text.substr(1));
        if (metric.unavailable.empty()) throw UsageError("'-' needs the reason why the chip has no such metric");
        return;
    }
    for (bool another = true; another;) {
        const std::string_view counter = next_word(text);
        if (counter.empty() || counter == "+") throw UsageError("a counter's name is missing");
        metric.counters.emplace_back(counter);
        const std::string_view plus = next_word(text);
        another = plus == "+";
        if (!another && !plus.empty())
            throw UsageError(fmt::format("'{}' where ' + ' should follow '{}'", plus, counter));
    }
}

Metric parse_line(std::string_view line) {
    const std::size_t hash = line.find('#');
    Metric metric;
    if (hash != line.npos) metric.what = trimmed(line.substr(hash + 1));
    if (metric.what.empty()) throw UsageError(fmt::format("no '# what' at the end; a line is '{}'", format));
    std::string_view fields = line.substr(0, hash);
    metric.set = next_word(fields);
    metric.name = next_word(fields);
    metric.unit = next_word(fields);
    if (trimmed(fields).empty()) throw UsageError(fmt::format("too few fields; a line is '{}'", format));
    parse_counters(fields, metric);
    return metric;
}

UsageError unknown(std::string_view kind, std::string_view name, std::span<const std::string> names) {
    return UsageError(fmt::format("unknown {} '{}'; {}", kind, name, nearest_name(name, names)));
}

/// The line behind "chips".
std::vector<std::string> parse_chips(std::string_view names, std::span<const std::string> known) {
    std::vector<std::string> chips;
    names = names.substr(0, names.find('#'));
    for (std::string_view name = next_word(names); !name.empty(); name = next_word(names)) {
        if (std::ranges::find(known, name) != known.end() || std::ranges::find(chips, name) != chips.end())
            throw UsageError(fmt::format("chip '{}' is named already", name));
        chips.emplace_back(name);
    }
    if (chips.empty()) throw UsageError("'chips' without a chip; a line is 'chips CHIP [CHIP...] # products'");
    return chips;
}

/// A line that begins with @. `families` are their first chips.
void parse_difference(std::string_view line, std::span<const std::string> families, Row& row) {
    if (line.find('#') != line.npos) throw UsageError("a '#' behind '@CHIP'; what the metric is stands in its row");
    std::string_view names = next_word(line).substr(1);
    Metric metric = row.metric;
    parse_counters(line, metric);
    if (metric.counters == row.metric.counters && metric.unavailable == row.metric.unavailable)
        throw UsageError(fmt::format("this is what the row of '{}' says for every chip", metric.name));
    for (bool another = true; another;) {
        const std::size_t comma = names.find(',');
        const std::string name(names.substr(0, comma));
        if (std::ranges::find(families, name) == families.end()) throw unknown("family of chips", name, families);
        if (!row.on.emplace(name, metric).second)
            throw UsageError(fmt::format("'{}' has its '{}' already", name, metric.name));
        another = comma != names.npos;
        if (another) names.remove_prefix(comma + 1);
    }
}

/// Does `work`, whose complaints are about a line.
template <class Work>
void at_line(std::string_view source, std::size_t line, Work work) {
    try {
        work();
    } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}:{}: {}", source, line, error.what()));
    }
}

const MetricTable& embedded() {
    static const MetricTable table = MetricTable::parse(metric_files().front().text, metric_files().front().name);
    return table;
}

}  // namespace

MetricTable MetricTable::parse(std::string_view text, std::string_view source) {
    MetricTable table;
    std::vector<std::string> families;
    std::vector<Row> rows;
    const auto read = [&](std::string_view line, std::size_t number) {
        std::string_view rest = line;
        if (next_word(rest) == "chips") {
            table.families_.push_back({parse_chips(rest, table.chips()), {}});
            families.push_back(table.families_.back().chips.front());
        } else if (!line.starts_with('@')) {
            rows.push_back({number, parse_line(line)});
        } else if (!rows.empty()) {
            parse_difference(line, families, rows.back());
        } else {
            throw UsageError("'@' without a metric above it");
        }
    };
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!line.empty() && !line.starts_with('#')) at_line(source, number, [&] { read(line, number); });
    }
    for (Family& family : table.families_)
        for (const Row& row : rows) at_line(source, row.line, [&] { family.sets.add(row.of(family.chips.front())); });
    return table;
}

std::vector<std::string> MetricTable::chips() const {
    std::vector<std::string> names;
    for (const Family& family : families_) names.insert(names.end(), family.chips.begin(), family.chips.end());
    return names;
}

const MetricSets& MetricTable::of(std::string_view chip) const {
    for (const Family& family : families_)
        if (std::ranges::find(family.chips, chip) != family.chips.end()) return family.sets;
    throw unknown("chip", chip, chips());
}

// A name must mean one thing on a chip, and a set must stand together, so that it can be handed out as it is.
void MetricSets::add(Metric metric) {
    const bool set_begun = std::ranges::find(metrics_, metric.set, &Metric::set) != metrics_.end();
    if (set_begun && metrics_.back().set != metric.set)
        throw UsageError(
            fmt::format("set '{}' goes on after set '{}'; keep its lines together", metric.set, metrics_.back().set));
    for (const Metric& other : metrics_) {
        if (other.name != metric.name) continue;
        if (other.set == metric.set)
            throw UsageError(fmt::format("set '{}' has metric '{}' already", metric.set, metric.name));
        if (other.unit != metric.unit || other.counters != metric.counters || other.unavailable != metric.unavailable)
            throw UsageError(fmt::format("'{}' must be what it is in set '{}'", metric.name, other.set));
    }
    metrics_.push_back(std::move(metric));
}

std::vector<std::string> MetricSets::sets() const {
    std::vector<std::string> names;
    for (const Metric& metric : metrics_)
        if (names.empty() || names.back() != metric.set) names.push_back(metric.set);
    return names;
}

std::span<const Metric> MetricSets::set(std::string_view name) const {
    const auto first = std::ranges::find(metrics_, name, &Metric::set);
    const auto last = std::find_if(first, metrics_.end(), [name](const Metric& m) { return m.set != name; });
    if (first == last) throw unknown("metric set", name, sets());
    return {first, last};
}

const Metric& MetricSets::find(std::string_view name) const {
    const auto found = std::ranges::find(metrics_, name, &Metric::name);
    if (found != metrics_.end()) return *found;
    std::vector<std::string> names;
    for (const Metric& metric : metrics_)
        if (std::ranges::find(names, metric.name) == names.end()) names.push_back(metric.name);
    throw unknown("metric", name, names);
}

std::vector<std::string> counters_of(std::span<const Metric> metrics) {
    std::vector<std::string> counters;
    for (const Metric& metric : metrics)
        for (const std::string& counter : metric.counters)
            if (std::ranges::find(counters, counter) == counters.end()) counters.push_back(counter);
    return counters;
}

std::vector<std::string> metric_chips() { return embedded().chips(); }
const MetricSets& metric_sets(std::string_view chip) { return embedded().of(chip); }

}  // namespace kbench
