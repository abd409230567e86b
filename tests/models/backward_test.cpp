// The derived backward: which steps, of what, in which order, and what they read and leave.
#include "models/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kbench/error.h"
#include "models/cost.h"
#include "models/gpt2.h"
#include "models/mlp.h"
#include "models/ops/list.h"
#include "models/registry.h"

namespace kbench {
namespace {

Model small() {
    return make_gpt2({.name = "small", .n_embd = 64, .n_layer = 2, .n_head = 2, .n_ctx = 16, .vocab_size = 97}, 3, 16,
                     AttentionKind::fused);
}

std::vector<std::string> steps_of_layer(const Model& model, const std::string& layer) {
    std::vector<std::string> steps;
    for (const OpNode& node : model.ops)
        if (node.forward && node.layer == layer)
            steps.push_back(std::string(name(node.op)) + " " + std::string(name(node.direction)));
    return steps;
}

TEST(Backward, GivesEveryWeightAGradientOfItsShape) {
    const Model model = with_backward(small());
    std::set<TensorId> weights;
    for (const auto& [weight, gradient] : model.gradients) {
        weights.insert(weight);
        EXPECT_EQ(model.tensors[gradient].shape, model.tensors[weight].shape);
        EXPECT_EQ(model.tensors[gradient].name, model.tensors[weight].name + ".grad");
        EXPECT_TRUE(model.tensors[gradient].resident);
    }
    for (TensorId id = 0; id < model.tensors.size(); ++id)
        EXPECT_EQ(model.tensors[id].role == Role::weights, weights.contains(id)) << model.tensors[id].name;
}

TEST(Backward, OfALinearLayerIsItsBiasItsWeightAndItsInput) {
    const Model model = with_backward(small());
    EXPECT_THAT(steps_of_layer(model, "h.1.mlp.c_fc"), testing::ElementsAre("bias bwd", "gemm wgrad", "gemm dgrad"));
    EXPECT_THAT(steps_of_layer(model, "h.1.ln_2"), testing::ElementsAre("layernorm bwd", "residual bwd"));
}

TEST(Backward, EveryStepNamesTheForwardOpItBelongsTo) {
    const Model model = with_backward(small());
    const std::size_t forward = small().ops.size();
    for (std::size_t i = forward + 1; i < model.ops.size(); ++i) {
        ASSERT_TRUE(model.ops[i].forward);
        ASSERT_LT(*model.ops[i].forward, forward);
        EXPECT_EQ(model.ops[*model.ops[i].forward].layer, model.ops[i].layer);
    }
}

TEST(Backward, ReadsNothingThatIsNotMadeBeforeIt) {
    const Model model = with_backward(small());
    std::set<TensorId> there(model.inputs.begin(), model.inputs.end());
    for (TensorId id = 0; id < model.tensors.size(); ++id)
        if (model.tensors[id].role == Role::weights) there.insert(id);
    for (const OpNode& node : model.ops) {
        for (const TensorId id : node.inputs) EXPECT_TRUE(there.contains(id)) << model.tensors[id].name;
        there.insert(node.outputs.begin(), node.outputs.end());
        std::size_t reads = 0, makes = 0;
        for (const OperandSpec& spec : node.op.operands(node.direction)) {
            reads += spec.use != OperandUse::output;
            makes += spec.use == OperandUse::output || spec.use == OperandUse::in_place;
        }
        EXPECT_EQ(node.inputs.size(), reads);
        EXPECT_EQ(node.outputs.size(), makes);
    }
}

TEST(Backward, TakesTwiceTheFlopsOfItsProducts) {
    const Model model = with_backward(small());
    double forward = 0, backward = 0;
    for (const OpNode& node : model.ops)
        if (node.op.is<Gemm>()) (node.forward ? backward : forward) += node.op.work(node.direction).flops;
    EXPECT_DOUBLE_EQ(backward, 2 * forward);
}

TEST(Backward, AddsToATiedWeightsGradientInPlace) {
    const Model model = with_backward(small());
    const OpNode& last = model.ops.back();
    ASSERT_TRUE(last.op.is<Embedding>());
    EXPECT_TRUE(last.op.get_if<Embedding>()->accumulates);
    const auto of_wte = std::ranges::find_if(
        model.gradients, [&](const auto& pair) { return model.tensors[pair.first].name == "wte.weight"; });
    ASSERT_NE(of_wte, model.gradients.end());
    EXPECT_EQ(of_wte->second, last.outputs.front());
}

TEST(Backward, OfSeveralBatchesAddsEveryGradientToASumInPlace) {
    for (const bool tied : {true, false}) {
        const Model model = with_backward(make_gpt2({.name = "small",
                                                     .n_embd = 64,
                                                     .n_layer = 2,
                                                     .n_head = 2,
                                                     .n_ctx = 16,
                                                     .vocab_size = 97,
                                                     .tie_word_embeddings = tied},
                                                    3, 16, AttentionKind::fused),
                                          {.accumulate = true});
        std::set<TensorId> made, weights;
        for (const OpNode& node : model.ops) {
            for (const TensorId id : node.outputs_of(OperandUse::output)) made.insert(id);
            for (const TensorId id : node.outputs_of(OperandUse::in_place))
                EXPECT_EQ(model.tensors[id].name.ends_with(".grad"), node.forward || node.op.is<CrossEntropy>());
        }
        for (const auto& [weight, gradient] : model.gradients) {
            weights.insert(weight);
            EXPECT_FALSE(made.contains(gradient)) << model.tensors[gradient].name << " is overwritten";
        }
        for (TensorId id = 0; id < model.tensors.size(); ++id)
            EXPECT_EQ(model.tensors[id].role == Role::weights, weights.contains(id)) << model.tensors[id].name;
        EXPECT_EQ(model.ops.size(), with_backward(small()).ops.size()) << "no further steps";
    }
}

TEST(Backward, AloneTimesWhatComesBehindTheLossesGradient) {
    const Model model = backward_alone(small());
    EXPECT_TRUE(model.ops[model.untimed_ops - 1].op.is<CrossEntropy>());
    EXPECT_EQ(model.ops[model.untimed_ops].layer, "lm_head");
    EXPECT_EQ(with_backward(small()).untimed_ops, 0U);
}

TEST(Backward, AlonesLeastBytesAreOfWhatIsTimed) {
    const Model alone = backward_alone(small()), whole = with_backward(small());
    // What it cannot do without: the weights of products, once; their gradients, written; the logits' gradient, read.
    const double weights = 4 * static_cast<double>(alone.parameter_count()), logits = 4.0 * 3 * 16 * 97;
    const double least = compulsory_bytes(alone, Precision::fp32);
    EXPECT_GT(least, 1.95 * weights + logits) << "also of what the embedding adds a few rows to";
    std::vector<std::size_t> timed;
    for (std::size_t i = alone.untimed_ops; i < alone.ops.size(); ++i) timed.push_back(i);
    EXPECT_EQ(least, step_cost(alone, timed, Precision::fp32).bytes());
    // A whole step reads weights and tokens and writes gradients and losses; what its forward leaves is not among them.
    const double of_whole = compulsory_bytes(whole, Precision::fp32);
    EXPECT_LT(of_whole, 2.1 * weights);
    EXPECT_GT(least - of_whole, 4.0 * 3 * 16 * 64 * 2) << "activations that the backward alone reads";
}

TEST(Backward, OfAStepWithAdamWMovesWhatTheOptimizerKeepsAndNoMore) {
    const Model model = with_backward(small(), {.adamw = true});
    const auto optimizer = static_cast<std::size_t>(Role::optimizer), weights = static_cast<std::size_t>(Role::weights);
    const double bytes = 4 * static_cast<double>(model.parameter_count());
    const Cost cost = step_cost(model, {model.ops.size() - 1}, Precision::fp32);
    EXPECT_EQ(cost.bytes_read[weights], bytes);
    EXPECT_EQ(cost.bytes_written[weights], bytes) << "in place, they stay weights";
    EXPECT_EQ(cost.bytes_read[optimizer], 2 * bytes) << "m and v";
    EXPECT_EQ(cost.bytes_written[optimizer], 2 * bytes);
    EXPECT_EQ(model.parameter_count(), small().parameter_count()) << "updated weights are no others";
    // Weights, m and v, read and written; losses, and what the embedding does not touch apart.
    EXPECT_NEAR(compulsory_bytes(model, Precision::fp32), 6 * bytes, 0.02 * bytes);
}

TEST(Backward, ScalesTheLossAndTakesTheScaleOutAgain) {
    const Model model = with_backward(small(), {.adamw = true, .loss_scale = 8});
    const auto first = [&](const char* name, std::size_t number) {
        for (const TensorId id : model.inputs)
            if (model.tensors[id].name == name) return model.tensors[id].contents.numbers[number];
        return 0.0;
    };
    EXPECT_EQ(first("loss_scale", 0), 8);
    EXPECT_EQ(first("schedule", 7), 1.0 / 8);
    EXPECT_EQ(first("schedule", 0), 0) << "a measured step starts from the same weights each time";
}

TEST(Backward, IsRefusedWhereThereIsNone) {
    EXPECT_THROW(with_backward(find_model("mlp").build({})), Unsupported);
    const Model unfused =
        make_gpt2({.name = "small", .n_embd = 64, .n_layer = 1, .n_head = 2, .n_ctx = 16, .vocab_size = 97}, 1, 16,
                  AttentionKind::unfused);
    EXPECT_THROW(with_backward(unfused), Unsupported);
    const Model one_token =
        make_gpt2({.name = "small", .n_embd = 64, .n_layer = 1, .n_head = 2, .n_ctx = 16, .vocab_size = 97}, 1, 1,
                  AttentionKind::fused);
    EXPECT_THROW(with_backward(one_token), Unsupported);
}

}  // namespace
}  // namespace kbench
