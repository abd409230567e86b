// The pipeline of a run, for work that no plan made: a CUDA graph for times and records, the stream for counters.
#include "tests/profile/known_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "analysis/explain/causes.h"
#include "analysis/explain/roof_breach.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/point/clock_places.h"
#include "bench/measure/point/theft.h"
#include "bench/measure/point/timed_runs.h"
#include "bench/profile/clock_marks.h"
#include "bench/profile/condition_sampler.h"
#include "kbench/error.h"
#include "kbench/statistics.h"

namespace kbench {
namespace {

Point make_point(const std::vector<KnownStep>& steps, const Device& device) {
    Point point;
    point.set("model", "known steps");
    point.set("backend", name(device.kind()));
    point.status = PointStatus::done;
    for (const KnownStep& step : steps) {
        StepResult& result = point.steps.emplace_back();
        result.index = static_cast<int>(point.steps.size()) - 1;
        result.layer = step.layer;
        result.op = "known";
        result.precision = step.precision;
        result.cost.flops = step.flops;
        result.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = step.bytes;
        result.time_steps = step.time_steps;
        if (step.is_matrix_product) result.matrix_flops = step.flops;
    }
    return point;
}

/// Several forwards at once, so that a GPU's host is never waited for; the first, which may wait for it, is dropped.
std::vector<double> time_forwards(Device& device, DeviceGraph& forward,
                                  const std::vector<std::unique_ptr<DeviceEvent>>& events) {
    for (const std::unique_ptr<DeviceEvent>& event : events) {
        event->record();
        if (event != events.back()) forward.launch();
    }
    device.synchronize();
    std::vector<double> times;
    for (std::size_t r = 1; r + 1 < events.size(); ++r) times.push_back(events[r + 1]->ms_since(*events[r]));
    return times;
}

void time(Point& point, Device& device, MachineState& machine, DeviceGraph& forward, const SamplerOptions& options,
          RoofWatch* roofs) {
    constexpr std::size_t forwards = 6;
    std::vector<std::unique_ptr<DeviceEvent>> events;
    for (std::size_t r = 0; r <= forwards; ++r) events.push_back(device.make_event());
    ConditionSampler conditions(machine);
    conditions.start();
    point.end_to_end.emplace();
    const auto chunk = [&] { return time_forwards(device, forward, events); };
    point.end_to_end->latency = sample(watched(chunk, roofs), options, [] { return false; }).timing;
    point.conditions = conditions.stop();
}

/// As in a run: a graph that is not the timed one, with marks between the steps, in turn with it. A GPU that was timed
/// at its power limit is as warm again first, and is read over a whole swing of its clock.
void read_clock(Point& point, Device& device, DeviceGraph& forward, const std::vector<KnownStep>& steps) {
    constexpr int launches = 32;
    const double forward_s = point.end_to_end->latency.summary_ms.median * 1e-3;
    const bool settles = is_at_power_limit(point.conditions);
    const int between = settles ? std::max(1, static_cast<int>(power_swing_s / (launches * forward_s)) - 1) : 1;
    const auto places = static_cast<int>(steps.size()) + 1;
    const std::unique_ptr<ClockMarks> marks = make_clock_marks(device, places, launches);
    if (!marks) return;
    GraphClock& clock = point.graph_clock.emplace();
    clock.graphs = 1;
    clock.places = places;
    const std::unique_ptr<DeviceGraph> marked = device.capture([&] {
        for (int place = 0; place < places; ++place) {
            marks->put(place);
            if (place + 1 < places) steps[static_cast<std::size_t>(place)].enqueue();
        }
    });
    for (double s = 0; settles && s < power_swing_s; s += forward_s) forward.launch();
    for (int i = 0; i < launches; ++i) {
        for (int plain = 0; plain < between; ++plain) forward.launch();
        marked->launch();
        marks->keep();
    }
    for (int place = 0; place + 1 < places; ++place) clock.step_mhz.push_back(marks->mhz(place, place + 1).value_or(0));
}

void keep(const RangeCounters& counters, Point& point) {
    point.counters = counters.run;
    for (std::size_t s = 0; s < point.steps.size(); ++s) {
        point.steps[s].counters_discarded = counters.discarded[s];
        if (counters.discarded[s].empty()) point.steps[s].counters = counters.by_range[s];
    }
}

}  // namespace

KnownBudget test_budget() {
    KnownBudget budget;
    budget.sampler.time_budget_s = 2;
    budget.sampler.warm_up_s = 0.3;
    budget.sampler.min_time_s = 0.5;
    return budget;
}

KnownSteps::KnownSteps(Device& device, CeilingRun roofs)
    : device_(device), profiler_(make_profiler(device)), roofs_(std::move(roofs)) {}

KnownResult KnownSteps::measure(const std::vector<KnownStep>& steps, const KnownBudget& budget) const {
    KnownResult known;
    known.result = std::make_unique<Result>();
    known.result->ceilings = roofs_;
    Point& point = known.result->points.emplace_back(make_point(steps, device_));
    std::vector<WorkRange> ranges;
    for (const KnownStep& step : steps)
        ranges.push_back({.group = "", .name = step.layer, .enqueue = step.enqueue, .least_read_bytes = step.bytes});
    const auto enqueue_all = [&] {
        for (const KnownStep& step : steps) step.enqueue();
    };
    enqueue_all();  // loads the kernels
    device_.synchronize();
    profiler_->detach();
    profiler_->watch(ranges);
    const std::unique_ptr<DeviceGraph> forward = device_.capture(enqueue_all);
    const std::unique_ptr<RoofWatch> roofs =
        make_roof_watch(device_, machine_state(), Roofs(roofs_, name(device_.kind())), Precision::fp32, budget.sampler);
    time(point, device_, machine_state(), *forward, budget.sampler, roofs.get());
    if (budget.graph_clock) read_clock(point, device_, *forward, steps);
    time_at_sizes(point, steps, budget.size_scaling_s);
    try {
        if (device_.is_gpu())
            profile_on_gpu(point, ranges, *forward, budget);
        else
            profile_on_cpu(point, ranges, budget, roofs.get());
        if (roofs) point.conditions.roofs = roofs->readings();
        if (budget.theft_s > 0) run_beside_thieves(point, steps, budget.theft_s);
    } catch (const DeviceError& error) {
        known.unavailable = error.what();
        return known;
    }
    known.explained = explain(*known.result, point);
    // As a run does: what stands above a roof has the roofs measured again, on a CPU that others use as well.
    for (int again = 0; again < 3 && !device_.is_gpu() && worst_breach(*known.result); ++again) {
        const CeilingRun now = measured_roofs(device_, 1);
        for (Ceiling& ceiling : known.result->ceilings.ceilings)
            for (const Ceiling& other : now.ceilings)
                if (other.name == ceiling.name && other.value.value.value_or(0) > ceiling.value.value.value_or(0))
                    ceiling = other;
        known.explained = explain(*known.result, point);
    }
    return known;
}

void KnownSteps::time_at_sizes(Point& point, const std::vector<KnownStep>& steps, double seconds) const {
    constexpr double factors[] = {1, 2, 4};
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const KnownStep& step = steps[s];
        if (!step.at_size) continue;
        SizeScaling& scaling = point.size_scaling.emplace_back();
        scaling.steps = {static_cast<int>(s)};
        scaling.axis = step.axis;
        const double us = point.end_to_end->latency.summary_ms.median * 1e3 / static_cast<double>(steps.size());
        std::vector<std::unique_ptr<TimedRuns>> all;
        std::vector<TimedRuns*> in_turn;
        for (const double factor : factors) {
            all.push_back(
                std::make_unique<TimedRuns>(device_, runs_a_graph(us), [&step, factor] { step.at_size(factor); }));
            in_turn.push_back(all.back().get());
        }
        const std::vector<Summary> times = time_in_turns(in_turn, seconds);
        for (std::size_t i = 0; i < times.size(); ++i)
            scaling.times.push_back({factors[i], factors[i] * step.flops,
                                     fmt::format("{} x {}", factors[i], step.layer), step.layer, times[i],
                                     all[i]->clock_mhz()});
    }
}

