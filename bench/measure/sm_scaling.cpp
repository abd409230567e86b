// Time against SMs: the same forward, captured again on the streams of devices with fewer of the GPU's SMs.
#include <fmt/format.h>

#include "bench/device/multiprocessors.h"
#include "bench/measure/part_times.h"
#include "bench/measure/parts.h"
#include "bench/measure/progress.h"
#include "kbench/error.h"

namespace kbench {
namespace {

SmCountRun run_of(int multiprocessors, const RangeTimes& times) {
    SmCountRun run;
    run.multiprocessors = multiprocessors;
    set_times(run, times);
    return run;
}

/// Runs the plan on so many SMs of its GPU.
RangeTimes times_on(int multiprocessors, int ordinal, const Plan& plan, double seconds) {
    const std::unique_ptr<Device> part = make_cuda_device(multiprocessors, ordinal);
    return WorkOnPart(ranges_of(plan, *part), *part).times(seconds);
}

}  // namespace

void measure_sm_scaling(const PartContext& at, Forward& forward) {
    const double seconds = at.options().sm_scaling_s;
    const std::optional<GpuInfo>& gpu = at.device.info().gpu;
    // A part has no parts of its own; where records cannot be taken the point says so already.
    if (seconds <= 0 || !gpu || gpu->multiprocessors_of_device || !at.point.activity.unavailable.empty()) return;
    const PhaseTimer timer(at.point, "sm_scaling");
    SmScaling& scaling = at.point.sm_scaling.emplace();
    if (const double forward_s = at.point.end_to_end->latency.summary_ms.median * 1e-3; forward_s > seconds) {
        scaling.unavailable = fmt::format(
            "one run takes {:.2g} s; those of more than {:.2g} s would take too long on a quarter of the SMs",
            forward_s, seconds);
        return;
    }
    int count = 0;
    try {
        for (const int next : counts_at_shares(possible_multiprocessors(at.device))) {
            count = next;
            at.begin(fmt::format("on {} SMs", count));
            scaling.runs.push_back(run_of(count, count == gpu->multiprocessors
                                                     ? at.profiler.time_ranges(forward.graph(), seconds)
                                                     : times_on(count, at.device.info().ordinal, at.plan, seconds)));
        }
    } catch (const Error& error) {
        at.require_device();
        if (scaling.runs.size() < 2) {  // one has nothing to be compared with
            scaling.runs.clear();
            scaling.unavailable = fmt::format("on {} SMs: {}", count, error.what());
        } else {
            at.warn(fmt::format("time against SMs ends at {} SMs; on {}: {}", scaling.runs.back().multiprocessors,
                                count, error.what()));
        }
    }
}

}  // namespace kbench
