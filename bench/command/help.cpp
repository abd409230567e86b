// The groups of options, and the layout of a command's help.
#include "bench/command/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "analysis/table/table.h"
#include "models/base/values.h"

namespace kbench {
namespace {

constexpr std::string_view others = "Options";

/// One list serves all commands, as an option means the same in each of them.
struct Group {
    std::string_view name, options;
};
constexpr Group groups[] = {
    {"Model",
     "--model,--config,--direction,--phase,--seq,--new,--past,--frames,--batch,--precision,--attention,--cell,--lengths,--optimizer,--master,"
     "--recompute,--provider,--weights,--input,--tokens,--seed"},
    {"Op", "--op,--shape,--shapes,--shapes-of,--suite,--heads,--head-size,--cache"},
    {"Sweep", "--zip,--repeat,--shard,--resume,--dry-run,--batches,--precisions"},
    {"Measure",
     "--backend,--device,--sms,--threads,--time-budget,--budget,--interval,--ceilings,--latency-only,--quick,"
     "--no-verify,--no-sm-scaling,--no-size-scaling,--no-theft,--retune,--deterministic"},
    {"Counters", "--counters,--metrics"},
    {"Output",
     "--dump-output,--dump-logits,--dump-gradients,--out,--compress,--format,--verbose,--quiet,--save,--log-every,"
     "--redraw"},
};

/// From here on groups help to find an option.
constexpr std::size_t many = 15;

/// A label and what it means; a long label has a line of its own.
std::string help_row(const std::string& label, const std::string& help, std::size_t width) {
    constexpr std::size_t indent = 26;
    const std::string begin = fmt::format("  {:<{}}", label, indent - 2);
    const bool fits = label.size() + 4 <= indent;
    return fits ? wrap(begin, help, width) : begin + '\n' + wrap(std::string(indent, ' '), help, width);
}

std::string rows_of(std::span<const HelpRow> rows, std::string_view group, std::size_t width) {
    std::string text;
    for (const HelpRow& option : rows)
        if (group.empty() || option_group(option.name) == group)
            text += help_row(fmt::format("{}{}{}", option.name, option.value.empty() ? "" : " ", option.value),
                             option.help, width);
    return text;
}

}  // namespace

std::span<const std::string_view> option_groups() {
    static const auto names = [] {
        std::array<std::string_view, std::size(groups) + 1> all;
        *std::ranges::transform(groups, all.begin(), &Group::name).out = others;
        return all;
    }();
    return names;
}

std::string_view option_group(std::string_view name) {
    const std::string long_name = split(std::string(name)).back();
    for (const Group& group : groups)
        if (std::ranges::count(split(std::string(group.options)), long_name) > 0) return group.name;
    return others;
}

std::string help_text(const CommandText& command, std::span<const HelpRow> rows, std::size_t width) {
    std::string text;
    std::istringstream lines{std::string(command.what)};
    for (std::string line; std::getline(lines, line);) text += wrap("", line, width);
    text += fmt::format("\nusage: {} [OPTIONS]{}{}\n", command.name, command.argument.empty() ? "" : " ",
                        command.argument.empty() ? "" : fmt::format("{}...", command.argument));
    if (!command.argument.empty())
        text += '\n' + help_row(std::string(command.argument), std::string(command.argument_what), width);
    if (rows.size() < many)
        text += fmt::format("\n{}:\n{}", others, rows_of(rows, "", width));
    else
        for (const std::string_view group : option_groups())
            if (const std::string shown = rows_of(rows, group, width); !shown.empty())
                text += fmt::format("\n{}:\n{}", group, shown);
    text += '\n' + help_row("-h,--help", "this text", width);
    if (!command.examples.front().empty()) text += "\nExamples:\n";
    for (const std::string_view example : command.examples)
        if (!example.empty()) text += fmt::format("  {}\n", example);
    return text;
}

}  // namespace kbench
