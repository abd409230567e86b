// What people see of `kbench micro`: the device, a row for each benchmark that was measured as soon as it is, and at
// the end what was not measured and who is the fastest.
#pragma once

#include <benchmark/benchmark.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// Columns that do not fit into the width go on in the next line, further in, as does what computes.
class MicroConsole final : public benchmark::BenchmarkReporter {
  public:
    /// `result` has a point for each row by the time the row comes, and outlives this. `columns`: names of
    /// micro_columns() and of metrics. Without `width` a row is one line. Writes to `own` where there is one.
    MicroConsole(const Result& result, std::vector<std::string> columns, std::optional<std::size_t> width,
                 std::ostream* own = nullptr);

    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& rows) override;
    void Finalize() override;

  private:
    std::string line(std::string name, std::span<const std::string> cells, const std::string& label) const;
    std::ostream& out() const { return own_ != nullptr ? *own_ : GetOutputStream(); }

    const Result& result_;
    std::vector<std::string> columns_;
    std::size_t width_, name_width_ = 0;
    std::string told_;  ///< the run whose label was printed last: its aggregates do not repeat it
    std::ostream* own_;
};

/// What was skipped, once for each reason; then the median times of the rest, a row for each problem and a column for
/// each provider, where either differs. The fastest of a row bears a *, as does every other whose 95 % interval
/// overlaps with its. No line is longer than `width` where a row's problem and one provider fit into it.
std::string micro_summary(std::span<const Point> points, std::size_t width);

}  // namespace kbench
