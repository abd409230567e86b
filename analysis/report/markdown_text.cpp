// Markdown from text of any origin: what would be markup is escaped.
#include "analysis/report/markdown_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/format.h"

namespace kbench {
namespace {

constexpr std::string_view backslashed = "`*_{}[]#~!$";
constexpr std::string_view as_entity = "<&|\\";

std::string entity(char c) { return fmt::format("&#{};", static_cast<int>(c)); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Where a line starts, "-", "+", "=" and ">" make lists, rules, headings and quotes, as do numbers with "." or ")".
std::size_t line_start(std::string_view text) {
    if (text.empty()) return text.npos;
    if (std::string_view("-+=>").find(text[0]) != text.npos) return 0;
    const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
    const bool is_item = end > 0 && end < text.size() && (text[end] == '.' || text[end] == ')') &&
                         (end + 1 == text.size() || text[end + 1] == ' ');
    return is_item ? end : text.npos;
}

}  // namespace

std::string markdown_text(std::string_view text) {
    std::string line = one_line(text);
    line.erase(0, line.find_first_not_of(' '));  // four spaces would make code
    line.erase(line.find_last_not_of(' ') + 1);
    const std::size_t start = line_start(line);
    std::string markdown;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const std::string_view rest = std::string_view(line).substr(i);
        if (as_entity.find(c) != as_entity.npos || rest.starts_with("://")) {
            markdown += entity(c);
        } else if (c == '@') {
            markdown += "@&#8203;";  // a space of no width: GitHub notifies people whom rendered text names
        } else if (rest.starts_with("www.")) {
            markdown += "www&#46;";
            i += 3;
        } else {
            if (backslashed.find(c) != backslashed.npos || i == start) markdown += '\\';
            markdown += c;
        }
    }
    return markdown;
}

std::string markdown_name(std::string_view name) {
    const std::string line = one_line(name);
    if (line.find_first_not_of(' ') == line.npos) return {};
    const bool plain = line.find_first_of("`|\\") == line.npos && line.front() != ' ' && line.back() != ' ';
    return plain ? '`' + line + '`' : markdown_text(line);
}

std::string markdown_row(const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += ' ' + cell + " |";
    return text + '\n';
}

std::string markdown_rule(const std::vector<Align>& columns) {
    std::string text = "|";
    for (const Align align : columns) text += align == Align::right ? "---:|" : "---|";
    return text + '\n';
}

void MarkdownTable::add_row(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
}

std::string MarkdownTable::text() const {
    if (rows_.empty()) return {};
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < columns_.size(); ++i)
        if (std::ranges::any_of(rows_, [&](const auto& row) { return !row[i].empty(); })) shown.push_back(i);
    std::vector<std::string> headers;
    std::vector<Align> aligns;
    for (const std::size_t i : shown) {
        headers.push_back(columns_[i].header);
        aligns.push_back(columns_[i].align);
    }
    std::string text = '\n' + markdown_row(headers) + markdown_rule(aligns);
    for (const auto& row : rows_) {
        std::vector<std::string> cells;
        for (const std::size_t i : shown) cells.push_back(row[i]);
        text += markdown_row(cells);
    }
    return text + '\n';
}

}  // namespace kbench
