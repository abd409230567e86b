// The options of `kbench merge`, one table: parsing, help text and docs/merge.md's table come from it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"

namespace kbench {

struct MergeRequest {
    std::vector<std::string> files;  ///< or directories
    std::string out;
    bool compress = false;  ///< result.json.gz
};
std::span<const OptionOf<MergeRequest>> merge_options();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedMerge {
    MergeRequest request;
    std::string help;
};
ParsedMerge parse_merge(const std::vector<std::string>& arguments);

}  // namespace kbench
