// Training: step after step of a plan that has forward, loss, backward and AdamW, each with a schedule of its own.
// Prints nothing and draws nothing: who calls it brings the batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/plan.h"

namespace kbench {

/// AdamW's numbers are PyTorch's usual ones where a model's training says nothing else.
struct TrainOptions {
    /// The rate rises by lr / warmup from update to update, up to lr.
    std::int64_t warmup = 0;
    double lr = 1e-4, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
    double clip_norm = 0;   ///< the norm that all gradients together are cut down to; 0: none
    double loss_scale = 1;  ///< for the first step
    /// Loss scaling of fp16 (Micikevicius et al., "Mixed precision training", ICLR 2018, section 3.2, dynamic as in
    /// torch.amp.GradScaler): halved where a gradient is not finite, doubled after `growth_interval` steps in a row
    /// that were finite.
    bool dynamic_scale = false;
    int growth_interval = 2000;
    /// Batches whose gradients are added up before the weights are updated, the plan's being of one.
    int micro_batches = 1;
};

/// What one step did.
struct TrainedStep {
    double loss = 0;        ///< nats, mean over the tokens that have a target, or over the utterances
    double norm = 0;        ///< all gradients together, before it is cut down; not finite where one of them is not
    double loss_scale = 1;  ///< that the step was made with
    bool skipped = false;   ///< the gradients were not finite: no weight changed
};

/// How far a training has come: with the weights and AdamW's state all that the next step hangs on.
struct TrainingProgress {
    std::int64_t steps = 0;
    std::int64_t updates = 0;   ///< steps that changed the weights
    std::int64_t examples = 0;  ///< that the steps were made with
    double loss_scale = 1;      ///< for the next step
    std::int64_t good_in_a_row = 0;
};

/// Inputs of a model in training that each batch fills: all but those that a Trainer sets.
std::vector<TensorId> batch_inputs(const Model& model);

/// What one forward and backward is given: the bytes of each of batch_inputs, as its operand lies in memory.
using Batch = std::vector<std::vector<std::byte>>;

class Trainer {
  public:
    /// `plan`: allocated, of with_backward(model, {.adamw = true, .norm = true}), and .accumulate where there are
    /// several micro-batches. Runs it once without changing a weight and captures it. Plan and device must outlive
    /// this.
    Trainer(Plan& plan, Device& device, const TrainOptions& options);

    /// What is counted: tokens, or utterances where the loss is CTC.
    std::string_view unit() const;
    /// What a step takes: micro-batches * batch * seq tokens, or micro-batches * batch utterances.
    std::int64_t examples() const;
    /// Starts a step on as many batches as it has micro-batches. They may be changed once this returns: a GPU works on
    /// while the next are made ready, of several micro-batches on the last.
    void begin(std::span<const Batch> micro_batches);
    /// Waits for it. Throws MeasurementError where the loss is not finite, or no loss scale makes the gradients so.
    TrainedStep finish();
    const TrainingProgress& progress() const { return progress_; }
    /// Saves all weights under their names, from their fp32 copies where there are any; each weight's AdamW state,
    /// with ".m" and ".v" behind; and the progress, in fp64: training.steps, .updates, .tokens or .utterances,
    /// .loss_scale and .good_in_a_row. A file is whole or as before. Throws UsageError; MeasurementError, before
    /// anything is written, for numbers that are not finite and squares below 0.
    void save(const std::filesystem::path& path) const;
    /// Takes AdamW's state and the progress from a file of save, whose weights the plan has; false, and nothing
    /// changes, where the file holds weights alone. A loss scale that is not dynamic stays. Throws UsageError,
    /// also for numbers that no training leaves.
    bool go_on_from(const std::filesystem::path& path);

  private:
    void set_numbers(TensorId input, std::span<const double> numbers);
    void set_schedule(double multiplier);
    double mean_loss();
    /// Under the names that a file has them by.
    std::vector<std::pair<std::string, double>> numbers_of(const TrainingProgress& progress) const;
    /// Weights that the forward changes, such as running means.
    std::vector<TensorId> moved_by_the_forward() const;
    struct StateTensor {
        TensorId id;
        Allowed allowed;
    };
    /// AdamW's m and v of all weights.
    std::vector<StateTensor> optimizer_state() const;

    Plan& plan_;
    Device& device_;
    TrainOptions options_;
    std::size_t first_of_update_;  ///< index in the plan's steps: behind all gradients
    TensorId schedule_, loss_scale_, losses_, norm_;
    std::vector<TensorId> inputs_;  ///< batch_inputs
    TrainingProgress progress_;
    double losses_so_far_ = 0;  ///< the step's micro-batches but the last
    std::unique_ptr<DeviceGraph> clear_, micro_batch_, update_;
};

}  // namespace kbench
