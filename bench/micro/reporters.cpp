// Chooses reporters and prepares the rows that they get.
#include "bench/micro/reporters.h"

#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "bench/micro/console.h"
#include "models/base/values.h"

namespace kbench {
namespace {

/// The value of the last `--NAME=VALUE` among `arguments`, which is the one that counts; `fallback` without any.
std::string value_of(const std::vector<std::string>& arguments, std::string_view name, std::string_view fallback) {
    const std::string prefix = fmt::format("--{}=", name);
    std::string value(fallback);
    for (const std::string& argument : arguments)
        if (argument.starts_with(prefix)) value = argument.substr(prefix.size());
    return value;
}

ReporterKind kind_of(std::string_view option, const std::string& format) {
    const std::string chosen = word(option, format, {"console", "json", "csv"});
    return chosen == "console" ? ReporterKind::console : chosen == "json" ? ReporterKind::json : ReporterKind::csv;
}

std::unique_ptr<benchmark::BenchmarkReporter> make(ReporterKind kind, const RowColumns& columns, const Result& result,
                                                   std::optional<std::size_t> width, std::ostream* own) {
    switch (kind) {
        case ReporterKind::console: return std::make_unique<MicroConsole>(result, columns.expected, width, own);
        case ReporterKind::json:
            return std::make_unique<RowReporter>(std::make_unique<benchmark::JSONReporter>(),
                                                 std::span<const std::string>(), own);
        case ReporterKind::csv: break;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return std::make_unique<RowReporter>(std::make_unique<benchmark::CSVReporter>(), columns.possible, own);
#pragma GCC diagnostic pop
}

}  // namespace

RowReporter::RowReporter(std::unique_ptr<benchmark::BenchmarkReporter> inner, std::span<const std::string> columns,
                         std::ostream* own)
    : inner_(std::move(inner)), own_(own) {
    for (const std::string& column : columns) columns_[column] = 0;
}

bool RowReporter::ReportContext(const Context& context) {
    inner_->SetOutputStream(own_ != nullptr ? own_ : &GetOutputStream());
    std::ostringstream text;
    inner_->SetErrorStream(&text);
    const bool go_on = inner_->ReportContext(context);
    inner_->SetErrorStream(&GetErrorStream());
    std::istringstream lines(text.str());
    for (std::string line; std::getline(lines, line);)
        if (line.find("Library was built as DEBUG") == line.npos) GetErrorStream() << line << '\n';
    return go_on;
}

void RowReporter::ReportRuns(const std::vector<Run>& rows) {
    std::vector<Run> clean = rows;
    for (Run& row : clean) {
        row.run_name.time_type.clear();
        if (row.counters.empty()) row.counters = columns_;
    }
    inner_->ReportRuns(clean);
}

std::unique_ptr<benchmark::BenchmarkReporter> make_display_reporter(const std::vector<std::string>& arguments,
                                                                    const RowColumns& columns, const Result& result,
                                                                    std::optional<std::size_t> width) {
    const ReporterKind kind = kind_of("--benchmark_format", value_of(arguments, "benchmark_format", "console"));
    return make(kind, columns, result, width, nullptr);
}

std::string out_file(const std::vector<std::string>& arguments) { return value_of(arguments, "benchmark_out", ""); }

std::unique_ptr<benchmark::BenchmarkReporter> make_file_reporter(const std::vector<std::string>& arguments,
                                                                 const RowColumns& columns, const Result& result,
                                                                 std::ostream& text) {
    if (out_file(arguments).empty()) return nullptr;
    const ReporterKind kind = kind_of("--benchmark_out_format", value_of(arguments, "benchmark_out_format", "json"));
    return make(kind, columns, result, std::nullopt, &text);
}

}  // namespace kbench
