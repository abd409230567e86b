// The parts of a point's measurement.
#include "bench/measure/point_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "analysis/explain/breakdown.h"
#include "analysis/explain/executed.h"
#include "analysis/machine/kernel_occupancy.h"
#include "bench/measure/outputs.h"
#include "analysis/result/point_name.h"
#include "bench/measure/verify.h"
#include "bench/plan/data/npy.h"
#include "bench/profile/condition_sampler.h"
#include "models/base/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

/// Left free for what is no part of a plan: the context, library handles, page tables, graphs, CUPTI's buffers.
std::int64_t reserved_bytes(std::int64_t free) { return std::max(std::int64_t{256} << 20, free / 100); }

/// How many times the time for marginal costs may be exceeded for the fewest samples that make an interval.
constexpr double marginal_patience = 15;

/// Op kinds with less than this share of the steps' time have no marginal cost: it would be lost in the noise.
constexpr double marginal_share = 0.01;

std::string gigabytes(std::int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) * 1e-9); }

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
    if (!terminal_) return;
    fmt::print(stderr, "\r{:<{}}", text, shown_);
    std::fflush(stderr);
    shown_ = text.size();
}

void Progress::clear() {
    if (!terminal_ || shown_ == 0) return;
    fmt::print(stderr, "\r{:<{}}\r", "", shown_);
    std::fflush(stderr);
    shown_ = 0;
}

Layout estimate_layout(const Model& model, Precision precision, const std::vector<AssignedStep>& steps) {
    std::int64_t workspace = 0;
    for (const AssignedStep& a : steps) workspace = std::max(workspace, a.provider->workspace_limit);
    return lay_out(
        model, precision, steps,
        [&](std::size_t s, std::size_t i) {
            const Operand operand = operands(steps[s].step, precision)[i];
            const bool packed =
                steps[s].provider->packs_weights && operand.use == OperandUse::weight && operand.rows > 1;
            return packed ? operand.bytes() : 0;
        },
        workspace);
}

std::int64_t plannable_bytes(const Backend& backend) {
    const std::int64_t free = backend.free_bytes();
    return free - reserved_bytes(free);
}

std::int64_t needed_bytes(const Model& model, const Layout& layout, const Backend& backend) {
    if (backend.kind() != BackendKind::cpu) return layout.memory.total();
    return layout.memory.total() + 2 * std::min(output_bytes(model, layout), OutputRows::usual_bytes);
}

PointRun::PointRun(const PointOptions& options, Backend& backend, Point& point, std::vector<std::string>& warnings,
                   Progress& progress, std::string label, std::function<void()> between)
    : options_(options),
      backend_(backend),
      point_(point),
      warnings_(warnings),
      progress_(progress),
      label_(std::move(label)),
      between_(std::move(between)) {
    point_.verification.enabled = options_.verify;
}

void PointRun::step(const std::string& what) {
    if (between_) between_();
    progress_.show(label_ + ": " + what);
}

void PointRun::refuse_if_too_large(std::int64_t needed, const std::function<std::string(std::int64_t)>& hint) const {
    const std::int64_t available = plannable_bytes(backend_);
    if (needed <= available) return;
    throw Unsupported(fmt::format("{} needs {} of memory, {} are free: {}", short_name(point_), gigabytes(needed),
                                  gigabytes(available), hint(available)));
}

void PointRun::plan(const Model& model, std::vector<AssignedStep> steps,
                    const std::function<std::string(std::int64_t)>& hint) {
    step("plan");
    const PhaseTimer timer(point_, "plan");
    refuse_if_too_large(needed_bytes(model, estimate_layout(model, point_.precision(), steps), backend_), hint);
    plan_.emplace(model, point_.precision(), std::move(steps));
    point_.memory = plan_->layout().memory;
    refuse_if_too_large(needed_bytes(model, plan_->layout(), backend_), hint);
    describe_steps();
}

void PointRun::load(WeightSource& weights, const FilesByName& files) {
    {
        step("weights");
        const PhaseTimer timer(point_, "weights");
        plan_->allocate(backend_, weights);
        for (const TensorId id : plan_->model().inputs) {
            const Tensor& tensor = plan_->model().tensors[id];
            const auto file = files.find(tensor.name);
            plan_->set_input(
                id, input_bytes(tensor, plan_->operand(id), file == files.end() ? "" : file->second, options_.seed));
        }
    }
    step("prepare");
    const PhaseTimer timer(point_, "prepare");
    backend_.prepare(*plan_);
}

