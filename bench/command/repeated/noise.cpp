// Starts kbench ten times, and remembers how much the medians differ.
#include "bench/command/repeated/noise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "analysis/compare/run_spread.h"
#include "bench/command/command.h"
#include "bench/command/options.h"
#include "bench/command/repeated/ab_options.h"
#include "bench/command/repeated/child.h"
#include "bench/device/console.h"
#include "bench/device/device.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/machine/noise.h"
#include "bench/measure/point/stop_signal.h"
#include "kbench/error.h"
#include "models/registry.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

constexpr int noise_runs = 8;

std::vector<std::string> usual_options() {
    const std::string& smallest = builtin_models().front().name;
    if (const std::optional<NoGpu> none = no_gpu(); !none || none->present)  // a GPU that cannot be used: run says so
        return {"--model", smallest, "--precision", "fp16"};
    return {"--model", smallest, "--precision", "fp32", "--backend", "cpu"};
}

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (fs::temp_directory_path() / "kbench-noise-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw UsageError(fmt::format("{}: cannot be made", name));
        path = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    fs::path path;
};

}  // namespace

int measure_noise(const std::vector<std::string>& options) {
    const std::vector<std::string> asked = options.empty() ? usual_options() : options;
    const ParsedRun parsed = parse_run(asked);
    if (!parsed.help.empty() || !parsed.request.run.out.empty() || parsed.request.dry_run || parsed.request.resume ||
        parsed.request.run.points().size() != 1)
        throw UsageError("doctor --noise: behind -- stand options of `kbench run` for one point, without --out");
    std::vector<std::string> arguments{"run"};
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    RunToRun noise{.deviation = 0, .runs = noise_runs, .command_line = {}, .measured_at = utc_now()};
    noise.command_line = fmt::format("kbench {}", fmt::join(arguments, " "));
    const AbCommand given{{}, arguments};
    for (const char* option : {"--latency-only", "--no-verify"})
        if (!given.has(option)) arguments.emplace_back(option);
    if (!given.has("--time-budget")) arguments.insert(arguments.end(), {"--time-budget", "3"});
    const StopSignals signals;
    std::vector<double> medians;
    Environment environment;
    put("{} runs of `{}`, each a process of its own\n", noise_runs, noise.command_line);
    for (int run = 1; run <= noise_runs; ++run) {
        const TemporaryDirectory directory;
        Result result;
        try {
            result = run_for_result(fmt::format("run {}", run), {}, arguments, directory.path / "run");
        } catch (const MeasurementError&) {
            if (StopSignals::asked() != 0) return 128 + StopSignals::asked();
            throw;
        }
        environment = result.environment;
        medians.push_back(result.points.front().end_to_end->latency.summary_ms.median);
        if (!(medians.back() > 0))
            throw MeasurementError(fmt::format("run {}: a latency of {} ms", run, medians.back()));
        put("run {}: {:.5g} ms\n", run, medians.back());
    }
    noise.deviation = log_deviation(medians);
    const RunSpread spread{noise.deviation, noise.runs, {}};
    const auto [least, most] = std::ranges::minmax(medians);
    put("from run to run: {:.5g} to {:.5g} ms, deviation {:.2g} %; two single runs cannot tell below {:.2g} %\n", least,
        most, 100 * noise.deviation, 100 * spread.least_difference());
    const fs::path file = noise_file(cache_directory());
    remember_noise(file, environment, noise);
    put("remembered in {} for {}: every later result has it, and kbench compare uses it. Other work on the machine, or another card of the same kind, may differ by more.\n",
        file.string(), noise_key(environment));
    return 0;
}

}  // namespace kbench
