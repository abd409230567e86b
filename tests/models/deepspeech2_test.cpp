// Deep Speech 2: layers, names, sizes, and what its config.json may say.
#include "models/deepspeech2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "kbench/axes.h"
#include "kbench/error.h"
#include "models/backward.h"
#include "models/cost.h"
#include "models/lengths.h"
#include "models/ops/list.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

std::map<std::string, std::vector<std::int64_t>> weights_of(const Model& model) {
    std::map<std::string, std::vector<std::int64_t>> weights;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights) weights[tensor.name] = tensor.shape;
    return weights;
}

TEST(DeepSpeech2, HasThePublishedModelsParameters) {
    const Model model = find_model("deepspeech2").build({});
    // Batch norms' running statistics, which a checkpoint holds but training does not learn: two of each channel.
    const std::int64_t statistics = 2 * (32 + 32 + 4 * 1024 + 1024);
    EXPECT_EQ(model.parameter_count() - statistics, 86'618'400);
    EXPECT_EQ(model.parameter_count(), 86'628'768);
}

TEST(DeepSpeech2, NamesItsWeightsAsItsCheckpointDoes) {
    const auto weights = weights_of(find_model("deepspeech2").build({}));
    const std::map<std::string, std::vector<std::int64_t>> some{
        {"conv.seq_module.0.weight", {32, 1, 41, 11}},
        {"conv.seq_module.0.bias", {32}},
        {"conv.seq_module.1.running_var", {32}},
        {"conv.seq_module.3.weight", {32, 32, 21, 11}},
        {"conv.seq_module.4.weight", {32}},
        {"rnns.0.rnn.weight_ih_l0", {4096, 1312}},
        {"rnns.0.rnn.weight_hh_l0", {4096, 1024}},
        {"rnns.2.rnn.weight_hh_l0_reverse", {4096, 1024}},
        {"rnns.2.rnn.bias_ih_l0_reverse", {4096}},
        {"rnns.4.batch_norm.module.running_mean", {1024}},
        {"fc.0.module.0.bias", {1024}},
        {"fc.0.module.1.weight", {29, 1024}},
    };
    for (const auto& [name, shape] : some) {
        ASSERT_TRUE(weights.contains(name)) << name;
        EXPECT_EQ(weights.at(name), shape) << name;
    }
    EXPECT_FALSE(weights.contains("rnns.0.batch_norm.module.weight")) << "the first layer has none";
    EXPECT_FALSE(weights.contains("fc.0.module.1.bias"));
    EXPECT_EQ(weights.size(), 2 * 6 + 5 * 8 + 4 * 4 + 4 + 1);
}

TEST(DeepSpeech2, IsItsModulesInTheirOrder) {
    const DeepSpeech2Config config{
        .name = "small", .hidden_size = 6, .hidden_layers = 2, .conv_channels = 4, .labels = 5};
    const Model model = make_deepspeech2(config, 3, 117);
    std::vector<std::string> ops;
    for (const OpNode& node : model.ops)
        ops.push_back(node.layer + " " + std::string(name(node.op)) + " " + node.op.text());
    EXPECT_THAT(
        ops, ElementsAre(
                 "conv.seq_module.0 conv2d n3c1h161w117k4r41s11u2v2p20q5b", "conv.seq_module.0 time_mask n3r324t59f2",
                 "conv.seq_module.1 batchnorm r972w59c4h81", "conv.seq_module.1 time_mask n3r324t59f2",
                 "conv.seq_module.2 hardtanh r972w59", "conv.seq_module.2 time_mask n3r324t59f2",
                 "conv.seq_module.3 conv2d n3c4h81w59k4r21s11u2p10q5b", "conv.seq_module.3 time_mask n3r164t59f2",
                 "conv.seq_module.4 batchnorm r492w59c4h41", "conv.seq_module.4 time_mask n3r164t59f2",
                 "conv.seq_module.5 hardtanh r492w59", "conv.seq_module.5 time_mask n3r164t59f2",
                 "conv to_sequence n3f164t59", "rnns.0.rnn gemm m177n24k164t", "rnns.0.rnn gemm m177n24k164t",
                 "rnns.0.rnn lstm t59n3h6f2", "rnns.0.rnn residual r177w6", "rnns.1.batch_norm.module batchnorm r177w6",
                 "rnns.1.rnn gemm m177n24k6t", "rnns.1.rnn gemm m177n24k6t", "rnns.1.rnn lstm t59n3h6f2",
                 "rnns.1.rnn residual r177w6", "fc.0.module.0 batchnorm r177w6", "fc.0.module.1 gemm m177n5k6t"));
}

