// The order of a measurement. A wrong kernel is never timed; nothing is recorded or counted while something is timed;
// what needs times comes after them.
#include "bench/measure/point/measure.h"

#include "analysis/explain/conclusions.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/profile/counters.h"
#include "kbench/error.h"

namespace kbench {
namespace {

/// Null where nothing would look.
std::unique_ptr<RoofWatch> watch_roofs(const PartContext& at) {
    if (at.device.is_gpu() || (at.sample && at.options.step_runs == 0)) return nullptr;
    const PhaseTimer timer(at.point, "roofs");
    return make_roof_watch(at.device, at.profiler.machine_state(), at.roofs, at.point.precision(), at.options.sampler);
}

bool is_checked(const PartContext& at) {
    if (!at.dumps.empty() || !at.dump_gradients.empty()) return true;
    return at.options.output_repeats > 0 && (at.options.verify || at.options.step_runs > 0);
}

}  // namespace

Measured measure(const PartContext& at) {
    const bool times_steps = at.options.step_runs > 0;
    verify(at);
    load(at);
    Measured measured{prepare(at)};
    Forward& forward = *measured.forward;
    {
        const std::unique_ptr<RoofWatch> roofs = watch_roofs(at);
        if (at.sample)
            at.sample(forward);
        else
            sample_end_to_end(at, forward, roofs.get());
        if (times_steps) time_steps(at, forward, roofs.get());
        if (roofs) at.point.conditions.roofs = roofs->readings();
        if (const std::string why = disturbance_warning(at.roofs, at.point.conditions); !why.empty()) at.warn(why);
    }
    // Before the host is busy for seconds with what the GPU computed: at its power limit a GPU that waits cools, and
    // its clock is then higher than it was while it was timed.
    measure_graph_clock(at, forward);
    record_kernels(at, forward);
    if (is_checked(at)) check_outputs(at, forward);
    measure_sm_scaling(at, forward);
    // A CPU's experiments share their time: those of single steps have what those that decide the bottleneck leave.
    const bool decides_first = !at.device.is_gpu();
    if (decides_first) measure_theft(at);
    measure_size_scaling(at);
    if (!decides_first) measure_theft(at);
    measure_marginal_costs(at, forward);
    if (times_steps) account_for_steps(at);
    count(at);
    if (const std::optional<std::string> drift = times_steps ? drift_warning(at.point) : std::nullopt) at.warn(*drift);
    warn_of_other_precisions(at);
    return measured;
}

void require_counted(std::span<const Point> points, const CounterRequest& request) {
    if (!request.required) return;
    for (const Point& point : points) {
        if (point.status != PointStatus::done) continue;
        if (!point.counters.unavailable.empty())
            throw DeviceError("all is measured but the counters that were asked for: " + point.counters.unavailable);
        for (const CountedMetric& metric : point.counters.metrics)
            if (metric.name == stall_samples && metric.origin == Origin::unavailable)
                throw DeviceError("all is measured but the samples that were asked for: " + metric.reason);
    }
}

}  // namespace kbench
