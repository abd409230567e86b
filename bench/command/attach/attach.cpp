// kbench attach: runs a program several times, one purpose each, and explains an iteration of it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/program/program_point.h"
#include "analysis/report/render/render.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "bench/command/attach/attach_options.h"
#include "bench/command/attach/program_runs.h"
#include "bench/command/command.h"
#include "bench/command/device_options.h"
#include "bench/command/output.h"
#include "bench/device/console.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/store/result_files.h"
#include "bench/profile/counters.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/profile/cuda/counted_device.h"
#endif

namespace kbench {
namespace {

/// A bare iteration that is shorter than the GPU's work in it was told apart wrongly.
constexpr double least_of_busy = 0.9;

double median_ms(const ProgramRuns& runs, const ProgramOptions& options, const GpuInfo& gpu) {
    ProgramRuns alone{.records = runs.records, .bare = runs.bare, .names = {}, .counters = {}};
    const Point point = program_point(alone, options, gpu);
    return point.program->bare_ms;
}

/// The counters to read, and how a step's metrics follow from them; nothing where nothing is to be counted.
struct Counting {
    CounterRun run;
    std::vector<std::string> counters;
    MetricsOf metrics_of;
};

Counting counting(const Device& device, const CounterRequest& request) {
    Counting found;
    found.run.requested = request.sets;
    if (request.nothing()) {
        found.run.unavailable = "not asked for";
        return found;
    }
#ifdef KBENCH_HAVE_CUDA
    try {
        found.run.chip = cuda::chip_of_device(device.info().ordinal);
    } catch (const DeviceError& error) {
        found.run.unavailable = error.what();
        return found;
    }
    const std::vector<Metric> metrics = requested_metrics(metric_sets(found.run.chip), request);
    found.run.metrics = describe_metrics(metrics);
    found.counters = counters_of(metrics);
    found.metrics_of = [metrics](const std::map<std::string, double>& values) {
        std::vector<std::string> names;
        std::vector<double> numbers;
        for (const auto& [name, value] : values) {
            names.push_back(name);
            numbers.push_back(value);
        }
        return metric_values(metrics, names, numbers);
    };
#else
    static_cast<void>(device);
#endif
    return found;
}

/// Times without records: hears the call that an iteration makes least often, or all where it is not what the records
/// called so.
void run_bare(ProgramRunner& runner, const ProgramLaunches& calls, ProgramRuns& runs, const ProgramOptions& options,
              const GpuInfo& gpu) {
    for (const bool hears_rarest : {true, false}) {
        runs.bare = runner.run({.purpose = "bare", .calls = calls, .hears_rarest = hears_rarest});
        if (median_ms(runs, options, gpu) >= least_of_busy * calls.kernels_ms) return;
    }
    runs.bare.clear();  // neither is an iteration's
}

ProgramRuns make_runs(const AttachRequest& request, const std::filesystem::path& out, ProgramOptions& options,
                      const Counting& counting, const GpuInfo& gpu) {
    ProgramRunner runner(request.command, out);
    Progress progress(request.quiet);
    ProgramRuns runs;
    progress.show("running it with records");
    runs.records = runner.run({.purpose = "records"});
    if (request.names) {
        progress.show("running it for names");
        runs.names = runner.run({.purpose = "names"});
    }
    const ProgramLaunches calls = program_launches(runs, options);
    if (calls.count == 0 || !calls.unavailable.empty()) return runs;
    progress.show("running it without records");
    run_bare(runner, calls, runs, options, gpu);
    if (counting.counters.empty()) return runs;
    progress.show("running it for counters");
    runs.counters = runner.run({.purpose = "counters", .calls = calls, .counters = counting.counters});
    return runs;
}

}  // namespace

int attach_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    const ParsedAttach parsed = parse_attach(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const AttachRequest& request = parsed.request;
    std::string remark;
    const DeviceList devices = choose_devices({.backend = "cuda"}, remark);
    Device& device = *devices.front();
    const std::unique_ptr<Profiler> profiler = make_profiler(device);
    const std::string cache = cache_directory();
    const OutputDirectory out = prepare_directory(request.out, "attach-" + program_name(request.command));

    Result result;
    result.environment = describe_environment(device, profiler->machine_state(), command_line);
    result.options["counters"] = fmt::format("{}", fmt::join(request.counters.sets, ","));
    result.ceilings = obtain_ceilings(ceiling_source(device, *profiler), result.environment, request.ceilings,
                                      ceiling_file(cache), result.warnings);
    const GpuInfo& gpu = result.environment.gpu.value();
    const Counting counted = counting(device, request.counters);
    profiler->detach();
    ProgramOptions options{.command = fmt::format("{}", fmt::join(request.command, " ")),
                           .from = request.from,
                           .iterations = request.iterations,
                           .metrics_of = counted.metrics_of,
                           .counters = counted.run};
    const ProgramRuns runs = make_runs(request, out.path, options, counted, gpu);
    result.points.push_back(program_point(runs, options, gpu));
    write_result(out.path, result, request.compress);
    const ExplainedResult explained(result);
    write_reports(out.path, explained);
    put_text(request.format == "json" ? to_text(result)
             : request.verbose        ? write_terminal(explained, static_cast<int>(terminal_width().value_or(100)))
                                      : write_screen(explained, static_cast<int>(terminal_width().value_or(100))));
    say("wrote {}, report.html, report.md and trace.json\n", result_file_in(out.path).string());
    return tell_impossible(explained.impossible(), result_file_in(out.path).string());
}

}  // namespace kbench
