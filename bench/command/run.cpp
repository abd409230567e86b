// kbench run: from the command line to result.json, steps.csv and the summary.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "analysis/result_json.h"
#include "analysis/write/writers.h"
#include "bench/ceilings.h"
#include "bench/command/command.h"
#include "bench/command/output.h"
#include "bench/environment.h"
#include "bench/options.h"
#include "models/error.h"

namespace kbench {
namespace {

void print(const Result& result, const RunRequest& request) {
    std::string text;
    if (request.format == "json")
        text = to_text(result);
    else if (request.format == "csv")
        text = write_steps_csv(result);
    else
        text = write_terminal(result, static_cast<int>(terminal_width().value_or(100)));
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    for (const ReportFormat& format : report_formats())
        write_file_atomically(request.run.out / format.file, format.write(result));
    fmt::print(stderr, "wrote {0}/result.json, report.html, report.md, trace.json and steps.csv\n",
               request.run.out.string());
}

}  // namespace

std::unique_ptr<Backend> choose_backend(const std::string& wanted, [[maybe_unused]] std::string& remark) {
#ifdef KBENCH_HAVE_CUDA
    if (wanted == "cuda") return make_cuda_backend();
    if (wanted == "auto") {
        const std::string why = cuda_unavailable();
        if (why.empty()) return make_cuda_backend();
        remark = fmt::format("no usable GPU ({}): this ran on the CPU", why);
    }
#else
    if (wanted == "cuda")
        throw DeviceError("--backend cuda: this kbench was built without CUDA; install a toolkit >= 12.6 and rebuild");
#endif
    return make_cpu_backend();
}

std::optional<std::size_t> terminal_width() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return std::nullopt;
}

std::string cache_directory() {
    if (const char* own = std::getenv("KBENCH_CACHE_DIR"); own != nullptr && *own != '\0') return own;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0')
        return std::string(xdg) + "/kbench";
    const char* home = std::getenv("HOME");
    return std::string(home != nullptr ? home : "/tmp") + "/.cache/kbench";
}

int run_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    ParsedRun parsed = parse_run(arguments);
    if (!parsed.help.empty()) {
        std::fputs(parsed.help.c_str(), stdout);
        return 0;
    }
    RunRequest& request = parsed.request;
    request.run.cache_directory = cache_directory();
    std::string remark;
    const std::unique_ptr<Backend> backend = choose_backend(request.backend, remark);
    backend->check(request.run.counters);
    request.run.out = prepare_directory(request.run.out, request.run.config.name);

    Result result;
    result.environment = describe_environment(*backend, command_line);
    add_run_warnings(result, *backend, remark, request.run.verify);
    Progress progress;
    progress.show("ceilings");
    result.ceilings = obtain_ceilings(ceiling_source(*backend), result.environment, request.ceilings,
                                      ceiling_file(request.run.cache_directory), result.warnings);
    try {
        run_points(request.run, *backend, result, progress);
    } catch (const Error&) {
        if (!result.points.empty()) print(result, request);
        throw;
    }
    if (mend_low_ceilings(ceiling_source(*backend), request.ceilings, ceiling_file(request.run.cache_directory),
                          result))
        write_file_atomically(request.run.out / "result.json", to_text(result));
    print(result, request);

    const auto done = std::ranges::find(result.points, PointStatus::done, &Point::status);
    if (done == result.points.end()) throw DeviceError("nothing was measured: " + result.points.front().reason);
    require_counted(result.points, request.run.counters);
    return static_cast<int>(ExitCode::success);
}

}  // namespace kbench
