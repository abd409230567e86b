// Markdown (GitHub's flavour) from text of any origin: what a name holds stays text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/table/table.h"

namespace kbench {

/// Running text on one line that renders as it reads: no markup, HTML, link, mention, list or new table cell.
std::string markdown_text(std::string_view text);

/// A name as a code span; as markdown_text where it holds a backtick, a bar or a backslash, on which renderers differ.
/// Empty for an empty name.
std::string markdown_name(std::string_view name);

/// A row of cells, which are Markdown already.
std::string markdown_row(const std::vector<std::string>& cells);
/// The line below the header.
std::string markdown_rule(const std::vector<Align>& columns);

/// A table of cells that are Markdown already; a column whose cells are all empty is left out.
class MarkdownTable {
  public:
    explicit MarkdownTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
    /// Cells in the order of the columns.
    void add_row(std::vector<std::string> cells);
    /// With a blank line before and after; empty without rows.
    std::string text() const;

  private:
    std::vector<TableColumn> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace kbench
