// Makes batches of text or speech, and counts the errors of what a model recognises.
#include "bench/measure/training/training_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

#include "bench/measure/point/device_rows.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/data/markov.h"
#include "bench/plan/data/speech.h"
#include "bench/plan/data/tokens.h"
#include "bench/plan/device_support.h"
#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// The bytes of `numbers`, which are dense.
template <class Number>
std::vector<std::byte> bytes_of(std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    return {bytes.begin(), bytes.end()};
}

/// Batch after batch, of a source or of a file that begins again at its end.
class TokenData final : public TrainingData {
  public:
    TokenData(const std::string& source, std::uint64_t seed, const Tensor& tokens)
        : rows_(tokens.rows()), columns_(tokens.columns()) {
        const std::int64_t vocab = tokens.contents.bound;
        if (source != "synthetic") {
            of_file_ = read_token_stream(source, columns_, vocab);
            return;
        }
        if (vocab < MarkovSource::states)
            throw UsageError(fmt::format("--data synthetic: has {} tokens, the model's vocabulary {}; give a FILE",
                                         MarkovSource::states, vocab));
        source_.emplace(seed);
    }

    std::string description() const override {
        const std::string batch = fmt::format("batch {} of {} tokens, ", rows_, columns_);
        if (source_)
            return fmt::format("{}synthetic (Markov, {} tokens, entropy {:.4f} nats)", batch, MarkovSource::states,
                               source_->entropy());
        return fmt::format("{}{} of a file, again and again", batch, of_file_.size());
    }
    std::optional<double> entropy() const override {
        return source_ ? std::optional(source_->entropy()) : std::nullopt;
    }
    Batch next() override {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows_ * columns_));
        fill(tokens);
        return {bytes_of(std::span<const std::int32_t>(tokens))};
    }
    void skip(std::int64_t tokens) override {
        if (source_)
            source_->skip(static_cast<std::uint64_t>(tokens));
        else
            next_ += static_cast<std::size_t>(tokens);
    }

  private:
    void fill(std::span<std::int32_t> batch) {
        if (source_) return source_->fill(batch);
        for (std::int32_t& token : batch) token = of_file_[next_++ % of_file_.size()];
    }

    std::int64_t rows_, columns_;
    std::optional<MarkovSource> source_;
    std::vector<std::int32_t> of_file_;
    std::size_t next_ = 0;
};

const OpNode* ctc_of(const Model& model) {
    for (const OpNode& node : model.ops)
        if (node.op.is<Ctc>()) return &node;
    return model.loss && model.loss->op.is<Ctc>() ? &*model.loss : nullptr;
}

/// The inputs of a model of speech.
struct SpeechInputs {
    const Tensor* spectrogram = nullptr;  ///< [batch, channels, frequencies, frames]
    std::int64_t batch = 0, frequencies = 0, frames = 0;
    Ctc ctc;

    explicit SpeechInputs(const Model& model) : ctc(*ctc_of(model)->op.get_if<Ctc>()) {
        for (const TensorId id : model.inputs)
            if (model.tensors[id].element == ElementType::storage && model.tensors[id].shape.size() == 4)
                spectrogram = &model.tensors[id];
        if (spectrogram == nullptr) throw UsageError(fmt::format("--model {}: reads no spectrogram", model.name));
        batch = spectrogram->shape[0];
        frequencies = spectrogram->shape[2];
        frames = spectrogram->shape[3];
    }
    SpeechSource source(std::uint64_t seed) const { return {seed, frequencies, frames, ctc.labels, ctc.target}; }
};

/// Utterances of a source, drawn on all threads, as inputs of a plan.
class Utterances {
  public:
    Utterances(const SpeechInputs& inputs, std::uint64_t seed, std::uint64_t first, std::int64_t count)
        : target_(inputs.ctc.target), spectrograms_(static_cast<std::size_t>(inputs.spectrogram->elements())) {
        const SpeechSource source = inputs.source(seed);
        const std::size_t each = spectrograms_.size() / static_cast<std::size_t>(count);
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
            utterances_.push_back(source.utterance(first + i, std::span(spectrograms_).subspan(i * each, each)));
    }

    const std::vector<SpeechSource::Utterance>& list() const { return utterances_; }
    /// Throws std::logic_error for one that speech has not.
    std::vector<std::byte> input(const std::string& name, const Operand& operand) const {
        if (operand.type != DataType::int32) {
            std::vector<std::byte> bytes(static_cast<std::size_t>(operand.bytes()));
            convert(DataType::fp32, spectrograms_.data(), operand.type, bytes.data(),
                    static_cast<std::int64_t>(spectrograms_.size()));
            return bytes;
        }
        std::vector<std::int32_t> numbers;
        for (const SpeechSource::Utterance& one : utterances_) {
            if (name == "lengths") {
                numbers.push_back(static_cast<std::int32_t>(one.frames));
            } else if (name == "target_lengths") {
                numbers.push_back(static_cast<std::int32_t>(one.text.size()));
            } else if (name == "targets") {
                numbers.insert(numbers.end(), one.text.begin(), one.text.end());
                numbers.resize(numbers.size() + static_cast<std::size_t>(target_) - one.text.size(), 1);
            } else {
                throw std::logic_error(fmt::format("synthetic speech has no {}", name));
            }
        }
        return bytes_of(std::span<const std::int32_t>(numbers));
    }

