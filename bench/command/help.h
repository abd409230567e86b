// What --help prints: the options of a command in groups, with examples, as wide as the terminal.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kbench {

/// What a command's help begins with: its name, what it does, the arguments that have no option's name, if any, and
/// what a user would type.
struct CommandText {
    std::string_view name, what;
    std::string_view argument = {}, argument_what = {};
    std::array<std::string_view, 3> examples = {};
};

/// An option as help shows it: `value` is empty for a flag.
struct HelpRow {
    std::string_view name, value;
    std::string help;
};

/// The groups, in their order; the last is of options that are in no other.
std::span<const std::string_view> option_groups();
/// The group of the option whose row is called `name`, such as "-v,--verbose".
std::string_view option_group(std::string_view name);

/// In lines of at most `width` columns. A command of few options has one group.
std::string help_text(const CommandText& command, std::span<const HelpRow> rows, std::size_t width);

}  // namespace kbench
