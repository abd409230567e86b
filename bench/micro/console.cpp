// Rows in columns of fixed widths, as those to come are not known.
#include "bench/micro/console.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "analysis/table/table.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Lines of a file are for grep.
constexpr std::size_t no_width = 1'000'000;
constexpr std::string_view time_column = "time", rate_column = "TFLOP/s", gap = "  ", further_in = "    ";
/// What Google Benchmark adds to the names of benchmarks that tell their own time.
constexpr std::size_t manual_time = std::string_view("/manual_time").size();
/// A label begins in a row's own line where so much of it fits, "brg_matmul:avx512_core; roof avx512_fp32".
constexpr std::size_t usual_label = 40;

std::size_t width_of(const std::string& column) {
    if (column == time_column) return std::string_view("123,456 us").size();
    if (column == rate_column) return std::string_view("12.3 GFLOP/s").size();
    return std::max<std::size_t>(column.size(), 6);
}

/// An aggregate may be a share, a coefficient of variation.
std::string cell_of(const std::string& column, const benchmark::BenchmarkReporter::Run& row) {
    const bool is_share = row.aggregate_unit == benchmark::kPercentage;
    if (column == time_column)
        return is_share ? fmt::format("{:.2f} %", 100 * row.real_accumulated_time)
                        : fmt::format("{} {}", significant(row.GetAdjustedRealTime(), time_digits),
                                      benchmark::GetTimeUnitString(row.time_unit));
    const auto found = row.counters.find(column);
    if (found == row.counters.end()) return "-";
    const double value = found->second.value;
    if (is_share) return fmt::format("{:.2f} %", 100 * value);
    if (column != rate_column) return significant(value);
    if (value == 0) return "-";
    return value < 0.9995 ? significant(1e3 * value) + " GFLOP/s" : significant(value) + " TFLOP/s";
}

}  // namespace

MicroConsole::MicroConsole(const Result& result, std::vector<std::string> columns, std::optional<std::size_t> width,
                           std::ostream* own)
    : result_(result), columns_(std::move(columns)), width_(width.value_or(no_width)), own_(own) {
    columns_.insert(columns_.begin(), std::string(time_column));
}

/// `cells` in the order of the columns.
std::string MicroConsole::line(std::string name, std::span<const std::string> cells, const std::string& label) const {
    name.resize(std::max(name.size(), name_width_), ' ');
    std::string text = std::move(name);
    std::size_t begin = 0;
    const auto go_on_below = [&] {
        text.erase(text.find_last_not_of(' ') + 1) += '\n';
        begin = text.size();
        text += further_in;
    };
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::size_t width = width_of(columns_[i]);
        if (text.size() - begin + gap.size() + width > width_) go_on_below();
        text += fmt::format("{}{:>{}}", gap, cells[i], width);
    }
    if (label.empty()) return text + '\n';
    if (text.size() - begin + gap.size() + usual_label > width_) go_on_below();
    return text.substr(0, begin) + wrap(text.substr(begin) + std::string(gap), label, width_);
}

bool MicroConsole::ReportContext(const Context& context) {
    name_width_ = std::max<std::size_t>(context.name_field_width, 2 * manual_time) - manual_time;
    const Environment& environment = result_.environment;
    std::vector<std::string> header = columns_;
    std::ranges::replace(header, std::string(rate_column), "FLOP/s");
    out() << wrap("", device_text(environment, environment.gpu.has_value()), width_) << '\n'
          << line("benchmark", header, "implementation; roof") << std::flush;
    return true;
}

void MicroConsole::ReportRuns(const std::vector<Run>& rows) {
    for (Run row : rows) {
        row.run_name.time_type.clear();
        const std::string name = row.benchmark_name();
        if (row.counters.empty()) {
            // What failed stands here, what was skipped in the summary.
            const auto point = std::ranges::find(result_.points, name, &Point::model);
            if (point != result_.points.end() && point->status == PointStatus::failed)
                out() << line(name, {}, "failed: " + one_line(point->reason)) << std::flush;
            continue;
        }
        std::vector<std::string> cells;
        for (const std::string& column : columns_) cells.push_back(cell_of(column, row));
        const std::string run = row.run_name.str();
        const bool stands_above = row.run_type == Run::RT_Aggregate && run == told_;
        out() << line(name, cells, stands_above ? "" : row.report_label) << std::flush;
        told_ = run;
    }
}

void MicroConsole::Finalize() { out() << micro_summary(result_.points, width_) << std::flush; }

}  // namespace kbench
