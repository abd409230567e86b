// The table of options of `kbench report`.
#include "bench/command/report_options.h"

#include "bench/command/command.h"

namespace kbench {
namespace {

/// all, the files' words, text.
std::vector<std::string_view> format_words() {
    std::vector<std::string_view> words{"all"};
    for (const ReportFormat& format : report_formats()) words.push_back(format.name);
    words.push_back("text");
    words.push_back("json");
    return words;
}

const OptionOf<ReportRequest> table[] = {
    {"--out", "DIR", "that of the run that wrote it, else kbench-runs/<time>-report",
     "where the reports go; made if it is not there. What is there and is no report of this result is not overwritten",
     [](ReportRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--out '': name a directory");
         r.out = text;
     }},
    {"--format", "F", "all",
     "all files, one of them (html, md, trace), or text: the answer on stdout and no file; with --what-if text, html, md or json on stdout",
     [](ReportRequest& r, const std::string& text) { r.format = word("--format", text, format_words()); }},
    {"-v,--verbose", "", "", "with --format text: every figure and where it comes from, in place of one screen",
     [](ReportRequest& r, const std::string&) { r.verbose = true; }},
    {"--what-if", "MACHINE", "",
     "instead: the latency expected on a machine (`kbench list machines`, or a machine file) or on that of another result, on stdout and no file",
     [](ReportRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--what-if '': name a machine of `kbench list machines`, or a result");
         r.what_if = text;
     }},
};

}  // namespace

std::span<const OptionOf<ReportRequest>> report_options() { return table; }

ParsedReport parse_report(const std::vector<std::string>& arguments) {
    ParsedReport parsed;
    std::vector<std::string> files;
    constexpr CommandText command{
        "kbench report", "Draws the reports of a result again. Nothing is measured; result.json stays as it is.",
        "RESULT", "result.json, or the directory that holds one"};
    parsed.help = parse_options(command, report_options(), parsed.request, arguments, &files);
    if (!parsed.help.empty()) return parsed;
    if (parsed.request.format == "json" && parsed.request.what_if.empty())
        throw UsageError("--format json: is of --what-if alone; a result.json is JSON already");
    if (parsed.request.verbose && (parsed.request.format != "text" || !parsed.request.what_if.empty()))
        throw UsageError("--verbose: goes with --format text alone; the files have every figure");
    if (!parsed.request.what_if.empty()) {
        if (!parsed.request.out.empty())
            throw UsageError(fmt::format(
                "--out {}: --what-if writes to stdout and no file; end the command with > FILE", parsed.request.out));
        if (parsed.request.format == "trace") throw UsageError("--format trace: --what-if has text, html, md or json");
    }
    if (files.size() != 1)
        throw UsageError(
            files.empty() ? "no RESULT: name a result.json or the directory that holds one, as in `kbench report FILE`"
                          : fmt::format("'{}': a report is of one RESULT; `kbench table` takes several", files[1]));
    parsed.request.file = files.front();
    return parsed;
}

}  // namespace kbench
