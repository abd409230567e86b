// The options of `kbench profile schedule` and `kbench profile report`, a table each: parsing, help text and the tables
// in docs/profile.md come from them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"
#include "profile/schedule.h"

namespace kbench {

struct ScheduleRequest {
    embedded::Schedule schedule;
    std::string from;   ///< a prof.json, whose labels are to be measured
    std::string check;  ///< a schedule that is read instead
    std::string out;    ///< empty: stdout
};
std::span<const OptionOf<ScheduleRequest>> schedule_options();

struct ScopeReportRequest {
    std::vector<std::string> runs;  ///< directories, or files of one process
    std::string format = "text";    ///< text, html, markdown or json
    std::string out;                ///< empty: stdout
};
std::span<const OptionOf<ScopeReportRequest>> scope_report_options();

/// Parse `arguments` (without the names of command and subcommand). Throw UsageError; a request for help is `help` set
/// to its text.
template <class Request>
struct ParsedProfile {
    Request request;
    std::string help;
};
ParsedProfile<ScheduleRequest> parse_schedule_options(const std::vector<std::string>& arguments);
ParsedProfile<ScopeReportRequest> parse_scope_report(const std::vector<std::string>& arguments);

/// The options of both, for completion and the man page.
std::vector<HelpRow> profile_rows();
/// "schedule", "report".
std::vector<std::string> profile_words();

}  // namespace kbench
