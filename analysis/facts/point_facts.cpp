// Times, clocks and interventions of a point, step by step.
#include "analysis/facts/point_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "models/base/lists.h"

namespace kbench {
namespace {

Interval run_clock(const Conditions& conditions) {
    const double mean = conditions.sm_clock_mhz.value.value_or(0);
    Interval clock = Interval::exactly(mean);
    for (const ConditionBlock& block : conditions.blocks) {
        const double mhz = block.sm_clock_mhz.value_or(0);
        if (mean <= 0 || mhz <= 0) continue;
        clock.low = std::min(clock.low, mhz);
        clock.high = std::max(clock.high, mhz);
    }
    return clock;
}

Origin dram_origin(const CounterRun& counters) {
    const auto metric = std::ranges::find(counters.metrics, "dram_read_bytes", &CountedMetric::name);
    return metric != counters.metrics.end() ? metric->origin : Origin::measured;
}

/// What records add to one kernel of this recorded length: between the calibrated lengths in proportion, beyond them as
/// at the nearest. Files before version 3 counted a part of the launch as well; there, what the record itself is
/// longer.
class Inflation {
  public:
    explicit Inflation(const ActivityRun& run) {
        for (const RecordInflation& chain : run.inflation) {
            const double with = run.unprofiled_ms > 0 ? chain.profiled_us : chain.recorded_us;
            by_length_[chain.recorded_us] = with - chain.kernel_us;
        }
    }
    double us(double recorded_us) const {
        if (by_length_.empty()) return 0;
        const auto above = by_length_.lower_bound(recorded_us);
        if (above == by_length_.begin()) return above->second;
        if (above == by_length_.end()) return std::prev(above)->second;
        const auto below = std::prev(above);
        const double share = (recorded_us - below->first) / (above->first - below->first);
        return below->second + share * (above->second - below->second);
    }

