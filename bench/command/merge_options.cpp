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

std::string merge_markdown() {
    return "# kbench merge\n\n"
           "Written from the table in bench/command/merge_options.cpp by a test; `kbench merge --help` says the same.\n\n"
           "    kbench merge --out DIR RESULT...\n\n"
           "RESULT is a result.json, a point's file, or a directory: its result.json, or without one its finished points and the results of all directories in it. [sweeps.md](sweeps.md) shows what it is for. Nothing is measured.\n\n" +
           markdown_of(merge_options()) +
           "\nAll results must come from the same kbench, the same kind of device with the same driver and libraries, and the same options, the model's configuration among them: the first difference is named, exit code 2. Cards may differ in their UUID, since that is what many machines are for.\n\n"
           "Points stand by repeat, sequence length, batch and precision. The same point with the same data is there once; with other data it is refused, and both files are named. Warnings are kept, each once; environment and ceilings are those of the first result, `started_at` is the earliest.\n";
}

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
