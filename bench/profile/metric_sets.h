// Metric sets as data: kbench's names for a chip's counters, read from bench/profile/metrics.txt, which is embedded in
// the binary. Knows neither CUDA nor CUPTI; whether a chip has a counter, and in how many passes a set is collected, is
// profile/cupti/cupti_host.h's to say.
//
// A line of the file, its fields divided by blanks:
//     chips  CHIP [CHIP...]  # products
//     set  metric  unit  COUNTER [+ COUNTER...]  # what it is
//     set  metric  unit  - why chips have none  # what it is
//     @CHIP[,CHIP...]  COUNTER [+ COUNTER...]
//     @CHIP[,CHIP...]  - why these have none
// Chips of one line `chips` form a family, whose counters have the same names. A metric is read from the counters of
// its row, but on the families that an @ line below it names by their first chip. COUNTER is a metric as CUPTI spells
// it; the metric's value is the sum of its counters. A metric may be in several sets. Empty lines and lines that begin
// with # say nothing to the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

struct Metric {
    std::string set;
    std::string name;
    std::string unit;
    std::vector<std::string> counters;  ///< added up; empty where the chip has none
    std::string unavailable;            ///< why it has none
    std::string what;

    bool available() const { return !counters.empty(); }
};

/// The metrics of one chip family.
class MetricSets {
  public:
    /// Throws UsageError where `metric` contradicts an earlier one, or its set has ended.
    void add(Metric metric);

    std::span<const Metric> metrics() const { return metrics_; }
    /// In the order of the file.
    std::vector<std::string> sets() const;
    /// Throws UsageError with the nearest names when there is no such set.
    std::span<const Metric> set(std::string_view name) const;
    /// By kbench's name; a metric in several sets is the same in each. Throws UsageError with the nearest names.
    const Metric& find(std::string_view name) const;

  private:
    std::vector<Metric> metrics_;  // those of a set stand together
};

/// The metrics of all chips.
class MetricTable {
  public:
    /// Throws UsageError "source:line: what is wrong; what would be right".
    static MetricTable parse(std::string_view text, std::string_view source);

    /// In the order of the file, as CUPTI spells them.
    std::vector<std::string> chips() const;
    /// The metrics of `chip`, such as "GH100". Throws UsageError with the nearest names for a chip without.
    const MetricSets& of(std::string_view chip) const;

  private:
    struct Family {
        std::vector<std::string> chips;
        MetricSets sets;
    };
    std::vector<Family> families_;
};

/// What to ask of CUPTI for `metrics`: each counter once.
std::vector<std::string> counters_of(std::span<const Metric> metrics);

/// MetricTable::chips() and of() of the embedded file.
std::vector<std::string> metric_chips();
const MetricSets& metric_sets(std::string_view chip);

/// The embedded file, one.
struct MetricFile {
    std::string_view name, text;
};
std::span<const MetricFile> metric_files();

}  // namespace kbench
