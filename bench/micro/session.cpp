// One microbenchmark from its plan to its columns.
#include "bench/micro/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/explain/roof_times.h"
#include "analysis/facts/executed_flops.h"
#include "analysis/machine/cpu_share.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/device_support.h"
#include "bench/profile/condition_sampler.h"
#include "bench/profile/machine_state.h"
#include "bench/profile/starvation.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Long compared with what an event, the launch of a graph and reading a clock add to it.
constexpr double gpu_launch_us = 200;

/// Enough to average the counters of; more only take time.
constexpr std::size_t counted_runs = 8;

/// With fewer the median seldom has a 95 % interval.
constexpr double fewest_samples = 20;

/// All sets have the contents of the first; only their addresses differ.
class SameInEverySet final : public WeightSource {
  public:
    explicit SameInEverySet(std::uint64_t seed) : random_(seed) {}
    void read(const Tensor& tensor, DataType type, void* destination, std::int64_t stride) override {
        Tensor one = tensor;
        one.name.resize(std::min(one.name.size(), one.name.find('#')));
        const auto bytes = static_cast<std::size_t>(tensor.rows() * stride) * size_of(type);
        std::vector<std::byte>& first = contents_[{one.name, type}];
        if (first.size() != bytes) {
            first.assign(bytes, std::byte{0});
            random_.read(one, type, first.data(), stride);
        }
        std::copy(first.begin(), first.end(), static_cast<std::byte*>(destination));
    }
    std::string name() const override { return random_.name(); }

  private:
    RandomWeights random_;
    std::map<std::pair<std::string, DataType>, std::vector<std::byte>> contents_;
};

/// Rates for a machine without measured roofs: higher than any machine's, so that no run is thought longer than it is.
constexpr double fastest_flop_per_us = 4e9, fastest_bytes_per_us = 2e7;

/// No kernel of a graph takes less.
constexpr double least_kernel_us = 1;

/// The least time that a run on a GPU can take.
double least_us(const StepResult& step, const Roofs& roofs) {
    const std::vector<RoofTime> roof_times = roof_times_of(make_step_facts(step), roofs);
    const double us = roof_times.empty()
                          ? std::max(step.cost.flops / fastest_flop_per_us, step.cost.bytes() / fastest_bytes_per_us)
                          : roof_times.front().us;
    return std::max(least_kernel_us, us);
}

/// Whether bytes that the cost model asks for need not have moved: hot caches may hold all of them.
bool may_be_cached(const RoofTime& roof_time, CacheState cache) {
    return cache == CacheState::hot && roof_time.level == Level::dram && roof_time.origin != Origin::measured;
}

}  // namespace

RunShape run_shape(CacheState cache, double set_bytes, double cache_bytes, double least_run_us, double launch_us) {
    RunShape shape;
    if (cache == CacheState::cold) {
        const double sets = std::ceil(3 * cache_bytes / std::max(1.0, set_bytes)) + 1;
        if (sets > static_cast<double>(most_runs))
            throw Unsupported(fmt::format("too small to be found cold: {:.0f} bytes of operands, {:.0f} MB of caches",
                                          set_bytes, cache_bytes * 1e-6));
        shape.sets = std::max<std::int64_t>(2, static_cast<std::int64_t>(sets));
    }
    const double wanted = std::ceil(launch_us / std::max(1e-3, least_run_us));
    const auto runs = static_cast<std::int64_t>(std::min(wanted, static_cast<double>(most_runs)));
    shape.runs = shape.sets * std::max<std::int64_t>(1, runs / shape.sets);
    return shape;
}

MicroFigures micro_figures(const Point& point, const Summary& time, const Roofs& roofs, CacheState cache) {
    const StepFacts facts = make_facts(point, roofs).steps.front();
    const StepResult& step = *facts.step;
    MicroFigures figures;
    figures.tflop_per_s = step.cost.flops / time.median * 1e-9;
    figures.gb_per_s = step.cost.bytes() / time.median * 1e-6;
    if (time.has_interval()) figures.relative_ci = time.relative_ci();
    figures.clock_mhz = point.conditions.sm_clock_mhz.value;
    for (const RoofTime& roof_time : roof_times_of(facts, roofs)) {
        if (may_be_cached(roof_time, cache) || roof_time.us <= 0) continue;
        figures.roof_share = roof_time.us / (time.median * 1e3);
        figures.roof = roof_time.roof.ceiling;
        break;
    }
    const Counters& counters = facts.counters;
    figures.achieved_occupancy_pct = counters.achieved_occupancy;
    if (facts.dram_origin == Origin::measured) figures.dram_bytes = dram_traffic(counters);
    figures.executed_flops = executed_flops(counters);
    if (!figures.executed_flops) figures.executed_flops = executed_flops(counters, step.precision);
    return figures;
}

