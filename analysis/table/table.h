// A table in plain text: one list of columns drives header, alignment and width.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kbench {

enum class Align { left, right };

struct TableColumn {
    std::string header;
    Align align = Align::right;
    int droppable = 0;      ///< when the table is too wide, columns go from the highest number down; 0 stays
    bool shortens = false;  ///< what is still too wide loses its middle, the widest column first
    bool is_name = false;   ///< its cells name a layer or a kernel, as which Markdown and HTML set them
    std::string what = {};  ///< a sentence for who asks what stands in it
};

/// Columns are as wide as their widest cell, two spaces apart; an empty column is left out.
class Table {
  public:
    explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

    /// Cells in the order of the columns.
    void add_row(std::vector<std::string> cells);

    /// Lines that start with `indent` spaces and have at most `width` characters where the columns allow it.
    std::string text(std::size_t indent, std::size_t width) const;

    /// The width below which no line can go without dropping columns.
    std::size_t narrowest() const;

  private:
    std::vector<std::size_t> widths() const;
    std::size_t reserve(std::size_t column, std::size_t column_width) const;

    std::vector<TableColumn> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// At most `width` characters: the middle is replaced by ".." since both ends of a kernel's name tell kernels apart.
std::string shorten(const std::string& text, std::size_t width);

/// `prefix`, then `text` broken at spaces into lines of at most `width` characters, all of which start below the first
/// word. A number stays with what follows it, which may be its unit.
std::string wrap(const std::string& prefix, const std::string& text, std::size_t width);

}  // namespace kbench
