// kbench report: the reports of a result that was measured before.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "analysis/result_json.h"
#include "analysis/write/writers.h"
#include "bench/command/command.h"
#include "bench/report_options.h"
#include "models/error.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// Where the reports go, made if need be.
fs::path report_directory(const std::string& out, const fs::path& result_file) {
    if (out.empty()) return result_file.has_parent_path() ? result_file.parent_path() : fs::path(".");
    std::error_code error;
    fs::create_directories(out, error);
    if (error) throw UsageError(fmt::format("--out {}: {}", out, error.message()));
    return out;
}

}  // namespace

// Every report that is a file: `kbench run` and `kbench report` write these. Another one is another row.
std::span<const ReportFormat> report_formats() {
    static constexpr ReportFormat table[] = {
        {"html", "report.html", write_html},
    };
    return table;
}

int report_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedReport parsed = parse_report(arguments);
    if (!parsed.help.empty()) {
        std::fputs(parsed.help.c_str(), stdout);
        return 0;
    }
    const ReportRequest& request = parsed.request;
    const ResultFile file = read_result(request.file);
    if (request.format == "text") {
        const std::string text = write_terminal(file.result, static_cast<int>(terminal_width().value_or(100)));
        std::fwrite(text.data(), 1, text.size(), stdout);
        return 0;
    }
    const fs::path directory = report_directory(request.out, file.path);
    for (const ReportFormat& format : report_formats()) {
        if (request.format != "all" && request.format != format.name) continue;
        write_file_atomically(directory / format.file, format.write(file.result));
        fmt::print(stderr, "wrote {}\n", (directory / format.file).string());
    }
    return 0;
}

}  // namespace kbench
