// Chooses reporters and prepares the rows that they get.
#include "bench/micro/reporters.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

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

bool is_true(const std::string& value) { return value == "true" || value == "yes" || value == "on" || value == "1"; }

ReporterKind kind_of(std::string_view option, const std::string& format) {
    const std::string chosen = word(option, format, {"console", "json", "csv"});
    return chosen == "console" ? ReporterKind::console : chosen == "json" ? ReporterKind::json : ReporterKind::csv;
}

std::unique_ptr<benchmark::BenchmarkReporter> make(ReporterKind kind, int console_options) {
    switch (kind) {
        case ReporterKind::console:
            return std::make_unique<benchmark::ConsoleReporter>(
                static_cast<benchmark::ConsoleReporter::OutputOptions>(console_options));
        case ReporterKind::json: return std::make_unique<benchmark::JSONReporter>();
        case ReporterKind::csv: break;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return std::make_unique<benchmark::CSVReporter>();
#pragma GCC diagnostic pop
}

}  // namespace

RowReporter::RowReporter(std::unique_ptr<benchmark::BenchmarkReporter> inner, ReporterKind kind,
                         const RowColumns& columns, std::ostream* own)
    : inner_(std::move(inner)), kind_(kind), own_(own) {
    for (const std::string& column : kind == ReporterKind::csv ? columns.possible : columns.expected)
        columns_[column] = 0;
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
        if (!row.counters.empty())
            columns_ = row.counters;
        else if (kind_ != ReporterKind::json)
            row.counters = columns_;
    }
    inner_->ReportRuns(clean);
}

std::unique_ptr<benchmark::BenchmarkReporter> make_display_reporter(const std::vector<std::string>& arguments,
                                                                    const RowColumns& columns) {
    const ReporterKind kind = kind_of("--benchmark_format", value_of(arguments, "benchmark_format", "console"));
    const std::string color = value_of(arguments, "benchmark_color", "auto");
    int options = benchmark::ConsoleReporter::OO_None;
    if (color == "auto" ? isatty(STDOUT_FILENO) == 1 : is_true(color)) options |= benchmark::ConsoleReporter::OO_Color;
    if (is_true(value_of(arguments, "benchmark_counters_tabular", "false")))
        options |= benchmark::ConsoleReporter::OO_Tabular;
    return std::make_unique<RowReporter>(make(kind, options), kind, columns);
}

std::string out_file(const std::vector<std::string>& arguments) { return value_of(arguments, "benchmark_out", ""); }

std::unique_ptr<benchmark::BenchmarkReporter> make_file_reporter(const std::vector<std::string>& arguments,
                                                                 const RowColumns& columns, std::ostream& text) {
    if (out_file(arguments).empty()) return nullptr;
    const ReporterKind kind = kind_of("--benchmark_out_format", value_of(arguments, "benchmark_out_format", "json"));
    return std::make_unique<RowReporter>(make(kind, benchmark::ConsoleReporter::OO_None), kind, columns, &text);
}

}  // namespace kbench
