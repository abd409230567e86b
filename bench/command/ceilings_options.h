// The options of `kbench ceilings`, one table: parsing, help text and docs/ceilings.md all come from it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/report/writers.h"
#include "bench/command/device_options.h"
#include "bench/command/option_table.h"
#include "bench/measure/machine/ceilings.h"

namespace kbench {

struct CeilingsRequest {
    DeviceRequest device;
    CeilingRequest ceilings;
    CeilingFormat format = CeilingFormat::text;
    bool quiet = false;
};
std::span<const OptionOf<CeilingsRequest>> ceilings_options();

/// docs/ceilings.md: the options and the kinds of ceilings, from their tables.
std::string ceilings_markdown();

/// Parses `arguments` (without the command's name). Throws UsageError; a request for help is `help` set to its text.
struct ParsedCeilings {
    CeilingsRequest request;
    std::string help;
};
ParsedCeilings parse_ceilings_command(const std::vector<std::string>& arguments);

}  // namespace kbench
