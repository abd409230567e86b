// kbench attach: runs a program several times, one purpose each, and explains an iteration of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/program/program_point.h"
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

/// The bare run's blocks with and without records last so long, and are so many at least.
constexpr double block_ms = 40;
constexpr std::int64_t fewest_blocks = 6;

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

/// Iterations of a block with or without records: the first of each is lost to the change. None where graphs are
/// launched, which CUPTI only records if it did so when they were made, nor where there are few blocks.
std::int64_t block_of(const ProgramLaunches& calls, bool all_iterations) {
    if (calls.graphs > 0 || !all_iterations || !(calls.iteration_ms > 0)) return 0;
    const auto block = static_cast<std::int64_t>(std::clamp(std::ceil(block_ms / calls.iteration_ms), 4.0, 500.0));
    return calls.iterations >= fewest_blocks * block ? block : 0;
}

/// Times without records: hears the call that an iteration makes least often, or all where it is not what the records
/// called so.
std::vector<ProgramFile> run_bare(ProgramRunner& runner, const ProgramLaunches& calls, std::int64_t block) {
    for (const bool hears_rarest : {true, false}) {
        std::vector<ProgramFile> bare =
            runner.run({.purpose = "bare", .calls = calls, .hears_rarest = hears_rarest, .block = block});
        if (bare_iteration_ms(bare, calls) >= least_of_busy * calls.kernels_ms) return bare;
    }
    return {};  // neither is an iteration's
}

ProgramRuns make_runs(const AttachRequest& request, const std::filesystem::path& out, const ProgramOptions& options,
                      const Counting& counting) {
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
    runs.bare = run_bare(runner, calls, block_of(calls, options.iterations.empty()));
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
    const ProgramRuns runs = make_runs(request, out.path, options, counted);
    result.points.push_back(program_point(runs, options, result.environment.gpu.value()));
    write_result(out.path, result, request.compress);
    const ExplainedResult explained(result);
    write_and_print(out.path, explained, request.format, request.verbose);
    return tell_impossible(explained.impossible(), result_file_in(out.path).string());
}

}  // namespace kbench
