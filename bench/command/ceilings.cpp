// kbench ceilings: what this machine can do at the most, remembered or measured now.
#include <fmt/format.h>

#include <cstdio>

#include "bench/command/ceilings_options.h"
#include "bench/command/command.h"
#include "bench/measure/ceilings.h"
#include "bench/measure/environment.h"
#include "bench/measure/run.h"
#include "models/base/error.h"

namespace kbench {

int ceilings_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    const ParsedCeilings parsed = parse_ceilings_command(arguments);
    if (!parsed.help.empty()) {
        std::fputs(parsed.help.c_str(), stdout);
        return 0;
    }
    const CeilingsRequest& request = parsed.request;
    std::string remark;
    const std::unique_ptr<Backend> backend = choose_backend(request.backend, remark);
    const Environment environment = describe_environment(*backend, command_line);
    std::vector<std::string> warnings;
    Progress progress;
    progress.show(fmt::format("ceilings of the {}", name(backend->kind())));
    const CeilingRun run = obtain_ceilings(ceiling_source(*backend), environment, request.ceilings,
                                           ceiling_file(cache_directory()), warnings);
    progress.clear();
    for (const std::string& warning : warnings) fmt::print(stderr, "kbench: {}\n", warning);
    if (!run.unavailable.empty()) throw MeasurementError("no ceilings: " + run.unavailable);
    const std::string text = write_ceilings(run, request.format, terminal_width().value_or(200));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return static_cast<int>(ExitCode::success);
}

}  // namespace kbench
