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
    if (at.device.is_gpu() || (at.wants.sample && !at.wants.steps)) return nullptr;
    const PhaseTimer timer(at.point, "roofs");
    return make_roof_watch(at.device, at.profiler.machine_state(), at.wants.roofs, at.point.precision(),
                           at.options().sampler);
}

}  // namespace

Measured measure(Plan& plan, Device& device, Profiler& profiler, const Wants& wants, Point& point,
                 std::vector<std::string>& warnings) {
    const PartContext at{plan, device, profiler, wants, point, warnings};
    verify(at);
    load(at);
    Measured measured{prepare(at)};
    Forward& forward = *measured.forward;
    {
        const std::unique_ptr<RoofWatch> roofs = watch_roofs(at);
        if (wants.sample)
            wants.sample(forward);
        else
            sample_end_to_end(at, forward, roofs.get());
        if (wants.steps) time_steps(at, forward, roofs.get());
        if (roofs) point.conditions.roofs = roofs->readings();
        if (const std::string why = disturbance_warning(wants.roofs, point.conditions); !why.empty()) at.warn(why);
    }
    // Before the host is busy for seconds with what the GPU computed: at its power limit a GPU that waits cools, and
    // its clock is then higher than it was while it was timed.
    if (wants.graph_clock) measure_graph_clock(at, forward);
    record_kernels(at, forward);
    if (wants.outputs) check_outputs(at, forward);
    if (wants.sm_scaling) measure_sm_scaling(at, forward);
    // A CPU's experiments share their time: those of single steps have what those that decide the bottleneck leave.
    const bool decides_first = !device.is_gpu();
    if (wants.theft && decides_first) measure_theft(at);
    if (wants.size_scaling) measure_size_scaling(at);
    if (wants.theft && !decides_first) measure_theft(at);
    if (wants.marginal) measure_marginal_costs(at, forward);
    if (wants.steps) account_for_steps(at);
    count(at);
    if (const std::optional<std::string> drift = wants.steps ? drift_warning(point) : std::nullopt) at.warn(*drift);
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
