// The options of `kbench claim`, one table: parsing, help text and docs/claim.md all come from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"
#include "kbench/precision.h"
#include "kbench/step.h"
#include "models/registry.h"

namespace kbench {

/// What a published rate counts.
enum class RateOf { sequences, tokens, flops };

struct ClaimRequest {
    std::string model, config_file, op, shape, direction = "fwd", machine, format = "text";
    std::optional<Precision> precision;
    int devices = 1;
    double latency_s = 0;  ///< 0: there is a rate
    double per_s = 0;
    RateOf rate_of = RateOf::sequences;
    ModelPoint at;                ///< what was said of the model's axes
    ModelSpec spec;               ///< from --model or --config
    std::optional<Step> problem;  ///< from --op and --shape, in place of a model
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
