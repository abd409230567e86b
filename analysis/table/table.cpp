// Widths of columns, what gives way where space is short, and words that are cut or wrapped.
#include "analysis/table/table.h"

#include <algorithm>
#include <sstream>

namespace kbench {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest_cut = 8;  // a shortened column keeps at least this much

/// Whether a byte of UTF-8 goes on with the character before it.
bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

std::size_t display_width(const std::string& text) {
    return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_continuation));
}

bool ends_in_digit(const std::string& word) { return word.back() >= '0' && word.back() <= '9'; }

void append_cell(std::string& line, const std::string& cell, std::size_t width, Align align) {
    const std::string padding(width - std::min(width, display_width(cell)), ' ');
    line += align == Align::right ? padding + cell : cell + padding;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

/// The width of each column, 0 for one without content.
std::vector<std::size_t> Table::widths() const {
    std::vector<std::size_t> result(columns_.size());
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i) result[i] = std::max(result[i], display_width(row[i]));
    for (std::size_t i = 0; i < result.size(); ++i)
        if (result[i] > 0) result[i] = std::max(result[i], columns_[i].header.size());
    return result;
}

/// What a column of this width can give when space is short.
std::size_t Table::reserve(std::size_t column, std::size_t column_width) const {
    return columns_[column].shortens && column_width > narrowest_cut ? column_width - narrowest_cut : 0;
}

std::size_t Table::narrowest() const {
    const std::vector<std::size_t> column_widths = widths();
    std::size_t least = 0;
    for (std::size_t i = 0; i < column_widths.size(); ++i)
        if (column_widths[i] > 0) least += column_widths[i] - reserve(i, column_widths[i]) + (least > 0 ? gap : 0);
    return least;
}

std::string Table::text(std::size_t indent, std::size_t width) const {
    std::vector<std::size_t> column_widths = widths();
    const auto total = [&] {
        std::size_t sum = indent;
        for (const std::size_t one : column_widths) sum += one > 0 ? one + gap : 0;
        return sum - gap;
    };
    const auto total_reserve = [&] {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < columns_.size(); ++i) sum += reserve(i, column_widths[i]);
        return sum;
    };
    const auto first_of_most = [&](auto&& rank) {
        std::size_t most = 0;
        for (std::size_t i = 1; i < columns_.size(); ++i)
            if (rank(i) > rank(most)) most = i;
        return most;
    };
    const auto droppable = [&](std::size_t i) {
        return i < columns_.size() && column_widths[i] > 0 ? columns_[i].droppable : 0;
    };
    while (total() - total_reserve() > width) {
        const std::size_t victim = first_of_most(droppable);
        if (droppable(victim) <= 0) break;
        column_widths[victim] = 0;
    }
    // One character at a time from the widest, so that all long names end up equally short.
    const auto shortened = [&](std::size_t i) { return reserve(i, column_widths[i]) > 0 ? column_widths[i] : 0; };
    while (total() > width && total_reserve() > 0) --column_widths[first_of_most(shortened)];

    std::string result;
    const auto append_line = [&](auto&& cell_of) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            if (column_widths[i] == 0) continue;
            if (line.size() > indent) line.append(gap, ' ');
            append_cell(line, shorten(cell_of(i), column_widths[i]), column_widths[i], columns_[i].align);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        result += line + '\n';
    };
    append_line([&](std::size_t i) { return columns_[i].header; });
    for (const auto& row : rows_) append_line([&](std::size_t i) { return row[i]; });
    return result;
}

std::string shorten(const std::string& text, std::size_t width) {
    if (display_width(text) <= width) return text;
    const std::size_t kept = width - 2;
    std::size_t head = (kept + 1) / 2, tail = text.size() - kept / 2;
    while (head > 0 && is_continuation(text[head])) --head;
    while (tail < text.size() && is_continuation(text[tail])) ++tail;
    return text.substr(0, head) + ".." + text.substr(tail);
}

std::string wrap(const std::string& prefix, const std::string& text, std::size_t width) {
    const std::size_t indent = display_width(prefix);
    std::string result = prefix;
    std::size_t column = indent;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        for (std::string unit; ends_in_digit(word) && words >> unit;) word += ' ' + unit;
        const std::size_t length = display_width(word);
        if (column > indent && column + 1 + length > width) {
            result += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            result += ' ';
            ++column;
        }
        result += word;
        column += length;
    }
    return result + '\n';
}

}  // namespace kbench