void PointRun::describe_steps() {
    const Plan& plan = *plan_;
    const Model& model = plan.model();
    for (std::size_t s = 0; s < plan.steps().size(); ++s) {
        const PlannedStep& planned = plan.steps()[s];
        StepResult result;
        result.index = static_cast<int>(s);
        result.layer = model.ops[planned.naming_op].layer;
        result.op = op_name(planned.step);
        for (const std::size_t op : planned.ops)
            result.absorbs.push_back(model.ops[op].layer + ":" + std::string(name(model.ops[op].op)));
        result.provider = planned.provider->name;
        result.implementation = planned.computation->implementation();
        result.shape = shape_text(planned.step);
        result.precision = point_.precision();
        result.direction = model.ops[planned.naming_op].direction;
        result.cost = step_cost(model, planned.ops, point_.precision());
        result.padding_flops = padding_flops(planned.step);
        result.matrix_flops = matrix_flops(planned.step);
        point_.cost += result.cost;
        point_.padding_flops += result.padding_flops;
        point_.steps.push_back(std::move(result));
    }
}

void PointRun::verify() {
    const Plan& plan = *plan_;
    const PhaseTimer timer(point_, "verify");
    const auto start = Clock::now();
    std::vector<const Computation*> seen;
    for (std::size_t s = 0; s < plan.steps().size(); ++s) {
        const PlannedStep& planned = plan.steps()[s];
        if (std::find(seen.begin(), seen.end(), planned.computation.get()) != seen.end()) continue;
        seen.push_back(planned.computation.get());
        step(fmt::format("verify {} {}", op_name(planned.step), shape_text(planned.step)));
        const VerifyTarget target{&planned.step, planned.computation.get(), std::string(planned.provider->name),
                                  point_.steps[s].layer};
        point_.verification.steps.push_back(verify_step(target, point_.precision(), backend_, options_.seed));
    }
    point_.verification.seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

void PointRun::measure() {
    step("measure");
    const PhaseTimer timer(point_, "measure");
    const std::vector<Measurement> measurements = backend_.measurements();
    EndToEnd end_to_end;
    double sampling_seconds = 0;
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        step("measure " + measurements[i].name);
        SamplerOptions sampler = options_.sampler;
        if (i > 0) {
            // Secondary figures: enough samples for a median, without the headline's patience.
            sampler.warm_up_s = 0;
            sampler.min_time_s = 0;
            sampler.time_budget_s = std::min(1.0, sampler.time_budget_s);
        }
        ConditionSampler conditions(backend_.machine_state());
        conditions.start();
        const auto throttled = [&conditions] { return discards_sample(conditions.throttle_mask_now()); };
        const auto start = Clock::now();
        Sampled sampled = sample(measurements[i].chunk, sampler, throttled);
        if (i == 0) {
            sampling_seconds = std::chrono::duration<double>(Clock::now() - start).count();
            point_.conditions = conditions.stop();
            point_.conditions.throttled_samples = sampled.throttled;
            end_to_end.converged = sampled.converged;
            end_to_end.latency = std::move(sampled.timing);
        } else if (measurements[i].name == "stream") {
            end_to_end.stream = std::move(sampled.timing);
        } else if (measurements[i].name == "enqueue") {
            end_to_end.enqueue = std::move(sampled.timing);
        } else if (measurements[i].name == "host_to_device") {
            end_to_end.host_to_device = std::move(sampled.timing);
        } else if (measurements[i].name == "device_to_host") {
            end_to_end.device_to_host = std::move(sampled.timing);
        }
    }
    const double seconds = end_to_end.latency.summary_ms.median * 1e-3;
    // One amount for each sequence and one for each token, where the point has them.
    const std::optional<std::int64_t> batch = point_.axes.count("batch"), seq = point_.seq();
    const auto sequences = static_cast<double>(batch.value_or(0));
    const double tokens = sequences * static_cast<double>(seq.value_or(0));
    if (batch) end_to_end.sequences_per_s = sequences / seconds;
    if (batch && seq) end_to_end.tokens_per_s = *end_to_end.sequences_per_s * static_cast<double>(*seq);
    // The device is busy all through the sampling, so mean power times latency is one forward's energy.
    const Conditions& c = point_.conditions;
    std::optional<double> power_w = c.power_w.value;
    if (!power_w && c.energy_j.value) power_w = *c.energy_j.value / sampling_seconds;
    const auto energy_per = [&](double amount) {
        return power_w ? Quantity::derived(*power_w * seconds / amount) : Quantity::unavailable(c.power_w.reason);
    };
    if (batch) end_to_end.energy_per_sequence_j = energy_per(sequences);
    if (batch && seq) end_to_end.energy_per_token_j = energy_per(tokens);
    point_.end_to_end = std::move(end_to_end);
}

