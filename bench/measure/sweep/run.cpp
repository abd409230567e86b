// The loop over the points of a sweep.
#include "bench/measure/sweep/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>

#include "analysis/compare/sweep_findings.h"
#include "analysis/result/merge.h"
#include "analysis/result/point_name.h"
#include "bench/measure/point/measure.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/point/texts.h"
#include "bench/measure/store/result_files.h"
#include "bench/measure/sweep/lengths.h"
#include "bench/measure/sweep/planning.h"
#include "bench/measure/sweep/point_plans.h"
#include "bench/measure/sweep/recorded_options.h"
#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/token_file.h"
#include "bench/plan/data/tokens.h"
#include "bench/plan/device_support.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

/// How often a batch asked for as "max" is tried, each time with a smaller one.
constexpr int max_batch_attempts = 5;

/// Throws where an input's file cannot be read, before anything is measured.
void check_inputs_and_dumps(const Model& model, const RunOptions& options) {
    check_names(model, model.given(), options.inputs, "--input");
    for (const auto& [name, file] : options.inputs)
        if (const std::filesystem::path path = token_file(file).path; path != "-" && ::access(path.c_str(), R_OK) != 0)
            throw UsageError(fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
    check_names(model, model.outputs, options.dumps, "--dump-output");
}

/// The points of one sweep: what they share, and how each is measured.
class Sweep {
  public:
    Sweep(const RunOptions& options, Device& device, Profiler& profiler, Progress& progress, const Roofs& roofs)
        : options_(options),
          device_(device),
          profiler_(profiler),
          progress_(progress),
          roofs_(roofs),
          plans_(options, device) {
        if (options.weights) checkpoint_ = std::make_unique<CheckpointWeights>(*options.weights, options.seed);
    }

    /// Fills in `point`. `number`: "[3/18]". Throws UsageError and Stopped; all else is the point's status and reason.
    /// Returns the error after which the device was lost, or nothing.
    std::string measure(Point& point, std::vector<std::string>& warnings, const std::string& number) {
        std::string lost;
        const auto fails = [&](const std::string& reason) {
            point.status = PointStatus::failed;
            point.reason = reason;
            if (!why_lost(device_).empty()) lost = reason;
        };
        part_.clear();
        try {
            if (point.batch_is_max)
                run_largest(point, warnings, number);
            else
                run(point, warnings, number);
            point.status = PointStatus::done;
        } catch (const Unsupported& refusal) {
            point.status = PointStatus::skipped;
            point.reason = refusal.what();
            // Code that tries several ways to compute a step would blame each of them for a lost device.
            if (const std::string why = why_lost(device_); !why.empty()) fails(in_part(why));
        } catch (const UsageError&) {
            throw;
        } catch (const DeviceError& error) {
            fails(in_part(error.what()));
        } catch (const std::bad_alloc&) {
            fails("the host has not enough memory");
        } catch (const std::exception& error) {
            fails(error.what());
        }
        add_once(warnings, plans_.warnings());
        return lost;
    }

  private:
    /// Adds the part of the measurement to a device's error, which names only a call.
    std::string in_part(const std::string& error) const { return part_.empty() ? error : part_ + ": " + error; }

    /// The announced largest batch of each direction that the model has, with AdamW unless the point has none.
    void find_largest_batches(Point& point) const {
        const PhaseTimer timer(point, "batches");
        const std::int64_t available = plannable_bytes(device_);
        point.largest_batches.clear();
        for (const std::string_view direction : axis_named("direction").words) {
            Point other;
            other.axes = point.axes;
            other.set("direction", direction);
            for (const Axis& axis : axes())
                if (axis.of_training && direction != "train") other.axes.erase(axis.name);
            if (direction == "train" && other.axes.find("optimizer") == nullptr) other.set("optimizer", "adamw");
            try {
                point.largest_batches.push_back(
                    {std::string(direction), plans_.announced_largest(other, available), available});
            } catch (const Unsupported&) {  // the model, or a provider, has no such direction
            } catch (const UsageError&) {   // nor has it at these sizes: statistics of one element are none
            }
        }
    }

    void refuse_unsupported(const Point& point) const {
        if (const std::string why = unsupported(device_, point.precision()); !why.empty()) throw Unsupported(why);
    }

    /// One point of a model at one batch: planned, then all that there is to measure.
    void run(Point& point, std::vector<std::string>& warnings, const std::string& number) {
        refuse_unsupported(point);
        profiler_.detach();  // algorithms are chosen by their times, too
        const Model model = plans_.model(point, point.batch());
        point.parameters = model.parameter_count();
        point.compulsory_bytes = compulsory_bytes(model, point.precision());
        if (checkpoint_) checkpoint_->check(model);
        check_inputs_and_dumps(model, options_);
        RandomWeights random(options_.seed);
        WeightSource& weights = checkpoint_ ? static_cast<WeightSource&>(*checkpoint_) : random;
        point.weights = weights.name();

        const std::string label = fmt::format("{} {} {}", number, point.backend(), short_name(point));
        const auto at = [&](const std::string& part) {
            if (StopSignals::asked() != 0) throw Stopped();
            part_ = part;
            progress_.show(label + ": " + part);
        };
        if (!options_.dump_gradients.empty() && model.gradients.empty())
            throw UsageError("--dump-gradients: a forward has none; ask for --direction bwd or train");
        point.verification.enabled = options_.verify;
        at("plan");
        find_largest_batches(point);
        Plan plan = plan_point(
            model, plans_.assign(model, point.precision()), device_, point, [&](std::int64_t available) -> std::string {
                const std::int64_t fits = plans_.largest(point, available);
                return fits > 0 ? fmt::format("the largest batch that fits is {}", fits) : "not even batch 1 fits";
            });
        const FilesByName inputs = inputs_with_lengths(options_, plans_, plan, point);
        kbench::measure({.plan = plan,
                         .device = device_,
                         .profiler = profiler_,
                         .options = options_,
                         .weights = weights,
                         .point = point,
                         .warnings = warnings,
                         .inputs = inputs,
                         .roofs = roofs_,
                         .dumps = options_.dumps,
                         .dump_gradients = options_.dump_gradients,
                         .on_part = at});
    }

    /// The same at the largest batch that fits on paper, or at the next smaller that runs.
    void run_largest(Point& point, std::vector<std::string>& warnings, const std::string& number) {
        refuse_unsupported(point);
        const Point asked = point;
        std::int64_t batch = std::max<std::int64_t>(1, plans_.largest(point, plannable_bytes(device_)));
        for (int attempt = 1;; ++attempt) {
            point = asked;
            point.set("batch", batch);
            std::vector<std::string> of_attempt;
            std::string why;
            try {
                run(point, of_attempt, number);
            } catch (const DeviceError& error) {
                if (batch == 1 || attempt == max_batch_attempts || !why_lost(device_).empty()) throw;
                why = error.what();
            } catch (const Unsupported& refusal) {  // a plan that takes more than its estimate
                if (batch == 1 || attempt == max_batch_attempts) throw;
                why = refusal.what();
            } catch (const std::bad_alloc&) {
                if (batch == 1 || attempt == max_batch_attempts) throw;
                why = "the host has not enough memory";
            }
            if (why.empty()) {
                for (LargestBatch& own : point.largest_batches)
                    if (own.direction == point.direction()) own = {own.direction, batch, own.available_bytes, true};
                warnings.insert(warnings.end(), of_attempt.begin(), of_attempt.end());
                return;
            }
            const auto shrunk = static_cast<std::int64_t>(static_cast<double>(batch) * PointPlans::max_batch_step);
            const std::int64_t fits = plans_.largest(asked, plannable_bytes(device_));
            const std::int64_t next = std::clamp<std::int64_t>(std::min(shrunk, fits), 1, batch - 1);
            Point nameless = asked;
            nameless.axes.erase("batch");
            warnings.push_back(
                fmt::format("{}: batch {}, the largest that fits by the plan, did not run: {}; batch {} was tried next",
                            placed_name(nameless), batch, why, next));
            batch = next;
        }
    }

    const RunOptions& options_;
    Device& device_;
    Profiler& profiler_;
    Progress& progress_;
    Roofs roofs_;
    PointPlans plans_;
    std::unique_ptr<CheckpointWeights> checkpoint_;
    std::string part_;  ///< that the point is at
};

/// How far a sweep is: points are expected to take as long as those before them, on the mean.
class Pace {
  public:
    explicit Pace(std::size_t points) : points_(points) {}
    void begin() { begun_ = Clock::now(); }
    void end() {
        seconds_ += std::chrono::duration<double>(Clock::now() - begun_).count();
        ++measured_;
    }
    /// "3/18, about 5 min left at this pace".
    std::string label(std::size_t point) const {
        std::string text = fmt::format("{}/{}", point + 1, points_);
        if (measured_ == 0) return text;
        const double left_s = seconds_ / measured_ * static_cast<double>(points_ - point);
        return text + fmt::format(", about {} left at this pace", rough_time(left_s));
    }

  private:
    using Clock = std::chrono::steady_clock;
    std::size_t points_;
    double seconds_ = 0;
    int measured_ = 0;
    Clock::time_point begun_{};
};

std::string described(const SweepEnd& end, std::size_t measured, std::size_t total) {
    const std::string why = end.signal != 0 ? fmt::format("stopped by SIG{}", sigabbrev_np(end.signal))
                                            : fmt::format("the device was lost ({})", end.device_lost);
    return fmt::format("{} after {} of {} points; `--resume` goes on", why, measured, total);
}

}  // namespace

