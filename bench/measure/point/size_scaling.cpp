// Time against size: each distinct step by itself, at its own size and with one size two and four times as large, or a
// half and a quarter, by the same algorithm. What does not grow is a fixed time of its kernels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>

#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/step_operands.h"
#include "bench/measure/point/timed_runs.h"
#include "bench/measure/point/verify.h"
#include "kbench/error.h"
#include "models/growth.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

/// Steps that are alike and take less of the steps' time are left out, and the smallest of more than so many.
constexpr double least_share = 0.01;
constexpr std::size_t most_shapes = 24;
/// Two sizes always fit a line; the third tests it. The second triple is for what is too large at 4 times its size.
using Triple = std::array<Scale, 3>;
constexpr Scale own_size = 1, half = {1, 2}, quarter = {1, 4};
constexpr Triple larger_triples[] = {{own_size, 2, 4}, {own_size, 2, 3}};
/// A time step is the same work in a chain of any length, and the reference of a longer one takes seconds to verify it.
constexpr Triple shorter_chain[] = {{quarter, half, own_size}};
/// Weights are read again after this many times the cache was read. With more than so many copies the host is busy for
/// longer than the measurement.
constexpr double caches_apart = 3;
constexpr std::size_t most_copies = 256;
/// Longer runs would take seconds a shape.
constexpr double longest_run_s = 0.3;
/// The operands of all sizes of a point: to make so many at random takes 16 cores some 2 s.
constexpr double most_bytes_made = 12e9;
/// To make and to verify the larger sizes of all steps of a point.
constexpr double most_preparing_s = 8;
/// Sequences but the first are at most so long where a larger step is verified: the reference takes as long for each.
constexpr std::int64_t short_sequence = 8;
/// The part of the free memory that is used: what a library or a graph allocates besides must fit, too.
constexpr double usable_memory = 0.8;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Timed steps that one computation runs.
struct AlikeSteps {
    const PlannedStep* first;
    std::vector<int> positions;  ///< in Point::steps
    double us = 0;               ///< one of them
    double total_us() const { return us * static_cast<double>(positions.size()); }
};

/// The time of each step that is known; where that is none, as in a microbenchmark, it is measured by events.
std::vector<double> step_us(const PartContext& at) {
    std::vector<double> all;
    for (const StepResult& step : at.point.steps) all.push_back(step.device_us().value_or(0));
    if (std::ranges::any_of(all, [](double us) { return us > 0; })) return all;
    const std::unique_ptr<DeviceEvent> begin = at.device.make_event(), end = at.device.make_event();
    for (std::size_t s = 0; s < all.size(); ++s) {
        begin->record();
        at.plan.run_step(at.plan.first_timed() + s, at.device.stream());
        end->record();
        at.device.synchronize();
        all[s] = end->ms_since(*begin) * 1e3;
    }
    return all;
}

/// Those that take at least least_share, the longest first.
std::vector<AlikeSteps> alike_steps(const PartContext& at) {
    std::vector<AlikeSteps> all;
    const std::vector<double> times = step_us(at);
    double total_us = 0;
    for (std::size_t s = 0; s < times.size(); ++s) {
        const PlannedStep& planned = at.plan.timed_steps()[s];
        const double us = times[s];
        total_us += us;
        auto known = std::ranges::find_if(
            all, [&](const AlikeSteps& alike) { return alike.first->computation == planned.computation; });
        if (known == all.end()) known = all.insert(known, AlikeSteps{&planned, {}, 0});
        known->positions.push_back(static_cast<int>(s));
        known->us += (us - known->us) / static_cast<double>(known->positions.size());
    }
    std::erase_if(all, [&](const AlikeSteps& a) { return a.us <= 0 || a.total_us() < least_share * total_us; });
    std::ranges::stable_sort(all, std::greater<>(), &AlikeSteps::total_us);
    if (all.size() > most_shapes) all.resize(most_shapes);
    return all;
}

double work_flops(const Step& step) {
    double flops = 0;
    for (std::size_t op = 0; op < step.ops.size(); ++op) flops += step.ops[op].work(step.direction_of(op)).flops;
    return flops;
}

