// The options of `kbench attach`, one table: parsing, help text and docs/attach.md's table come from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/command/option_table.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/profile/counters.h"

namespace kbench {

struct AttachRequest {
    std::vector<std::string> command;  ///< the program and its arguments
    std::filesystem::path out;
    std::string from, iterations, format = "text";  ///< `warmup` is in `iterations`, too
    std::optional<std::int64_t> warmup;
    bool names = true, verbose = false, quiet = false, compress = false;
    CounterRequest counters;
    CeilingRequest ceilings;
};
std::span<const OptionOf<AttachRequest>> attach_options();

/// The table of options for docs/attach.md.
std::string attach_options_markdown();

/// Parses `arguments` (without the command's name); what stands behind "--" is the program. Throws UsageError; a
/// request for help is `help` set to its text.
struct ParsedAttach {
    AttachRequest request;
    std::string help;
};
ParsedAttach parse_attach(const std::vector<std::string>& arguments);

}  // namespace kbench
