// Useful FLOPs, bytes of steps and compulsory traffic of models, against counts made by hand.
#include "models/cost.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/problem.h"

namespace kbench {
namespace {

double flops(const Op& op) { return op.work(Direction::fwd).flops; }

std::size_t index(Role role) { return static_cast<std::size_t>(role); }

std::vector<std::size_t> all_ops(const Model& model) {
    std::vector<std::size_t> ops(model.ops.size());
    std::iota(ops.begin(), ops.end(), std::size_t{0});
    return ops;
}

/// Indices of the ops of `layer`, in order.
std::vector<std::size_t> ops_of(const Model& model, const std::string& layer) {
    std::vector<std::size_t> ops;
    for (std::size_t i = 0; i < model.ops.size(); ++i)
        if (model.ops[i].layer == layer) ops.push_back(i);
    return ops;
}

Model tiny(AttentionKind attention, bool upcast = false) {
    return make_gpt2({.name = "tiny",
                      .n_embd = 12,
                      .n_layer = 2,
                      .n_head = 3,
                      .n_ctx = 8,
                      .vocab_size = 100,
                      .reorder_and_upcast_attn = upcast},
                     2, 4, attention);
}

double role_bytes(const Cost& cost, Role role) {
    return cost.bytes_read[index(role)] + cost.bytes_written[index(role)];
}

TEST(Flops, AreTheCountsOfEachKind) {
    EXPECT_EQ(flops(Embedding{.rows = 10, .seq = 5, .width = 7, .vocab = 9, .positions = 5}), 70);
    EXPECT_EQ(flops(LayerNorm{.rows = 3, .width = 10, .epsilon = 1e-5}), 3 * 75);
    EXPECT_EQ(flops(Gemm{.m = 3, .n = 5, .k = 7}), 210);
    EXPECT_EQ(flops(BiasAdd{.rows = 3, .width = 5}), 15);
    EXPECT_EQ(flops(Gelu{.rows = 3, .width = 5}), 135);
    EXPECT_EQ(flops(GeluErf{.rows = 3, .width = 5}), 75) << "x / sqrt(2), erf, + 1, / 2, x";
    EXPECT_EQ(flops(QuickGelu{.rows = 3, .width = 5}), 60);
    EXPECT_EQ(flops(Relu{.rows = 3, .width = 5}), 15);
    EXPECT_EQ(flops(Silu{.rows = 3, .width = 5}), 45) << "e^-x, + 1, x divided by it";
    EXPECT_EQ(flops(Tanh{.rows = 3, .width = 5}), 15);
    EXPECT_EQ(Op(Relu{3, 5}).work(Direction::bwd).flops, 15);
    EXPECT_EQ(Op(Tanh{3, 5}).work(Direction::bwd).flops, 60) << "t, t^2, 1 - t^2, dy";
    EXPECT_EQ(flops(ResidualAdd{.rows = 3, .width = 5}), 15);
    EXPECT_EQ(flops(Softmax{.rows = 5, .width = 5, .upcast = false}), 4 * (1 + 2 + 3 + 4 + 5));
    EXPECT_EQ(flops(Softmax{.rows = 7, .width = 5, .upcast = false}), 4 * (15 + 1 + 2)) << "two rows of the next head";
}

TEST(Flops, CausalAttentionCountsEachPairOnce) {
    const AttentionShape shape{.batch = 2, .heads = 3, .seq = 4, .head_size = 5};
    const double pairs = 2 * 3 * (4 + 3 + 2 + 1), queries = 2 * 3 * 4;
    EXPECT_EQ(flops(Attention{shape, 1.0}), pairs * (4 * 5 + 4) + queries * 5);
    EXPECT_EQ(flops(Attention{shape, 1.0, true}), pairs * (4 * 5 + 4) + queries * (5 + 2)) << "lse";
    EXPECT_EQ(Op(Attention{shape, 1.0}).work(Direction::bwd).flops, pairs * (10 * 5 + 5) + queries * 4 * 5);
    EXPECT_EQ(Op(Attention{shape, 1.0}).work(Direction::fwd).matrix_flops, pairs * 4 * 5) << "two products";
    EXPECT_EQ(Op(Attention{shape, 1.0}).work(Direction::bwd).matrix_flops, pairs * 10 * 5) << "five";
    EXPECT_EQ(flops(ScaleMask{shape, 1.0, false}), pairs);
    EXPECT_EQ(flops(AttentionScores{shape, false}), 2 * pairs * 5);
    EXPECT_EQ(flops(AttentionContext{shape}), 2 * pairs * 5);
    EXPECT_EQ(flops(Softmax{shape.score_rows(), shape.seq, false}), 4 * pairs);
}

TEST(Flops, WhatAMaskDiscardsIsExecutedAndNotUseful) {
    const AttentionShape shape{.batch = 2, .heads = 3, .seq = 4, .head_size = 5};
    const double masked = 2 * 3 * (0 + 1 + 2 + 3), square = 2 * 3 * 4 * 4;
    for (const Op& product : {Op(AttentionScores{shape, false}), Op(AttentionContext{shape})}) {
        const Work work = product.work(Direction::fwd);
        EXPECT_EQ(work.masked_flops, 2 * masked * 5) << name(product);
        EXPECT_EQ(work.matrix_flops, 2 * square * 5) << name(product) << ": launched whole";
        EXPECT_EQ(work.flops + work.masked_flops, work.matrix_flops) << name(product);
    }
    EXPECT_EQ(Op(Softmax{shape.score_rows(), shape.seq, false}).work(Direction::fwd).masked_flops, 4 * masked);
    EXPECT_EQ(Op(ScaleMask{shape, 1.0, false}).work(Direction::fwd).masked_flops, 0) << "it multiplies none";
    EXPECT_EQ(Op(Attention{shape, 1.0}).work(Direction::fwd).masked_flops, 0) << "a kernel may leave them out";
}

TEST(Flops, AProductWithoutAMaskIsUsefulAsAWhole) {
    // The product has the shape of one head's scores, and still is another step.
    const Op product = Gemm{.m = 4, .n = 4, .k = 5}, scores = AttentionScores{{1, 1, 4, 5}, false};
    EXPECT_EQ(product.work(Direction::fwd).flops, 2 * 4 * 4 * 5);
    EXPECT_EQ(product.work(Direction::fwd).masked_flops, 0);
    EXPECT_EQ(scores.work(Direction::fwd).matrix_flops, product.work(Direction::fwd).matrix_flops);
    EXPECT_NE(Step::of(product), Step::of(scores)) << "so neither is verified for the other";
}

TEST(Flops, OfBothProductsAreTheSameFusedAndUnfused) {
    const auto of_attention = [](AttentionKind kind) {
        const Model model = make_gpt2(gpt2_config("gpt2-large"), 4, 1024, kind);
        return step_cost(model, ops_of(model, "h.0.attn"), Precision::fp16).flops;
    };
    const double queries = 4 * 20 * 1024, pairs = queries * 1025 / 2;
    // Beside the products fused attention has 4 a pair and divides the output, unfused has 5 a pair.
    const double fused = of_attention(AttentionKind::fused) - 4 * pairs - 64 * queries;
    const double unfused = of_attention(AttentionKind::unfused) - 5 * pairs;
    EXPECT_EQ(fused, unfused);
    EXPECT_EQ(unfused, 2 * 2 * 64 * pairs);
}

TEST(Flops, DoNotOverflowIntegers) { EXPECT_EQ(flops(Gemm{.m = 1 << 24, .n = 1 << 24, .k = 1 << 24}), 0x1p73); }

TEST(Flops, Gpt2LargeForwardIsOnePointSixEightTera) {
    const Model model = make_gpt2(gpt2_config("gpt2-large"), 1, 1024, AttentionKind::fused);
    EXPECT_NEAR(step_cost(model, all_ops(model), Precision::fp16).flops, 1.68e12, 0.005 * 1.68e12);
}

TEST(TensorBytes, CountEveryDimension) {
    const Tensor tensor{.name = "q", .role = Role::activations, .shape = {2, 3, 5, 7}};
    EXPECT_EQ(tensor.rows(), 30);
    EXPECT_EQ(tensor.columns(), 7);
    EXPECT_EQ(tensor_bytes(tensor, Precision::fp16), 2 * 2 * 3 * 5 * 7);
}

TEST(TensorBytes, FollowThePrecisionExceptForTokensAndUpcastScores) {
    const Tensor weight{.name = "w", .role = Role::weights, .shape = {3, 5}};
    EXPECT_EQ(tensor_bytes(weight, Precision::fp16), 30);
    EXPECT_EQ(tensor_bytes(weight, Precision::bf16), 30);
    EXPECT_EQ(tensor_bytes(weight, Precision::tf32), 60);
    EXPECT_EQ(tensor_bytes(weight, Precision::fp32), 60);
    EXPECT_EQ(tensor_bytes(weight, Precision::fp64), 120);
    const Tensor tokens{.name = "tokens", .role = Role::tokens, .shape = {5}, .element = ElementType::int32};
    EXPECT_EQ(tensor_bytes(tokens, Precision::fp16), 20);
    EXPECT_EQ(tensor_bytes(tokens, Precision::fp64), 20);
    const Tensor scores{.name = "s", .role = Role::scores, .shape = {3, 5}, .element = ElementType::at_least_fp32};
    EXPECT_EQ(tensor_bytes(scores, Precision::fp16), 60);
    EXPECT_EQ(tensor_bytes(scores, Precision::fp64), 120) << "never in less than the precision stores";
}

TEST(StepCost, GemmReadsItsOperandsAndWritesItsResult) {
    const Model model = tiny(AttentionKind::fused);
    const auto gemm = ops_of(model, "h.0.mlp.c_fc")[0];
    const Cost cost = step_cost(model, {gemm}, Precision::fp16);
    EXPECT_EQ(cost.flops, 2 * 8 * 12 * 48);
    EXPECT_EQ(cost.bytes_read[index(Role::weights)], 2 * 12 * 48);
    EXPECT_EQ(cost.bytes_read[index(Role::activations)], 2 * 8 * 12);
    EXPECT_EQ(cost.bytes_written[index(Role::activations)], 2 * 8 * 48);
    EXPECT_EQ(cost.bytes(), 2 * (12 * 48 + 8 * 12 + 8 * 48));
}

TEST(StepCost, FusingRemovesExactlyTheIntermediateTensors) {
    const Model model = tiny(AttentionKind::fused);
    std::vector<std::size_t> ops = ops_of(model, "h.0.mlp.c_fc");
    ops.push_back(ops_of(model, "h.0.mlp.act")[0]);
    Cost apart;
    for (std::size_t op : ops) apart += step_cost(model, {op}, Precision::fp32);
    const Cost fused = step_cost(model, ops, Precision::fp32);
    // gemm's and bias's results, each written once and read once.
    EXPECT_EQ(apart.bytes() - fused.bytes(), 2 * 2 * 4 * 8 * 48);
    EXPECT_EQ(fused.flops, apart.flops);
    EXPECT_EQ(fused.bytes_written[index(Role::activations)], 4 * 8 * 48);
}

TEST(UnfusedCost, IsTheSumOfTheOpsEachByItself) {
    for (const AttentionKind attention : {AttentionKind::fused, AttentionKind::unfused}) {
        Model model = tiny(attention);
        model.untimed_ops = 2;
        Cost apart;
        for (std::size_t op = model.untimed_ops; op < model.ops.size(); ++op)
            apart += step_cost(model, {op}, Precision::bf16);
        const Cost unfused = unfused_cost(model, Precision::bf16);
        EXPECT_EQ(unfused.flops, apart.flops);
        EXPECT_EQ(unfused.bytes_read, apart.bytes_read);
        EXPECT_EQ(unfused.bytes_written, apart.bytes_written);
        EXPECT_GT(unfused.bytes(), compulsory_bytes(model, Precision::bf16));
    }
}

TEST(StepCost, TensorReadByALaterStepIsStillWritten) {
    // The residual sum in front of ln_2 is read by ln_2, and again by the block's second residual addition.
    const Model model = tiny(AttentionKind::fused);
    const std::size_t residual = ops_of(model, "h.0")[0], norm = ops_of(model, "h.0.ln_2")[0];
    const Cost fused = step_cost(model, {residual, norm}, Precision::fp16);
    EXPECT_EQ(fused.bytes_written[index(Role::activations)], 2 * (2 * 8 * 12)) << "the sum and the norm";
    EXPECT_EQ(fused.bytes_read[index(Role::activations)], 2 * (2 * 8 * 12)) << "the branch and the stream";
}

TEST(StepCost, TensorReadByTwoOpsOfAStepCountsOnce) {
    const Model model = tiny(AttentionKind::fused);
    const std::size_t norm = ops_of(model, "h.0.ln_2")[0], last = ops_of(model, "h.0")[1];
    // Both read the first residual sum; the second also reads the MLP's result.
    EXPECT_EQ(step_cost(model, {norm, last}, Precision::fp16).bytes_read[index(Role::activations)], 2 * (2 * 8 * 12));
}

TEST(StepCost, ModelsResultIsWrittenThoughNothingReadsIt) {
    const Model model = tiny(AttentionKind::fused);
    const Cost cost = step_cost(model, all_ops(model), Precision::fp16);
    EXPECT_EQ(cost.bytes_written[index(Role::logits)], 2 * 8 * 100);
    EXPECT_EQ(role_bytes(cost, Role::activations), 0) << "all of them live inside the one step";
}

TEST(StepCost, ResultThatNoOpReadsIsWritten) {
    const Model model{.name = "one sum",
                      .tensors = {{.name = "logits", .role = Role::logits, .shape = {1, 1}},
                                  {.name = "x", .role = Role::activations, .shape = {3, 5}},
                                  {.name = "y", .role = Role::activations, .shape = {3, 5}}},
                      .ops = {{ResidualAdd{3, 5}, "sum", {1, 1}, {2}}},
                      .inputs = {},
                      .outputs = {0}};
    EXPECT_EQ(step_cost(model, {0}, Precision::fp32).bytes_written[index(Role::activations)], 4 * 15);
}

TEST(StepCost, EmbeddingReadsOnlyTheRowsItTouches) {
    const Model model = tiny(AttentionKind::fused);
    const Cost cost = step_cost(model, {0}, Precision::fp16);
    EXPECT_EQ(cost.bytes_read[index(Role::tokens)], 4 * 8);
    EXPECT_EQ(cost.bytes_read[index(Role::weights)], 2 * (8 * 12 + 4 * 12)) << "8 rows of wte, 4 of wpe";
    const std::size_t head = model.ops.size() - 1;
    EXPECT_EQ(step_cost(model, {0, head}, Precision::fp16).bytes_read[index(Role::weights)], 2 * (100 * 12 + 4 * 12))
        << "with the tied head, all of wte, once";
}

TEST(StepCost, AnEmbeddingsGradientThatAccumulatesTouchesOnlyTheRowsOfItsTokens) {
    const auto cost_of = [](std::string_view shape) {
        return step_cost(make_problem_model(parse_problem("embedding", shape, Direction::bwd), 1, 1), {0},
                         Precision::fp16);
    };
    const Cost anew = cost_of("r8w12v100s4"), added = cost_of("r8w12v100s4a");
    const double row = 2 * 12, tokens = 4 * 8;
    EXPECT_EQ(anew.bytes(), tokens + 8 * row + 100 * row + 4 * row) << "tokens, dout; dwte and dwpe whole";
    EXPECT_EQ(added.bytes(), tokens + 8 * row + 2 * 8 * row + 4 * row) << "8 rows of dwte, read and written";
}

TEST(StepCost, UnfusedAttentionReadsTheThirdsOfQkvThatItNeeds) {
    const Model model = tiny(AttentionKind::unfused);
    const auto ops = ops_of(model, "h.0.attn");
    const double third = 2 * 8 * 12, square = 2 * (2 * 3 * 4) * 4;
    EXPECT_EQ(step_cost(model, {ops[0]}, Precision::fp16).bytes_read[index(Role::activations)], 2 * third);
    EXPECT_EQ(step_cost(model, {ops[3]}, Precision::fp16).bytes_read[index(Role::activations)], third);
    const Cost mask = step_cost(model, {ops[1]}, Precision::fp16);
    EXPECT_EQ(mask.bytes_read[index(Role::scores)], square * 10 / 16) << "the triangle of 4 x 4";
    EXPECT_EQ(mask.bytes_written[index(Role::scores)], square);
    const Cost fused = step_cost(model, ops, Precision::fp16);
    EXPECT_EQ(fused.bytes_read[index(Role::activations)], 3 * third);
    EXPECT_EQ(role_bytes(fused, Role::scores), 0);
    const Cost ends = step_cost(model, {ops[3], ops[0]}, Precision::fp16);
    EXPECT_EQ(ends.bytes_read[index(Role::activations)], 3 * third) << "whatever the order";
}

TEST(StepCost, UpcastScoresTakeFourBytes) {
    const Model model = tiny(AttentionKind::unfused, true);
    const auto ops = ops_of(model, "h.0.attn");
    const double square = (2 * 3 * 4) * 4;
    const Cost softmax = step_cost(model, {ops[2]}, Precision::fp16);
    EXPECT_EQ(softmax.bytes_read[index(Role::scores)], 4 * square);
    EXPECT_EQ(softmax.bytes_written[index(Role::scores)], 2 * square);
}

TEST(StepCost, StepsOfUnfusedAttentionStreamTheMaskedHalfToo) {
    const Model model = tiny(AttentionKind::unfused);
    const auto ops = ops_of(model, "h.0.attn");
    const double square = 2 * (2 * 3 * 4) * 4;
    EXPECT_EQ(step_cost(model, {ops[0]}, Precision::fp16).bytes_written[index(Role::scores)], square);
    EXPECT_EQ(role_bytes(step_cost(model, {ops[2]}, Precision::fp16), Role::scores), 2 * square);
    EXPECT_EQ(step_cost(model, {ops[3]}, Precision::fp16).bytes_read[index(Role::scores)], square);
}

double unfused_bytes(const Model& model, Precision precision) {
    double bytes = 0;
    for (const std::size_t op : all_ops(model)) bytes += step_cost(model, {op}, precision).bytes();
    return bytes;
}

TEST(LeastBytes, AreWeightsInputsAndOutputsOnce) {
    const Model model = tiny(AttentionKind::fused);
    double weights = 0;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights && tensor.name != "wpe.weight")
            weights += tensor_bytes(tensor, Precision::fp16);
    const double positions = 2 * 4 * 12, tokens = 4 * 8, logits = 2 * 8 * 100;
    EXPECT_EQ(compulsory_bytes(model, Precision::fp16), weights + positions + tokens + logits);
    EXPECT_EQ(compulsory_bytes(tiny(AttentionKind::unfused), Precision::fp16), compulsory_bytes(model, Precision::fp16))
        << "activations and scores are not among them";
}

TEST(LeastBytes, AreFewerThanTheStreamingBytesOfSeveralSteps) {
    const Model model = make_gpt2(gpt2_config("gpt2-large"), 1, 1024, AttentionKind::fused);
    EXPECT_NEAR(compulsory_bytes(model, Precision::fp16), 1.65e9, 0.01e9);
    EXPECT_GT(unfused_bytes(model, Precision::fp16), 2 * compulsory_bytes(model, Precision::fp16));
}

TEST(LeastBytes, OfASingleStepAreItsStreamingBytes) {
    const Model model = make_problem_model(parse_problem("gemm", "m10n20k30"), 1, 1);
    EXPECT_EQ(compulsory_bytes(model, Precision::fp16), 2 * (10 * 30 + 30 * 20 + 10 * 20));
    EXPECT_EQ(compulsory_bytes(model, Precision::fp16), unfused_bytes(model, Precision::fp16));
}

TEST(StepCost, SumsOfStepsAddUpByRole) {
    const Model model = tiny(AttentionKind::fused);
    Cost sum;
    sum += step_cost(model, {0}, Precision::fp64);
    sum += step_cost(model, {1}, Precision::fp64);
    EXPECT_EQ(sum.bytes(),
              step_cost(model, {0}, Precision::fp64).bytes() + step_cost(model, {1}, Precision::fp64).bytes());
    EXPECT_EQ(role_bytes(sum, Role::tokens), 4 * 8);
}

}  // namespace
}  // namespace kbench
