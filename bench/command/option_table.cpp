// What every table of options needs; see option_table.h.
#include "bench/command/option_table.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <map>

#include "bench/command/command.h"
#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/registry.h"

namespace kbench {
namespace {

/// Throws UsageError for `argument`, which the command does not take.
[[noreturn]] void refuse(const std::string& argument, std::string_view command, std::span<const BoundOption> options) {
    std::vector<std::string> names{"--help"};
    for (const BoundOption& option : options)
        for (std::string& name : split(std::string(option.name))) names.push_back(std::move(name));
    const std::string name = argument.substr(0, argument.find('='));
    if (is_builtin_model(argument) && std::ranges::count(names, "--model") > 0)
        throw UsageError(fmt::format("'{0}' is a model: {1} --model {0}", argument, command));
    throw UsageError(name.starts_with('-')
                         ? fmt::format("unknown option '{}'; {} (`{} --help` lists the options)", name,
                                       nearest_name(name, names), command)
                         : fmt::format("'{}' is not expected; `{} --help` lists the options", argument, command));
}

/// Throws UsageError for an option that was `before` and is `now`.
[[noreturn]] void refuse_twice(const BoundOption& option, const std::string& before, const std::string& now) {
    const std::string name = split(std::string(option.name)).back();
    throw UsageError(option.value.ends_with(",...")
                         ? fmt::format("{0} is given twice; a list is {0} {1},{2}", name, before, now)
                         : fmt::format("{} is given twice; give it once", name));
}

}  // namespace

std::string parse_arguments(const CommandText& command, std::span<const BoundOption> options,
                            std::vector<std::string>* unnamed, const std::vector<std::string>& arguments) {
    CLI::App app(std::string(command.what), std::string(command.name));
    app.allow_extras();
    if (unnamed != nullptr) app.add_option(std::string(command.argument), *unnamed, std::string(command.argument_what));
    std::map<std::string_view, std::string> given;
    for (const BoundOption& option : options) {
        if (option.value.empty())
            app.add_flag_function(
                std::string(option.name),
                [&option](std::int64_t times) {
                    if (times > 1) refuse_twice(option, "", "");
                    if (times > 0) option.set("");
                },
                option.help);
        else
            app.add_option_function<std::string>(
                   std::string(option.name),
                   [&](const std::string& text) {
                       const auto [before, is_first] = given.try_emplace(option.name, text);
                       if (!is_first && !option.repeats) refuse_twice(option, before->second, text);
                       option.set(text);
                   },
                   option.help)
                ->type_name(std::string(option.value))
                ->trigger_on_parse();
    }
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::CallForHelp&) {
        const std::vector<HelpRow> rows(options.begin(), options.end());
        return help_text(command, rows, terminal_width().value_or(80));
    } catch (const CLI::ParseError& error) {
        std::string line = error.what();
        if (const std::size_t end = line.find('\n'); end != std::string::npos) line.resize(end);
        throw UsageError(fmt::format("{}; `{} --help` lists the options", line, command.name));
    }
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty())
        refuse(extras.front(), command.name, options);
    return {};
}

std::string option_cell(std::string_view text) {
    std::string cell;
    for (const char c : text) cell += c == '<' ? std::string("\\<") : std::string(1, c);
    return cell;
}

}  // namespace kbench
