// What stands between Google Benchmark's reporters and kbench's rows.
#pragma once

#include <benchmark/benchmark.h>

#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// How a reporter writes.
enum class ReporterKind { console, json, csv };

struct RowColumns {
    std::vector<std::string> possible;  ///< all that a row may have; a column that CSV's header lacks would abort
    std::vector<std::string> expected;  ///< those that rows will have as far as is known before the first
};

/// Hands every row to `inner`, Google Benchmark's for JSON or CSV, named without "/manual_time", which all of kbench's
/// rows would bear. A row that was skipped has no columns of its own, and CSV takes its header from the first row
/// whatever it is: there it is given `columns`.
class RowReporter final : public benchmark::BenchmarkReporter {
  public:
    /// Writes to `own`, where there is one, in place of what Google Benchmark gives it.
    RowReporter(std::unique_ptr<benchmark::BenchmarkReporter> inner, std::span<const std::string> columns = {},
                std::ostream* own = nullptr);

    /// Leaves out that the library was built with assertions: none of its code lies in a sample.
    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& rows) override;
    void Finalize() override { inner_->Finalize(); }

  private:
    std::unique_ptr<benchmark::BenchmarkReporter> inner_;
    std::ostream* own_;
    benchmark::UserCounters columns_;
};

/// The reporter for standard output, `width` columns wide where that is a terminal, as --benchmark_format among
/// `arguments` has it. `result` is that of the rows and outlives it.
std::unique_ptr<benchmark::BenchmarkReporter> make_display_reporter(const std::vector<std::string>& arguments,
                                                                    const RowColumns& columns, const Result& result,
                                                                    std::optional<std::size_t> width);
/// The file of --benchmark_out; empty without one.
std::string out_file(const std::vector<std::string>& arguments);
/// The reporter for it, as --benchmark_out_format has it, which writes to `text`; null without such a file.
std::unique_ptr<benchmark::BenchmarkReporter> make_file_reporter(const std::vector<std::string>& arguments,
                                                                 const RowColumns& columns, const Result& result,
                                                                 std::ostream& text);

}  // namespace kbench
