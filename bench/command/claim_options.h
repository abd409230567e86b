// The options of `kbench claim`, one table: parsing, help text and docs/claim.md all come from it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"
#include "models/registry.h"

namespace kbench {

struct ClaimRequest {
    std::string model, config_file, machine, format = "text";
    double latency_s = 0;
    ModelPoint at;   ///< what was said of the model's axes
    ModelSpec spec;  ///< from --model or --config
};
std::span<const OptionOf<ClaimRequest>> claim_options();

/// The options for docs/claim.md.
std::string claim_options_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedClaim {
    ClaimRequest request;
    std::string help;
};
ParsedClaim parse_claim(const std::vector<std::string>& arguments);

}  // namespace kbench
