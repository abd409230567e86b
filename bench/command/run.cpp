// kbench run: from the command line to result.json, the reports and the summary.
#include <fmt/format.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "analysis/report/render/render.h"
#include "analysis/report/writers.h"
#include "analysis/result/point_name.h"
#include "analysis/result/result_json.h"
#include "bench/command/command.h"
#include "bench/command/measure_and_report.h"
#include "bench/command/options.h"
#include "bench/command/output.h"
#include "bench/device/console.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/machine/noise.h"
#include "bench/measure/point/measure.h"
#include "bench/measure/store/point_store.h"
#include "bench/measure/store/result_files.h"
#include "bench/measure/sweep/recorded_options.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// What an earlier run of the sweep finished. The whole result is written anew when points are missing: until then
/// the points alone tell what there is.
FinishedPoints finished_points(const RunRequest& request, const Device& device, const PointStore& store,
                               Result& result) {
    if (!request.resume) return {};
    Result mine;
    mine.environment = result.environment;
    mine.options = recorded_options(request.run, device);
    const std::vector<PointSpec> specs = request.run.points();
    FinishedPoints finished = store.finished(specs, mine, result.warnings);
    if (!finished.empty() && !(request.run.dumps.empty() && request.run.dump_gradients.empty()))
        throw UsageError(fmt::format(
            "--resume: a point in {} is finished and not computed again, so that a dump would be lost: choose another --out",
            request.run.out.string()));
    if (const fs::path whole = result_file_in(request.run.out); finished.size() < specs.size() && !whole.empty())
        fs::remove(whole);
    say("kbench: {} of {} points are finished in {}\n", finished.size(), specs.size(), request.run.out.string());
    return finished;
}

/// 128 and its number for a signal, as shells have it; else as docs/schema.md lists them.
int exit_code(const Result& result, const SweepEnd& end, const CounterRequest& counters) {
    if (end.signal != 0) {
        say("kbench: {}\n", result.warnings.back());
        return 128 + end.signal;
    }
    if (!end.device_lost.empty()) throw DeviceError(result.warnings.back());
    const auto count = [&](PointStatus status) { return std::ranges::count(result.points, status, &Point::status); };
    const auto first = [&](PointStatus status) { return *std::ranges::find(result.points, status, &Point::status); };
    if (const auto failed = count(PointStatus::failed); failed > 0) {
        const Point point = first(PointStatus::failed);
        throw MeasurementError(result.points.size() == 1
                                   ? point.reason
                                   : fmt::format("{} of {} points failed, the first: {}: {}", failed,
                                                 result.points.size(), point_name(point), point.reason));
    }
    if (count(PointStatus::done) == 0) throw DeviceError("nothing was measured: " + result.points.front().reason);
    require_counted(result.points, counters);
    return static_cast<int>(ExitCode::success);
}

/// Throws what the run would throw before it measures. A sweep's points are listed on machines without its device, too.
void check_unmeasured(RunRequest& request) {
    if (!request.run.out.empty()) refuse_what_stands(request.run.out, request.resume);
    request.run.cache_directory = cache_directory();
    std::string remark;
    DeviceList devices;
    try {
        devices = choose_devices(request.device, remark);
    } catch (const DeviceError&) {
        return;
    }
    make_profiler(*devices.front())->check(request.run.counters);
    refuse_points(request.run, *devices.front());
}

}  // namespace

std::optional<std::size_t> terminal_width() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return std::nullopt;
}

void write_and_print(const fs::path& directory, const ExplainedResult& explained, std::string_view format,
                     bool verbose) {
    write_reports(directory, explained);
    const int width = static_cast<int>(terminal_width().value_or(100));
    put_text(format == "json" ? to_text(explained.result())
             : verbose        ? write_terminal(explained, width)
                              : write_screen(explained, width));
    say("wrote {}, report.html, report.md and trace.json\n", result_file_in(directory).string());
}

std::string written(const Document& document, std::string_view format) {
    constexpr std::size_t of_a_file = 120;
    if (format == "html") return render_html(document);
    return render_terminal(document, terminal_width().value_or(of_a_file));
}

std::string cache_directory() {
    if (const char* own = std::getenv("KBENCH_CACHE_DIR"); own != nullptr && *own != '\0') return own;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0')
        return std::string(xdg) + "/kbench";
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
        return std::string(home) + "/.cache/kbench";
    if (const passwd* user = getpwuid(getuid()); user != nullptr && *user->pw_dir != '\0')
        return std::string(user->pw_dir) + "/.cache/kbench";
    // A folder that anybody could have made would decide which roofs are shown.
    throw UsageError("neither HOME nor a home directory of this user is known: set KBENCH_CACHE_DIR");
}

int measure_and_report(RunRequest& request, const std::string& command_line, const PrepareRun& prepare) {
    const auto list_points = [&] {
        for (const PointSpec& point : request.run.points()) put("{}\n", point.name());
        return static_cast<int>(ExitCode::success);
    };
    if (request.dry_run && !prepare) {
        check_unmeasured(request);
        return list_points();
    }
    request.run.cache_directory = cache_directory();
    remove_abandoned_files(request.run.cache_directory);
    std::string remark;
    const DeviceList devices = choose_devices(request.device, remark);
    Device& device = *devices.front();
    Result result;
    const std::unique_ptr<PointGate> gate = prepare ? prepare(device, result) : nullptr;
    if (request.dry_run) return list_points();
    if (device.is_gpu() && request.run.sm_scaling_s > 0) keep_parts(device);
    const std::unique_ptr<Profiler> profiler = make_profiler(device);
    profiler->check(request.run.counters);
    refuse_points(request.run, device);
    const OutputDirectory out = prepare_directory(request.run.out, request.run.model.name, request.resume);
    request.run.out = out.path;
    const PointStore store(request.run.out);

    result.environment = describe_environment(device, profiler->machine_state(), command_line);
    result.environment.run_to_run =
        remembered_noise(noise_file(request.run.cache_directory), result.environment, result.warnings);
    add_run_warnings(result, device, remark, request.run.verify);
    const CeilingSource ceilings = ceiling_source(device, *profiler);
    Progress progress(request.quiet);
    FinishedPoints finished = finished_points(request, device, store, result);
    if (!finished.empty()) {
        result.ceilings = finished.begin()->second.ceilings;
    } else {
        progress.show("ceilings");
        result.ceilings = obtain_ceilings(ceilings, result.environment, request.ceilings,
                                          ceiling_file(request.run.cache_directory), result.warnings);
    }
    const SweepEnd end =
        run_points(request.run, device, *profiler, result, progress, store, std::move(finished), gate.get());
    if (!end.early() &&
        mend_low_ceilings(ceilings, request.ceilings, ceiling_file(request.run.cache_directory), result))
        write_result(request.run.out, result, request.run.compress);
    if (result.points.empty()) return exit_code(result, end, request.run.counters);
    const ExplainedResult explained(result);
    const int impossible = tell_impossible(explained.impossible(), result_file_in(request.run.out).string());
    write_and_print(request.run.out, explained, request.format, request.verbose);
    const int code = exit_code(result, end, request.run.counters);
    return code != 0 ? code : impossible;
}

int run_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    ParsedRun parsed = parse_run(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    return measure_and_report(parsed.request, command_line);
}

}  // namespace kbench
