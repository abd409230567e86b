// Records and counts the kernels of the forward that was timed, and checks which precision ran.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "analysis/explain/executed.h"
#include "analysis/explain/units.h"
#include "analysis/machine/kernel_occupancy.h"
#include "analysis/result/point_name.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "kbench/error.h"

namespace kbench {

void PartContext::warn(std::string_view text) const {
    warnings.push_back(fmt::format("{}: {}", short_name(point), text));
}

void PartContext::require_device() const {
    if (const std::string why = why_lost(device); !why.empty()) throw DeviceError(why);
}

void record_kernels(const PartContext& at, Forward& forward) {
    if (at.options.activity_runs == 0) {
        at.point.activity.unavailable = "not asked for (--latency-only)";
        return;
    }
    at.begin("kernels");
    const PhaseTimer timer(at.point, "kernels");
    try {
        RangeKernels kernels =
            at.profiler.record_kernels(forward.graph(), at.options.activity_runs, at.options.activity_warm_up_s);
        at.point.activity = std::move(kernels.run);
        const std::optional<GpuInfo> gpu = at.device.info().gpu;
        for (std::size_t s = 0; s < at.point.steps.size(); ++s) {
            for (KernelResult& kernel : kernels.by_range[s])
                if (gpu) describe_occupancy(kernel, *gpu);
            at.point.steps[s].kernels = std::move(kernels.by_range[s]);
        }
    } catch (const DeviceError& error) {
        at.require_device();
        at.point.activity.unavailable = error.what();
    }
}

void count(const PartContext& at) {
    CounterRun& run = at.point.counters;
    CounterRequest request = at.options.counters;
    if (!request.required && !request.nothing() && at.device.is_gpu()) {
        const auto ask = [&](CounterOf counter) { request.metrics.emplace_back(name_of(counter)); };
        ask(tensor_counter(proof_type(at.point.precision())));  // by default every result proves that
        // Verdicts need these to say what warps wait for. All but the arithmetic pipes fit into the passes of the
        // others.
        std::ranges::for_each(needed_units, ask);
        std::ranges::for_each(arithmetic_units, ask);
        std::ranges::for_each(work_of_units, ask);
    }
    if (at.options.counters.nothing()) {
        run.unavailable = "not asked for (--counters none)";
        return;
    }
    at.begin("counters");
    const PhaseTimer timer(at.point, "counters");
    try {
        RangeCounters counters = at.profiler.count(request);
        run = std::move(counters.run);
        if (!counters.warning.empty()) at.warn(counters.warning);
        for (std::size_t s = 0; s < at.point.steps.size(); ++s) {
            at.point.steps[s].counters_discarded = counters.discarded[s];
            if (counters.discarded[s].empty()) at.point.steps[s].counters = std::move(counters.by_range[s]);
        }
    } catch (const DeviceError& error) {
        at.require_device();
        run.unavailable = error.what();
    } catch (const UsageError& error) {
        run.unavailable = error.what();  // names were checked before; what is left is a chip without metrics
    }
    for (const auto& names : {request.sets, request.metrics})
        run.requested.insert(run.requested.end(), names.begin(), names.end());
}

void warn_of_other_precisions(const PartContext& at) {
    std::map<std::string, std::pair<int, std::string>> by_op;  // op: how many, the first one's finding
    for (const StepResult& s : at.point.steps)
        if (const std::optional<std::string> mismatch = executed_mismatch(s)) {
            auto& [count, first] = by_op[s.op];
            if (count++ == 0) first = fmt::format("{}: {}", s.layer, *mismatch);
        }
    for (const auto& [op, found] : by_op)
        at.warn(fmt::format("{} {} steps did not run as asked; {}", found.first, op, found.second));
}

}  // namespace kbench
