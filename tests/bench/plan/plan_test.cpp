// Where a plan puts what a model is given and what it is run for.
#include "bench/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/measure/point/outputs.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/provider.h"
#include "models/ops/list.h"
#include "models/problem.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

/// A model of a few ops, and who computes them.
class SmallModel {
  public:
    TensorId tensor(const std::string& name, std::vector<std::int64_t> shape, Role role = Role::activations) {
        model.tensors.push_back({.name = name, .role = role, .shape = std::move(shape)});
        return model.tensors.size() - 1;
    }
    void op(const Op& op, std::vector<TensorId> inputs, TensorId output) {
        model.ops.push_back({op, "layer", std::move(inputs), {output}});
    }
    Plan plan() { return Plan(model, Precision::fp32, assign_steps(model, Precision::fp32, providers, {}, 1)); }

    Model model;
    Providers providers = make_providers(BackendKind::cpu, {});
};

void load(Plan& plan) {
    RandomWeights weights(1);
    plan.allocate(cpu(), weights);
    for (const TensorId id : plan.model().inputs)
        plan.set_input(id, input_bytes(plan.model().tensors[id], plan.operand(id), "", 1));
}

OutputRows forward(const Plan& plan) {
    for (std::size_t step = 0; step < plan.steps().size(); ++step) plan.run_step(step, nullptr);
    return OutputRows::download(plan, plan.model().outputs.at(0), cpu(), OutputRows::usual_bytes);
}

/// A product whose input is added to it again: the residual stream of a model that begins with it.
SmallModel residual_model() {
    SmallModel m;
    const TensorId x = m.tensor("x", {4, 6}), w = m.tensor("w", {6, 6}, Role::weights),
                   bias = m.tensor("b", {6}, Role::weights), product = m.tensor("product", {4, 6}),
                   biased = m.tensor("biased", {4, 6}), sum = m.tensor("sum", {4, 6});
    m.op(Gemm{4, 6, 6}, {x, w}, product);
    m.op(BiasAdd{4, 6}, {product, bias}, biased);
    m.op(ResidualAdd{4, 6}, {biased, x}, sum);
    m.model.inputs = {x};
    m.model.outputs = {sum};
    return m;
}

TEST(Plan, AnInputIsStillThereForTheNextForward) {
    SmallModel m = residual_model();
    Plan plan = m.plan();
    ASSERT_EQ(plan.steps().size(), 1u) << "the sum could be written over the input";
    EXPECT_NE(plan.layout().places[m.model.outputs[0]].same_as, m.model.inputs[0]);
    load(plan);
    const OutputRows first = forward(plan);
    EXPECT_EQ(first.difference(forward(plan)), "");
}

TEST(Plan, EachArrayThatIsMadeInPlaceLiesWhereItWas) {
    const Providers providers = make_providers(BackendKind::cpu, {});
    const auto places_of = [&](const Model& model) {
        const Plan plan(model, Precision::fp32, assign_steps(model, Precision::fp32, providers, {}, 1));
        std::vector<TensorId> same_as;
        for (const TensorId id : model.ops[0].outputs) same_as.push_back(plan.layout().places[id].same_as);
        return same_as;
    };
    const Model loss = make_problem_model(parse_problem("cross_entropy", "r4v9", Direction::bwd), 1, 1);
    EXPECT_EQ(places_of(loss), (std::vector{loss.ops[0].inputs[0], loss.ops[0].outputs[1]})) << "losses are made anew";
    const Model step = make_problem_model(parse_problem("adamw", "n9t2"), 1, 1);
    const std::vector<TensorId>& in = step.ops[0].inputs;  // schedule; weight, gradient, m, v; the same again
    EXPECT_EQ(places_of(step), (std::vector{in[1], in[3], in[4], in[5], in[7], in[8]}));
}

TEST(Plan, WhatIsAddedLastIsOverwrittenWhereNobodyReadsItAgain) {
    SmallModel m = residual_model();
    // The same behind another sum, which is the input no more.
    const TensorId x = m.model.inputs[0], other = m.tensor("other", {4, 6}), stream = m.tensor("stream", {4, 6});
    m.model.ops.insert(m.model.ops.begin(), {ResidualAdd{4, 6}, "layer", {x, other}, {stream}});
    m.model.ops[1].inputs[0] = m.model.ops[3].inputs[1] = stream;
    m.model.inputs = {x, other};
    EXPECT_EQ(m.plan().layout().places[m.model.outputs[0]].same_as, stream);
    m.model.outputs.push_back(stream);
    const Plan wanted = m.plan();
    EXPECT_EQ(wanted.layout().places[m.model.outputs[0]].same_as, m.model.outputs[0]) << "the stream is an output, too";
}

TEST(Plan, AGradientThatIsAddedLastIsOverwrittenThoughOtherResultsStandBehindIt) {
    SmallModel m;
    const TensorId x = m.tensor("x", {4, 6}), dy = m.tensor("dy", {4, 6}), w = m.tensor("w", {6}, Role::weights),
                   past = m.tensor("past", {4, 6}), dx = m.tensor("dx", {4, 6}), dw = m.tensor("dw", {6}),
                   db = m.tensor("db", {6}), sum = m.tensor("sum", {4, 6});
    m.model.ops = {{ResidualAdd{4, 6}, "layer", {x, dy}, {past}, Direction::bwd},
                   {LayerNorm{4, 6}, "layer", {x, dy, w}, {dx, dw, db}, Direction::bwd},
                   {ResidualAdd{4, 6}, "layer", {dx, past}, {sum}, Direction::bwd}};
    m.model.inputs = {x, dy};
    m.model.outputs = {sum, dw, db};
    const Plan plan = m.plan();
    ASSERT_EQ(plan.steps().size(), 2u);
    EXPECT_EQ(plan.layout().places[sum].same_as, past);
    for (const TensorId id : {dw, db}) EXPECT_EQ(plan.layout().places[id].same_as, id);
}

TEST(Plan, AResultMadeInPlaceIsFoundWhereItIs) {
    SmallModel m;
    const AttentionShape shape{1, 2, 3, 4};
    const TensorId qkv = m.tensor("qkv", {3, 24}), scores = m.tensor("scores", {1, 2, 3, 3}, Role::scores),
                   masked = m.tensor("masked", {1, 2, 3, 3}, Role::scores);
    m.op(AttentionScores{shape, false}, {qkv}, scores);
    m.op(ScaleMask{shape, 0.5, false}, {scores}, masked);
    m.model.inputs = {qkv};
    m.model.outputs = {masked};
    Plan plan = m.plan();
    EXPECT_EQ(plan.operand(masked).rows, 6);
    EXPECT_EQ(plan.operand(masked).columns, 3);
    EXPECT_EQ(output_bytes(m.model, plan.layout()), 6 * 3 * 4);
    load(plan);
    EXPECT_EQ(plan.address(masked), plan.address(scores));
    EXPECT_EQ(forward(plan).count(), 18);
    EXPECT_EQ(count_not_finite(plan, masked, cpu()), 2 * 3) << "above the diagonal of each head";
}

}  // namespace
}  // namespace kbench
