// A decode step over the keys and values of a forward, or of a prefill, makes that forward's logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/plan/data/inputs.h"
#include "bench/plan/plan.h"
#include "bench/plan/provider.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

constexpr std::int64_t sequences = 3, length = 9;
const std::string caches[] = {"h.0.attn.key_cache", "h.0.attn.value_cache", "h.1.attn.key_cache",
                              "h.1.attn.value_cache"};

Gpt2Config small_gpt2() {
    return {.name = "small", .n_embd = 48, .n_layer = 2, .n_head = 3, .n_ctx = 16, .vocab_size = 101};
}

TensorId named(const Model& model, const std::string& name) {
    const auto found = std::ranges::find(model.tensors, name, &Tensor::name);
    EXPECT_NE(found, model.tensors.end()) << name;
    return static_cast<TensorId>(found - model.tensors.begin());
}

/// A model on the CPU with its memory.
template <class T>
class Planned {
  public:
    Planned(Model of, Precision precision, const ProviderChoice& choice)
        : model(std::move(of)), plan_(model, precision, assign_steps(model, precision, providers_, choice, 1)) {
        RandomWeights weights(1);
        plan_.allocate(cpu(), weights);
        for (const TensorId id : model.inputs)
            plan_.set_input(id, input_bytes(model.tensors[id], plan_.operand(id), "", 1));
    }
    template <class Element = T>
    Element* data(const std::string& name) const {
        return static_cast<Element*>(plan_.address(named(model, name)));
    }
    void forward() const {
        for (std::size_t step = 0; step < plan_.steps().size(); ++step) plan_.run_step(step, nullptr);
    }

    const Model model;

  private:
    Providers providers_ = make_providers(BackendKind::cpu, {});
    Plan plan_;
};

/// Keeps what each layer's attention reads, too.
Model forward_with_qkv() {
    Model model = make_gpt2(small_gpt2(), sequences, length, AttentionKind::fused);
    for (const std::string layer : {"h.0", "h.1"}) model.outputs.push_back(named(model, layer + ".attn.c_attn.out"));
    return model;
}

/// The largest difference between the logits of `made`, a row a sequence, and those of a forward's token `token_of(b)`
/// of sequence b; infinite where one of them is NaN.
template <class T>
double distance(const Planned<T>& made, const Planned<T>& forward, const auto& token_of) {
    const std::int64_t vocab = small_gpt2().vocab_size;
    double largest = 0;
    for (std::int64_t b = 0; b < sequences; ++b)
        for (std::int64_t v = 0; v < vocab; ++v) {
            const T one = made.template data<T>("logits")[b * vocab + v],
                    other = forward.template data<T>("logits")[(b * length + token_of(b)) * vocab + v];
            const auto apart = std::abs(static_cast<double>(one - other));
            largest = std::isnan(apart) ? std::numeric_limits<double>::infinity() : std::max(largest, apart);
        }
    return largest;
}

/// The largest difference between the decode step's logits and the forward's of the same token, where sequence b
/// decodes the token at positions[b] and the caches have room for `past` tokens before it.
template <class T>
double difference(Precision precision, const ProviderChoice& choice, std::vector<std::int32_t> positions,
                  std::int64_t past) {
    const Gpt2Config config = small_gpt2();
    const std::int64_t width = config.n_embd, size = width / config.n_head;
    const Planned<T> all(forward_with_qkv(), precision, choice),
        one(make_gpt2_decode(config, sequences, past), precision, choice);
    all.forward();
    for (const std::string layer : {"h.0.attn", "h.1.attn"}) {
        const T* const qkv = all.template data<T>(layer + ".c_attn.out");
        T *const keys = one.template data<T>(layer + ".key_cache"), *const values =
                                                                        one.template data<T>(layer + ".value_cache");
        // What is not in the past must not be read.
        std::fill_n(keys, sequences * config.n_head * (past + 1) * size, std::numeric_limits<T>::quiet_NaN());
        std::fill_n(values, sequences * config.n_head * (past + 1) * size, std::numeric_limits<T>::quiet_NaN());
        for (std::int64_t b = 0; b < sequences; ++b)
            for (std::int64_t h = 0; h < config.n_head; ++h)
                for (std::int64_t j = 0; j < positions[static_cast<std::size_t>(b)]; ++j) {
                    const T* const row = qkv + (b * length + j) * 3 * width + width + h * size;
                    const std::int64_t to = ((b * config.n_head + h) * (past + 1) + j) * size;
                    std::copy_n(row, size, keys + to);
                    std::copy_n(row + width, size, values + to);
                }
    }
    for (std::int64_t b = 0; b < sequences; ++b) {
        const std::int32_t position = positions[static_cast<std::size_t>(b)];
        one.template data<std::int32_t>("positions")[b] = position;
        one.template data<std::int32_t>("tokens")[b] = all.template data<std::int32_t>("tokens")[b * length + position];
    }
    one.forward();
    return distance(one, all, [&](std::int64_t b) { return positions[static_cast<std::size_t>(b)]; });
}

