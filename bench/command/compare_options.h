// The options of `kbench compare`, one table: parsing, help text and docs/compare.md all come from it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/report/writers.h"
#include "bench/command/option_table.h"

namespace kbench {

struct CompareRequest {
    std::vector<std::string> files;  ///< the first is A
    std::vector<std::string> names;  ///< as many as files, or none
    CompareOptions options;
    CompareFormat format = CompareFormat::text;
    std::optional<std::size_t> top;
};
std::span<const OptionOf<CompareRequest>> compare_options();

/// The options for docs/compare.md.
std::string compare_options_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedCompare {
    CompareRequest request;
    std::string help;
};
ParsedCompare parse_compare(const std::vector<std::string>& arguments);

/// A name for each path of a result.json, all distinct: its directory's, else the file's, else the path.
std::vector<std::string> run_names(const std::vector<std::string>& paths);

}  // namespace kbench
