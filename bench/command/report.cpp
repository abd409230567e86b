// kbench report: the reports of a result that was measured before.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "analysis/compare/what_if.h"
#include "analysis/report/markdown_text.h"
#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/what_if.h"
#include "analysis/report/writers.h"
#include "analysis/result/match.h"
#include "bench/command/command.h"
#include "bench/command/machine_path.h"
#include "bench/command/output.h"
#include "bench/command/report_options.h"
#include "bench/device/console.h"
#include "bench/measure/store/result_files.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

std::string json_text(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Whether `report`, of any version, is of the run that `environment` tells of: its start and its command line stand in
/// each, escaped in that format's way.
bool is_report_of(const std::string& report, const Environment& environment) {
    const nlohmann::ordered_json page = page_document(report);
    const std::string text = page.is_object() ? json_text(page) : report;
    const auto has = [&](const std::string& part) { return !part.empty() && text.find(part) != std::string::npos; };
    return has(environment.started_at) &&
           (has(json_text(environment.command_line)) || has(markdown_text(environment.command_line)));
}

/// The machine that `--what-if` names: a result is a directory, or a file that says so itself.
bool names_result(const std::string& what) {
    return fs::is_directory(what) || fs::path(what).filename().string().find("result") != std::string::npos;
}

/// The same point, where the other result has it.
const Point* same_point(const Result& other, const Point& point) {
    const auto is_same = [&](const Point& p) { return p.end_to_end && first_difference(p, point) == nullptr; };
    const auto found = std::ranges::find_if(other.points, is_same);
    return found == other.points.end() ? nullptr : &*found;
}

/// As json an array with an object for each point.
std::string expectations(const ExplainedResult& explained, const std::string& target, std::string_view format) {
    const Result& result = explained.result();
    const bool is_result = names_result(target);
    const ResultFile other = is_result ? read_result(target) : ResultFile{};
    const WhatIfMachine source = what_if_machine(result);
    const WhatIfMachine there = is_result ? what_if_machine(other.result) : what_if_machine(machine_at(target));
    if (const std::string why = why_not_between(source, there); !why.empty())
        throw UsageError(fmt::format("--what-if {}: {}", target, why));
    std::vector<CheckedWhatIf> points;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point* measured = same_point(other.result, result.points[i]);
        CheckedWhatIf& point = points.emplace_back();
        point.answer = what_if(explained.of(i), source, there,
                               measured != nullptr ? measured->conditions.sm_clock_mhz.value : std::nullopt);
        if (measured != nullptr) point.check = check_what_if(point.answer, *measured);
    }
    if (format == "json") return what_if_json(points).dump(1) + "\n";
    const Document document = what_if_document(points);
    if (format == "html") return render_html(document);
    return format == "md" ? render_markdown(document) : render_terminal(document, terminal_width().value_or(100));
}

}  // namespace

// Every report that is a file: `kbench run` and `kbench report` write these. Another one is another row.
std::span<const ReportFormat> report_formats() {
    static constexpr ReportFormat table[] = {
        {"html", "report.html", [](const ExplainedResult&, const Document& full) { return render_html(full); }},
        {"md", "report.md", [](const ExplainedResult&, const Document& full) { return render_markdown(full); }},
        {"trace", "trace.json",
         [](const ExplainedResult& explained, const Document&) { return write_trace(explained); }},
    };
    return table;
}

fs::path report_directory(const std::string& out, const ResultFile& result) {
    const fs::path file = result.path;
    const fs::path beside = file.has_parent_path() ? file.parent_path() : fs::path(".");
    if (out.empty() && stands(beside / lock_name)) return beside;
    const fs::path directory = out.empty() ? new_directory("report") : fs::path(out);
    std::error_code error;
    fs::create_directories(directory, error);
    if (error)
        throw UsageError(
            out.empty() ? fmt::format("{}: {}; name another folder with --out", directory.string(), error.message())
                        : fmt::format("--out {}: {}", directory.string(), error.message()));
    return directory;
}

void refuse_other_reports(const fs::path& directory, std::span<const Environment> runs, const std::string& wanted) {
    for (const ReportFormat& format : report_formats()) {
        const fs::path file = directory / format.file;
        if ((wanted != "all" && wanted != format.name) || !stands(file)) continue;
        if (const std::string why = why_not_a_file(file); !why.empty())
            throw UsageError(fmt::format("cannot write {}: {}", file.string(), why));
        const std::string text = read_whole_file(file);
        if (std::ranges::none_of(runs, [&](const Environment& run) { return is_report_of(text, run); }))
            throw UsageError(
                fmt::format("{}: is no report of this result; choose another --out or move it away", file.string()));
    }
}

void write_reports(const fs::path& directory, const ExplainedResult& explained) {
    const Document full = report_of(explained);
    for (const ReportFormat& format : report_formats())
        write_file_atomically(directory / format.file, format.write(explained, full));
}

int tell_impossible(std::span<const std::string> figures, const std::string& path) {
    for (const std::string& figure : figures) say("kbench: impossible: {}: {}\n", path, figure);
    return static_cast<int>(figures.empty() ? ExitCode::success : ExitCode::failed);
}

int report_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedReport parsed = parse_report(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const ReportRequest& request = parsed.request;
    const ResultFile file = read_result(request.file);
    const ExplainedResult explained(file.result);
    const int exit_code = tell_impossible(explained.impossible(), file.path);
    if (!request.what_if.empty()) {
        if (exit_code != 0) return exit_code;
        put_text(expectations(explained, request.what_if, request.format));
        return 0;
    }
    if (request.format == "text") {
        const int width = static_cast<int>(terminal_width().value_or(100));
        put_text(request.verbose ? write_terminal(explained, width) : write_screen(explained, width));
        return exit_code;
    }
    const fs::path directory = report_directory(request.out, file);
    std::error_code none;
    if (const fs::path held = request.out.empty() ? fs::path() : result_file_in(directory);
        !held.empty() && !fs::equivalent(held, file.path, none) && read_whole_file(held) != read_whole_file(file.path))
        throw UsageError(
            fmt::format("--out {}: holds another {}; choose another directory", request.out, held.filename().string()));
    refuse_other_reports(directory, {&file.result.environment, 1}, request.format);
    const Document full = report_of(explained);
    for (const ReportFormat& format : report_formats()) {
        if (request.format != "all" && request.format != format.name) continue;
        write_file_atomically(directory / format.file, format.write(explained, full));
        say("wrote {}\n", (directory / format.file).string());
    }
    return exit_code;
}

}  // namespace kbench
