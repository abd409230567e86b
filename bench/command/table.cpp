// kbench table: rows and columns of results that were measured before.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/result_json.h"
#include "bench/command/command.h"
#include "bench/table_options.h"
#include "models/error.h"

namespace kbench {
namespace {

ResultFile read_result(const std::string& name) {
    std::filesystem::path path = name;
    if (std::filesystem::is_directory(path)) path /= "result.json";
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    if (!file || !(text << file.rdbuf()))
        throw UsageError(
            fmt::format("{}: cannot be read; name a result.json or the directory that holds one", path.string()));
    return {path.string(), parse_result(text.str(), path.string())};
}

/// Points that a table of steps cannot show; said beside the table, for it may be read by a program.
void report_points_without_steps(const std::vector<ResultFile>& files, const TableQuery& query) {
    if (query.level->keeps_empty_points) return;
    for (const ResultFile& file : files)
        for (std::size_t i = 0; i < file.result.points.size(); ++i) {
            const Point& point = file.result.points[i];
            if (!point.steps.empty() || (query.point && *query.point != i)) continue;
            fmt::print(stderr, "kbench: {}: point {} has no steps: {}{}{}\n", file.path, i, name(point.status),
                       point.reason.empty() ? "" : ": ", point.reason);
        }
}

}  // namespace

int table_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedTable parsed = parse_table(arguments);
    if (!parsed.help.empty()) {
        std::fputs(parsed.help.c_str(), stdout);
        return 0;
    }
    const TableRequest& request = parsed.request;
    std::vector<ResultFile> files;
    for (const std::string& name : request.files) files.push_back(read_result(name));
    const QueriedTable table = query_table(files, request.query);
    if (request.width && narrowest_table(table) > *request.width)
        throw UsageError(fmt::format("-w {}: these columns need at least {}; widen it or leave some out with -c",
                                     *request.width, narrowest_table(table)));
    const std::string text = write_table(table, request.format, request.width ? request.width : terminal_width());
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    report_points_without_steps(files, request.query);
    return 0;
}

}  // namespace kbench