void PointRun::time_steps() {
    const PhaseTimer timer(point_, "steps");
    std::vector<std::vector<double>> times(point_.steps.size());
    std::vector<double> overheads, whole_ms;
    const auto start = Clock::now();
    for (int r = 0; r < options_.step_runs; ++r) {
        step("steps");
        const StepTimes run = backend_.step_times();
        overheads.push_back(run.overhead_us);
        if (run.whole_us > 0) whole_ms.push_back(run.whole_us * 1e-3);
        for (std::size_t s = 0; s < run.us.size(); ++s) times[s].push_back(run.us[s]);
        if (std::chrono::duration<double>(Clock::now() - start).count() > options_.sampler.time_budget_s) break;
    }
    for (std::size_t s = 0; s < times.size(); ++s) point_.steps[s].time_us = summarise(times[s]);
    point_.step_overhead_us = Quantity::measured(summarise(overheads).median);
    if (!whole_ms.empty()) point_.activity.unprofiled_ms = summarise(whole_ms).mean;  // as the steps' times add up
}

/// Timing stands alone: where kernels cannot be recorded or counted, the result says why.
void PointRun::record_kernels() {
    step("kernels");
    const PhaseTimer timer(point_, "kernels");
    try {
        StepKernels kernels = backend_.record_kernels(options_.activity_runs, options_.activity_warm_up_s);
        point_.activity = std::move(kernels.run);
        const std::optional<GpuInfo> gpu = backend_.gpu_info();
        for (std::size_t s = 0; s < point_.steps.size(); ++s) {
            for (KernelResult& kernel : kernels.by_step[s])
                if (gpu) describe_occupancy(kernel, *gpu);
            point_.steps[s].kernels = std::move(kernels.by_step[s]);
        }
    } catch (const DeviceError& error) {
        point_.activity.unavailable = error.what();
    }
}

/// Op kinds in turn, so that what drifts in time does not meet one of them alone. Where the time allows fewer than
/// `fewest` samples of each there are none: such an interval would say nothing.
void PointRun::measure_marginal_costs() {
    constexpr std::size_t fewest = 6;
    if (options_.marginal_s <= 0) return;
    step("marginal costs");
    const PhaseTimer timer(point_, "marginal");
    std::vector<std::function<std::vector<double>()>> chunks;
    std::vector<std::vector<double>> differences;
    const Breakdown breakdown = by_op_kind(point_);
    const auto is_small = [&](const std::string& op) {
        double share = 0;
        for (const StepGroup& group : breakdown.groups)
            if (group.name == op) share += group.share;
        return share < marginal_share;
    };
    for (const StepResult& s : point_.steps) {
        if (is_small(s.op)) continue;
        auto known = std::ranges::find(point_.marginal, s.op, &MarginalCost::op);
        if (known == point_.marginal.end()) {
            known = point_.marginal.insert(known, MarginalCost{s.op, 0, {}});
            chunks.push_back(backend_.doubled(s.op));
        }
        ++known->steps;
    }
    differences.resize(chunks.size());
    constexpr double forwards_a_sample = 2;
    const double least_s = point_.end_to_end->latency.summary_ms.median * 1e-3 * forwards_a_sample *
                           static_cast<double>(fewest * chunks.size());
    if (least_s > marginal_patience * options_.marginal_s) {
        point_.marginal.clear();
        return;
    }
    const auto start = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    while (!chunks.empty() && (differences.back().size() < fewest || seconds() < options_.marginal_s))
        for (std::size_t op = 0; op < chunks.size(); ++op) {
            step("marginal costs");
            const std::vector<double> more = chunks[op]();
            differences[op].insert(differences[op].end(), more.begin(), more.end());
        }
    for (std::size_t op = 0; op < chunks.size(); ++op)
        point_.marginal[op].difference_ms = {differences[op], summarise(differences[op])};
}

