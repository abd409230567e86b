// The tables of options of `kbench profile`.
#include "bench/command/profile_options.h"

#include <algorithm>

#include "kbench/error.h"

namespace kbench {
namespace {

void set_file(std::string& file, std::string_view option, const std::string& text) {
    if (text.empty()) throw UsageError(fmt::format("{} '': name a file", option));
    file = text;
}

constexpr std::string_view out_help = "a new file for it; without it, it goes to stdout";

const OptionOf<ScheduleRequest> schedule_table[] = {
    {"--scopes", "GLOB,...", "*",
     "labels to measure: * stands for any text, ? for any character; a backslash before a comma, * or ? takes it as it is",
     [](ScheduleRequest& r, const std::string& text) {
         std::string glob;
         for (std::size_t i = 0; i <= text.size(); ++i) {
             if (i == text.size() || text[i] == ',') {
                 embedded::add_scope(r.schedule, glob, fmt::format("--scopes '{}'", text));
                 glob.clear();
             } else {
                 if (text[i] == '\\' && i + 1 < text.size()) glob += text[i++];
                 glob += text[i];
             }
         }
     }},
    {"--from", "FILE", "", "the labels that a prof.json has, a line each, to choose from",
     [](ScheduleRequest& r, const std::string& text) { set_file(r.from, "--from", text); }},
    {"--iterations", "A:B",
     "10:", "measure from iteration A on, which is 0 for the first, and not from B on; A: has no end",
     [](ScheduleRequest& r, const std::string& text) { embedded::set_iterations(r.schedule, text, "--iterations"); }},
    {"--repeat", "N", "50", "measured iterations a scope",
     [](ScheduleRequest& r, const std::string& text) { embedded::set_repeat(r.schedule, text, "--repeat"); }},
    {"--then", "WHAT", "go-on", "what the program does behind the last measurement: go-on or stop",
     [](ScheduleRequest& r, const std::string& text) {
         r.schedule.stops = word("--then", text, {"go-on", "stop"}) == "stop";
     }},
    {"--folder", "DIR", "where the program runs", "where the program writes prof.json",
     [](ScheduleRequest& r, const std::string& text) { embedded::set_output(r.schedule, text, "--folder"); }},
    {"--check", "FILE", "", "instead: read this schedule and print it as it is understood, or say what is wrong",
     [](ScheduleRequest& r, const std::string& text) { set_file(r.check, "--check", text); }},
    {"--out", "FILE", "", std::string(out_help),
     [](ScheduleRequest& r, const std::string& text) { set_file(r.out, "--out", text); }},
};

const OptionOf<ScopeReportRequest> report_table[] = {
    {"--format", "F", "text", "text, html (a page with charts), markdown or json, which has full precision",
     [](ScopeReportRequest& r, const std::string& text) {
         r.format = word("--format", text, {"text", "html", "markdown", "json"});
     }},
    {"--out", "FILE", "", std::string(out_help),
     [](ScopeReportRequest& r, const std::string& text) { set_file(r.out, "--out", text); }},
};

}  // namespace

std::span<const OptionOf<ScheduleRequest>> schedule_options() { return schedule_table; }
std::span<const OptionOf<ScopeReportRequest>> scope_report_options() { return report_table; }

ParsedProfile<ScheduleRequest> parse_schedule_options(const std::vector<std::string>& arguments) {
    ParsedProfile<ScheduleRequest> parsed;
    ScheduleRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench profile schedule",
        .what =
            "Writes a schedule for a program that uses kbench/profile.h: which of its scopes are measured, and when. The program reads prof.schedule where it runs, or the file that KBENCH_PROFILE_SCHEDULE names.",
        .examples = {
            "kbench profile schedule --out prof.schedule",
            "kbench profile schedule --scopes 'forward*,loss' --iterations 100:400 --then stop --out prof.schedule",
            "kbench profile schedule --from prof.json"}};
    parsed.help = parse_options(command, schedule_options(), request, arguments);
    if (!parsed.help.empty()) return parsed;
    if (!request.check.empty() && arguments.size() > 2)
        throw UsageError("--check: a schedule that is read has all in it; give no other option");
    if (!request.from.empty() && !request.schedule.scopes.empty())
        throw UsageError("--from and --scopes: labels come from one of them");
    if (request.from.empty() && request.schedule.scopes.empty()) embedded::add_scope(request.schedule, "*", "--scopes");
    return parsed;
}

ParsedProfile<ScopeReportRequest> parse_scope_report(const std::vector<std::string>& arguments) {
    ParsedProfile<ScopeReportRequest> parsed;
    constexpr CommandText command{
        .name = "kbench profile report",
        .what =
            "Shows what a program that uses kbench/profile.h measured. Of several runs, such as on 1, 2 and 4 GPUs, it shows how the iteration and its scopes scale.",
        .argument = "RUN",
        .argument_what = "a directory with prof.json or, of several processes, prof.RANK.json; or one such file",
        .examples = {"kbench profile report .",
                     "kbench profile report 1gpu 2gpus 4gpus --format html --out scaling.html"}};
    parsed.help = parse_options(command, scope_report_options(), parsed.request, arguments, &parsed.request.runs);
    if (!parsed.help.empty()) return parsed;
    if (parsed.request.runs.empty()) throw UsageError("no RUN: name a directory with prof.json, or the file");
    return parsed;
}

std::vector<HelpRow> profile_rows() {
    std::vector<HelpRow> rows = help_rows(schedule_options());
    for (HelpRow& row : help_rows(scope_report_options()))
        if (std::ranges::find(rows, row.name, &HelpRow::name) == rows.end()) rows.push_back(std::move(row));
    return rows;
}

std::vector<std::string> profile_words() { return {"schedule", "report"}; }

}  // namespace kbench
