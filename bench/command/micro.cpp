// kbench micro: single ops by provider, precision and shape, verified, timed and set against the roofs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "analysis/machine/machine.h"
#include "bench/command/command.h"
#include "bench/command/micro_options.h"
#include "bench/command/output.h"
#include "bench/device/console.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/machine/noise.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/store/result_files.h"
#include "bench/micro/benchmarks.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

/// What Google Benchmark's JSON does not know of the machine and the build.
std::map<std::string, std::string> context_of(const Environment& environment) {
    std::map<std::string, std::string> context{{"kbench", version_text()}, {"cpu", environment.host.cpu}};
    if (environment.gpu) {
        context["gpu"] = device_name(*environment.gpu);
        context["driver"] = environment.gpu->driver;
    }
    for (const auto& [library, version] : environment.libraries) context[library] = version;
    return context;
}

}  // namespace

int micro_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    ParsedMicro parsed = parse_micro(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    MicroRequest& request = parsed.request;
    const std::vector<AskedProblem> problems = asked_problems(request);
    const std::filesystem::path cache = cache_directory();
    std::string remark;
    const DeviceList devices = choose_devices(request.device, remark);
    Device& device = *devices.front();
    const std::unique_ptr<Profiler> profiler = make_profiler(device);
    profiler->check(request.run.counters);

    Result result;
    result.environment = describe_environment(device, profiler->machine_state(), command_line);
    result.environment.run_to_run =
        remembered_noise(noise_file(cache_directory()), result.environment, result.warnings);
    add_run_warnings(result, device, remark, request.run.verify);
    Providers providers = make_providers(device.kind(), ProviderContext{.algorithm_cache = cache / "cublaslt.json",
                                                                        .retune = request.retune,
                                                                        .multiprocessors = device.multiprocessors(),
                                                                        .stream = device.stream()});
    // Cases first: a mistake in them should cost no measurement.
    const std::vector<MicroCase> cases =
        filter_cases(make_cases(problems, providers, request.providers, request.precisions, request.caches),
                     parsed.benchmark_arguments);
    if (lists_only(parsed.benchmark_arguments)) {
        for (const MicroCase& micro : cases) put("{}\n", micro.name());
        return static_cast<int>(ExitCode::success);
    }
    if (!request.suite.empty())
        for (std::string& note : suite_notes(request.suite, cases)) result.warnings.push_back(std::move(note));
    const OutputDirectory out = prepare_directory(request.out, "micro");
    request.out = out.path;
    const CeilingSource ceilings = ceiling_source(device, *profiler);
    result.ceilings =
        obtain_ceilings(ceilings, result.environment, request.ceilings, ceiling_file(cache), result.warnings);
    const StopSignals signals;
    MicroSession session(request.run, device, *profiler, providers, result, request.device_s, request.quiet);
    // What is measured is on disk soon, but not all of it written again after every benchmark.
    using Clock = std::chrono::steady_clock;
    Clock::time_point saved = Clock::now();
    const BenchmarksEnd end = run_benchmarks(session, cases, parsed.benchmark_arguments, request.run.counters.metrics,
                                             context_of(result.environment), terminal_width(), [&] {
                                                 if (Clock::now() - saved < std::chrono::seconds(5)) return;
                                                 write_result(request.out, result, request.compress);
                                                 saved = Clock::now();
                                             });
    if (!end.device_lost.empty())
        result.warnings.push_back(fmt::format("the device was lost ({}) after {} of {} benchmarks", end.device_lost,
                                              result.points.size(), cases.size()));
    write_result(request.out, result, request.compress);  // before roofs are measured for a minute, perhaps
    if (!end.file.empty()) write_file_atomically(end.file, end.text);
    const int stopped = StopSignals::asked();
    if (stopped == 0 && end.device_lost.empty() &&
        mend_low_ceilings(ceilings, request.ceilings, ceiling_file(cache), result)) {
        write_result(request.out, result, request.compress);
        say("kbench: a step beat its roof, so roofs were measured again: shares of them are too high above, and right in the result (`kbench table {}`)\n",
            request.out.string());
    }
    for (const std::string& warning : result.warnings) say("kbench: {}\n", warning);
    say("wrote {}\n", result_file_in(request.out).string());
    if (stopped != 0) {
        say("kbench: stopped by SIG{} after {} of {} benchmarks\n", sigabbrev_np(stopped), result.points.size(),
            cases.size());
        return 128 + stopped;
    }
    if (!end.device_lost.empty()) throw DeviceError(result.warnings.back());
    if (!end.first_wrong.empty()) throw MeasurementError(end.first_wrong);
    const auto is_done = [](const Point& point) { return point.status == PointStatus::done; };
    if (!result.points.empty() && std::ranges::none_of(result.points, is_done))
        throw DeviceError("nothing was measured: " + result.points.front().reason);
    require_counted(result.points, request.run.counters);
    return static_cast<int>(ExitCode::success);
}

}  // namespace kbench
