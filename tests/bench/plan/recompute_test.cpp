// A backward that makes its blocks' forward again: the same bits, the same steps, less memory.
#include "models/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bench/measure/sweep/planning.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/plan.h"
#include "bench/plan/provider.h"
#include "models/backward.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

Model small() {
    Model model = make_gpt2({.name = "small", .n_embd = 48, .n_layer = 3, .n_head = 3, .n_ctx = 32, .vocab_size = 61},
                            2, 29, AttentionKind::fused);
    for (Tensor& tensor : model.tensors)  // biases of 0 would hide what is lost
        if (tensor.role == Role::weights) tensor.contents = Contents::normal(0.2);
    return model;
}

/// A planned model with random weights, run once.
class Ran {
  public:
    Ran(Model model, Precision precision, const ProviderChoice& choice = {})
        : model_(std::move(model)),
          providers_(make_providers(BackendKind::cpu, {})),
          plan_(model_, precision, assign_steps(model_, precision, providers_, choice, 1)) {
        RandomWeights weights(3);
        plan_.allocate(cpu(), weights);
        for (const TensorId id : model_.inputs)
            plan_.set_input(id, input_bytes(model_.tensors[id], plan_.operand(id), "", 5));
        run(0);
    }
    void run(std::size_t first) {
        for (std::size_t s = first; s < plan_.steps().size(); ++s) plan_.run_step(s, nullptr);
    }
    std::vector<std::byte> bytes(TensorId id) const {
        const auto* data = static_cast<const std::byte*>(plan_.address(id));
        return {data, data + plan_.operand(id).bytes()};
    }
    /// The losses and all gradients, of weights by their names.
    std::map<std::string, std::vector<std::byte>> results() const {
        std::map<std::string, std::vector<std::byte>> all;
        for (const TensorId id : model_.outputs) all[model_.tensors[id].name] = bytes(id);
        for (const auto& [weight, gradient] : model_.gradients) all[model_.tensors[weight].name] = bytes(gradient);
        return all;
    }
    const Plan& plan() const { return plan_; }
    const Model& model() const { return model_; }
    std::int64_t memory(Role role) const { return plan_.layout().memory.bytes[static_cast<std::size_t>(role)]; }

  private:
    Model model_;
    Providers providers_;
    Plan plan_;
};

TEST(RecomputePlan, LossAndGradientsHaveTheSameBits) {
    for (const Precision precision : {Precision::fp32, Precision::fp64})
        for (const bool adamw : {false, true}) {  // whose plan has other steps, as no weight may be packed
            const Ran kept(with_backward(small(), {.adamw = adamw}), precision),
                again(with_backward(small(), {.adamw = adamw, .recompute = true}), precision);
            const auto before = kept.results(), after = again.results();
            ASSERT_EQ(before.size(), after.size());
            for (const auto& [result, bytes] : before)
                EXPECT_TRUE(bytes == after.at(result))
                    << result << " in " << name(precision) << (adamw ? ", AdamW" : "");
        }
}

TEST(RecomputePlan, FindsAPlantedError) {
    Model model = with_backward(small(), {.recompute = true});
    // The second block is made again from what enters the first.
    const auto norm = [&](const char* layer, bool again) {
        return std::ranges::find_if(
            model.ops, [&](const OpNode& node) { return node.layer == layer && node.is_recomputed() == again; });
    };
    norm("h.1.ln_1", true)->inputs[0] = norm("h.0.ln_1", false)->inputs[0];
    const Ran kept(with_backward(small()), Precision::fp32), wrong(std::move(model), Precision::fp32);
    EXPECT_NE(kept.results().at("h.1.attn.c_attn.weight"), wrong.results().at("h.1.attn.c_attn.weight"));
}

TEST(RecomputePlan, AStepThatRunsAgainIsTheSameStepAsBefore) {
    for (const ProviderChoice& choice : {ProviderChoice{}, {{"gemm", "reference"}}}) {  // which fuses all that it may
        const Ran again(with_backward(small(), {.recompute = true}), Precision::fp32, choice);
        std::map<std::size_t, const PlannedStep*> first;  // by op
        int repeated = 0, kept = 0;
        for (const PlannedStep& step : again.plan().steps()) {
            const OpNode& node = again.model().ops[step.naming_op];
            for (const std::size_t op : step.ops) first.emplace(op, &step);
            if (!node.is_recomputed()) continue;
            ++repeated;
            kept += step.step.keeps_results();
            const PlannedStep& before = *first.at(*node.forward);
            EXPECT_EQ(step.provider, before.provider);
            // A block's first layer norm may have been computed along with the addition before it, which is another
            // block's.
            EXPECT_TRUE(step.step == before.step || node.op.is<LayerNorm>()) << shape_text(step.step);
        }
        EXPECT_GE(repeated, 3 * 6);
        EXPECT_EQ(kept, choice.empty() ? 0 : 3) << "what GELU is applied to";
    }
}

