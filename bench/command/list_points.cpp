// See list_points.h.
#include "bench/command/list_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "kbench/error.h"

namespace kbench {
namespace {

/// Whether each command has the option of its own.
bool is_of_point(std::string_view option) {
    constexpr std::string_view of_sweep[] = {"--zip", "--repeat", "--only-repeat",
                                             "--out", "--resume", "--list-points"};
    return std::ranges::find(of_sweep, option) != std::end(of_sweep) ||
           std::ranges::any_of(sweep_axes(), [&](const Axis* axis) { return option.substr(2) == axis->name; });
}

}  // namespace

std::string shell_quoted(const std::string& text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";
    if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::vector<std::string> point_commands(const RunRequest& request) {
    std::string common = "kbench run";
    for (const GivenOption& option : request.given) {
        if (is_of_point(option.name)) continue;
        common += " " + option.name;
        if (!option.text.empty()) common += " " + shell_quoted(option.text);
    }
    std::vector<std::string> commands;
    for (const PointSpec& point : request.run.points()) {
        std::string command = common;
        for (const Axis* axis : sweep_axes())
            if (const AxisValue* value = point.axes.find(axis->name);
                value && (axis->always_told || !point.axes.is_usual(*axis)))
                command += fmt::format(" --{} {}", axis->name, asked_text(*axis, *value));
        if (request.run.repeats > 1)
            command += fmt::format(" --repeat {} --only-repeat {}", request.run.repeats, *point.axes.count("repeat"));
        command += " --resume --out " + shell_quoted((request.run.out / "points.d" / point.name()).string());
        if (command.find('\n') != std::string::npos)
            throw UsageError("--list-points: a value holds a line break, and a command must fit on a line");
        commands.push_back(std::move(command));
    }
    return commands;
}

}  // namespace kbench
