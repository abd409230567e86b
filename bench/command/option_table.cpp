// What every table of options needs; see option_table.h.
#include "bench/command/option_table.h"

#include <CLI/CLI.hpp>

#include "kbench/error.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

/// Throws UsageError for `argument`, which the command does not take.
[[noreturn]] void refuse(const std::string& argument, std::string_view command, std::span<const BoundOption> options) {
    std::vector<std::string> names{"--help"};
    for (const BoundOption& option : options)
        for (std::string& name : split(std::string(option.name))) names.push_back(std::move(name));
    const std::string name = argument.substr(0, argument.find('='));
    throw UsageError(name.starts_with('-')
                         ? fmt::format("unknown option '{}'; {}; `{} --help` lists the options", name,
                                       nearest_name(name, names), command)
                         : fmt::format("'{}' is not expected; `{} --help` lists the options", argument, command));
}

}  // namespace

std::string parse_arguments(const CommandText& command, std::span<const BoundOption> options,
                            std::vector<std::string>* unnamed, const std::vector<std::string>& arguments) {
    CLI::App app(std::string(command.what), std::string(command.name));
    app.allow_extras();
    if (unnamed != nullptr) app.add_option(std::string(command.argument), *unnamed, std::string(command.argument_what));
    for (const BoundOption& option : options) {
        if (option.value.empty())
            app.add_flag_callback(
                std::string(option.name), [&option] { option.set(""); }, option.help);
        else
            app.add_option_function<std::string>(std::string(option.name), option.set, option.help)
                ->type_name(std::string(option.value))
                ->trigger_on_parse();
    }
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::CallForHelp&) {
        return app.help();
    } catch (const CLI::ParseError& error) {
        std::string line = error.what();
        if (const std::size_t end = line.find('\n'); end != std::string::npos) line.resize(end);
        throw UsageError(fmt::format("{}; `{} --help` lists the options", line, command.name));
    }
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty())
        refuse(extras.front(), command.name, options);
    return {};
}

}  // namespace kbench