/// A step at one of its sizes, and what is needed to run it.
struct SizedStep {
    Scale factor;
    Step step;
    std::shared_ptr<const Computation> computation;
    /// Its operands that the model keeps, weights and caches of keys and values, and reads from memory each time.
    std::vector<std::size_t> weights = {};
    std::size_t copies = 1;  ///< copies of the weights, the plan's own among them
    double operand_bytes = 0, weight_bytes = 0;

    double bytes() const { return operand_bytes + weight_bytes * static_cast<double>(copies - 1); }
};

/// A sized step to be timed. Those of other sizes are verified first; the step's own size is already.
class SizedRuns {
  public:
    SizedRuns(const PartContext& at, const PlannedStep& planned, const SizedStep& sized, std::size_t runs,
              void* workspace)
        : device_(at.device),
          computation_(sized.computation),
          workspace_(workspace),
          operands_(sized.step, *computation_, at.plan.precision(), device_, at.options.seed, short_sequence) {
        if (at.options.verify && sized.factor != own_size) {
            const VerifyTarget target{&sized.step, computation_.get(), planned.provider->name,
                                      at.plan.model().ops[planned.naming_op].layer};
            verify_step(target, at.plan.precision(), device_, operands_, at.options.seed);
        } else {
            computation_->run({operands_.pointers(), workspace_, device_.stream()});  // loads its kernels
            device_.synchronize();
        }
        operands_.make_usual();
        copy_weights(sized);
        runs_.emplace(device_, runs, [this] {
            computation_->run({sets_[next_], workspace_, device_.stream()});
            next_ = (next_ + 1) % sets_.size();
        });
    }
    SizedRuns(const SizedRuns&) = delete;
    SizedRuns& operator=(const SizedRuns&) = delete;

    TimedRuns& timed() { return *runs_; }

  private:
    void copy_weights(const SizedStep& sized) {
        const auto pointers = operands_.pointers();
        for (std::size_t copy = 0; copy < sized.copies; ++copy) {
            std::vector<void*>& set = sets_.emplace_back(pointers.begin(), pointers.end());
            if (copy == 0) continue;
            for (const std::size_t i : sized.weights) {
                set[i] = copies_.emplace_back(device_, operands_.bytes(i)).data();
                device_.copy(set[i], pointers[i], operands_.bytes(i));
            }
        }
    }

    Device& device_;
    std::shared_ptr<const Computation> computation_;
    std::size_t next_ = 0;
    void* workspace_;
    StepOperands operands_;
    std::vector<DeviceBuffer> copies_;
    std::vector<std::vector<void*>> sets_;
    std::optional<TimedRuns> runs_;
};

class SizeScalingOfPoint {
  public:
    explicit SizeScalingOfPoint(const PartContext& at) : at_(at), longest_s_(experiments_left_s(at)) {}

    SizeScaling of(const AlikeSteps& alike) {
        const PlannedStep& planned = *alike.first;
        SizeScaling scaling{.steps = alike.positions, .axis = {}, .unavailable = {}, .times = {}};
        const std::optional<GrownStep> larger = grown(planned.step, 2);
        if (!larger) {
            scaling.unavailable =
                fmt::format("no size of {} is known to grow with the same kernel", op_name(planned.step));
            return scaling;
        }
        scaling.axis = larger->axis;
        if (const double spent_s = seconds_since(start_); spent_s + expected_s(alike) > longest_s_) {
            scaling.unavailable = fmt::format(
                "it would take about {:.2g} s more, and steps at larger sizes have {:.2g} s of --time-budget together",
                expected_s(alike), std::max(0.0, longest_s_));
            return scaling;
        }
        try {
            const std::size_t runs = runs_a_graph(alike.us);
            std::vector<SizedStep> sizes;
            for (const Triple& factors : triples_of(planned.step)) {
                sizes = sized_steps(planned, factors, runs);
                scaling.unavailable = why_too_much(alike, sizes);
                if (scaling.unavailable.empty()) break;
            }
            if (scaling.unavailable.empty()) scaling.times = times_of(planned, sizes, runs);
            measured_flops_ += scaling.unavailable.empty() ? work_flops(planned.step) : 0;
        } catch (const Error& error) {
            at_.require_device();
            scaling.unavailable = error.what();
        }
        return scaling;
    }

