// The options of a command as a table: parsing, help text and the reference in docs/ come from the same rows.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

/// What a command's help begins with: its name, what it does, and the arguments that have no option's name, if any.
struct CommandText {
    std::string_view name, what;
    std::string_view argument = {}, argument_what = {};
};

/// One option of a command, bound to where its value goes.
struct BoundOption {
    std::string_view name, value;
    std::string help;
    std::function<void(const std::string& text)> set;
};

/// Calls `set` of each option that `arguments` name; what has no option's name goes to `unnamed`, which stands only
/// where the command takes such. Returns the help text if it was asked for, else nothing. Throws UsageError, one line.
std::string parse_arguments(const CommandText& command, std::span<const BoundOption> options,
                            std::vector<std::string>* unnamed, const std::vector<std::string>& arguments);

/// The options of `table`, for `request`.
template <class Request>
std::vector<BoundOption> bind_options(std::span<const OptionOf<Request>> table, Request& request) {
    std::vector<BoundOption> options;
    for (const OptionOf<Request>& option : table) {
        std::string help(option.help);
        if (!option.fallback.empty()) help += fmt::format(" [{}]", option.fallback);
        options.push_back({option.name, option.value, std::move(help),
                           [&request, &option](const std::string& text) { option.set(request, text); }});
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

/// The table for docs/.
template <class Request>
std::string markdown_of(std::span<const OptionOf<Request>> table) {
    std::string text = "| option | value | default | meaning |\n|---|---|---|---|\n";
    for (const OptionOf<Request>& o : table)
        text += fmt::format("| `{}` | {} | {} | {} |\n", o.name, o.value, o.fallback, o.help);
    return text;
}

}  // namespace kbench
