// kbench train: a model's weights, step by step towards a smaller loss.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>

#include "analysis/report/sections/sections.h"
#include "bench/command/command.h"
#include "bench/command/training/train_options.h"
#include "bench/device/console.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/measure/sweep/planning.h"
#include "bench/measure/training/train.h"
#include "bench/measure/training/training_data.h"
#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/speech.h"
#include "bench/plan/device_support.h"
#include "kbench/error.h"
#include "models/backward.h"

namespace kbench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Throws UsageError where the model has no loss.
Model forward_of(const TrainRequest& request) {
    ModelPoint at;
    at.counts["batch"] = request.batch;
    if (request.seq) at.counts["seq"] = *request.seq;
    if (request.frames) at.counts["frames"] = *request.frames;
    Model forward = request.spec.build(at);
    if (!forward.loss)
        throw UsageError(fmt::format("--model {}: has no loss to train with; models of language and of speech have one",
                                     forward.name));
    return forward;
}

/// The model with its backward and AdamW.
Model model_of(const TrainRequest& request, Model forward) {
    return with_backward(std::move(forward), {.adamw = true,
                                              .master = request.master,
                                              .norm = true,
                                              .recompute = request.recompute,
                                              .accumulate = request.train.micro_batches > 1});
}

void refuse_if_too_large(const Model& model, const Layout& layout, const Device& device) {
    const std::int64_t needed = needed_bytes(model, layout, device), free = plannable_bytes(device);
    if (needed > free)
        throw DeviceError(
            fmt::format("training needs {:.2f} GB of memory, {:.2f} GB are free: a smaller --batch may fit",
                        static_cast<double>(needed) * 1e-9, static_cast<double>(free) * 1e-9));
}

std::string duration(double seconds) {
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    if (whole < 60) return fmt::format("{:.1f} s", seconds);
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

/// The first utterances, and how many labels of all are wrong.
void tell(const Recognition& heard) {
    constexpr std::size_t shown = 3, most = 60;
    const auto beginning = [&](const std::vector<std::int32_t>& labels) {
        return text_of(std::span(labels).first(std::min(most, labels.size())), heard.labels);
    };
    put("{} utterances that it has not seen, by greedy decoding: {:.2f} % of the labels are wrong\n",
        heard.texts.size(), 100 * heard.error_rate());
    for (std::size_t i = 0; i < std::min(shown, heard.texts.size()); ++i)
        put("  said        {}\n  recognised  {}\n", beginning(heard.texts[i].said),
            beginning(heard.texts[i].recognised));
}

/// What the steps were, as they are told.
class Log {
  public:
    static constexpr std::size_t last = 10;

    Log(const TrainRequest& request, const Trainer& trainer, std::optional<double> entropy)
        : request_(request), examples_(trainer.examples()), unit_(trainer.unit()), entropy_(entropy) {}

    void add(const TrainedStep& step) {
        ++steps_;
        if (steps_ == 1) first_loss_ = step.loss;
        losses_.push_back(step.loss);
        if (losses_.size() > last) losses_.pop_front();
        if (step.skipped) {
            ++skipped_;
            put("step {}: a gradient is not finite at loss scale {}; skipped\n", steps_, step.loss_scale);
        }
        if (steps_ == 1 || steps_ % request_.log_every == 0 || steps_ == request_.steps) tell(step);
    }
    std::int64_t steps() const { return steps_; }

    void summary() const {
        if (steps_ == 0) return;
        const double mean = std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
        put("{} steps in {}: loss {:.4f} -> {:.4f} (mean of the last {}){}, {}\n", steps_,
            duration(seconds_since(start_)), first_loss_, mean, losses_.size(), reachable(), rate());
        if (request_.train.dynamic_scale) put("{} steps were skipped by loss scaling\n", skipped_);
    }

  private:
    void tell(const TrainedStep& step) const {
        const double left =
            seconds_since(start_) / static_cast<double>(steps_) * static_cast<double>(request_.steps - steps_);
        put("step {:>6}/{}  loss {:.4f}{}  norm {:.3g}  {}  {} left\n", steps_, request_.steps, step.loss, reachable(),
            step.norm, rate(), duration(left));
    }
    std::string reachable() const { return entropy_ ? fmt::format(" (entropy {:.4f})", *entropy_) : ""; }
    std::string rate() const {
        return fmt::format("{:.0f} {}/s", static_cast<double>(examples_ * steps_) / seconds_since(start_), unit_);
    }

    const TrainRequest& request_;
    std::int64_t examples_;
    std::string_view unit_;
    std::optional<double> entropy_;
    std::int64_t steps_ = 0, skipped_ = 0;
    double first_loss_ = 0;
    std::deque<double> losses_;  ///< the last ones
    Clock::time_point start_ = Clock::now();
};

}  // namespace

