// A small GPT-2 in training, on any device, fed by a source of known entropy.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench/measure/training/train.h"
#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/markov.h"
#include "bench/plan/device_support.h"
#include "bench/plan/provider.h"
#include "models/backward.h"
#include "models/gpt2.h"

namespace kbench {

struct TrainingSetting {
    Precision precision = Precision::fp32;
    bool master = false;
    TrainOptions train = {.lr = 3e-3};
    std::int64_t width = 32, layers = 1, batch = 8, seq = 32;
    bool deterministic = false;
};

class SmallTraining {
  public:
    /// Begins with random weights, or those of a file.
    SmallTraining(Device& device, const TrainingSetting& setting, const std::filesystem::path& weights = {})
        : device_(device),
          parts_(setting.train.micro_batches),
          providers_(make_providers(device.kind(), {.deterministic = setting.deterministic})),
          model_(with_backward(
              make_gpt2({.name = "tiny",
                         .n_embd = setting.width,
                         .n_layer = setting.layers,
                         .n_head = 2,
                         .n_ctx = setting.seq,
                         .vocab_size = vocab},
                        setting.batch, setting.seq, AttentionKind::fused),
              {.adamw = true, .master = setting.master, .norm = true, .accumulate = setting.train.micro_batches > 1})),
          plan_(model_, setting.precision,
                assign_steps(model_, setting.precision, providers_, {}, column_multiple(device, setting.precision))) {
        if (weights.empty()) {
            RandomWeights random(3);
            plan_.allocate(device, random);
        } else {
            CheckpointWeights file(weights);
            plan_.allocate(device, file);
        }
        trainer_.emplace(plan_, device, setting.train);
        if (!weights.empty()) goes_on_ = trainer_->go_on_from(weights);
        tokens_.resize(static_cast<std::size_t>(trainer_->examples()));
    }

    static constexpr std::int64_t vocab = 67;

    TrainedStep step() {
        source_.fill(tokens_);
        std::vector<Batch> batches;
        const std::span all = std::as_bytes(std::span(tokens_));
        const std::size_t each = all.size() / static_cast<std::size_t>(parts_);
        for (std::size_t first = 0; first < all.size(); first += each) {
            const auto part = all.subspan(first, each);
            batches.push_back({std::vector<std::byte>(part.begin(), part.end())});
        }
        trainer_->begin(batches);
        return trainer_->finish();
    }
    /// The mean loss of the last ten of so many steps.
    double loss_after(int steps) {
        double sum = 0;
        for (int i = 0; i < steps; ++i) {
            const double loss = step().loss;
            if (i >= steps - 10) sum += loss;
        }
        return sum / 10;
    }
    void leave_out_a_batch() { source_.fill(tokens_); }
    /// Whether its file had more than weights.
    bool goes_on() const { return goes_on_; }
    double entropy() const { return source_.entropy(); }
    const Trainer& trainer() const { return *trainer_; }
    /// A tensor in fp64, on a device whose memory the host sees.
    std::span<const double> numbers(std::string_view name) const {
        for (TensorId id = 0; id < model_.tensors.size(); ++id)
            if (model_.tensors[id].name == name)
                return {static_cast<const double*>(plan_.address(id)),
                        static_cast<std::size_t>(model_.tensors[id].elements())};
        return {};
    }
    /// A copy of all weights, as the forward reads them.
    std::vector<std::byte> weights() const { return bytes_of(Role::weights); }
    /// The same of the gradients that the last step left.
    std::vector<std::byte> gradients() const { return bytes_of(Role::gradients); }

  private:
    std::vector<std::byte> bytes_of(Role role) const {
        std::vector<std::byte> all;
        for (TensorId id = 0; id < model_.tensors.size(); ++id) {
            const bool kept = role == Role::weights || model_.tensors[id].resident;
            if (model_.tensors[id].role != role || !kept) continue;
            std::vector<std::byte> bytes(static_cast<std::size_t>(plan_.operand(id).bytes()));
            device_.download(bytes.data(), plan_.address(id), bytes.size());
            all.insert(all.end(), bytes.begin(), bytes.end());
        }
        return all;
    }

    Device& device_;
    int parts_;
    Providers providers_;
    Model model_;
    Plan plan_;
    MarkovSource source_{1};
    std::optional<Trainer> trainer_;
    std::vector<std::int32_t> tokens_;
    bool goes_on_ = false;
};

}  // namespace kbench