  private:
    std::int64_t target_;
    std::vector<float> spectrograms_;
    std::vector<SpeechSource::Utterance> utterances_;
};

class SpeechData final : public TrainingData {
  public:
    SpeechData(std::uint64_t seed, const Plan& plan)
        : plan_(plan), ids_(batch_inputs(plan.model())), inputs_(plan.model()), seed_(seed) {}

    std::string description() const override {
        return fmt::format("batch {} of up to {} frames, synthetic (noise {}, up to {} of {} labels)", inputs_.batch,
                           inputs_.frames, SpeechSource::noise, inputs_.ctc.target, inputs_.ctc.labels - 1);
    }
    Batch next() override {
        const Utterances utterances(inputs_, seed_, next_, inputs_.batch);
        next_ += static_cast<std::uint64_t>(inputs_.batch);
        Batch batch;
        for (const TensorId id : ids_)
            batch.push_back(utterances.input(plan_.model().tensors[id].name, plan_.operand(id)));
        return batch;
    }
    void skip(std::int64_t utterances) override { next_ += static_cast<std::uint64_t>(utterances); }

  private:
    const Plan& plan_;
    std::vector<TensorId> ids_;
    SpeechInputs inputs_;
    std::uint64_t seed_, next_ = 0;
};

/// The weights of another plan, as they now are.
class WeightsOfPlan final : public WeightSource {
  public:
    WeightsOfPlan(const Plan& plan, Device& device) : plan_(plan), device_(device) {}
    void read(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride) override {
        for (TensorId id = 0; id < plan_.model().tensors.size(); ++id) {
            if (plan_.model().tensors[id].name != tensor.name) continue;
            const Operand& operand = plan_.operand(id);
            visit_rows(device_, plan_.address(id), operand, [&](const reference::View& slab, std::int64_t first) {
                const auto* from = static_cast<const std::byte*>(slab.data);
                auto* const to = static_cast<std::byte*>(destination);
                for (std::int64_t row = 0; row < slab.rows; ++row)
                    convert(slab.type, from + static_cast<std::size_t>(row * slab.stride) * size_of(slab.type), type,
                            to + static_cast<std::size_t>((first + row) * row_stride) * size_of(type), slab.columns);
            });
            return;
        }
        throw std::logic_error(fmt::format("no trained {}", tensor.name));
    }
    std::string name() const override { return "trained"; }

  private:
    const Plan& plan_;
    Device& device_;
};

}  // namespace

std::unique_ptr<TrainingData> training_data(const std::string& source, std::uint64_t seed, const Plan& plan) {
    const Model& model = plan.model();
    const std::vector<TensorId> inputs = batch_inputs(model);
    if (ctc_of(model) != nullptr) {
        if (source != "synthetic")
            throw UsageError(fmt::format("--data '{}': {} learns from synthetic speech only", source, model.name));
        return std::make_unique<SpeechData>(seed, plan);
    }
    if (inputs.size() != 1 || model.tensors[inputs.front()].name != "tokens")
        throw UsageError(fmt::format("--model {}: reads no tokens", model.name));
    return std::make_unique<TokenData>(source, seed, model.tensors[inputs.front()]);
}

double Recognition::error_rate() const {
    double errors = 0, said = 0;
    for (const Text& text : texts) {
        errors += static_cast<double>(edit_distance(text.recognised, text.said));
        said += static_cast<double>(text.said.size());
    }
    return errors / std::max(1.0, said);
}

std::optional<Recognition> recognise(const Model& forward, const Plan& trained, Device& device,
                                     const Providers& providers, std::uint64_t seed) {
    if (!forward.loss || !forward.loss->op.is<Ctc>()) return std::nullopt;
    const SpeechInputs inputs(forward);
    const Precision precision = trained.precision();
    Plan plan(forward, precision, assign_steps(forward, precision, providers, {}, column_multiple(device, precision)));
    WeightsOfPlan weights(trained, device);
    plan.allocate(device, weights);
    // From behind all that a training draws.
    const Utterances utterances(inputs, seed, std::uint64_t{1} << 62, inputs.batch);
    for (const TensorId id : forward.inputs)
        plan.set_input(id, utterances.input(forward.tensors[id].name, plan.operand(id)));
    for (std::size_t step = 0; step < plan.steps().size(); ++step) plan.run_step(step, device.stream());
    device.synchronize();

    const TensorId logits = forward.loss->inputs.front();
    const Operand& operand = plan.operand(logits);
    std::vector<float> numbers;
    visit_rows(device, plan.address(logits), operand, [&](const reference::View& slab, std::int64_t) {
        for (std::int64_t row = 0; row < slab.rows; ++row)
            for (std::int64_t label = 0; label < inputs.ctc.labels; ++label)
                numbers.push_back(static_cast<float>(slab(row, label)));
    });
    Recognition recognition{.labels = inputs.ctc.labels};
    for (std::int64_t n = 0; n < inputs.batch; ++n) {
        const SpeechSource::Utterance& one = utterances.list()[static_cast<std::size_t>(n)];
        recognition.texts.push_back(
            {one.text, greedy_labels(numbers.data() + n * inputs.ctc.labels,
                                     steps_of(one.frames, inputs.ctc.frames_per_step, inputs.ctc.steps),
                                     inputs.ctc.labels, inputs.batch * inputs.ctc.labels)});
    }
    return recognition;
}

}  // namespace kbench
