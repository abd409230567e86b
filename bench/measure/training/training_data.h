// What a model is trained on, batch after batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/training/train.h"
#include "bench/plan/plan.h"
#include "bench/plan/provider.h"

namespace kbench {

class TrainingData {
  public:
    virtual ~TrainingData() = default;
    /// For people: what a batch is, and of what.
    virtual std::string description() const = 0;
    /// Nats that no model's mean loss lies below but by chance, where that is known.
    virtual std::optional<double> entropy() const { return std::nullopt; }
    /// The next batch, of batch_inputs of the plan's model.
    virtual Batch next() = 0;
    /// As if so many tokens, or utterances, had been given.
    virtual void skip(std::int64_t examples) = 0;
};

/// `source`: synthetic, or a file of tokens, one stream cut into batches and begun again at its end. Synthetic tokens
/// are a MarkovSource's, synthetic speech a SpeechSource's from utterance 0 on. `plan` must outlive it. Throws
/// UsageError.
std::unique_ptr<TrainingData> training_data(const std::string& source, std::uint64_t seed, const Plan& plan);

/// How well the weights of a plan in training recognise utterances that it was not trained on, as a model that is not
/// in training: batch norms have their running means.
struct Recognition {
    struct Text {
        std::vector<std::int32_t> said, recognised;  ///< labels
    };
    std::vector<Text> texts = {};
    std::int64_t labels = 0;  ///< that there are, with the blank
    /// Insertions, deletions and substitutions, of all labels that were said.
    double error_rate() const;
};
/// Decodes a batch greedily with `forward`, the model without its backward. Nothing where its loss is not
/// CTC. Throws UsageError.
std::optional<Recognition> recognise(const Model& forward, const Plan& trained, Device& device,
                                     const Providers& providers, std::uint64_t seed);

}  // namespace kbench