void KnownSteps::run_beside_thieves(Point& point, const std::vector<KnownStep>& steps, double seconds) const {
    BandwidthTheft& theft = point.theft.emplace();
    const DeviceWithThief shared = share_with_thief(device_, Roofs(roofs_, name(device_.kind())));
    std::vector<WorkRange> ranges;
    for (const KnownStep& step : steps)
        ranges.push_back({.group = "", .name = step.layer, .enqueue = step.on_part(device_)});
    WorkOnPart work(std::move(ranges), device_);
    kbench::run_beside_thieves({.times = times_of(work),
                                .thief = *shared.thief,
                                .multiprocessors = shared.workers,
                                .roofs = shared.roofs,
                                .seconds = seconds,
                                .in_turns = !device_.is_gpu(),
                                .longest_s = device_.is_gpu() ? std::numeric_limits<double>::infinity() : 3},
                               theft);
}

void KnownSteps::profile_on_gpu(Point& point, const std::vector<WorkRange>& ranges, DeviceGraph& forward,
                                const KnownBudget& budget) const {
    RangeKernels kernels = profiler_->record_kernels(forward, budget.activity_runs, budget.activity_warm_up_s);
    point.activity = kernels.run;
    for (std::size_t s = 0; s < ranges.size(); ++s) point.steps[s].kernels = kernels.by_range[s];
    if (budget.counters.nothing()) return;
    RangeCounters counters = profiler_->count(budget.counters);
    if (!counters.warning.empty()) throw DeviceError(counters.warning);  // each known step is one kernel
    keep(counters, point);
}

