// kbench ceilings: what this machine can do at the most, remembered or measured now.
#include <fmt/format.h>

#include <cstdio>

#include "bench/command/ceilings_options.h"
#include "bench/command/command.h"
#include "bench/device/console.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/point/progress.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"

namespace kbench {

int ceilings_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    const ParsedCeilings parsed = parse_ceilings_command(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const CeilingsRequest& request = parsed.request;
    std::string remark;
    const DeviceList devices = choose_devices(request.device, remark);
    Device& device = *devices.front();
    const std::unique_ptr<Profiler> profiler = make_profiler(device);
    const Environment environment = describe_environment(device, profiler->machine_state(), command_line);
    std::vector<std::string> warnings = device.info().warnings;
    Progress progress(request.quiet);
    progress.show(fmt::format("ceilings of the {}", name(device.kind())));
    const CeilingRun run = obtain_ceilings(ceiling_source(device, *profiler), environment, request.ceilings,
                                           ceiling_file(cache_directory()), warnings);
    progress.clear();
    for (const std::string& warning : warnings) say("kbench: {}\n", warning);
    if (!run.unavailable.empty()) throw MeasurementError("no ceilings: " + run.unavailable);
    const std::string text = write_ceilings(run, request.format, terminal_width().value_or(200));
    put_text(text);
    return static_cast<int>(ExitCode::success);
}

}  // namespace kbench
