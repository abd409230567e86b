// kbench attach: runs a program several times, one purpose each, and explains an iteration of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "analysis/program/program_point.h"
#include "bench/command/attach/all_runs.h"
#include "bench/command/attach/attach_options.h"
#include "bench/command/command.h"
#include "bench/command/device_options.h"
#include "bench/command/output.h"
#include "bench/device/console.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/store/result_files.h"
#include "bench/profile/counters.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/profile/cuda/counted_device.h"
#endif

namespace kbench {
namespace {

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
    profiler->check(request.counters);
    const std::string cache = cache_directory();
    const OutputDirectory out = prepare_directory(request.out, "attach-" + program_name(request.command));

    Result result;
    result.environment = describe_environment(device, profiler->machine_state(), command_line);
    result.options["counters"] = fmt::format("{}", fmt::join(request.counters.sets, ","));
    result.ceilings = obtain_ceilings(ceiling_source(device, *profiler), result.environment, request.ceilings,
                                      ceiling_file(cache), result.warnings);
    const Counting counted = counting(device, request.counters);
    profiler->detach();
    const ProgramOptions options{.command = fmt::format("{}", fmt::join(request.command, " ")),
                                 .from = request.from,
                                 .iterations = request.iterations,
                                 .metrics_of = counted.metrics_of,
                                 .counters = counted.run};
    const StopSignals signals;
    const AllRuns all = run_program(request, out.path, options, counted.counters);
    ProgramPoints made = program_points(all.runs, all.options, result.environment.gpu.value());
    result.points = std::move(made.points);
    std::ranges::move(made.warnings, std::back_inserter(result.warnings));
    std::ranges::copy(all.failures, std::back_inserter(result.warnings));
    write_result(out.path, result, request.compress);
    const ExplainedResult explained(result);
    write_and_print(out.path, explained, request.format, request.verbose);
    const int exit_code = tell_impossible(explained.impossible(), result_file_in(out.path).string());
    for (const std::string& failure : all.failures) say("kbench: {}\n", failure);
    if (const int signal = StopSignals::asked(); signal != 0) return 128 + signal;
    return all.failures.empty() ? exit_code : static_cast<int>(ExitCode::failed);
}

}  // namespace kbench