/// All that a family may have: groups, norms of q and k, biases, a window in one layer, and stretched rotations.
LlamaConfig small_llama() {
    return {.name = "small",
            .hidden_size = 48,
            .num_hidden_layers = 2,
            .num_attention_heads = 4,
            .num_key_value_heads = 2,
            .head_dim = 16,
            .intermediate_size = 80,
            .vocab_size = 101,
            .max_position_embeddings = 16,
            .rope = {.type = RopeType::llama3, .theta = 500, .factor = 8, .original_length = 8},
            .qkv_bias = true,
            .qk_norm = true,
            .sliding_window = 4,
            .sliding_layers = {false, true}};
}

/// The same for a Llama, whose forward leaves its keys and values in caches of its own.
template <class T>
double difference_of_llama(Precision precision, const ProviderChoice& choice, std::vector<std::int32_t> positions) {
    const LlamaConfig config = small_llama();
    const Planned<T> all(make_llama(config, sequences, length, 0), precision, choice),
        one(make_llama(config, sequences, 1, length - 1), precision, choice);
    all.forward();
    const std::int64_t row = config.head_dim, heads = config.num_key_value_heads;
    for (const std::string cache : {"layers.0.self_attn.key_cache", "layers.0.self_attn.value_cache",
                                    "layers.1.self_attn.key_cache", "layers.1.self_attn.value_cache"}) {
        T* const to = one.template data<T>(cache);
        std::fill_n(to, sequences * heads * length * row, std::numeric_limits<T>::quiet_NaN());
        for (std::int64_t head = 0; head < sequences * heads; ++head)
            std::copy_n(all.template data<T>(cache) + head * length * row,
                        positions[static_cast<std::size_t>(head / heads)] * row, to + head * length * row);
    }
    for (std::int64_t b = 0; b < sequences; ++b) {
        const std::int32_t position = positions[static_cast<std::size_t>(b)];
        one.template data<std::int32_t>("positions")[b] = position;
        one.template data<std::int32_t>("tokens")[b] = all.template data<std::int32_t>("tokens")[b * length + position];
    }
    one.forward();
    return distance(one, all, [&](std::int64_t b) { return positions[static_cast<std::size_t>(b)]; });
}

/// Who computes each op in plain fp64 loops.
const ProviderChoice by_reference{{"*", "reference"}};

TEST(Decode, MakesTheForwardsLogitsOfTheSameToken) {
    const std::vector<std::int32_t> last(sequences, length - 1);
    EXPECT_LT((difference<double>(Precision::fp64, by_reference, last, length - 1)), 1e-13);
    EXPECT_LT((difference<float>(Precision::fp32, {}, last, length - 1)), 1e-5);
}

TEST(Decode, TakesEachSequenceAtItsOwnPosition) {
    EXPECT_LT((difference<double>(Precision::fp64, by_reference, {0, 5, 8}, length - 1)), 1e-13);
    EXPECT_LT((difference<float>(Precision::fp32, {}, {0, 5, 8}, length - 1)), 1e-5);
    EXPECT_LT((difference<float>(Precision::fp32, {}, {4, 1, 8}, small_gpt2().n_ctx - 1)), 1e-5)
        << "a cache with room for more";
}

