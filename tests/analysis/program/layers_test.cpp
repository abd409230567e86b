// Layers, ops and lines of kernels, forward and backward, from ranges as PyTorch and the hook make them.
#include "analysis/program/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

std::vector<ActivityLayer> all_layers(const WrittenProgram& program) {
    const ProgramFile file = program.read("names.1.jsonl");
    return layers_of(file, 0, file.activities.size());
}

TEST(Layers, AreTheInnermostModulesWithTheOpsBelow) {
    WrittenProgram program("names");
    program.open(module_text("", "Model")).open(module_text("h.0", "Block"));
    program.open(module_text("h.0.fc", "Conv1D", "float16", "bench.py:40"));
    program.open("aten::linear, seq = 12, sizes = [[2, 4], [8, 4]]")
        .open("aten::addmm, seq = 13, sizes = [[8], [2, 4]]");
    program.launch("gemm").close().close().close();
    program.open("aten::add, seq = 14").launch("add").close().close();
    program.open("aten::mul").launch("mul").close().launch("own kernel").close().end();
    const std::vector<ActivityLayer> layers = all_layers(program);
    ASSERT_EQ(layers.size(), 4u);
    EXPECT_EQ(layers[0].layer, "h.0.fc");
    EXPECT_EQ(layers[0].class_name, "Conv1D");
    EXPECT_EQ(layers[0].dtype, "float16");
    EXPECT_EQ(layers[0].line, "bench.py:40");
    EXPECT_EQ(layers[0].op, "aten::linear");
    EXPECT_EQ(layers[0].sub(), "aten::addmm");
    EXPECT_EQ(layers[0].parameters(), "[[2, 4], [8, 4]]");
    EXPECT_EQ(layers[0].sequence, 13) << "the innermost op's, which the backward repeats";
    EXPECT_EQ(layers[0].direction, Direction::fwd);
    EXPECT_EQ(layers[0].thread, 1);
    EXPECT_EQ(layers[1].layer, "h.0");
    EXPECT_EQ(layers[1].sub(), "") << "it is the only op";
    EXPECT_EQ(layers[2].layer, "Model") << "the model itself goes by its class";
    EXPECT_EQ(layers[3].op, "");
    EXPECT_EQ(layers[3].call, 0);
}

TEST(Layers, OfTheBackwardAreThoseOfTheForwardWithTheirNumber) {
    WrittenProgram program("names");
    const auto op = [&](const std::string& layer, const std::string& text, const std::string& kernel) {
        program.open(module_text(layer, "Layer")).open(text).launch(kernel).close().close();
    };
    op("a", "aten::dropout, seq = 7", "dropout");  // without a node: the next op has the same number
    op("b", "aten::addmm, seq = 7, sizes = [[8], [2, 4], [4, 8]]", "gemm");
    op("c", "aten::relu, seq = 8", "relu");
    op("d", "aten::view, seq = 8", "view");  // after it, though not what the node is named after
    program.on_thread(2);
    const auto node = [&](const std::string& name, std::int64_t sequence) {
        program.open("autograd::engine::evaluate_function: " + name).open(name + ", seq = " + std::to_string(sequence));
        program.open("aten::mm").launch("grad of " + name).close().close();
        program.open("aten::add_").launch("sum").close().close();
    };
    node("ReluBackward0", 8);
    node("AddmmBackward0", 7);
    node("LostBackward0", 999);
    program.end();
    const std::vector<ActivityLayer> layers = all_layers(program);
    ASSERT_EQ(layers.size(), 10u);
    EXPECT_EQ(layers[4].layer, "c");
    EXPECT_EQ(layers[4].node, "ReluBackward0");
    EXPECT_EQ(layers[4].op, "ReluBackward0");
    EXPECT_EQ(layers[4].sub(), "aten::mm");
    EXPECT_EQ(layers[4].forward_sequence, 8);
    EXPECT_EQ(layers[4].sequence, std::nullopt);
    EXPECT_EQ(layers[4].direction, Direction::bwd);
    EXPECT_EQ(layers[4].thread, 2);
    EXPECT_EQ(layers[5].layer, "c") << "the sum of gradients around the node";
    EXPECT_EQ(layers[5].forward_sequence, 8);
    EXPECT_EQ(layers[6].layer, "b") << "dropout has the same number and no node";
    ASSERT_TRUE(layers[6].forward);
    EXPECT_EQ(layers[6].forward->frame.sizes.size(), 3u);
    EXPECT_EQ(layers[6].forward_op, "aten::addmm");
    EXPECT_EQ(layers[8].layer, "LostBackward0");
    EXPECT_FALSE(layers[8].forward);
}

TEST(Layers, OfTheBackwardTakeTheLastOpWhereNoneHasTheNodesName) {
    WrittenProgram program("names");
    program.open(module_text("a", "L")).open("aten::first, seq = 3").launch("x").close().close();
    program.open(module_text("b", "L")).open("aten::second, seq = 3").launch("y").close().close();
    program.open("OtherBackward0, seq = 3").launch("z").close().end();
    EXPECT_EQ(all_layers(program)[2].layer, "b");
}

TEST(Layers, OfRecomputedForwardsAreForwards) {
    WrittenProgram program("names");
    program.open("CheckpointFunctionBackward, seq = 3").open(module_text("h.1", "Block")).open("aten::mm");
    program.launch("gemm").close().close().close().end();
    const ActivityLayer layer = all_layers(program)[0];
    EXPECT_EQ(layer.layer, "h.1");
    EXPECT_EQ(layer.direction, Direction::fwd);
}

TEST(Layers, OfGradientsAndOptimizers) {
    WrittenProgram program("names");
    program.open("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
    program.open("torch::autograd::AccumulateGrad").open("aten::add_").launch("add").close().close().close();
    program.open("Optimizer.step#AdamW.step").open("aten::_fused_adamw_").launch("adamw").close().close().end();
    const std::vector<ActivityLayer> layers = all_layers(program);
    EXPECT_EQ(layers[0].layer, "gradients");
    EXPECT_EQ(layers[0].direction, Direction::bwd);
    EXPECT_EQ(layers[1].layer, "optimizer");
    EXPECT_EQ(layers[1].op, "AdamW.step");
    EXPECT_EQ(layers[1].sub(), "aten::_fused_adamw_");
    EXPECT_EQ(layers[1].direction, Direction::fwd);
}

TEST(Layers, AreTheProgramsOwnRangesWithoutModules) {
    WrittenProgram program;
    program.open("solve").open("smooth").launch("stencil").close().close().launch("outside");
    program.open("aten::softmax, seq = 1").launch("softmax").close().end();
    const std::vector<ActivityLayer> layers = all_layers(program);
    EXPECT_EQ(layers[0].layer, "solve/smooth");
    EXPECT_EQ(layers[0].op, "");
    EXPECT_EQ(layers[1].layer, "");
    EXPECT_EQ(layers[2].layer, "softmax");
}

TEST(PlainOpName, IsTheSameOfAnOpAndItsNode) {
    for (const auto& [op, node] : {std::pair("aten::addmm", "AddmmBackward0"),
                                   {"aten::add_", "AddBackward0"},
                                   {"aten::native_layer_norm", "NativeLayerNormBackward0"},
                                   {"aten::_softmax", "SoftmaxBackward0"}})
        EXPECT_EQ(plain_op_name(op), plain_op_name(node));
    EXPECT_EQ(plain_op_name("aten::gelu_backward"), "gelu");
    EXPECT_EQ(plain_op_name("aten::conv2d"), "conv2d");
    EXPECT_EQ(plain_op_name(""), "");
}

}  // namespace
}  // namespace kbench
