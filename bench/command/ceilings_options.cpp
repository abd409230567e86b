// The table of options of `kbench ceilings`, and its reference.
#include "bench/command/ceilings_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/machine/ceilings.h"

namespace kbench {
namespace {

const OptionOf<CeilingsRequest> table[] = {
    backend_option<CeilingsRequest>(),
    device_option<CeilingsRequest>(),
    sms_option<CeilingsRequest>(),
    threads_option<CeilingsRequest>(),
    {"--remeasure", "", "", "measure them again, whatever is remembered",
     [](CeilingsRequest& r, const std::string&) { r.ceilings.policy = CeilingPolicy::measure; }},
    {"--seconds", "TIME", "4s", "about how long measuring all of them takes",
     [](CeilingsRequest& r, const std::string& text) { r.ceilings.seconds = seconds("--seconds", text, "100ms"); }},
    {"--format", "F", "text", "text, json (the ceilings of a result.json) or markdown",
     [](CeilingsRequest& r, const std::string& text) {
         const std::string chosen = word("--format", text, ceiling_format_names);
         r.format = static_cast<CeilingFormat>(std::ranges::find(ceiling_format_names, chosen) -
                                               std::begin(ceiling_format_names));
     }},
    quiet_option<CeilingsRequest>(),
};

}  // namespace

std::span<const OptionOf<CeilingsRequest>> ceilings_options() { return table; }

std::string ceilings_markdown() {
    std::string text =
        "# kbench ceilings\n\n"
        "Written from the tables in bench/command/ceilings_options.cpp and analysis/machine/ceiling_kinds.cpp by a test; `kbench ceilings --help` and `kbench list ceilings` say the same.\n\n"
        "    kbench ceilings [options]\n\n"
        "`kbench ceilings` shows the measured peaks of this machine. Loops that do nothing else measure them. Each has the 95 % interval of the median of its runs, the clock of the cores or SMs meanwhile, and the datasheet's value where kbench knows the device. A CPU's has the fastest run and the median, as other work only makes runs slower. Ceilings are remembered by device, driver and clocks in ceilings.json of the cache directory. `kbench run` uses the same.\n\n" +
        markdown_of(ceilings_options()) + "\n## Ceilings\n\n| ceiling | unit | backend | what is measured |\n" +
        "|---|---|---|---|\n";
    for (const CeilingKind& kind : ceiling_kinds())
        text += fmt::format("| `{}` | {} | {} | {} |\n", kind.name, kind.unit, kind.backend, kind.what);
    return text;
}

ParsedCeilings parse_ceilings_command(const std::vector<std::string>& arguments) {
    ParsedCeilings parsed;
    constexpr CommandText command{"kbench ceilings",
                                  "Shows the roofs of this machine, measured now if they are not remembered."};
    parsed.help = parse_options(command, ceilings_options(), parsed.request, arguments);
    return parsed;
}

}  // namespace kbench