void fold_runs(Point& point) {
    const auto runs = static_cast<double>(point.steps.size());
    std::vector<StepResult> steps = std::move(point.steps);
    StepResult folded = steps.front();
    folded.layer = "micro";
    for (std::string& op : folded.absorbs) op = "micro" + op.substr(op.find(':'));
    std::map<std::string, std::pair<double, int>> counters;
    for (const StepResult& step : steps) {
        for (const auto& [metric, value] : step.counters) {
            counters[metric].first += value;
            ++counters[metric].second;
        }
        if (!step.counters_discarded.empty()) folded.counters_discarded = step.counters_discarded;
    }
    for (const auto& [metric, sum] : counters) folded.counters[metric] = sum.first / sum.second;
    for (std::size_t k = 0; k < folded.kernels.size(); ++k) {
        std::vector<double> times, gaps;
        for (const StepResult& step : steps)
            if (k < step.kernels.size()) {
                times.push_back(step.kernels[k].time_us);
                gaps.push_back(step.kernels[k].gap_us);
            }
        folded.kernels[k].time_us = summarise(times).median;
        folded.kernels[k].gap_us = summarise(gaps).median;
    }
    point.steps = {std::move(folded)};
    for (double* sum : {&point.activity.kernels_ms, &point.activity.gaps_ms, &point.activity.profiled_ms,
                        &point.activity.unprofiled_ms})
        *sum /= runs;
    const auto divide = [runs](double& value) { value /= runs; };
    divide(point.cost.flops);
    std::ranges::for_each(point.cost.bytes_read, divide);
    std::ranges::for_each(point.cost.bytes_written, divide);
    divide(point.padding_flops);
}

void expect_no_traffic(Point& point, double set_bytes, double cache_bytes) {
    if (set_bytes > cache_bytes) return;
    for (CountedMetric& metric : point.counters.metrics) {
        if (metric.origin != Origin::estimated || !metric.name.starts_with("dram_")) continue;
        metric.reason = fmt::format("{:.3g} MB of hot operands stay in {:.3g} MB of caches; {}", set_bytes * 1e-6,
                                    cache_bytes * 1e-6, metric.reason);
        for (StepResult& step : point.steps)
            if (const auto counted = step.counters.find(metric.name); counted != step.counters.end())
                counted->second = 0;
    }
}

MicroSession::MicroSession(const PointOptions& options, Device& device, Profiler& profiler, Providers& providers,
                           Result& result, double device_s, bool quiet)
    : options_(options),
      device_s_(device_s),
      device_(device),
      profiler_(profiler),
      result_(result),
      roofs_(result.ceilings, name(device.kind())),
      providers_(providers),
      progress_(quiet) {
    options_.counters.most_ranges = counted_runs;
    options_.step_runs = options_.output_repeats = 0;
    options_.leave_out_experiments();
}

std::vector<double> MicroSession::chunk() {
    const auto start = Clock::now();
    std::vector<double> ms = untimed_chunk();
    sample_wall_s_ = seconds_since(start) / static_cast<double>(std::max<std::size_t>(1, ms.size()));
    return ms;
}

std::vector<double> MicroSession::untimed_chunk() {
    if (!device_.is_gpu()) return forward_->chunk_of_steps();
    std::vector<double> ms = forward_->chunk();
    for (double& launch : ms) launch /= static_cast<double>(runs_a_launch_);
    return ms;
}

Sampled MicroSession::take(const SamplerOptions& sampler) {
    const PhaseTimer timer(current_point(), "measure");
    ConditionSampler conditions(profiler_.machine_state());
    conditions.start();
    const auto throttled = [&conditions] {
        if (StopSignals::is_overdue()) throw MeasurementError("stopped before it was sampled enough");
        return discards_sample(conditions.throttle_mask_now());
    };
    StarvationWatch watch(profiler_.machine_state());
    const WindowCalls calls{.begin =
                                [&] {
                                    conditions.begin_window();
                                    watch.begin();
                                },
                            .end = [&] { current_point().conditions = conditions.stop(); },
                            .starved = [&](bool last) { return watch.lacked(last); }};
    Sampled sampled = kbench::sample([this] { return chunk(); }, sampler, throttled, calls);
    current_point().conditions.throttled_samples = sampled.throttled;
    if (std::optional<CpuShare> share = watch.share(sampled.kept_starved)) {
        share->starved_samples = sampled.starved;
        warn_of_starvation(*share);
        current_point().conditions.cpu_share = std::move(share);
    }
    return sampled;
}

