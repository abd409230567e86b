// The parser of metric files, and the table that says which chip reads which file.
#include "bench/profile/metric_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kbench/error.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

/// Chips whose counters have the same names share a file; cuptiProfilerHostGetBaseMetrics tells. The older ones (before
/// sm_80) and those without DRAM of their own (GA10B, GB10B, GB20B) have none.
struct Chip {
    std::string_view name, file;
};
constexpr Chip chips[] = {
    {"GA100", "ga100.txt"}, {"GA102", "ga102.txt"}, {"GA103", "ga102.txt"}, {"GA104", "ga102.txt"},
    {"GA106", "ga102.txt"}, {"GA107", "ga102.txt"}, {"AD102", "ad102.txt"}, {"AD103", "ad102.txt"},
    {"AD104", "ad102.txt"}, {"AD106", "ad102.txt"}, {"AD107", "ad102.txt"}, {"GH100", "gh100.txt"},
    {"GB100", "gb100.txt"}, {"GB102", "gb100.txt"}, {"GB110", "gb110.txt"}, {"GB202", "gb202.txt"},
    {"GB203", "gb202.txt"}, {"GB205", "gb202.txt"}, {"GB206", "gb202.txt"}, {"GB207", "gb202.txt"},
};

constexpr std::string_view blanks = " \t\r";
constexpr std::string_view format = "set metric unit COUNTER [+ COUNTER...] # what";

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Cuts the first word off `text`; empty at its end.
std::string_view next_word(std::string_view& text) {
    text = trim(text);
    const std::string_view word = text.substr(0, text.find_first_of(blanks));
    text.remove_prefix(word.size());
    return word;
}

/// Fills what follows the unit. Throws the bare complaint.
void parse_counters(std::string_view text, Metric& metric) {
    text = trim(text);
    if (text.starts_with('-')) {
        metric.unavailable = trim(text.substr(1));
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
            throw UsageError(fmt::format("'{}' where ' + ' or ' # what' should follow '{}'", plus, counter));
    }
}

Metric parse_line(std::string_view line) {
    const std::size_t hash = line.find('#');
    Metric metric;
    if (hash != line.npos) metric.what = trim(line.substr(hash + 1));
    if (metric.what.empty()) throw UsageError(fmt::format("no '# what' at the end; a line is '{}'", format));
    std::string_view fields = line.substr(0, hash);
    metric.set = next_word(fields);
    metric.name = next_word(fields);
    metric.unit = next_word(fields);
    if (trim(fields).empty()) throw UsageError(fmt::format("too few fields; a line is '{}'", format));
    parse_counters(fields, metric);
    return metric;
}

/// A name must mean one thing in the whole file, and a set must stand together, so that it can be handed out as it is.
void check_against(std::span<const Metric> earlier, const Metric& metric) {
    const bool set_begun = std::ranges::find(earlier, metric.set, &Metric::set) != earlier.end();
    if (set_begun && earlier.back().set != metric.set)
        throw UsageError(
            fmt::format("set '{}' goes on after set '{}'; keep its lines together", metric.set, earlier.back().set));
    for (const Metric& other : earlier) {
        if (other.name != metric.name) continue;
        if (other.set == metric.set)
            throw UsageError(fmt::format("set '{}' has metric '{}' already", metric.set, metric.name));
        if (other.unit != metric.unit || other.counters != metric.counters || other.unavailable != metric.unavailable)
            throw UsageError(fmt::format("'{}' must be what it is in set '{}'", metric.name, other.set));
    }
}

UsageError unknown(std::string_view kind, std::string_view name, std::span<const std::string> names) {
    return UsageError(
        fmt::format("unknown {} '{}'; nearest: {}", kind, name, fmt::join(nearest_names(name, names), ", ")));
}

}  // namespace

MetricSets MetricSets::parse(std::string_view text, std::string_view source) {
    MetricSets sets;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.starts_with('#')) continue;
        try {
            Metric metric = parse_line(line);
            check_against(sets.metrics_, metric);
            sets.metrics_.push_back(std::move(metric));
        } catch (const UsageError& error) {
            throw UsageError(fmt::format("{}:{}: {}", source, number, error.what()));
        }
    }
    return sets;
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

std::vector<std::string> metric_chips() {
    std::vector<std::string> names;
    for (const Chip& chip : chips) names.emplace_back(chip.name);
    return names;
}

const MetricSets& metric_sets(std::string_view chip) {
    static const std::map<std::string_view, MetricSets> parsed = [] {
        std::map<std::string_view, MetricSets> all;
        for (const MetricFile& file : metric_files()) all.emplace(file.name, MetricSets::parse(file.text, file.name));
        return all;
    }();
    const auto row = std::ranges::find(chips, chip, &Chip::name);
    if (row == std::end(chips)) throw unknown("chip", chip, metric_chips());
    return parsed.at(row->file);
}

}  // namespace kbench