  private:
    /// How long it will take by those before, of which making and verifying takes most, which grows with the work.
    double expected_s(const AlikeSteps& alike) const {
        if (measured_flops_ <= 0) return at_.options.size_scaling_s;
        return std::max(at_.options.size_scaling_s,
                        seconds_since(start_) * work_flops(alike.first->step) / measured_flops_);
    }

    static std::span<const Triple> triples_of(const Step& step) {
        if (step.head_op().time_steps() <= 1) return larger_triples;
        const std::optional<GrownStep> shortest = grown(step, quarter);
        const bool divides = shortest && shape_text(grown(shortest->step, 4)->step) == shape_text(step);
        return divides ? std::span<const Triple>(shorter_chain) : larger_triples;
    }

    std::vector<SizedStep> sized_steps(const PlannedStep& planned, std::span<const Scale> factors,
                                       std::size_t runs) const {
        std::vector<SizedStep> sizes;
        for (const Scale factor : factors) {
            SizedStep& sized = sizes.emplace_back(SizedStep{factor, planned.step, planned.computation});
            if (factor != own_size) {
                sized.step = grown(planned.step, factor)->step;
                sized.computation = resized(*planned.computation, *planned.provider, sized.step, at_.plan.precision());
            }
            lay_out(planned, runs, sized);
        }
        return sizes;
    }