SweepEnd run_points(const RunOptions& asked, Device& device, Profiler& profiler, Result& result, Progress& progress,
                    const PointStore& store, FinishedPoints finished, PointGate* gate) {
    RunOptions options = asked;
    options.model = with_given_texts(asked.model, asked.inputs);
    const std::vector<PointSpec> specs = options.points();
    result.options = recorded_options(options, device);
    result.configuration.clear();
    for (const ReadKey& key : options.model.configuration)
        result.configuration.push_back({key.key, key.value, key.from});
    add_once(result.warnings, options.model.notes);
    Result one;  // what every point's file begins with
    one.environment = result.environment;
    one.options = result.options;
    one.configuration = result.configuration;
    one.ceilings = result.ceilings;
    const std::vector<std::string> of_all = result.warnings;
    Sweep sweep(options, device, profiler, progress, Roofs(result, name(device.kind())));
    const StopSignals signals;
    Pace pace(specs.size());
    SweepEnd end;
    for (std::size_t i = 0; i < specs.size() && !end.early(); ++i) {
        if (const auto done = finished.find(specs[i].name()); done != finished.end()) {
            add_once(result.warnings, done->second.warnings);
            result.points.push_back(std::move(done->second.points.front()));
            if (gate != nullptr) gate->finished(specs[i], result.points.back());
            continue;
        }
        if (gate != nullptr && !gate->leave_out(specs[i]).empty()) continue;
        one.points = {unmeasured_point(options, device, specs[i])};
        one.warnings = of_all;
        const std::string number = gate != nullptr ? gate->label(specs[i]) : pace.label(i);
        pace.begin();
        try {
            end.device_lost = sweep.measure(one.points.front(), one.warnings, fmt::format("[{}]", number));
        } catch (const Stopped&) {
            end.signal = StopSignals::asked();
            break;
        } catch (const UsageError&) {
            progress.clear();
            throw;
        }
        pace.end();
        store.save(specs[i], one);
        add_once(result.warnings, one.warnings);
        result.points.push_back(std::move(one.points.front()));
        if (gate != nullptr) gate->finished(specs[i], result.points.back());
        if (StopSignals::asked() != 0 && i + 1 < specs.size()) end.signal = StopSignals::asked();
    }
    progress.clear();
    add_once(result.warnings, sweep_findings(result.points));
    if (end.early()) result.warnings.push_back(described(end, result.points.size(), specs.size()));
    if (!result.points.empty()) write_result(options.out, result, options.compress);
    return end;
}