/// A CPU has no records: a clock stands around each step. What it cannot count stays out; that is no failure.
void KnownSteps::profile_on_cpu(Point& point, const std::vector<WorkRange>& ranges, const KnownBudget& budget,
                                RoofWatch* roofs) const {
    using Clock = std::chrono::steady_clock;
    const auto us_since = [](Clock::time_point from) {
        return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
    };
    std::vector<std::vector<double>> step_us(ranges.size());
    std::vector<double> whole_ms;
    const auto start = Clock::now();
    const auto run = [&] {
        for (const WorkRange& range : ranges) range.enqueue();
    };
    do {
        if (roofs != nullptr) roofs->look(run);
        const auto forward = Clock::now();
        for (std::size_t s = 0; s < ranges.size(); ++s) {
            const auto step = Clock::now();
            ranges[s].enqueue();
            step_us[s].push_back(us_since(step));
        }
        whole_ms.push_back(us_since(forward) * 1e-3);
    } while (us_since(start) < budget.sampler.min_time_s * 1e6);
    for (std::size_t s = 0; s < ranges.size(); ++s) point.steps[s].time_us = summarise(step_us[s]);
    point.activity.unprofiled_ms = summarise(whole_ms).mean;
    RangeCounters counters = profiler_->count(budget.counters);
    keep(counters, point);
}

CeilingRun measured_roofs(Device& device, double seconds) {
    make_profiler(device)->detach();
    CeilingRun roofs;
    roofs.device = device.is_gpu() ? device.info().gpu.value().name : "cpu";
    roofs.ceilings = measure_ceilings(device, seconds);
    return roofs;
}

std::string account(const Explanation& explained, std::size_t step) {
    const TimeBreakdown& breakdown = explained.breakdown;
    const StepFacts& facts = explained.facts.steps[step];
    const Verdict& verdict = explained.verdicts.steps[step];
    std::string text = fmt::format("end to end {:.1f} us; model: {} by {}; step {}: {} by {}\n",
                                   breakdown.end_to_end_us, name(explained.verdicts.model.bound),
                                   explained.verdicts.model.rule, verdict.subject, name(verdict.bound), verdict.rule);
    for (std::size_t i = 0; i < line_count; ++i)
        text += fmt::format("  {:12} {:12.2f} us of all {:12.2f} us of the step\n", info(line_at(i)).name,
                            breakdown.total[line_at(i)], lines_of(facts)[line_at(i)]);
    for (std::size_t i = 0; i < cause_count && step < explained.causes.steps.size(); ++i) {
        const Interval& us = explained.causes.steps[step].lines.us[i];
        text +=
            fmt::format("  {:16} {:12.2f} us [{:.2f}, {:.2f}]\n", info(cause_at(i)).name, us.value, us.low, us.high);
    }
    if (step < explained.causes.steps.size() && !explained.causes.steps[step].no_fit.empty())
        text += fmt::format("  no fit: {}\n", explained.causes.steps[step].no_fit);
    for (const TheftTimes& times : explained.facts.theft_times) {
        const Interval& us = times.step_us[step];
        text += fmt::format("  beside a thief of {:.3f} {}: {:.2f} us [{:.2f}, {:.2f}], {:.0f} MHz\n", times.share,
                            taken_names[static_cast<int>(times.taken)], us.value, us.low, us.high, times.clock_mhz);
    }
    if (const TheftGroup* theft = explained.theft.of_step(step))
        for (const LevelElasticity* level : {&theft->dram, &theft->l2}) text += "  " + sentence(*theft, *level) + "\n";
    for (const std::string& figure : explained.impossible) text += "  impossible: " + figure + "\n";
    for (const std::string& evidence : verdict.evidence) text += "  " + evidence + "\n";
    for (const Hypothesis& hypothesis : verdict.hypotheses)
        text += fmt::format("  {} {}: {}\n", name(hypothesis.bound), name(hypothesis.finding), hypothesis.why);
    const CycleAccount& cycles = explained.cycles.steps[step];
    text += fmt::format("  no warp {:.3f}, issuing {:.3f}, not issuing {:.3f} {}\n", cycles.no_warp, cycles.issuing,
                        cycles.not_issuing, cycles.not_split);
    for (const LostCycles& lost : cycles.lost)
        text += fmt::format("  {} {:.3f} [{:.3f}, {:.3f}]\n", lost.reason, lost.share, lost.low, lost.high);
    for (const RoofTime& roof_time : explained.roof_times[step].work)
        text += fmt::format("  roof time at {}: {:.2f} us as it was run, {:.2f} to {:.2f}\n", roof_time.roof.ceiling,
                            roof_time.run_us.value, roof_time.run_us.low, roof_time.run_us.high);
    for (const auto& [counter, value] : facts.step->counters) text += fmt::format("  {} = {:.6g}\n", counter, value);
    return text;
}

}  // namespace kbench
