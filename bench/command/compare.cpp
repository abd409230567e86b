// kbench compare: results that were measured before, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "analysis/explain/explain.h"
#include "bench/command/command.h"
#include "bench/command/compare_options.h"
#include "bench/device/console.h"
#include "bench/measure/store/result_files.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// Where standard output is no terminal, and for documents.
constexpr std::size_t usual_width = 100, usual_rows = 10;

std::string written(const Comparison& comparison, const CompareRequest& request) {
    if (request.format == CompareFormat::json) return write_comparison_json(comparison, request.top);
    return write_comparison(comparison, request.format, request.top.value_or(usual_rows),
                            terminal_width().value_or(usual_width));
}

}  // namespace

int compare_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedCompare parsed = parse_compare(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const CompareRequest& request = parsed.request;
    std::vector<NamedResult> runs;
    std::vector<std::string> paths;
    for (const std::string& file : request.files) {
        ResultFile read = read_result(file);
        paths.push_back(read.path);
        runs.push_back({"", std::move(read.path), std::move(read.result)});
    }
    const std::vector<std::string> names = request.names.empty() ? run_names(paths) : request.names;
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].name = names[i];

    int exit_code = 0;
    for (const NamedResult& run : runs)
        exit_code = std::max(exit_code, tell_impossible(ExplainedResult(run.result).impossible(), run.path));
    const Comparison comparison = compare(runs, request.options);
    const std::string text = written(comparison, request);
    put_text(text);
    for (const std::string& line : comparison.regressions) say("kbench: regression: {}\n", line);
    return comparison.regressions.empty() ? exit_code : static_cast<int>(ExitCode::failed);
}

}  // namespace kbench