/// Warns once, as hundreds of benchmarks with the same other work on the host would repeat it.
void MicroSession::warn_of_starvation(const CpuShare& share) {
    const std::string warning = starvation_warning(share);
    if (warning.empty() || std::exchange(warned_of_starvation_, true)) return;
    result_.warnings.push_back(
        fmt::format("{}: {}; the conditions of every benchmark after it say the same of its own samples",
                    current_point().model(), warning));
}

/// Another repetition of a case that was measured before adds to its point.
void MicroSession::begin_point(const MicroCase& micro) {
    const auto known = std::ranges::find(result_.points, micro.name(), &Point::model);
    const bool is_new = known == result_.points.end();
    current_point_ = static_cast<std::size_t>(known - result_.points.begin());
    if (is_new) result_.points.emplace_back();
    before_ = {};
    if (!is_new && current_point().end_to_end) before_ = current_point().end_to_end->latency;
    Point& point = current_point() = {};
    point.set("model", micro.name());
    point.set("backend", name(device_.kind()));
    point.set("precision", micro.precision);
    point.set("direction", name(micro.direction()));
    point.seed = options_.seed;
}

RunShape MicroSession::plan(const MicroCase& micro) {
    if (const std::string why = unsupported(device_, micro.precision); !why.empty()) throw Unsupported(why);
    const Step& problem = micro.asked.problem;
    const auto assign = [&](const Model& model) {
        return assign_problem(model, problem.ops.size(), micro.provider, micro.precision, providers_,
                              column_multiple(device_, micro.precision));
    };
    const Model once = make_problem_model(problem, 1, 1);
    assign(once);  // before the arithmetic of sets: a reason of the provider's comes first
    StepResult one;
    one.precision = micro.precision;
    one.cost = step_cost(once, {0}, micro.precision);
    current_.set_bytes = problem_bytes(problem, micro.precision);
    const RunShape shape = run_shape(micro.cache, current_.set_bytes, static_cast<double>(device_.info().cache_bytes),
                                     least_us(one, roofs_), device_.is_gpu() ? gpu_launch_us : 0);
    current_.model = std::make_unique<Model>(make_problem_model(problem, shape.sets, shape.runs));
    current_point().verification.enabled = options_.verify;
    progress_.show(micro.name() + ": plan");
    current_.plan.emplace(plan_point(
        *current_.model, assign(*current_.model), device_, current_point(),
        [&](std::int64_t) { return fmt::format("{} sets of operands are needed to find caches cold", shape.sets); }));
    // Cold, hot and the next provider read the same.
    if (contents_of_ != once.name) contents_ = std::make_unique<SameInEverySet>(options_.seed);
    contents_of_ = once.name;
    return shape;
}

void MicroSession::measure_new(const MicroCase& micro, const std::function<void()>& repetition) {
    const RunShape shape = plan(micro);
    Point& point = current_point();
    // Cold and hot runs of a shape are the same provider call: it is checked once.
    const std::string key =
        fmt::format("{}/{}/{}/{}/{}", micro.asked.op, micro.asked.shape, micro.provider, name(micro.precision),
                    current_.plan->steps().front().computation->implementation());
    const auto known = verified_.find(key);
    point.weights = contents_->name();
    const auto first_repetition = [&](Forward& forward) {
        verified_[key] = point.verification;
        forward_ = &forward;
        runs_a_launch_ = device_.is_gpu() ? static_cast<std::size_t>(shape.runs) : 1;
        take_pilot();
        if (!before_.samples_ms.empty()) point.end_to_end.emplace().latency = std::move(before_);
        progress_.clear();
        repetition();
    };
    current_.measured =
        kbench::measure({.plan = *current_.plan,
                         .device = device_,
                         .profiler = profiler_,
                         .options = options_,
                         .weights = *contents_,
                         .point = point,
                         .warnings = result_.warnings,
                         .verified = known != verified_.end() ? std::optional(known->second) : std::nullopt,
                         .sample = first_repetition,
                         .on_part = [&](const std::string& part) { progress_.show(micro.name() + ": " + part); }});
    fold();
}