void refuse_points(const RunOptions& asked, Device& device) {
    RunOptions options = asked;
    options.model = with_given_texts(asked.model, asked.inputs);
    const PointPlans plans(options, device);
    std::unique_ptr<CheckpointWeights> checkpoint;
    if (options.weights) checkpoint = std::make_unique<CheckpointWeights>(*options.weights, options.seed);
    const auto tokens = options.inputs.find("tokens");
    std::error_code none;  // a pipe or a terminal is read once, by the run
    const bool reads_tokens =
        tokens != options.inputs.end() && std::filesystem::is_regular_file(token_file(tokens->second).path, none);
    for (const PointSpec& spec : options.points()) {
        const Point point = unmeasured_point(options, device, spec);
        try {
            const Model model = plans.model(point, point.batch());
            if (checkpoint) checkpoint->check(model);
            check_inputs_and_dumps(model, options);
            for (const TensorId id : model.inputs)
                if (const Tensor& tensor = model.tensors[id]; reads_tokens && tensor.name == "tokens" &&
                                                              !point.batch_is_max)  // how many that is only a run tells
                    read_tokens(tokens->second, tensor.rows(), tensor.columns(), tensor.contents.bound);
            plans.assign(model, point.precision());
        } catch (const UsageError&) {
            throw;
        } catch (const std::exception&) {  // the run skips such a point, or tells why it failed
        }
    }
}

}  // namespace kbench