int train_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedTrain parsed = parse_train(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const TrainRequest& request = parsed.request;
    const Model forward = forward_of(request), model = model_of(request, forward);
    RandomWeights random(request.seed);
    std::unique_ptr<CheckpointWeights> checkpoint;
    if (request.weights) {
        checkpoint = std::make_unique<CheckpointWeights>(*request.weights);
        checkpoint->check(model);
    }
    WeightSource& weights = checkpoint ? static_cast<WeightSource&>(*checkpoint) : random;

    std::string remark;
    const DeviceList devices = choose_devices(request.device, remark);
    Device& device = *devices.front();
    if (!remark.empty()) say("kbench: {}\n", remark);
    for (const std::string& warning : device.info().warnings) say("kbench: {}\n", warning);
    for (const std::string& note : request.spec.notes) say("kbench: {}\n", note);
    if (const std::string why = unsupported(device, request.precision); !why.empty()) throw Unsupported(why);
    const Providers providers = make_providers(
        device.kind(), ProviderContext{.algorithm_cache = std::filesystem::path(cache_directory()) / "cublaslt.json",
                                       .deterministic = request.deterministic,
                                       .multiprocessors = device.multiprocessors(),
                                       .stream = device.stream()});
    std::vector<AssignedStep> steps =
        assign_steps(model, request.precision, providers, {}, column_multiple(device, request.precision));
    refuse_if_too_large(model, estimate_layout(model, request.precision, steps), device);
    Plan plan(model, request.precision, std::move(steps));
    refuse_if_too_large(model, plan.layout(), device);
    const std::unique_ptr<TrainingData> data = training_data(request.data, request.seed, plan);
    plan.allocate(device, weights);
    Trainer trainer(plan, device, request.train);

    if (!request.spec.configuration.empty()) put("{}\n", request.spec.description);
    put("{}: {} parameters, weights {}, {} in {}{}, dropout 0\n", model.name, model.parameter_count(), weights.name(),
        name(device.kind()), name(request.precision), request.master ? " with fp32 master weights" : "");
    put("{}{}; AdamW: lr {}, weight decay {}{}\n",
        request.train.micro_batches > 1 ? fmt::format("{} times ", request.train.micro_batches) : "",
        data->description(), request.train.lr, request.train.weight_decay,
        request.train.clip_norm > 0 ? fmt::format(", norm at most {}", request.train.clip_norm) : "");
    put("memory {}\n", memory_text(plan.layout().memory));
    if (request.weights && trainer.go_on_from(*request.weights)) {
        const TrainingProgress& before = trainer.progress();
        put("goes on after {} steps and {} {}, with their optimizer state\n", before.steps, before.examples,
            trainer.unit());
        data->skip(before.examples);
    }
    const StopSignals signals;
    Log log(request, trainer, data->entropy());
    std::vector<Batch> batches(static_cast<std::size_t>(request.train.micro_batches));
    const auto draw = [&] { std::ranges::generate(batches, [&] { return data->next(); }); };
    draw();
    while (log.steps() < request.steps && StopSignals::asked() == 0) {
        trainer.begin(batches);
        draw();
        log.add(trainer.finish());
    }
    StopSignals::finish();
    log.summary();
    if (request.save) {
        trainer.save(*request.save);
        put("wrote {}\n", request.save->string());
    }
    if (const std::optional<Recognition> heard = recognise(forward, plan, device, providers, request.seed))
        tell(*heard);
    if (const int signal = StopSignals::asked(); signal != 0) {
        say("kbench: stopped by SIG{} after {} of {} steps\n", sigabbrev_np(signal), log.steps(), request.steps);
        return 128 + signal;
    }
    return static_cast<int>(ExitCode::success);
}

}  // namespace kbench
