// kbench table: rows and columns of results that were measured before.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "analysis/explain/explain.h"
#include "bench/command/command.h"
#include "bench/command/table_options.h"
#include "bench/device/console.h"
#include "bench/measure/store/result_files.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// Why a table of steps or kernels cannot show the point; nothing where it can.
std::optional<std::string> absence(const Point& point, bool of_kernels) {
    if (point.steps.empty())
        return fmt::format("no steps: {}{}{}", name(point.status), point.reason.empty() ? "" : ": ", point.reason);
    const auto has_kernels = [](const StepResult& step) { return !step.kernels.empty(); };
    if (!of_kernels || std::ranges::any_of(point.steps, has_kernels)) return std::nullopt;
    const std::string& reason = point.activity.unavailable;
    return fmt::format("no kernels: {}", reason.empty() ? "none were recorded" : reason);
}

/// Points that the table cannot show; said beside it, for it may be read by a program.
void report_absent_points(const std::vector<ResultFile>& files, const TableQuery& query) {
    if (query.level->keeps_empty_points) return;
    for (const ResultFile& file : files)
        for (std::size_t i = 0; i < file.result.points.size(); ++i) {
            if (query.point && *query.point != i) continue;
            if (const auto what = absence(file.result.points[i], query.level->rows_are_kernels))
                say("kbench: {}: point {} has {}\n", file.path, i, *what);
        }
}

/// Whether every point that was run has records of its kernels, so that a table of kernels leaves nothing out.
bool all_recorded(const std::vector<ResultFile>& files) {
    const auto recorded = [](const Point& point) {
        return point.status != PointStatus::done || !absence(point, true).has_value();
    };
    return std::ranges::all_of(
        files, [&](const ResultFile& file) { return std::ranges::all_of(file.result.points, recorded); });
}

}  // namespace

int table_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedTable parsed = parse_table(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    TableRequest request = parsed.request;
    std::vector<ResultFile> files;
    for (const std::string& name : request.files)
        for (ResultFile& file : read_results(name)) files.push_back(std::move(file));
    if (!request.level_given && all_recorded(files)) request.query.level = &find_level("kernel");
    int exit_code = 0;
    for (const ResultFile& file : files)
        exit_code = std::max(exit_code, tell_impossible(ExplainedResult(file.result).impossible(), file.path));
    const QueriedTable table = query_table(files, request.query);
    if (request.width && narrowest_table(table) > *request.width)
        throw UsageError(fmt::format("-w {}: these columns need at least {}; widen it or leave some out with -c",
                                     *request.width, narrowest_table(table)));
    const std::string text = write_table(table, request.format, request.width ? request.width : terminal_width());
    put_text(text);
    report_absent_points(files, request.query);
    return exit_code;
}

}  // namespace kbench
