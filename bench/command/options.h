// The options of `kbench run`, one table: parsing, help text and the reference in docs/ all come from it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/command/device_options.h"
#include "bench/command/option_table.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/sweep/run.h"

namespace kbench {

/// What the command line asked for, beyond what a run needs.
struct RunRequest {
    std::string model, config_file, format = "text";
    DeviceRequest device;
    bool quick = false, latency_only = false;
    bool time_budget_given = false;
    bool resume = false, dry_run = false, verbose = false, quiet = false;
    CeilingRequest ceilings;
    RunOptions run;
};

using Option = OptionOf<RunRequest>;
std::span<const Option> run_options();

/// docs/command-line.md, from the table.
std::string options_markdown();

/// Finds the model, and makes of the options together what follows from them. Throws UsageError where they contradict
/// each other.
void resolve(RunRequest& request);

/// Parses `arguments` (without the program's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedRun {
    RunRequest request;
    std::string help;
};
ParsedRun parse_run(const std::vector<std::string>& arguments);

}  // namespace kbench
