// kbench list metrics: every metric of a chip, the counters it is read from, and the passes that a set takes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/command/command.h"
#include "bench/command/option_table.h"
#include "bench/device/console.h"
#include "bench/device/device.h"
#include "bench/profile/counters.h"
#include "bench/profile/metric_sets.h"
#include "kbench/error.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/profile/cuda/counted_device.h"
#endif

namespace kbench {
namespace {

struct Request {
    std::string chip, set, help;
};

const OptionOf<Request> table[] = {
    {"--chip", "NAME", "this machine's GPU", "as CUPTI names it, such as GA100 or GH100",
     [](Request& r, const std::string& text) { r.chip = text; }},
    {"--set", "NAME", "all", "only this set", [](Request& r, const std::string& text) { r.set = text; }},
};

Request parse(const std::vector<std::string>& options) {
    Request request;
    constexpr CommandText command{
        "kbench list metrics",
        "Lists the metrics of a chip by set, the chip's counters behind them, and the passes of each set."};
    request.help = parse_options(command, table, request, options);
    return request;
}

/// The chip of this machine's first GPU.
std::string chip_here() {
    const std::string why = cuda_unavailable();
#ifdef KBENCH_HAVE_CUDA
    if (why.empty()) return cuda::chip_of_device(0);
#endif
    throw UsageError(fmt::format("no GPU to take the chip from ({}); name one with --chip: {}", why,
                                 fmt::join(metric_chips(), ", ")));
}

std::size_t count_passes(const std::string& chip, const std::vector<std::string>& counters) {
#ifdef KBENCH_HAVE_CUDA
    return cuda::plan_passes(chip, counters).passes;
#else
    throw DeviceError(
        fmt::format("this build has no CUDA, whose CUPTI plans {} counters of {}", counters.size(), chip));
#endif
}

/// Passes as text, "unknown" from the first failure on; the reason is told once.
class Passes {
  public:
    explicit Passes(std::string chip) : chip_(std::move(chip)) {}
    std::string of(std::span<const Metric> metrics) {
        if (!unavailable_.empty()) return "unknown";
        try {
            return fmt::to_string(count_passes(chip_, counters_of(metrics)));
        } catch (const DeviceError& error) {
            unavailable_ = error.what();
            return "unknown";
        }
    }
    const std::string& unavailable() const { return unavailable_; }

  private:
    std::string chip_, unavailable_;
};

std::string counters_text(const Metric& metric) {
    return metric.available() ? fmt::format("{}", fmt::join(metric.counters, " + "))
                              : fmt::format("- {}", metric.unavailable);
}

void print_sets(const std::string& chip, const MetricSets& sets, const std::vector<std::string>& names) {
    Passes passes(chip);
    const auto row = [&passes](std::string_view name, std::span<const Metric> metrics) {
        put("{:<14} {:>8} {:>7}\n", name, counters_of(metrics).size(), passes.of(metrics));
    };
    put("{:<14} {:>8} {:>7}\n", chip, "counters", "passes");
    for (const std::string& name : names) row(name, sets.set(name));
    if (names.size() > 1) row("all together", sets.metrics());
    if (names.size() > 1)
        put("{:<14} {:>8} {:>7}  of PC sampling, what warps wait for: {}REASON\n", stall_samples, "-", "4",
            sampled_prefix);
    if (!passes.unavailable().empty()) put("passes are unknown: {}\n", passes.unavailable());
}

void print_metrics(const MetricSets& sets, const std::vector<std::string>& names) {
    std::size_t width = 0;
    for (const Metric& metric : sets.metrics())
        if (metric.counters.size() == 1) width = std::max(width, metric.counters[0].size());
    put("\n{:<14} {:<26} {:<10} {:<{}}  {}\n", "set", "metric", "unit", "counters", width, "what");
    for (const std::string& name : names)
        for (const Metric& metric : sets.set(name))
            put("{:<14} {:<26} {:<10} {:<{}}  {}\n", metric.set, metric.name, metric.unit, counters_text(metric), width,
                metric.what);
}

}  // namespace

void list_metrics(const std::vector<std::string>& options) {
    const Request request = parse(options);
    if (!request.help.empty()) {
        put("{}", request.help);
        return;
    }
    const std::string chip = request.chip.empty() ? chip_here() : request.chip;
    const MetricSets& sets = metric_sets(chip);
    std::vector<std::string> names = sets.sets();
    if (!request.set.empty()) names = {sets.set(request.set).front().set};
    print_sets(chip, sets, names);
    print_metrics(sets, names);
}

}  // namespace kbench
