// Blocks whose forward is made again: which ops come again, where, and what is saved instead.
#include "models/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kbench/error.h"
#include "models/backward.h"
#include "models/gpt2.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

Model small() {
    return make_gpt2({.name = "small", .n_embd = 64, .n_layer = 2, .n_head = 2, .n_ctx = 16, .vocab_size = 97}, 3, 16,
                     AttentionKind::fused);
}
Model recomputing() { return with_backward(small(), {.adamw = true, .recompute = true}); }

std::set<std::string> names_of(const Model& model, Role role) {
    std::set<std::string> names;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == role) names.insert(tensor.name);
    return names;
}

TEST(Recompute, ABlockIsWhatStandsBeforeTheFirstNumber) {
    EXPECT_EQ(enclosing_block("h.3.mlp.c_fc"), "h.3");
    EXPECT_EQ(enclosing_block("h.10"), "h.10");
    EXPECT_EQ(enclosing_block("model.layers.0.q.1"), "model.layers.0");
    for (const char* layer : {"wte+wpe", "ln_f", "", "h1.mlp", "h."}) EXPECT_EQ(enclosing_block(layer), "") << layer;
}

TEST(Recompute, KeepsOfABlockWhatEntersAndLeavesIt) {
    EXPECT_THAT(names_of(recomputing(), Role::saved_activations),
                testing::UnorderedElementsAre("wte+wpe.out", "h.0.out", "h.1.out", "ln_f.out"));
    const std::set<std::string> all = names_of(with_backward(small()), Role::saved_activations);
    EXPECT_THAT(all, testing::IsSupersetOf({"h.0.ln_1.out", "h.0.attn.residual", "h.1.mlp.c_fc.out"}));
    EXPECT_FALSE(all.contains("h.0.mlp.c_proj.out")) << "no backward reads it";
    EXPECT_TRUE(names_of(small(), Role::saved_activations).empty()) << "a forward alone saves nothing";
}

TEST(Recompute, WhatTheBackwardReadsComesAgainInFrontOfIt) {
    const Model model = recomputing();
    const std::size_t forward = small().ops.size();
    std::vector<std::string> again;
    for (std::size_t i = 0; i < model.ops.size(); ++i) {
        const OpNode& node = model.ops[i];
        if (!node.is_recomputed()) continue;
        EXPECT_GT(i, forward) << "behind the loss";
        const OpNode& first = model.ops[*node.forward];
        EXPECT_LT(*node.forward, forward);
        EXPECT_TRUE(node.op == first.op);
        EXPECT_EQ(node.layer, first.layer);
        if (node.layer.starts_with("h.0")) again.push_back(node.layer + ":" + std::string(name(node.op)));
        for (std::size_t out = 0; out < node.outputs.size(); ++out)
            EXPECT_EQ(model.tensors[node.outputs[out]].name, model.tensors[first.outputs[out]].name + ".recomputed");
    }
    // Not the MLP's last product and what is added to it.
    EXPECT_THAT(again, testing::ElementsAre("h.0.ln_1:layernorm", "h.0.attn.c_attn:gemm", "h.0.attn.c_attn:bias",
                                            "h.0.attn:attention", "h.0.attn.c_proj:gemm", "h.0.attn.c_proj:bias",
                                            "h.0:residual", "h.0.ln_2:layernorm", "h.0.mlp.c_fc:gemm",
                                            "h.0.mlp.c_fc:bias", "h.0.mlp.act:gelu"));
    // The last block comes first, each right before its own backward.
    std::vector<std::string> order;
    for (std::size_t i = forward + 1; i < model.ops.size(); ++i) {
        const std::string part =
            std::string(enclosing_block(model.ops[i].layer)) + (model.ops[i].is_recomputed() ? " again" : " backward");
        if (order.empty() || order.back() != part) order.push_back(part);
    }
    EXPECT_THAT(order, testing::ElementsAre(" backward", "h.1 again", "h.1 backward", "h.0 again", "h.0 backward",
                                            " backward"));
}

TEST(Recompute, ReadsNothingThatIsNotMadeBeforeItOrIsNotKept) {
    const Model model = recomputing();
    std::set<TensorId> there(model.inputs.begin(), model.inputs.end());
    for (TensorId id = 0; id < model.tensors.size(); ++id)
        if (model.tensors[id].role == Role::weights || model.tensors[id].resident) there.insert(id);
    const std::size_t forward = small().ops.size();
    for (std::size_t i = 0; i < model.ops.size(); ++i) {
        const OpNode& node = model.ops[i];
        if (i == forward + 1)  // behind the loss: of the forward's activations only the saved ones are there
            std::erase_if(there, [&](TensorId id) { return model.tensors[id].role == Role::activations; });
        for (const TensorId id : node.inputs)
            EXPECT_TRUE(there.contains(id)) << model.tensors[id].name << " for " << node.layer;
        there.insert(node.outputs.begin(), node.outputs.end());
    }
}

TEST(Recompute, NeedsBlocks) {
    Model model = small();
    for (OpNode& node : model.ops) node.layer = "plain";
    EXPECT_THROW(with_backward(std::move(model), {.recompute = true}), Unsupported);
}

}  // namespace
}  // namespace kbench