    void lay_out(const PlannedStep& planned, std::size_t runs, SizedStep& sized) const {
        const std::vector<Operand> list = operands(sized.step, at_.plan.precision());
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto bytes = static_cast<double>(
                sized.computation->packed_bytes(i).value_or(static_cast<std::size_t>(list[i].bytes())));
            sized.operand_bytes += bytes;
            const Role role = at_.plan.model().tensors[planned.tensors[i]].role;
            if (role != Role::weights && role != Role::cache) continue;
            sized.weights.push_back(i);
            sized.weight_bytes += bytes;
        }
        if (sized.weight_bytes == 0) return;
        const double apart = caches_apart * static_cast<double>(at_.device.info().cache_bytes) / sized.weight_bytes;
        // A graph of a GPU has its pointers for good: it needs no more copies than runs.
        const std::size_t most = at_.device.is_gpu() ? std::min(runs, most_copies) : most_copies;
        sized.copies = static_cast<std::size_t>(std::clamp(std::ceil(apart), 1.0, static_cast<double>(most)));
    }

    /// Why sizes are not run; empty where they are. Time is taken to grow as the work does, and as the size.
    std::string why_too_much(const AlikeSteps& alike, const std::vector<SizedStep>& sizes) const {
        const SizedStep& largest = sizes.back();
        const double work = work_flops(alike.first->step), factor = largest.factor.value(),
                     growth = work > 0 ? std::max(factor, work_flops(largest.step) / work) : factor;
        if (const double run_s = alike.us * 1e-6 * growth; run_s > longest_run_s)
            return fmt::format("at {} times its {} a run would take {:.2g} s; those of more than {:.2g} s are left out",
                               factor, grown(alike.first->step, 2)->axis, run_s, longest_run_s);
        double made = 0, needed = 0;
        for (const SizedStep& sized : sizes) {
            made += sized.operand_bytes;
            needed += sized.bytes();
        }
        if (made_bytes_ + made > most_bytes_made)
            return fmt::format(
                "its operands at all sizes are {:.2g} GB; to make more than {:.2g} GB for a point takes too long",
                made * 1e-9, most_bytes_made * 1e-9);
        const double free = usable_memory * static_cast<double>(at_.device.free_bytes());
        if (needed > free)
            return fmt::format("its operands at all sizes need {:.2g} GB of memory, {:.2g} GB are free", needed * 1e-9,
                               free * 1e-9);
        return "";
    }

    std::vector<std::unique_ptr<SizedRuns>> prepared(const PlannedStep& planned, const std::vector<SizedStep>& sizes,
                                                     std::size_t runs, void* workspace) {
        std::vector<std::unique_ptr<SizedRuns>> all;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            at_.begin(text_of(sizes[i].step));
            const auto start = Clock::now();
            all.push_back(std::make_unique<SizedRuns>(at_, planned, sizes[i], runs, workspace));
            if (sizes[i].factor == own_size) continue;
            const double took_s = seconds_since(start);
            preparing_s_ += took_s;
            if (i + 1 == sizes.size() || sizes[i + 1].factor == own_size) continue;
            const double next_s = took_s * sizes[i + 1].factor.value() / sizes[i].factor.value();
            const bool is_over = seconds_since(start_) + next_s > longest_s_;
            if (is_over || preparing_s_ + next_s > most_preparing_s)
                throw Unsupported(fmt::format(
                    "to verify it at {} times its size would take {:.2g} s more; a point's steps may take {:.2g} s together",
                    sizes[i + 1].factor.value(), next_s, is_over ? longest_s_ : most_preparing_s));
        }
        return all;
    }

    std::vector<SizeTime> times_of(const PlannedStep& planned, const std::vector<SizedStep>& sizes, std::size_t runs) {
        std::size_t workspace_bytes = 0;
        bool may_be_cached = false;
        for (const SizedStep& sized : sizes) {
            made_bytes_ += sized.operand_bytes;
            workspace_bytes = std::max(workspace_bytes, sized.computation->workspace_bytes());
            const double apart = sized.weight_bytes * static_cast<double>(sized.copies);
            may_be_cached |= apart > 0 && apart < caches_apart * static_cast<double>(at_.device.info().cache_bytes);
        }
        const DeviceBuffer workspace(at_.device, workspace_bytes);
        const std::vector<std::unique_ptr<SizedRuns>> all = prepared(planned, sizes, runs, workspace.data());
        // Some weights are so small that all copies together stay in the cache from launch to launch. In a model
        // others come between. 10 KB from DRAM are nothing beside the shortest step of a CPU.
        const bool empties_cache = may_be_cached && at_.device.is_gpu();
        if (empties_cache && cache_.bytes() == 0)
            cache_ = DeviceBuffer(at_.device, static_cast<std::size_t>(
                                                  caches_apart * static_cast<double>(at_.device.info().cache_bytes)));
        std::vector<TimedRuns*> in_turns;
        for (const auto& sized : all) in_turns.push_back(&sized->timed());
        const std::vector<Summary> us = time_in_turns(in_turns, at_.options.size_scaling_s, [&] {
            at_.begin(text_of(planned.step));
            if (empties_cache) at_.device.fill(cache_.data(), 1, cache_.bytes());
        });
        std::vector<SizeTime> times;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const SizedStep& sized = sizes[i];
            times.push_back({sized.factor.value(), work_flops(sized.step), shape_text(sized.step),
                             sized.computation->implementation(), us[i], all[i]->timed().clock_mhz()});
        }
        return times;
    }

    static std::string text_of(const Step& step) {
        return fmt::format("time against size: {} {}", op_name(step), shape_text(step));
    }

    const PartContext& at_;
    double made_bytes_ = 0, preparing_s_ = 0, measured_flops_ = 0;
    Clock::time_point start_ = Clock::now();
    double longest_s_;  ///< all of it
    DeviceBuffer cache_;
};

}  // namespace

void measure_size_scaling(const PartContext& at) {
    if (at.options.size_scaling_s <= 0) return;
    const std::vector<AlikeSteps> all = alike_steps(at);
    if (all.empty()) return;
    const PhaseTimer timer(at.point, "size_scaling");
    SizeScalingOfPoint scaling(at);
    for (const AlikeSteps& alike : all) at.point.size_scaling.push_back(scaling.of(alike));
}

}  // namespace kbench
