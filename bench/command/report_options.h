// The options of `kbench report`, one table: parsing, help text and docs/report.md's table come from it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"

namespace kbench {

struct ReportRequest {
    std::string file;            ///< a result.json or the directory that holds one
    std::string out;             ///< directory for the reports; see report_directory() where it is empty
    std::string format = "all";  ///< all, text, one of report_formats(), or json with a what_if
    bool verbose = false;        ///< text with every figure
    std::string what_if;         ///< a machine or a result; empty: the reports
};
std::span<const OptionOf<ReportRequest>> report_options();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedReport {
    ReportRequest request;
    std::string help;
};
ParsedReport parse_report(const std::vector<std::string>& arguments);

}  // namespace kbench
