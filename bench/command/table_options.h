// The options of `kbench table`, one table: parsing, help text and docs/table.md all come from it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/report/writers.h"
#include "analysis/table/table_query.h"
#include "bench/command/option_table.h"

namespace kbench {

struct TableRequest {
    std::vector<std::string> files;
    TableQuery query;
    bool level_given = false;
    TableFormat format = TableFormat::space;
    std::optional<std::size_t> width;
};
std::span<const OptionOf<TableRequest>> table_options();

/// docs/table.md: the options and the columns, from their tables.
std::string table_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedTable {
    TableRequest request;
    std::string help;
};
ParsedTable parse_table(const std::vector<std::string>& arguments);

}  // namespace kbench