TEST(RecomputePlan, EveryOtherStepIsAsWithoutIt) {
    const Ran kept(with_backward(small()), Precision::fp32),
        again(with_backward(small(), {.recompute = true}), Precision::fp32);
    std::vector<const PlannedStep*> others;
    for (const PlannedStep& step : again.plan().steps())
        if (!again.model().ops[step.naming_op].is_recomputed()) others.push_back(&step);
    const std::vector<PlannedStep>& steps = kept.plan().steps();
    ASSERT_EQ(others.size(), steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
        EXPECT_TRUE(others[s]->step == steps[s].step) << shape_text(steps[s].step);
        EXPECT_EQ(again.model().ops[others[s]->naming_op].layer, kept.model().ops[steps[s].naming_op].layer);
    }
}

TEST(RecomputePlan, AloneRunsAgainAndAgainInLessMemory) {
    Ran whole(with_backward(small(), {.recompute = true}), Precision::fp32);
    Ran alone(backward_alone(small(), {.recompute = true}), Precision::fp32);
    const Ran keeps_all(backward_alone(small()), Precision::fp32);
    for (int repeat = 0; repeat < 2; ++repeat) alone.run(alone.plan().first_timed());
    EXPECT_EQ(whole.results(), alone.results());
    EXPECT_LT(alone.plan().layout().memory.total(), keeps_all.plan().layout().memory.total());
    EXPECT_EQ(alone.memory(Role::weights), keeps_all.memory(Role::weights)) << "packed weights are there once";
}

TEST(RecomputePlan, SavesOneTensorOfABlock) {
    const Ran kept(with_backward(small()), Precision::fp32),
        again(with_backward(small(), {.recompute = true}), Precision::fp32);
    const auto aligned = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
    const std::int64_t stream = aligned(std::int64_t{4} * 2 * 29 * 48);
    EXPECT_EQ(again.memory(Role::saved_activations), (1 + 3 + 1) * stream) << "what enters, 3 blocks', and ln_f's";
    // A block: two layer norms', the stream between, attention's; 3 of qkv; 4 each before and behind GELU; lse.
    EXPECT_EQ(kept.memory(Role::saved_activations),
              again.memory(Role::saved_activations) +
                  3 * (4 * stream + aligned(3 * 4 * 2 * 29 * 48) + 2 * aligned(4 * 4 * 2 * 29 * 48) +
                       aligned(std::int64_t{4} * 2 * 29 * 3)));
    EXPECT_LT(again.plan().layout().memory.total(), kept.plan().layout().memory.total());
}

TEST(RecomputePlan, OfLargeModelsTakesLessMemoryByWhatIsNotSaved) {
    const auto providers = make_providers(BackendKind::cpu, {});
    for (const char* name : {"gpt2", "gpt2-large"}) {
        const Gpt2Config& config = gpt2_config(name);
        const auto planned = [&](bool recompute) {
            const Model model = with_backward(make_gpt2(config, 4, 1024, AttentionKind::fused),
                                              {.adamw = true, .recompute = recompute});
            return estimate_layout(model, Precision::fp32, assign_steps(model, Precision::fp32, providers, {}, 64))
                .memory;
        };
        const auto saved = static_cast<std::size_t>(Role::saved_activations);
        const MemoryPlan all = planned(false), block = planned(true);
        const std::int64_t stream = std::int64_t{4} * 4096 * config.n_embd;
        EXPECT_EQ(block.bytes[saved], (config.n_layer + 2) * stream) << name;
        // The peak is at the loss: by then a block's own activations, made again, have room where the logits were.
        EXPECT_EQ(all.total() - block.total(), all.bytes[saved] - block.bytes[saved]) << name;
        EXPECT_GT(all.bytes[saved], 13 * block.bytes[saved]) << name;
    }
}

}  // namespace
}  // namespace kbench