void PointRun::count() {
    CounterRun& run = point_.counters;
    CounterRequest request = options_.counters;
    if (!request.required && !request.nothing() && backend_.kind() == BackendKind::cuda)
        request.metrics.emplace_back(proof_counter(point_.precision()));  // by default every result proves that
    if (options_.counters.nothing()) {
        run.unavailable = "not asked for (--counters none)";
        return;
    }
    step("counters");
    const PhaseTimer timer(point_, "counters");
    try {
        StepCounters counters = backend_.count(request);
        run = std::move(counters.run);
        if (!counters.warning.empty()) warn(counters.warning);
        for (std::size_t s = 0; s < point_.steps.size(); ++s) {
            point_.steps[s].counters_discarded = counters.discarded[s];
            if (counters.discarded[s].empty()) point_.steps[s].counters = std::move(counters.by_step[s]);
        }
    } catch (const DeviceError& error) {
        run.unavailable = error.what();
    } catch (const UsageError& error) {
        run.unavailable = error.what();  // names were checked before; what is left is a chip without metrics
    }
    for (const auto& names : {request.sets, request.metrics})
        run.requested.insert(run.requested.end(), names.begin(), names.end());
}

void PointRun::warn(std::string_view text) { warnings_.push_back(fmt::format("{}: {}", short_name(point_), text)); }

/// One line for all steps of an op that did not run in the precision asked for.
void PointRun::warn_of_other_precisions() {
    std::map<std::string, std::pair<int, std::string>> by_op;  // op: how many, the first one's finding
    for (const StepResult& s : point_.steps)
        if (const std::optional<std::string> mismatch = executed_mismatch(s)) {
            auto& [count, first] = by_op[s.op];
            if (count++ == 0) first = fmt::format("{}: {}", s.layer, *mismatch);
        }
    for (const auto& [op, found] : by_op)
        warn(fmt::format("{} {} steps did not run as asked; {}", found.first, op, found.second));
}

/// What a run leaves must be numbers, and the same ones however often it runs: a race that strikes one row in some runs
/// passes every check of single steps.
void PointRun::check_outputs(const FilesByName& dumps) {
    step("outputs");
    const PhaseTimer timer(point_, "logits");
    const Model& model = plan_->model();
    for (const TensorId id : model.outputs) check_output(id);
    for (const auto& [name, file] : dumps)
        for (const TensorId id : model.outputs) {
            if (model.tensors[id].name != name) continue;
            const Operand& all = plan_->operand(id);
            const OutputRows whole = OutputRows::download(*plan_, id, backend_, all.bytes());
            write_npy(file, model.tensors[id].shape, all.type, whole.data(), all.stride);
        }
}

void PointRun::check_output(TensorId id) {
    const Operand& all = plan_->operand(id);
    if (const std::int64_t bad = count_not_finite(*plan_, id, backend_); bad > 0)
        throw MeasurementError(fmt::format("{} of {} {} are not finite in {}: the times are of no use", bad,
                                           all.rows * all.columns, plan_->model().tensors[id].name,
                                           name(point_.precision())));
    const OutputRows first = OutputRows::download(*plan_, id, backend_, OutputRows::usual_bytes);
    const auto start = Clock::now();
    for (int repeat = 0; repeat < options_.output_repeats; ++repeat) {
        step("outputs");
        if (std::chrono::duration<double>(Clock::now() - start).count() > 1) break;  // a slow model: one will do
        backend_.measurements().front().chunk();
        const std::string difference =
            first.difference(OutputRows::download(*plan_, id, backend_, OutputRows::usual_bytes));
        if (difference.empty()) continue;
        warnings_.push_back(
            fmt::format("{}: {}; a race in a kernel does this, or a library that adds in no fixed order",
                        placed_name(point_), difference));
        break;
    }
}

}  // namespace kbench
