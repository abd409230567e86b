// The table of options of `kbench table`, and its reference.
#include "bench/command/table_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace kbench {
namespace {

const OptionOf<TableRequest> table[] = {
    {"-c,--columns", "NAME,...", "by level",
     "columns, in this order (`kbench list columns`), or names of counters; all for every one",
     [](TableRequest& r, const std::string& text) {
         r.query.columns = split(text);
         if (r.query.columns.empty()) throw UsageError("-c '': name at least one of `kbench list columns`");
     }},
    {"--by", "LEVEL", "kernel, or step where none were recorded",
     "what a row is: kernel, step, op, layer or point; groups sum times, FLOPs and bytes",
     [](TableRequest& r, const std::string& text) {
         r.query.level = &find_level(text);
         r.level_given = true;
     }},
    {"--fold", "", "", "with --by layer: the same layer of all blocks is one row, h.0 and h.1 are h.*",
     [](TableRequest& r, const std::string&) { r.query.fold = true; }},
    {"--point", "N", "all", "only this point of a sweep, from 0, or all",
     [](TableRequest& r, const std::string& text) {
         r.query.point.reset();
         if (text != "all")
             r.query.point = number<std::size_t>("--point", text, 0, "all or the number of a point, a whole number");
     }},
    {"--sort", "COLUMN", "as run",
     "sort by a column, shown or not, numbers from the largest, text from A; :asc or :desc after it decides",
     [](TableRequest& r, const std::string& text) { r.query.sort = parse_sort(text); }},
    {"--top", "N", "all", "at most this many rows, after sorting",
     [](TableRequest& r, const std::string& text) {
         r.query.top = number<std::size_t>("--top", text, 1, "a whole number");
     }},
    {"--format", "F", "space", "space (aligned), markdown, json or csv; the last two keep full precision",
     [](TableRequest& r, const std::string& text) {
         const std::string chosen = word("--format", text, table_format_names);
         r.format = static_cast<TableFormat>(std::ranges::find(table_format_names, chosen) - table_format_names);
     }},
    {"--csv", "", "", "the same as --format csv",
     [](TableRequest& r, const std::string&) { r.format = TableFormat::csv; }},
    {"-w,--width", "N", "the terminal's", "widest line of --format space; long names lose their middle, numbers never",
     [](TableRequest& r, const std::string& text) { r.width = number<std::size_t>("-w", text, 1, "a whole number"); }},
};

/// A | inside a cell of a Markdown table.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
    return result;
}

}  // namespace

std::span<const OptionOf<TableRequest>> table_options() { return table; }

std::string table_markdown() {
    std::string text =
        "# kbench table\n\n"
        "Written from the tables in bench/command/table_options.cpp and analysis/table/columns_*.cpp by a test; `kbench table --help` and `kbench list columns` say the same.\n\n"
        "    kbench table RESULT... [options]\n\n"
        "`kbench table` shows results as a table. It measures nothing. RESULT is a result.json or the directory that holds one. A directory without one stands for all results and finished points in it, each file with rows of its own. What is not known is `na` (null in JSON), never 0. In a group, what its steps do not share is `various`. A sum is `na` when any of its parts is.\n\n"
        "In CSV a text that begins with `=`, `+`, `-`, `@` or `'` has an apostrophe in front, so that no spreadsheet takes it for a formula. Take that one off. Numbers are as they are.\n\n" +
        markdown_of(table_options()) + "\n## Levels\n\n| --by | a row is | columns without -c |\n|---|---|---|\n";
    for (const TableLevel& level : table_levels())
        text += fmt::format("| `{}` | {} | {} |\n", level.name, level.what, fmt::join(level.default_columns, ","));
    text +=
        "\n## Columns\n\nThe columns from idx to bytes are PyProf's, with its names and meanings. Every counter that a result holds is also a column, under its own name (`kbench list metrics`). Counts are summed over the steps of a group. Shares, rates and ratios are weighted by time.\n\n"
        "| column | unit | meaning |\n|---|---|---|\n";
    for (const Column& column : columns())
        text += fmt::format("| `{}` | {} | {} |\n", column.name, column.unit, escaped(column.what));
    return text;
}

ParsedTable parse_table(const std::vector<std::string>& arguments) {
    ParsedTable parsed;
    TableRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench table",
        .what = "Shows a result as a table. Nothing is measured.",
        .argument = "RESULT",
        .argument_what = "result.json files, or directories of them",
        .examples = {"kbench table runs/gpt2", "kbench table runs/gpt2 --by layer --fold -c steps,layer,time_us",
                     "kbench table runs/gpt2 --sort time_us --top 10 --csv"}};
    parsed.help = parse_options(command, table_options(), request, arguments, &request.files);
    if (!parsed.help.empty()) return parsed;
    if (request.files.empty())
        throw UsageError("no RESULT: name a result.json or the directory that holds one, as in `kbench table FILE`");
    if (request.width && request.format != TableFormat::space)
        throw UsageError(fmt::format("-w {}: only --format space has a width, not {}", *request.width,
                                     table_format_names[static_cast<std::size_t>(request.format)]));
    return parsed;
}

}  // namespace kbench