TEST(DeepSpeech2, EveryOpReadsAndMakesTensorsOfItsOperandsSizes) {
    for (const char* cell : {"lstm", "gru", "rnn"})
        for (const std::int64_t frames : {1, 2, 61, 1000}) {
            const Model model = find_model("deepspeech2").build({{{"batch", 3}, {"frames", frames}}, {{"cell", cell}}});
            for (const OpNode& node : model.ops) {
                std::size_t input = 0, output = 0;
                for (const OperandSpec& spec : node.op.operands(Direction::fwd)) {
                    const TensorId id =
                        spec.use == OperandUse::output ? node.outputs.at(output++) : node.inputs.at(input++);
                    const Tensor& tensor = model.tensors[id];
                    EXPECT_EQ(tensor.elements(), spec.rows * spec.columns) << node.layer << " " << spec.name;
                    EXPECT_EQ(tensor.columns(), spec.columns) << node.layer << " " << spec.name;
                    EXPECT_EQ(tensor.element, spec.element) << node.layer << " " << spec.name;
                }
                EXPECT_EQ(input, node.inputs.size());
                EXPECT_EQ(output, node.outputs.size());
            }
            EXPECT_THAT(model.tensors[model.outputs.at(0)].shape, ElementsAre((frames + 1) / 2, 3, 29));
        }
}

TEST(DeepSpeech2, ReadsASpectrogramAndLengthsThatAreFullUnlessAFileSaysOtherwise) {
    const Model model = find_model("deepspeech2").build({{{"batch", 2}, {"frames", 117}}});
    ASSERT_EQ(model.inputs.size(), 2u);
    EXPECT_EQ(model.tensors[model.inputs[0]].name, "spectrogram");
    EXPECT_THAT(model.tensors[model.inputs[0]].shape, ElementsAre(2, 1, 161, 117));
    const Tensor& lengths = model.tensors[model.inputs[1]];
    EXPECT_EQ(lengths.name, "lengths");
    EXPECT_THAT(lengths.shape, ElementsAre(2, 1));
    EXPECT_EQ(lengths.contents.kind, Contents::Kind::listed);
    EXPECT_EQ(lengths.contents.numbers[0], 117);
    EXPECT_EQ(lengths.contents.bound, 118) << "no utterance may be longer";
}

TEST(DeepSpeech2, CountsTheWorkOfFullUtterances) {
    const DeepSpeech2Config config{
        .name = "small", .hidden_size = 6, .hidden_layers = 1, .conv_channels = 4, .labels = 5};
    const Model model = make_deepspeech2(config, 3, 117);
    for (std::size_t i = 0; i < model.ops.size(); ++i)
        if (name(model.ops[i].op) == "lstm") {
            const double units = 2 * 59 * 3 * 6;  // both directions
            EXPECT_EQ(step_cost(model, {i}, Precision::fp32).flops, units * (2 * 4 * 6 + 3 * 4 + 3 * 3 + 6));
            EXPECT_EQ(model.ops[i].op.work(Direction::fwd).matrix_flops, units * 2 * 4 * 6);
        }
}

TEST(DeepSpeech2, ReadsItsConfigAndKeepsItsCellUnlessAskedForAnother) {
    const ModelSpec read = read_model(
        R"({"model_type": "deepspeech2", "rnn_type": "gru", "hidden_size": 16, "hidden_layers": 2, "labels": 7,
            "sample_rate": 8000, "window_size": 0.02})",
        "some/where/tiny.json");
    EXPECT_EQ(read.name, "tiny");
    EXPECT_THAT(read.description, HasSubstr("rnn_type gru, hidden_size 16, hidden_layers 2"));
    const auto cell_of = [](const Model& model) {
        for (const OpNode& node : model.ops)
            for (const std::string_view cell : cell_names)
                if (name(node.op) == cell) return std::string(cell);
        return std::string("none");
    };
    const Model usual = read.build({{{"frames", 61}}});
    EXPECT_EQ(cell_of(usual), "gru");
    EXPECT_EQ(usual.tensors[usual.inputs[0]].shape[2], 81);
    EXPECT_EQ(weights_of(usual).at("rnns.1.rnn.weight_hh_l0"), (std::vector<std::int64_t>{48, 16}));
    EXPECT_EQ(cell_of(read.build({{{"frames", 61}}, {{"cell", "rnn"}}})), "rnn");
    EXPECT_EQ(cell_of(find_model("deepspeech2").build({{{"frames", 61}}})), "lstm");
}

