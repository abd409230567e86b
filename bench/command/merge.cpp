// kbench merge: results of points that were run apart become one.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "analysis/compare/sweep_findings.h"
#include "analysis/result/merge.h"
#include "bench/command/command.h"
#include "bench/command/merge_options.h"
#include "bench/command/output.h"
#include "bench/device/console.h"
#include "bench/measure/store/result_files.h"

namespace kbench {
int merge_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedMerge parsed = parse_merge(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    std::vector<ResultFile> files;
    for (const std::string& name : parsed.request.files)
        for (ResultFile& file : read_results(name)) files.push_back(std::move(file));
    Result merged = merge_results(files);
    add_once(merged.warnings, sweep_findings(merged.points));
    const OutputDirectory held = prepare_directory(parsed.request.out, "merge");
    const std::filesystem::path& out = held.path;
    write_result(out, merged, parsed.request.compress);
    const ExplainedResult explained(merged);
    write_reports(out, explained);
    say("joined {} results: {} points in {}\n", files.size(), merged.points.size(), result_file_in(out).string());
    return tell_impossible(explained.impossible(), result_file_in(out).string());
}

}  // namespace kbench
