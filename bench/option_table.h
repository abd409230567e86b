// The options of a command as a table: parsing, help text and the reference in docs/ come from the same rows.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/error.h"

namespace kbench {

/// One option: `value` is empty for a flag; `set` parses the text or throws UsageError that says what would be right.
template <class Request>
struct OptionOf {
    std::string_view name;
    std::string_view value;
    std::string_view fallback;  ///< what holds without it
    std::string_view help;
    void (*set)(Request&, const std::string& text);
};

/// The parts of a comma-separated list.
std::vector<std::string> split(const std::string& text);

template <class T>
T number(std::string_view option, const std::string& text, T least, std::string_view what) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= least))
        throw UsageError(fmt::format("{} '{}': must be {} of at least {}", option, text, what, least));
    return value;
}

/// One of a few words.
std::string word(std::string_view option, const std::string& text, std::span<const std::string_view> allowed);
inline std::string word(std::string_view option, const std::string& text,
                        std::initializer_list<std::string_view> allowed) {
    return word(option, text, std::span(allowed.begin(), allowed.size()));
}

/// Runs `app` over `arguments`. Returns the help text if it was asked for, else nothing. Throws UsageError, one line.
std::string parse_with(CLI::App& app, const std::vector<std::string>& arguments);

/// Sets what `arguments` say in `request`, with whatever else the caller has added to `app`; returns as `parse_with`.
template <class Request>
std::string parse_options(CLI::App& app, std::span<const OptionOf<Request>> table, Request& request,
                          const std::vector<std::string>& arguments) {
    for (const OptionOf<Request>& option : table) {
        std::string help(option.help);
        if (!option.fallback.empty()) help += fmt::format(" [{}]", option.fallback);
        const auto set = [&request, &option](const std::string& text) { option.set(request, text); };
        if (option.value.empty())
            app.add_flag_callback(
                std::string(option.name), [set] { set(""); }, help);
        else
            app.add_option_function<std::string>(std::string(option.name), set, help)
                ->type_name(std::string(option.value))
                ->trigger_on_parse();
    }
    return parse_with(app, arguments);
}

/// The table for docs/.
template <class Request>
std::string markdown_of(std::span<const OptionOf<Request>> table) {
    std::string text = "| option | value | default | meaning |\n|---|---|---|---|\n";
    for (const OptionOf<Request>& o : table)
        text += fmt::format("| `{}` | {} | {} | {} |\n", o.name, o.value, o.fallback, o.help);
    return text;
}

}  // namespace kbench
