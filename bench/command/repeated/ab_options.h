// The options of `kbench ab`, one table: parsing, help text and docs/ab.md all come from it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"

namespace kbench {

/// The --metric that is no regular expression: how long a whole run takes.
inline constexpr std::string_view ab_wall = "wall";
/// What is written into --out while an older kbench is asked what it knows.
inline constexpr std::string_view ab_probe_name = "probe.log";

/// What one side runs: `program` with `arguments`, of which the first is run or micro where the program is a kbench.
struct AbCommand {
    std::string program;  ///< empty: this kbench
    std::vector<std::string> arguments;

    bool is_run() const { return arguments.front() == "run"; }
    bool has(std::string_view option) const;  ///< as "--option" or "--option=value"
    /// In one line, as it could be typed.
    std::string text() const;
};

struct AbRequest {
    std::string a, b, format = "text";
    std::string metric;  ///< wall or a regular expression: of any commands; empty where the sides are kbench
    bool b_given = false, quiet = false;
    std::filesystem::path out;
    double budget_s = 300, target = 0.005;
    std::optional<double> fail_above, fail_below;
    AbCommand a_command, b_command;
};
std::span<const OptionOf<AbRequest>> ab_options();

/// The options for docs/ab.md.
std::string ab_options_markdown();

/// Parses `arguments` (without the command's name); what stands behind "--" both sides have. A side that is this kbench
/// has its options checked, and that there is such a program is checked of any other command. Throws UsageError; a
/// request for help is `help` set to its text.
struct ParsedAb {
    AbRequest request;
    std::string help;
};
ParsedAb parse_ab(const std::vector<std::string>& arguments);

}  // namespace kbench