TEST(DeepSpeech2, KnowsEveryWordOfItsAxes) {
    EXPECT_THAT(axis_named("cell").words, testing::ElementsAreArray(cell_names));
    EXPECT_THAT(axis_named(lengths_name).offered, testing::Contains(drawn_lengths));
    EXPECT_EQ(deepspeech2_models().front().axis(lengths_name)->words().front(), "full");
}

TEST(DeepSpeech2, RefusesWhatIsNoConfigAndNoShape) {
    const auto read = [](const std::string& text) { return refusal([&] { read_model(text, "c.json"); }); };
    EXPECT_THAT(read(R"({"model_type": "deepspeech2", "rnn_type": "lstn"})"),
                HasSubstr("c.json: rnn_type 'lstn' is not supported; lstm, gru and rnn are"));
    EXPECT_THAT(read(R"({"model_type": "deepspeech2", "hidden_size": 0})"), HasSubstr("key 'hidden_size' is 0"));
    const ModelSpec& spec = find_model("deepspeech2");
    EXPECT_THAT(refusal([&] { spec.build({{{"frames", 0}}}); }), HasSubstr("frames 0 must be at least 1"));
    EXPECT_THAT(refusal([&] { spec.build({{{"seq", 8}}}); }), HasSubstr("it has batch, frames, cell"));
    EXPECT_THAT(refusal([&] { spec.build({{}, {{"cell", "tanh"}}}); }), HasSubstr("must be one of lstm, gru, rnn"));
}

Model small(Cell cell, std::int64_t labels = 5) {
    return make_deepspeech2({.name = "small", .cell = cell, .hidden_size = 8, .hidden_layers = 2, .labels = labels}, 2,
                            61);
}

TEST(DeepSpeech2, EveryWeightThatTrainingLearnsHasAGradient) {
    for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn}) {
        const Model model = with_backward(small(cell));
        std::map<std::string, std::vector<std::int64_t>> learnt;
        for (const auto& [weight, gradient] : model.gradients)
            learnt[model.tensors[weight].name] = model.tensors[gradient].shape;
        auto expected = weights_of(model);
        std::erase_if(expected, [](const auto& weight) { return weight.first.find(".running_") != std::string::npos; });
        EXPECT_EQ(learnt, expected) << cell_names[static_cast<int>(cell)];
    }
}

TEST(DeepSpeech2, TheBackwardOfARecurrentLayerGoesThroughTimeThenToItsWeightsAndItsInput) {
    const Model model = with_backward(small(Cell::lstm));
    std::vector<std::string> steps;
    for (const OpNode& node : model.ops)
        if (node.forward && node.layer == "rnns.1.rnn")
            steps.push_back(std::string(name(node.op)) + " " + std::string(name(node.direction)));
    EXPECT_THAT(steps, ElementsAre("lstm bwd", "lstm wgrad", "gemm wgrad", "gemm dgrad", "gemm wgrad", "gemm dgrad",
                                   "residual bwd"))
        << "the sum of both directions hands its gradient to both, and their gradients of x are added";
}

TEST(DeepSpeech2, RunningStatisticsMoveInTrainingAlone) {
    const auto moved = [](const Model& model) {
        std::vector<std::string> names;
        for (const OpNode& node : model.ops)
            if (node.op.is<BatchNorm>() && node.direction == Direction::fwd)
                for (const TensorId id : node.outputs_of(OperandUse::in_place)) names.push_back(model.tensors[id].name);
        return names;
    };
    EXPECT_THAT(moved(small(Cell::lstm)), testing::IsEmpty());
    const std::vector<std::string> names = moved(with_backward(small(Cell::lstm)));
    EXPECT_EQ(names.size(), 2 * (2 + 1 + 1));
    EXPECT_THAT(names, testing::Contains("conv.seq_module.1.running_mean.updated"));
    EXPECT_THROW(with_backward(small(Cell::lstm), {.recompute = true}), Unsupported);
}

TEST(DeepSpeech2, TrainsAgainstLabelsThatTheForwardDoesNotRead) {
    const auto inputs = [](const Model& model) {
        std::vector<std::string> names;
        for (const TensorId id : model.inputs) names.push_back(model.tensors[id].name);
        return names;
    };
    EXPECT_THAT(inputs(small(Cell::lstm)), ElementsAre("spectrogram", "lengths"));
    EXPECT_THAT(inputs(with_backward(small(Cell::lstm))),
                ElementsAre("spectrogram", "lengths", "targets", "target_lengths", "loss_scale"));
    EXPECT_FALSE(small(Cell::lstm, 1).loss) << "the blank alone is no text";
}

}  // namespace
}  // namespace kbench