  private:
    std::map<double, double> by_length_;
};

double step_clock_mhz(const StepFacts& facts, double run_clock_mhz) {
    const Counters& counters = facts.counters;
    const double elapsed = counters.sm_cycles_elapsed.value_or(0), time_ns = counters.time.value_or(0);
    const double counted_mhz = elapsed > 0 && time_ns > 0 ? elapsed / time_ns * 1e3 : 0;
    if (run_clock_mhz <= 0) return counted_mhz;
    if (counted_mhz <= 0) return run_clock_mhz;
    const double us = facts.kernels_us, active = counters.sm_cycles_active.value_or(0);
    const bool fits = us <= 0 || active <= run_clock_mhz * us;
    return fits ? std::min(run_clock_mhz, counted_mhz) : std::max(run_clock_mhz, counted_mhz);
}

/// Gaps before the step's kernels. An empty kernel's latency is from start to start, and so holds a gap as well: what
/// is left of it is starting and ending a kernel.
void add_gaps(StepFacts& facts, const std::optional<double>& empty_kernel_us) {
    for (const KernelResult& kernel : facts.step->kernels) {
        if (kernel.moved_bytes) facts.copies_us += kernel.time_us;
        if (kernel.host_wait_us) {
            const double waits = std::min(*kernel.host_wait_us, kernel.gap_us);
            facts.host_wait_us += waits;
            facts.queued_us += kernel.gap_us - waits;
            continue;
        }
        const double launch = std::min(kernel.gap_us, empty_kernel_us.value_or(kernel.gap_us));
        facts.launch_us += launch;
        facts.dependency_us += kernel.gap_us - launch;
        if (empty_kernel_us) facts.start_and_end_us += *empty_kernel_us - std::max(0.0, launch);
    }
    if (empty_kernel_us) facts.empty_kernels_us = *empty_kernel_us * static_cast<double>(facts.step->kernels.size());
}

/// A clock of one moment, as far from it as the run's blocks were from their mean.
Interval during_run(const Interval& mhz, const Interval& run_mhz) {
    if (run_mhz.value <= 0) return mhz;
    return {mhz.value, mhz.low * run_mhz.low / run_mhz.value, mhz.high * run_mhz.high / run_mhz.value};
}

void add_clock(StepFacts& facts, const Interval& run_mhz, const Interval& graph_mhz) {
    const bool in_graph = graph_mhz.value > 0;
    const double mhz = in_graph ? graph_mhz.value : step_clock_mhz(facts, run_mhz.value);
    facts.clock_mhz = {mhz, 0, 0};
    if (mhz <= 0) return;
    if (facts.counters.sm_cycles_active) facts.active_us = *facts.counters.sm_cycles_active / mhz;
    if (!in_graph && run_mhz.value <= 0) return;
    const Interval around = in_graph ? during_run(graph_mhz, run_mhz) : run_mhz;
    facts.clock_mhz = {mhz, std::min(mhz, around.low), std::max(mhz, around.high)};
    if (facts.time_us > 0) facts.clock_error = std::max(around.high / mhz - 1, 1 - around.low / mhz);
}

bool is_well_formed(const SmScaling& scaling, std::size_t steps) {
    const auto fits = [&](const SmCountRun& run) {
        return run.multiprocessors > 0 && run.step_us.size() == steps && run.step_low_us.size() == steps &&
               run.step_high_us.size() == steps;
    };
    const auto falls = [](const SmCountRun& a, const SmCountRun& b) { return a.multiprocessors <= b.multiprocessors; };
    return std::ranges::all_of(scaling.runs, fits) &&
           std::ranges::adjacent_find(scaling.runs, falls) == scaling.runs.end();
}

void add_sm_times(PointFacts& facts, const SmScaling& scaling) {
    facts.sm_times_unavailable = scaling.unavailable;
    if (scaling.unavailable.empty() && scaling.runs.size() < 2)
        facts.sm_times_unavailable = facts.workers == Workers::sms
                                         ? "the GPU was not divided into fewer SMs than it has"
                                         : "it was not run on fewer threads than it has";
    else if (scaling.unavailable.empty() && !is_well_formed(scaling, facts.steps.size()))
        facts.sm_times_unavailable =
            fmt::format("the times on fewer {} are not of the point's steps", name(facts.workers));
    if (!facts.sm_times_unavailable.empty()) return;
    const double all_mhz = scaling.runs.front().sm_clock_mhz.value.value_or(0);
    for (const SmCountRun& run : scaling.runs) {
        SmTimes& times = facts.sm_times.emplace_back();
        times.multiprocessors = run.multiprocessors;
        times.clock_ratio = all_mhz > 0 ? run.sm_clock_mhz.value.value_or(0) / all_mhz : 0;
        for (std::size_t s = 0; s < run.step_us.size(); ++s)
            times.step_us.push_back({run.step_us[s], run.step_low_us[s], run.step_high_us[s]});
    }
}

std::optional<Taken> taken_of(std::string_view name) {
    const auto found = std::ranges::find(taken_names, name);
    if (found == std::end(taken_names)) return std::nullopt;
    return static_cast<Taken>(found - std::begin(taken_names));
}

bool is_well_formed(const ThiefRun& run, std::size_t steps) {
    if (!taken_of(run.takes) || !(run.share >= 0 && run.share < 1) || run.multiprocessors <= 0 ||
        run.step_us.size() != steps || run.step_low_us.size() != steps || run.step_high_us.size() != steps)
        return false;
    for (std::size_t s = 0; s < steps; ++s)
        if (!(run.step_low_us[s] <= run.step_us[s] && run.step_us[s] <= run.step_high_us[s])) return false;
    return true;
}

/// Why the runs say nothing of the point's steps; empty where they do.
std::string why_no_theft(const BandwidthTheft& theft, std::size_t steps) {
    if (!theft.unavailable.empty()) return theft.unavailable;
    if (theft.runs.empty() || taken_of(theft.runs.front().takes) != Taken::nothing)
        return "no run of the work alone on its SMs begins the runs beside a thief";
    for (const ThiefRun& run : theft.runs)
        if (!is_well_formed(run, steps) || run.multiprocessors != theft.runs.front().multiprocessors)
            return "the times beside a thief are not of the point's steps";
    const auto took = [&](Taken what) {
        return std::ranges::any_of(theft.runs, [&](const ThiefRun& run) { return taken_of(run.takes) == what; });
    };
    if (!took(Taken::compute)) return "no thief that only computes shows what power and clock do";
    if (!took(Taken::dram) && !took(Taken::l2)) return "no thief took bandwidth";
    return "";
}

void add_theft_times(PointFacts& facts, const BandwidthTheft& theft) {
    facts.theft_unavailable = why_no_theft(theft, facts.steps.size());
    if (!facts.theft_unavailable.empty()) return;
    facts.theft_multiprocessors = theft.runs.front().multiprocessors;
    for (const ThiefRun& run : theft.runs) {
        TheftTimes& times = facts.theft_times.emplace_back();
        times.taken = *taken_of(run.takes);
        times.share = run.share;
        times.clock_mhz = run.sm_clock_mhz.value.value_or(0);
        times.latency_ms = run.latency_ms;
        for (std::size_t s = 0; s < run.step_us.size(); ++s)
            times.step_us.push_back({run.step_us[s], run.step_low_us[s], run.step_high_us[s]});
    }
}

void add_program(PointFacts& facts, const ActivityRun& activity) {
    if (activity.profiled_ms > 0 && activity.unprofiled_ms > 0)
        facts.records_us = (activity.profiled_ms - activity.unprofiled_ms) * 1e3;
    for (const StepFacts& step : facts.steps)
        if (step.has_unknown_work()) facts.unknown_work_us += step.kernels_us - step.copies_us;
}

void add_size_fits(PointFacts& facts, const std::vector<SizeScaling>& scalings) {
    std::vector<bool> has(facts.steps.size());
    for (const SizeScaling& scaling : scalings)
        for (const int s : scaling.steps) {
            const auto step = static_cast<std::size_t>(s);
            if (step >= facts.steps.size() || has[step]) continue;
            has[step] = true;
            facts.steps[step].size_fit = fit_size(scaling, facts.steps[step].own_clock_mhz);
        }
}

}  // namespace

bool StepFacts::has_unknown_work() const {
    return !step->has_cost() && !counters.dram_read_bytes && copies_us < kernels_us;
}

bool StepFacts::has_cycles() const {
    return active_us && counters.ipc && *counters.sm_cycles_active > 0 && kernels_us > 0;
}

std::optional<double> StepFacts::active_pct() const {
    return active_us && kernels_us > 0 ? std::optional(std::min(100.0, 100 * *active_us / kernels_us)) : std::nullopt;
}

double StepFacts::executed_over_useful() const {
    const double needed = step->needed_flops();
    return needed > 0 ? 1 + step->padding_flops / needed : 1;
}

Interval device_interval(const StepResult& step) {
    const double us = step.device_us().value_or(0);
    if (!step.time_us || !(step.time_us->median > 0)) return Interval::exactly(us);
    return scaled(Interval::of(*step.time_us), us / step.time_us->median);
}

std::int64_t StepFacts::chained_steps() const {
    return step->direction == Direction::wgrad ? 1 : step->time_steps.value_or(1);
}

std::string_view kind_of(std::string_view absorbed) { return absorbed.substr(absorbed.rfind(':') + 1); }

std::string layer_group(std::string_view layer) {
    std::string group;
    while (true) {
        const std::size_t dot = layer.find('.');
        const std::string_view part = layer.substr(0, dot);
        const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        group += is_number ? std::string_view("*") : part;
        if (dot == std::string_view::npos) return group;
        group += '.';
        layer.remove_prefix(dot + 1);
    }
}

std::vector<Interval> graph_clocks(const Point& point) {
    std::vector<Interval> clocks(point.steps.size());
    if (!point.graph_clock || !point.graph_clock->unavailable.empty() ||
        point.graph_clock->step_mhz.size() != point.steps.size())
        return clocks;
    const std::vector<double>& read = point.graph_clock->step_mhz;
    struct Readings {
        double sum = 0, count = 0, low = 0, high = 0;
    };
    std::map<std::string, Readings> by_name;
    std::vector<Readings*> of_step;
    for (std::size_t s = 0; s < read.size(); ++s) {
        const StepResult& step = point.steps[s];
        std::string named = layer_group(step.layer);
        named.append(" ").append(step.op).append(" ").append(name(step.direction));
        Readings& readings = by_name[named];
        of_step.push_back(&readings);
        if (read[s] <= 0) continue;
        readings.low = readings.count > 0 ? std::min(readings.low, read[s]) : read[s];
        readings.high = std::max(readings.high, read[s]);
        readings.sum += read[s];
        ++readings.count;
    }
    for (std::size_t s = 0; s < read.size(); ++s)
        if (const Readings& readings = *of_step[s]; readings.count > 0)
            clocks[s] = {read[s] > 0 ? read[s] : readings.sum / readings.count, readings.low, readings.high};
    return clocks;
}

StepFacts make_step_facts(const StepResult& step, const PointFacts& run, const Interval& graph_mhz) {
    StepFacts facts;
    facts.step = &step;
    facts.counters = counters_of(step);
    facts.dram_origin = run.dram_origin;
    facts.on_gpu = run.point != nullptr && run.point->backend() == "cuda";
    facts.device_us = device_interval(step);
    if (step.kernels.empty()) {
        facts.time_us = facts.kernels_us = step.time_us ? step.time_us->mean : 0;
    } else {
        facts.time_us = step.device_us().value_or(0);
        facts.gap_before_us = step.kernels.front().gap_us;
        for (const KernelResult& kernel : step.kernels) facts.kernels_us += kernel.time_us;
    }
    add_clock(facts, run.clock_mhz, graph_mhz);
    facts.has_graph_clock = graph_mhz.value > 0;
    facts.own_clock_mhz = facts.has_graph_clock ? graph_mhz : facts.clock_mhz;
    facts.size_fit.unavailable = "it was not timed at other sizes";
    if (facts.time_us > 0) add_gaps(facts, run.empty_kernel_us);
    return facts;
}

PointFacts make_facts(const Point& point, const Roofs& roofs) {
    PointFacts facts;
    facts.point = &point;
    facts.workers = point.backend() == "cpu" ? Workers::threads : Workers::sms;
    facts.roofs = roofs;
    facts.clock_mhz = run_clock(point.conditions);
    facts.dram_origin = dram_origin(point.counters);
    facts.empty_kernel_us = roofs.latency_us("graph_node");
    const Inflation inflation(point.activity);
    const std::vector<Interval> clocks = graph_clocks(point);
    for (const StepResult& step : point.steps) {
        StepFacts& own = facts.steps.emplace_back(make_step_facts(step, facts, clocks[facts.steps.size()]));
        entry(facts.by_layer, &NamedSteps::name, layer_group(step.layer)).steps.push_back(facts.steps.size() - 1);
        entry(facts.by_op, &NamedSteps::name, step.op).steps.push_back(facts.steps.size() - 1);
        if (own.time_us <= 0) continue;
        for (const KernelResult& kernel : step.kernels) own.recording_us += inflation.us(kernel.time_us);
    }
    add_size_fits(facts, point.size_scaling);
    if (point.sm_scaling) add_sm_times(facts, *point.sm_scaling);
    if (point.theft) add_theft_times(facts, *point.theft);
    if (point.end_to_end)
        facts.end_to_end_us = point.end_to_end->latency.summary_ms.median * 1e3;
    else
        facts.unavailable = point.reason.empty() ? "the point was not timed" : point.reason;
    if (const double ms = point.activity.unprofiled_ms; ms > 0) facts.drift_us = facts.end_to_end_us - ms * 1e3;
    if (point.program) add_program(facts, point.activity);
    if (point.end_to_end && std::ranges::none_of(facts.steps, [](const StepFacts& step) { return step.time_us > 0; }))
        facts.unavailable = "its steps were not timed";
    return facts;
}

}  // namespace kbench