MicroFigures MicroSession::measure(const MicroCase& micro, const std::function<void()>& repetition) {
    profiler_.detach();  // every repetition is timed alike
    if (micro.name() == current_.name) {
        repetition();
        return micro_figures(point(), last_ms_, roofs_, current_.cache);
    }
    forward_ = nullptr;
    current_.measured = {};
    current_.plan.reset();
    current_ = {};
    current_.cache = micro.cache;
    begin_point(micro);
    try {
        measure_new(micro, repetition);
    } catch (const Error& error) {
        const bool skipped = dynamic_cast<const Unsupported*>(&error) != nullptr;
        current_point().status = skipped ? PointStatus::skipped : PointStatus::failed;
        current_point().reason = error.what();
        progress_.clear();
        throw;
    }
    current_point().status = PointStatus::done;
    current_.name = micro.name();
    progress_.clear();
    return micro_figures(point(), last_ms_, roofs_, current_.cache);
}

void MicroSession::take_pilot() {
    SamplerOptions pilot = options_.sampler;
    pilot.min_samples = 5;
    pilot.max_samples = 20;
    pilot.min_time_s = 0;
    pilot.time_budget_s = options_.sampler.time_budget_s / 10;
    const Sampled sampled = kbench::sample([this] { return chunk(); }, pilot, [] { return false; });
    const Summary& ms = sampled.timing.summary_ms;
    pilot_spread_ = ms.median > 0 ? (ms.p75 - ms.p25) / ms.median : 0;
    sample_device_s_ = ms.median * 1e-3 * static_cast<double>(runs_a_sample());
}

std::size_t MicroSession::planned_runs(std::size_t runs) {
    if (runs > 1) return runs;
    if (const auto known = planned_.find(point().model()); known != planned_.end()) return known->second;
    const SamplerOptions& s = options_.sampler;
    // For normal samples the median's interval is 1.96 x 1.25 deviations over the root of their number, and the
    // quartiles are 1.35 deviations apart.
    const double narrower = 1.96 * 1.25 / 1.35 * pilot_spread_ / s.target_relative_ci;
    const double for_interval = narrower * narrower;
    const double in_budget = s.time_budget_s / std::max(1e-9, sample_wall_s_);
    const double for_device = 1.1 * device_s_ / std::max(1e-12, sample_device_s_);
    double wanted = std::clamp(for_interval, static_cast<double>(s.min_samples), static_cast<double>(s.max_samples));
    wanted = std::max({std::min(wanted, in_budget), for_device, fewest_samples});
    return planned_[point().model()] = static_cast<std::size_t>(std::ceil(wanted)) * runs_a_sample();
}

double MicroSession::sample(std::size_t runs) {
    const std::size_t samples = (runs + runs_a_sample() - 1) / runs_a_sample();
    SamplerOptions sampler = options_.sampler;
    sampler.warm_up_s = 0;
    sampler.min_time_s = 0;
    sampler.min_samples = sampler.max_samples = samples;
    sampler.time_budget_s = std::max(sampler.time_budget_s, 2 * sample_wall_s_ * static_cast<double>(samples));
    Sampled sampled = take(sampler);
    last_ms_ = sampled.timing.summary_ms;
    Point& point = current_point();
    if (!point.end_to_end) point.end_to_end.emplace();
    EndToEnd& end_to_end = *point.end_to_end;
    std::vector<double>& all = end_to_end.latency.samples_ms;
    all.insert(all.end(), sampled.timing.samples_ms.begin(), sampled.timing.samples_ms.end());
    end_to_end.latency.summary_ms = summarise(all);
    end_to_end.runs_per_sample = static_cast<std::int64_t>(runs_a_sample());
    end_to_end.converged = end_to_end.latency.summary_ms.relative_ci() <= options_.sampler.target_relative_ci;
    return last_ms_.median * 1e-3;
}

/// From the runs of the plan to the point of one run.
void MicroSession::fold() {
    Point& point = current_point();
    fold_runs(point);
    if (current_.cache == CacheState::hot)
        expect_no_traffic(point, current_.set_bytes, static_cast<double>(device_.info().cache_bytes));
    std::vector<double> us;
    for (const double ms : point.end_to_end->latency.samples_ms) us.push_back(ms * 1e3);
    point.steps.front().time_us = summarise(us);
    // A CPU's times add up by their mean, which a time breakdown compares with the median.
    if (!device_.is_gpu()) point.activity.unprofiled_ms = point.steps.front().time_us->mean * 1e-3;
}

}  // namespace kbench