TEST(Decode, MakesTheFirstTokenOverAnEmptyCache) {
    const std::vector<std::int32_t> first(sequences, 0);
    EXPECT_LT((difference<double>(Precision::fp64, by_reference, first, 0)), 1e-13);
    EXPECT_LT((difference<float>(Precision::fp32, {}, first, 0)), 1e-5);
}

/// The largest difference from the forward's logits of the same tokens, where a prefill of `prompt` tokens makes the
/// first and decode steps on its cache the rest.
template <class T>
double difference_after_prefill(Precision precision, const ProviderChoice& choice, std::int64_t prompt) {
    const Gpt2Config config = small_gpt2();
    const Planned<T> all(make_gpt2(config, sequences, length, AttentionKind::fused), precision, choice),
        first(make_gpt2_prefill(config, sequences, prompt, length - prompt), precision, choice),
        next(make_gpt2_decode(config, sequences, length - 1), precision, choice);
    all.forward();
    const auto* const tokens = all.template data<std::int32_t>("tokens");
    for (std::int64_t b = 0; b < sequences; ++b)
        std::copy_n(tokens + b * length, prompt, first.template data<std::int32_t>("tokens") + b * prompt);
    for (const std::string& cache : caches)
        std::fill_n(first.template data<T>(cache), sequences * length * config.n_embd,
                    std::numeric_limits<T>::quiet_NaN());
    first.forward();
    double largest = distance(first, all, [&](std::int64_t) { return prompt - 1; });
    for (const std::string& cache : caches)
        std::copy_n(first.template data<T>(cache), sequences * length * config.n_embd, next.template data<T>(cache));
    for (std::int64_t token = prompt; token < length; ++token) {
        for (std::int64_t b = 0; b < sequences; ++b) {
            next.template data<std::int32_t>("positions")[b] = static_cast<std::int32_t>(token);
            next.template data<std::int32_t>("tokens")[b] = tokens[b * length + token];
        }
        next.forward();
        largest = std::max(largest, distance(next, all, [&](std::int64_t) { return token; }));
    }
    return largest;
}

TEST(Prefill, MakesTheForwardsLogitsAndLeavesACacheThatDecodeStepsGoOnWith) {
    for (const std::int64_t prompt : {std::int64_t{1}, std::int64_t{5}, length - 1}) {
        EXPECT_LT((difference_after_prefill<double>(Precision::fp64, by_reference, prompt)), 1e-13) << prompt;
        EXPECT_LT((difference_after_prefill<float>(Precision::fp32, {}, prompt)), 1e-5) << prompt;
    }
}

TEST(Decode, OfALlamaMakesItsForwardsLogits) {
    EXPECT_LT((difference_of_llama<double>(Precision::fp64, by_reference, {8, 8, 8})), 1e-13);
    EXPECT_LT((difference_of_llama<double>(Precision::fp64, by_reference, {0, 3, 8})), 1e-13);
    EXPECT_LT((difference_of_llama<float>(Precision::fp32, {}, {0, 3, 8})), 1e-5);
}

TEST(Decode, StepsOverItsCacheAgainAreTheSame) {
    const Planned<float> one(make_gpt2_decode(small_gpt2(), sequences, 7), Precision::fp32, {});
    const auto logits = [&] {
        one.forward();
        const float* const first = one.data<float>("logits");
        return std::vector<float>(first, first + sequences * small_gpt2().vocab_size);
    };
    const std::vector<float> once = logits();
    EXPECT_EQ(logits(), once);
    EXPECT_FALSE(std::isnan(once[0]));
}

TEST(Decode, AccountsForItsCacheInMemoryOfItsOwn) {
    const Model model = make_gpt2_decode(small_gpt2(), sequences, 15);
    const Plan plan(model, Precision::fp32,
                    assign_steps(model, Precision::fp32, make_providers(BackendKind::cpu, {}), {}, 1));
    // Keys and values of two layers: three sequences, 16 tokens, 48 numbers.
    EXPECT_EQ(plan.layout().memory.bytes[static_cast<std::size_t>(Role::cache)], 2 * 2 * 3 * 16 * 48 * 4);
}

}  // namespace
}  // namespace kbench
