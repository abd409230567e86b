// The options of `kbench ab`, one table: parsing, help text and docs/ab.md all come from it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"

namespace kbench {

/// What one side runs: `program` with `arguments`, of which the first is run or micro.
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
    bool b_given = false, quiet = false;
    std::filesystem::path out;
    double budget_s = 300, target = 0.005;
    std::optional<double> fail_above;
    AbCommand a_command, b_command;
};
std::span<const OptionOf<AbRequest>> ab_options();

/// The options for docs/ab.md.
std::string ab_options_markdown();

/// Parses `arguments` (without the command's name); what stands behind "--" both sides have. A side that is this kbench
/// has its options checked. Throws UsageError; a request for help is `help` set to its text.
struct ParsedAb {
    AbRequest request;
    std::string help;
};
ParsedAb parse_ab(const std::vector<std::string>& arguments);

}  // namespace kbench
