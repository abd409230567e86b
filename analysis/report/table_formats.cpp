// `kbench table` in each of its formats. All follow the columns of the query; people get rounded figures, programs
// exact ones.

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/report/markdown_text.h"
#include "analysis/report/writers.h"
#include "analysis/table/table.h"

namespace kbench {
namespace {

template <class Cell>
std::vector<std::string> cells(const QueriedTable& table, Cell cell) {
    std::vector<std::string> line;
    for (const Column& column : table.columns) line.push_back(cell(column));
    return line;
}

std::vector<std::string> shown_cells(const QueriedTable& table, const TableRow& row) {
    return cells(table, [&](const Column& column) { return shown(column, column.value(row)); });
}

Table aligned(const QueriedTable& table) {
    std::vector<TableColumn> layout;
    for (const Column& column : table.columns) layout.push_back({column.header, column.align, 0, column.shortens});
    Table text(std::move(layout));
    for (const TableRow& row : table.rows) text.add_row(shown_cells(table, row));
    return text;
}

std::string write_markdown(const QueriedTable& table) {
    std::string text = markdown_row(cells(table, [](const Column& column) { return markdown_text(column.header); }));
    std::vector<Align> aligned;
    for (const Column& column : table.columns) aligned.push_back(column.align);
    text += markdown_rule(aligned);
    for (const TableRow& row : table.rows)
        text += markdown_row(cells(table, [&](const Column& column) {
            const std::string cell = shown(column, column.value(row));
            return column.align == Align::right ? cell : markdown_text(cell);
        }));
    return text;
}

/// An object a row, each on one line. What is not known is null, as a number's place takes no word.
std::string write_json(const QueriedTable& table) {
    using Json = nlohmann::ordered_json;
    struct ToJson {
        Json operator()(NoValue none) const { return none == NoValue::na ? Json() : Json(name(none)); }
        Json operator()(const std::string& text) const { return text; }
        Json operator()(std::int64_t number) const { return number; }
        Json operator()(double number) const { return number; }
    };
    std::string text = "[";
    for (const TableRow& row : table.rows) {
        Json object = Json::object();
        for (const Column& column : table.columns) object[column.name] = std::visit(ToJson{}, column.value(row));
        // A file's name may hold bytes that are not UTF-8.
        text += (text.size() == 1 ? "\n  " : ",\n  ") + object.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return text + (table.rows.empty() ? "]\n" : "\n]\n");
}

/// RFC 4180: quoted only where it asks for that. Lines end in a bare line feed, which its readers take and cut and awk
/// need.
std::string csv_line(const std::vector<std::string>& cells) {
    std::string line;
    for (const std::string& cell : cells) {
        if (&cell != cells.data()) line += ',';
        if (cell.find_first_of(",\"\r\n") == std::string::npos) {
            line += cell;
            continue;
        }
        line += '"';
        for (const char c : cell) line += c == '"' ? std::string("\"\"") : std::string(1, c);
        line += '"';
    }
    return line + '\n';
}

/// A spreadsheet takes text that begins with one of these for a formula. An apostrophe in front makes it text, there
/// and here: whoever wants the cell as it was takes one off where it begins with one.
std::string csv_cell(const Value& value) {
    std::string text = exact(value);
    const bool is_text = std::holds_alternative<std::string>(value);
    if (is_text && !text.empty() && std::string_view("=+-@'\t\r").find(text.front()) != std::string_view::npos)
        text.insert(text.begin(), '\'');
    return text;
}

std::string write_csv(const QueriedTable& table) {
    std::string text = csv_line(cells(table, [](const Column& column) { return csv_cell(column.name); }));
    for (const TableRow& row : table.rows)
        text += csv_line(cells(table, [&](const Column& column) { return csv_cell(column.value(row)); }));
    return text;
}

}  // namespace

std::string write_table(const QueriedTable& table, TableFormat format, std::optional<std::size_t> width) {
    switch (format) {
        case TableFormat::markdown: return write_markdown(table);
        case TableFormat::json: return write_json(table);
        case TableFormat::csv: return write_csv(table);
        case TableFormat::space: break;
    }
    if (table.rows.empty()) return {};
    return aligned(table).text(0, width.value_or(std::numeric_limits<std::size_t>::max()));
}

std::size_t narrowest_table(const QueriedTable& table) { return aligned(table).narrowest(); }

}  // namespace kbench
