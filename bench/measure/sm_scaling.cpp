// Time against SMs: the same forward, captured again on the streams of devices with fewer of the GPU's SMs.
#include <fmt/format.h>

#include <cmath>

#include "bench/device/multiprocessors.h"
#include "bench/measure/parts.h"
#include "bench/measure/progress.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// Records are of whole nanoseconds; medians may lie between two.
double rounded_us(double us) { return std::round(us * 1e4) / 1e4; }

SmCountRun run_of(int multiprocessors, const RangeTimes& times) {
    SmCountRun run;
    run.multiprocessors = multiprocessors;
    run.sm_clock_mhz = times.sm_clock_mhz;
    run.launches = times.launches;
    run.latency_ms = times.latency_ms.median;
    for (const Summary& us : times.us) {
        run.step_us.push_back(rounded_us(us.median));
        run.step_low_us.push_back(rounded_us(us.ci_low));
        run.step_high_us.push_back(rounded_us(us.ci_high));
    }
    return run;
}

/// Runs the plan on so many SMs of its GPU. Steps keep their memory; only the stream is another.
RangeTimes times_on(int multiprocessors, int ordinal, const Plan& plan, double seconds) {
    const std::unique_ptr<Device> part = make_cuda_device(multiprocessors, ordinal);
    const std::unique_ptr<Profiler> profiler = make_profiler(*part);
    const std::vector<WorkRange> ranges = ranges_of(plan, *part);
    for (const WorkRange& range : ranges) enqueue(range);  // nothing may be loaded for this stream in a capture
    part->synchronize();
    profiler->watch(ranges);
    const std::unique_ptr<DeviceGraph> all = part->capture([&] {
        for (const WorkRange& range : ranges) enqueue(range);
    });
    return profiler->time_ranges(*all, seconds);
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
