// The options of a command as a table: parsing, help text and the reference in docs/ come from the same rows.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bench/command/help.h"
#include "models/base/values.h"

namespace kbench {

/// One option: `value` is empty for a flag; `set` parses the text or throws UsageError that says what would be right.
template <class Request>
struct OptionOf {
    std::string name;
    std::string value;
    std::string fallback;  ///< what holds without it
    std::string help;
    std::function<void(Request&, const std::string& text)> set;
    bool repeats = false;  ///< each one adds to those before; all other options are refused a second time
};

/// One option of a command, bound to where its value goes.
struct BoundOption : HelpRow {
    std::function<void(const std::string& text)> set;
    bool repeats;
};

/// Calls `set` of each option that `arguments` name; what has no option's name goes to `unnamed`, which stands only
/// where the command takes such. Returns the help text if it was asked for, else nothing. Throws UsageError, one line;
/// also where an option is given twice that does not repeat.
std::string parse_arguments(const CommandText& command, std::span<const BoundOption> options,
                            std::vector<std::string>* unnamed, const std::vector<std::string>& arguments);

/// The options of `table` as help, completion and the man page show them; `table` must outlive them.
template <class Request>
std::vector<HelpRow> help_rows(std::span<const OptionOf<Request>> table) {
    std::vector<HelpRow> rows;
    for (const OptionOf<Request>& option : table)
        rows.push_back({option.name, option.value,
                        option.fallback.empty() ? option.help : fmt::format("{} [{}]", option.help, option.fallback)});
    return rows;
}

/// The options of `table`, for `request`.
template <class Request>
std::vector<BoundOption> bind_options(std::span<const OptionOf<Request>> table, Request& request) {
    const std::vector<HelpRow> rows = help_rows(table);
    std::vector<BoundOption> options;
    for (const OptionOf<Request>& option : table) {
        options.push_back({rows[options.size()],
                           [&request, &option](const std::string& text) { option.set(request, text); },
                           option.repeats});
    }
    return options;
}

/// Sets what `arguments` say in `request`; returns as `parse_arguments`.
template <class Request>
std::string parse_options(const CommandText& command, std::type_identity_t<std::span<const OptionOf<Request>>> table,
                          Request& request, const std::vector<std::string>& arguments,
                          std::vector<std::string>* unnamed = nullptr) {
    return parse_arguments(command, bind_options<Request>(table, request), unnamed, arguments);
}

/// The row of -q for a `Request` with a member `quiet`.
template <class Request>
OptionOf<Request> quiet_option() {
    return {"-q,--quiet", "", "", "show no progress while it measures",
            [](Request& r, const std::string&) { r.quiet = true; }};
}

/// Text of a cell in Markdown, which would take <time> for HTML.
std::string option_cell(std::string_view text);

/// The table for docs/.
template <class Request>
std::string markdown_of(std::span<const OptionOf<Request>> table) {
    std::string text = "| option | value | default | meaning |\n|---|---|---|---|\n";
    for (const OptionOf<Request>& o : table)
        text += fmt::format("| `{}` | {} | {} | {} |\n", o.name, option_cell(o.value), option_cell(o.fallback),
                            option_cell(o.help));
    return text;
}

}  // namespace kbench
