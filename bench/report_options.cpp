// The table of options of `kbench report`.
#include "bench/report_options.h"

#include "bench/command/command.h"

namespace kbench {
namespace {

/// all, the files' words, text.
std::vector<std::string_view> format_words() {
    std::vector<std::string_view> words{"all"};
    for (const ReportFormat& format : report_formats()) words.push_back(format.name);
    words.push_back("text");
    return words;
}

constexpr OptionOf<ReportRequest> table[] = {
    {"--out", "DIR", "beside the result", "where the reports go; made if it is not there",
     [](ReportRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--out '': name a directory");
         r.out = text;
     }},
    {"--format", "F", "all", "all files, one of them (html), or text: the summary on stdout and no file",
     [](ReportRequest& r, const std::string& text) { r.format = word("--format", text, format_words()); }},
};

}  // namespace

std::span<const OptionOf<ReportRequest>> report_options() { return table; }

ParsedReport parse_report(const std::vector<std::string>& arguments) {
    ParsedReport parsed;
    std::vector<std::string> files;
    CLI::App app("Draws the reports of a result again. Nothing is measured; result.json stays as it is.",
                 "kbench report");
    app.add_option("RESULT", files, "result.json, or the directory that holds one");
    parsed.help = parse_options(app, report_options(), parsed.request, arguments);
    if (!parsed.help.empty()) return parsed;
    if (files.size() != 1)
        throw UsageError(files.empty()
                             ? "no RESULT: name a result.json or the directory that holds one, as in `kbench "
                               "report FILE`"
                             : fmt::format("'{}': a report is of one RESULT; `kbench table` takes several", files[1]));
    parsed.request.file = files.front();
    return parsed;
}

}  // namespace kbench
