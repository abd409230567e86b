// The table of options of `kbench merge`.
#include "bench/command/merge_options.h"

namespace kbench {
namespace {

const OptionOf<MergeRequest> table[] = {
    {"--out", "DIR", "", "where the joined result.json and its reports go; made if it is not there",
     [](MergeRequest& r, const std::string& text) { r.out = text; }},
    {"--compress", "", "", "write result.json.gz, a tenth of the size; every command reads it like result.json",
     [](MergeRequest& r, const std::string&) { r.compress = true; }},
};

}  // namespace

std::span<const OptionOf<MergeRequest>> merge_options() { return table; }

ParsedMerge parse_merge(const std::vector<std::string>& arguments) {
    ParsedMerge parsed;
    MergeRequest& request = parsed.request;
    constexpr CommandText command{"kbench merge", "Joins results into one. Nothing is measured.", "RESULT",
                                  "result.json files, points' files, or directories of them"};
    parsed.help = parse_options(command, merge_options(), request, arguments, &request.files);
    if (!parsed.help.empty()) return parsed;
    if (request.out.empty()) throw UsageError("--out is missing: name the directory for the joined result");
    if (request.files.empty()) throw UsageError("no RESULT: name results or a directory of them to join");
    return parsed;
}

}  // namespace kbench
