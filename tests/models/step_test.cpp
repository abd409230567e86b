// Operands, names and padding of steps, alone and fused.
#include "kbench/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "models/ops/list.h"
#include "models/problem.h"

namespace kbench {
namespace {

using testing::ElementsAre;

std::vector<std::string> names(const Step& step) {
    std::vector<std::string> list;
    for (const Operand& operand : operands(step, Precision::fp32)) list.push_back(operand.name);
    return list;
}

const Operand& find(const std::vector<Operand>& list, std::string_view name) {
    for (const Operand& operand : list)
        if (operand.name == name) return operand;
    throw std::out_of_range("no operand " + std::string(name));
}

TEST(StepOperands, OfAnOpAloneAreTheOps) {
    EXPECT_THAT(names(parse_problem("gemm", "m3n5k7")), ElementsAre("x", "w", "out"));
    EXPECT_THAT(names(parse_problem("layernorm", "r3w5")), ElementsAre("x", "weight", "bias", "out"));
    EXPECT_THAT(names(parse_problem("embedding", "r3w5v7")), ElementsAre("tokens", "wte", "wpe", "out"));
    EXPECT_THAT(names(parse_problem("scale_mask", "b1h2s3d4")), ElementsAre("scores")) << "in place";
}

TEST(StepOperands, StandOpByOpWithoutWhatIsMadeWithin) {
    EXPECT_THAT(names(parse_problem("gemm", "m3n5k7+bias")), ElementsAre("x", "w", "bias", "out"));
    EXPECT_THAT(names(parse_problem("gemm", "m3n5k7+bias+gelu")), ElementsAre("x", "w", "bias", "out"));
    EXPECT_THAT(names(parse_problem("gemm", "m3n5k7+bias+residual")), ElementsAre("x", "w", "bias", "residual", "out"));
    EXPECT_THAT(names(parse_problem("gemm", "m3n5k7+residual")), ElementsAre("x", "w", "residual", "out"));
    EXPECT_THAT(names(parse_problem("gelu", "r3w5+bias")), ElementsAre("x", "bias", "out"));
    EXPECT_THAT(names(parse_problem("layernorm", "r3w5+residual")),
                ElementsAre("x", "residual", "weight", "bias", "out"));
}

TEST(StepOperands, ABiasInFrontOfALayerNormIsNotTheNormsOwn) {
    EXPECT_THAT(names(parse_problem("layernorm", "r3w5+bias+residual")),
                ElementsAre("x", "pre_bias", "residual", "weight", "bias", "out"));
}

TEST(StepOperands, WhatOthersReadTooIsLeftBehindInFrontOfTheResult) {
    Step step = parse_problem("layernorm", "r3w5+bias+residual");
    step.kept = {1};
    EXPECT_TRUE(step.keeps_intermediates());
    const std::vector<Operand> list = operands(step, Precision::fp16);
    EXPECT_THAT(names(step), ElementsAre("x", "pre_bias", "residual", "weight", "bias", "sum", "out"));
    const Operand& sum = find(list, "sum");
    EXPECT_EQ(sum.use, OperandUse::output);
    EXPECT_EQ(std::pair(sum.rows, sum.columns), std::pair(std::int64_t{3}, std::int64_t{5}));
    EXPECT_EQ(sum.type, DataType::fp16);
}

TEST(StepOperands, AnOpThatHandsItsFirstResultOnLeavesTheOthersInFrontOfTheLast) {
    Step step = parse_problem("layernorm", "r3w5+residual", Direction::bwd);
    EXPECT_EQ(step.head, 0u);
    EXPECT_EQ(step.ops.at(1), Op(ResidualAdd{3, 5})) << "of dx's shape, and not of the last result's";
    EXPECT_EQ(shape_text(step), "r3w5+residual");
    EXPECT_THAT(names(step), ElementsAre("x", "dy", "weight", "dy_residual", "dw", "db", "dx"));
    const std::vector<Operand> list = operands(step, Precision::fp32);
    EXPECT_EQ(std::pair(list[4].rows, list[4].columns), std::pair(std::int64_t{1}, std::int64_t{5}));
    EXPECT_EQ(std::pair(list[6].rows, list[6].columns), std::pair(std::int64_t{3}, std::int64_t{5}));
    step.kept = {0};
    EXPECT_THAT(names(step), ElementsAre("x", "dy", "weight", "dy_residual", "sum", "dw", "db", "dx"));
    EXPECT_THAT(names(Step::of(LayerNorm{3, 5}, Direction::bwd)), ElementsAre("x", "dy", "weight", "dx", "dw", "db"));
}

TEST(StepOperands, WhatAnOpBesideTheHeadReadsWithItStandsAtTheHeadsPlace) {
    Step step = parse_problem("gemm", "m3n5k7+bias", Direction::wgrad);
    EXPECT_EQ(step.head, 1u);
    EXPECT_EQ(step.beside, 1u);
    EXPECT_EQ(step.ops.at(0), Op(BiasAdd{3, 5})) << "of dy's shape, which is not what wgrad reads first";
    EXPECT_EQ(step.direction_of(0), Direction::bwd);
    EXPECT_EQ(step.direction_of(1), Direction::wgrad);
    EXPECT_EQ(shape_text(step), "m3n5k7+bias");
    EXPECT_THAT(names(step), ElementsAre("x", "dy", "db", "dw"));
    EXPECT_EQ(matrix_flops(step), 2.0 * 3 * 5 * 7);
    step.ops = {BiasAdd{3, 5, true}, Gemm{3, 5, 7, false, true}};
    EXPECT_THAT(names(step), ElementsAre("db", "x", "dy", "dw")) << "both in place";
}

TEST(StepOperands, GelusGradientTakesWhatAProductHandsOn) {
    const Step step = parse_problem("gemm", "m3n5k7+gelu", Direction::dgrad);
    EXPECT_EQ(step.ops.at(1), Op(Gelu{3, 7}));
    EXPECT_EQ(step.direction_of(1), Direction::bwd);
    EXPECT_THAT(names(step), ElementsAre("dy", "w", "x", "dx"));
    EXPECT_FALSE(step.keeps_results());
}

TEST(StepOperands, WhatGeluIsAppliedToMayBeLeftBehind) {
    Step step = parse_problem("gemm", "m3n5k7+bias+gelu");
    step.kept = {1};
    EXPECT_THAT(names(step), ElementsAre("x", "w", "bias", "sum", "out"));
    EXPECT_TRUE(step.keeps_results());
    Step norm = parse_problem("layernorm", "r3w5+bias+residual");
    norm.kept = {1};
    EXPECT_FALSE(norm.keeps_results()) << "the head takes it";
}

TEST(StepOperands, HaveTypesAndShapesOfTheirOp) {
    const std::vector<Operand> embedding = operands(parse_problem("embedding", "r12w4v9s6"), Precision::fp16);
    EXPECT_EQ(embedding[0].type, DataType::int32);
    EXPECT_EQ(embedding[0].contents, Contents::below(9));
    EXPECT_EQ(embedding[1].use, OperandUse::weight);
    EXPECT_EQ(embedding[1].bytes(), 2 * 9 * 4);
    const std::vector<Operand> scores = operands(parse_problem("attention_scores", "b1h2s3d4+upcast"), Precision::fp16);
    EXPECT_EQ(scores[0].type, DataType::fp16);
    EXPECT_EQ(scores[1].type, DataType::fp32);
    EXPECT_EQ(scores[1].bytes(), 4 * 2 * 3 * 3);
    EXPECT_EQ(find(operands(parse_problem("gemm", "m3n5k7+bias"), Precision::fp64), "bias").bytes(), 8 * 5);
}

TEST(StepOperands, PaddedColumnsLieInTheResultAndAreRowsOfZerosInTheWeight) {
    Step step = parse_problem("gemm", "m3n5k7t");
    step.padded_columns = 8;
    const std::vector<Operand> list = operands(step, Precision::fp32);
    EXPECT_EQ(list[0].stride, 7);
    EXPECT_EQ(list[1].rows, 5);
    EXPECT_EQ(list[1].allocated_rows, 8);
    EXPECT_EQ(list[2].columns, 5);
    EXPECT_EQ(list[2].stride, 8);
    EXPECT_EQ(list[2].allocated_rows, 3);
    EXPECT_EQ(list[2].bytes(), 4 * 3 * 8);
    EXPECT_EQ(shape_text(step), "m3n5k7t+pad3");
    EXPECT_EQ(padding_flops(step), 2.0 * 3 * 3 * 7);
    EXPECT_EQ(matrix_flops(step), 2.0 * 3 * 8 * 7);
}

TEST(Step, MaskedWorkIsExecutedLikePadding) {
    // 2 heads of 3 x 3 scores, of which 3 lie above the diagonal.
    for (const char* product : {"attention_scores", "attention_context"}) {
        const Step step = parse_problem(product, "b1h2s3d4");
        EXPECT_EQ(padding_flops(step), 2 * (2 * 3) * 4) << product;
        EXPECT_EQ(matrix_flops(step), 2 * (2 * 9) * 4) << product << ": once";
        EXPECT_EQ(shape_text(step), "b1h2s3d4") << "no column is padded";
    }
    EXPECT_EQ(padding_flops(parse_problem("softmax", "r6w3")), 4 * (2 * 3));
    EXPECT_EQ(padding_flops(parse_problem("attention", "b1h2s3d4")), 0);
}

TEST(Step, HasTheDependentStepsOfItsRecurrentOps) {
    for (const char* cell : {"lstm", "gru", "rnn"}) {
        EXPECT_EQ(time_steps(parse_problem(cell, "t7n3h5f2")), 7) << cell << ": time steps, not frames";
        EXPECT_EQ(time_steps(parse_problem(cell, "t1n3h5")), 1) << cell;
    }
    for (const auto& [op, shape] : {std::pair("gemm", "m9n5k7t+bias"), {"attention", "b1h2s30d4"}})
        EXPECT_EQ(time_steps(parse_problem(op, shape)), 1) << op << ": its sums can be made in any order";
    const Op layer = Recurrent<Cell::gru>{{7, 3, 5}};
    EXPECT_EQ(time_steps({{layer, Op(ResidualAdd{21, 5})}, 0}), 7) << "what has one step adds none";
    EXPECT_EQ(time_steps({{layer, layer}, 0}), 14) << "one after the other";
}

TEST(Step, TextNamesTheHeadAndWhatItAbsorbs) {
    for (const auto& [op, shape] : {std::pair("gemm", "m3n5k7t+bias+residual"),
                                    {"layernorm", "r3w5+bias+residual"},
                                    {"gelu", "r3w5+bias"},
                                    {"attention_scores", "b1h2s3d4+upcast"}}) {
        const Step step = parse_problem(op, shape);
        EXPECT_EQ(op_name(step), op);
        EXPECT_EQ(shape_text(step), shape);
    }
    EXPECT_EQ(padding_flops(parse_problem("gemm", "m3n5k7t+bias+residual")), 0);
    EXPECT_EQ(matrix_flops(parse_problem("gemm", "m3n5k7+bias+gelu")), 2.0 * 3 * 5 * 7);
    EXPECT_EQ(matrix_flops(parse_problem("layernorm", "r3w5")), 0);
}

TEST(Step, AbsorbsWhatStandsAroundItsHead) {
    const Step norm = parse_problem("layernorm", "r3w5+residual");
    EXPECT_EQ(norm.head, 1u);
    EXPECT_EQ(norm.as<LayerNorm>(), (LayerNorm{3, 5}));
    EXPECT_TRUE(norm.absorbs<ResidualAdd>());
    EXPECT_TRUE(norm.absorbs("residual"));
    EXPECT_FALSE(norm.absorbs<BiasAdd>());
    EXPECT_FALSE(norm.absorbs<LayerNorm>()) << "the head absorbs, and is not absorbed";
}

TEST(Step, IsAnotherInAnotherDirectionOrWithAnotherSumKept) {
    const Step norm = parse_problem("layernorm", "r3w5+residual");
    Step kept = norm, backward = norm, padded = norm;
    kept.kept = {0};
    backward.direction = Direction::bwd;
    padded.padded_columns = 8;
    EXPECT_EQ(norm, parse_problem("layernorm", "r3w5+residual"));
    for (const Step& other : {kept, backward, padded}) EXPECT_NE(norm, other);
}

TEST(OperandCursor, SkipsWhatIsNotThere) {
    std::array<int, 3> values{1, 2, 3};
    const std::array<void*, 3> pointers{&values[0], &values[1], &values[2]};
    OperandCursor in(pointers);
    EXPECT_EQ(*in.next<int>(), 1);
    EXPECT_EQ(in.next_if(false), nullptr);
    EXPECT_EQ(in.next_if(true), &values[1]);
    EXPECT_EQ(in.next(), &values[2]);
}

}  // namespace
}  // namespace kbench
