// The perceptron: layers, names, sizes, and what its config.json may say.
#include "models/mlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kbench/error.h"
#include "models/cost.h"
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

TEST(Mlp, IsDenseLayersWithGeluBetweenThem) {
    const Model model = make_mlp({"small", {5, 7, 3}}, 4);
    std::vector<std::string> ops;
    for (const OpNode& node : model.ops)
        ops.push_back(node.layer + " " + std::string(name(node.op)) + " " + node.op.text());
    EXPECT_THAT(ops, ElementsAre("layers.0 gemm m4n7k5t", "layers.0 bias r4w7", "layers.0.act gelu r4w7",
                                 "layers.1 gemm m4n3k7t", "layers.1 bias r4w3"));
    EXPECT_EQ(model.parameter_count(), 7 * 5 + 7 + 3 * 7 + 3);
    ASSERT_EQ(model.inputs.size(), 1u);
    ASSERT_EQ(model.outputs.size(), 1u);
    EXPECT_EQ(model.tensors[model.inputs[0]].name, "inputs");
    EXPECT_THAT(model.tensors[model.inputs[0]].shape, ElementsAre(4, 5));
    EXPECT_EQ(model.tensors[model.outputs[0]].name, "outputs");
    EXPECT_THAT(model.tensors[model.outputs[0]].shape, ElementsAre(4, 3));
}

TEST(Mlp, ItsOpsReadEachWhatTheOneBeforeMade) {
    const Model model = make_mlp({"small", {5, 7, 7, 3}}, 2);
    TensorId last = model.inputs[0];
    for (const OpNode& node : model.ops) {
        EXPECT_EQ(node.inputs[0], last) << node.layer;
        last = node.outputs[0];
    }
    EXPECT_EQ(last, model.outputs[0]);
}

TEST(Mlp, CountsItsProducts) {
    const Model model = make_mlp({"small", {5, 7, 3}}, 4);
    EXPECT_EQ(step_cost(model, {0}, Precision::fp32).flops, 2 * 4 * 7 * 5);
    EXPECT_EQ(step_cost(model, {3}, Precision::fp32).flops, 2 * 4 * 3 * 7);
}

TEST(Mlp, HasABatchAndNoOtherAxis) {
    const ModelSpec& mlp = find_model("mlp");
    ASSERT_EQ(mlp.axes.size(), 1u);
    EXPECT_EQ(mlp.axes[0].name, "batch");
    EXPECT_EQ(mlp.build({{{"batch", 8}}}).tensors[0].rows(), 8);
    EXPECT_THAT(refusal([&] { mlp.build({{{"seq", 8}}}); }), HasSubstr("mlp has no seq; it has batch"));
    EXPECT_THAT(refusal([&] { mlp.build({{{"batch", 0}}}); }), HasSubstr("batch 0 must be at least 1"));
}

TEST(Mlp, ReadsItsSizesFromAConfig) {
    const ModelSpec read = read_model(R"({"model_type": "mlp", "name": "digits", "sizes": [784, 512, 10]})", "c.json");
    EXPECT_EQ(read.name, "digits");
    EXPECT_EQ(read.description, "digits: sizes 784, 512, 10");
    EXPECT_EQ(read.build({}).parameter_count(), 784 * 512 + 512 + 512 * 10 + 10);
    EXPECT_EQ(read_model(R"({"model_type": "mlp", "sizes": [2, 3]})", "some/where/tiny.json").name, "tiny");
}

TEST(Mlp, RefusesWhatIsNoConfig) {
    const auto read = [](const std::string& text) { return refusal([&] { read_model(text, "c.json"); }); };
    EXPECT_THAT(read(R"({"model_type": "mlp"})"),
                HasSubstr("c.json: key 'sizes' is missing; an mlp's config.json needs"));
    EXPECT_THAT(read(R"({"model_type": "mlp", "sizes": [4]})"), HasSubstr("a list of at least 2 integers"));
    EXPECT_THAT(read(R"({"model_type": "mlp", "sizes": [4, 0]})"), HasSubstr("an integer from 1 to"));
    EXPECT_THAT(read(R"({"model_type": "mlp", "sizes": [4, "x"]})"), HasSubstr("an integer from 1 to"));
    EXPECT_THAT(read(R"({"model_type": "mlp", "sizes": 4})"), HasSubstr("a list of at least 2 integers"));
    EXPECT_THAT(read(R"({"model_type": "mamba"})"), HasSubstr("model_type 'mamba' is not supported"));
}

}  // namespace
}  // namespace kbench
