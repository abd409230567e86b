// Fusion follows what providers take, absorbs every op once, and binds the right tensors.
#include "bench/plan/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"
#include "models/backward.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

using testing::HasSubstr;

using Refusal = std::function<std::string(const Step&)>;

/// A provider of every op kind that takes what a function says, and computes nothing.
std::unique_ptr<Provider> picky(std::string name, const Refusal& why_not) {
    Provider provider{.name = std::move(name), .ops = {}};
    for (const OpKind* kind : op_kinds())
        provider.ops.push_back({.kind = kind,
                                .directions = {kind->directions.begin(), kind->directions.end()},
                                .absorbs_anything = true,
                                .why_not = [why_not](const Step& step, Precision) { return why_not(step); },
                                .make = [](const Step&, Precision) { return nullptr; }});
    return std::make_unique<Provider>(std::move(provider));
}

Model small_model(AttentionKind attention = AttentionKind::fused) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    return make_gpt2(config, 2, 8, attention);
}

Providers one(const Refusal& why_not) {
    Providers list;
    list.push_back(picky("picky", why_not));
    return list;
}

std::string takes_all(const Step&) { return ""; }
std::string no_residual_in_gemms(const Step& step) {
    return step.head_op().is<Gemm>() && step.absorbs<ResidualAdd>() ? "no residual" : "";
}

std::vector<std::string> kinds(const std::vector<AssignedStep>& steps) {
    std::vector<std::string> list;
    for (const AssignedStep& s : steps) list.push_back(std::string(op_name(s.step)) + " " + shape_text(s.step));
    return list;
}

void expect_all_ops_once(const Model& model, const std::vector<AssignedStep>& steps) {
    std::size_t next = 0;
    for (const AssignedStep& s : steps) {
        const std::vector<Operand> list = operands(s.step, Precision::fp32);
        ASSERT_EQ(s.tensors.size(), list.size());
        for (const std::size_t op : s.ops) EXPECT_EQ(op, next++);
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Tensor& tensor = model.tensors[s.tensors[i]];
            EXPECT_EQ(tensor.elements(), list[i].rows * list[i].columns) << tensor.name << " as " << list[i].name;
            if (tensor.element == ElementType::int32) continue;  // [batch, seq] to people, one list to the op
            EXPECT_EQ(tensor.rows(), list[i].rows) << tensor.name << " as " << list[i].name;
            EXPECT_EQ(tensor.columns(), list[i].columns) << tensor.name << " as " << list[i].name;
        }
    }
    EXPECT_EQ(next, model.ops.size());
}

TEST(Fuse, TakesTheLongestPatternThatAProviderTakes) {
    const Model model = small_model();
    const auto providers = one(no_residual_in_gemms);
    const auto steps = assign_steps(model, Precision::fp32, providers, {}, 64);
    expect_all_ops_once(model, steps);
    EXPECT_EQ(kinds(steps),
              (std::vector<std::string>{
                  "embedding r16w64v100s8", "layernorm r16w64", "gemm m16n192k64+bias", "attention b2h4s8d16",
                  "gemm m16n64k64+bias", "layernorm r16w64+residual", "gemm m16n256k64+bias+gelu",
                  "gemm m16n64k256+bias", "layernorm r16w64+residual", "gemm m16n192k64+bias", "attention b2h4s8d16",
                  "gemm m16n64k64+bias", "layernorm r16w64+residual", "gemm m16n256k64+bias+gelu",
                  "gemm m16n64k256+bias", "layernorm r16w64+residual", "gemm m16n100k64t+pad28"}));
}

TEST(Fuse, PutsTheResidualIntoTheGemmWhereAProviderTakesIt) {
    const Model model = small_model();
    const auto steps = assign_steps(model, Precision::fp32, one(takes_all), {}, 1);
    expect_all_ops_once(model, steps);
    EXPECT_EQ(shape_text(steps[4].step), "m16n64k64+bias+residual");
    EXPECT_EQ(shape_text(steps[5].step), "r16w64");
    EXPECT_EQ(shape_text(steps.back().step), "m16n100k64t") << "no padding to multiples of one";
}

TEST(Fuse, WithoutEpiloguesTheBiasGoesToWhatFollows) {
    const Model model = small_model();
    const auto steps = assign_steps(model, Precision::fp64, one([](const Step& step) {
                                        const bool epilogue = step.absorbs<BiasAdd>() || step.absorbs<Gelu>();
                                        return step.head_op().is<Gemm>() && epilogue ? "no epilogue" : "";
                                    }),
                                    {}, 64);
    expect_all_ops_once(model, steps);
    const std::vector<std::string> list = kinds(steps);
    EXPECT_EQ(list[3], "bias r16w192");
    EXPECT_EQ(list[6], "layernorm r16w64+bias+residual");
    EXPECT_EQ(list[8], "gelu r16w256+bias");
}

TEST(Fuse, KeepsTheSumOnlyWhereSomethingReadsItLater) {
    const Model model = small_model();
    const auto steps = assign_steps(model, Precision::fp32, one(no_residual_in_gemms), {}, 64);
    EXPECT_TRUE(steps[5].step.keeps_intermediates());
    EXPECT_FALSE(steps[15].step.keeps_intermediates()) << "nothing follows ln_f but the head";
}

TEST(Fuse, UnfusedAttentionIsFourSteps) {
    const Model model = small_model(AttentionKind::unfused);
    const auto steps = assign_steps(model, Precision::fp16, one(takes_all), {}, 64);
    std::size_t next = 0;
    for (const AssignedStep& s : steps) next += s.ops.size();
    EXPECT_EQ(next, model.ops.size());
    EXPECT_EQ(op_name(steps[3].step), "attention_scores");
    EXPECT_EQ(op_name(steps[4].step), "scale_mask");
    EXPECT_EQ(op_name(steps[5].step), "softmax");
    EXPECT_EQ(op_name(steps[6].step), "attention_context");
}

TEST(Fuse, ReportsEveryProvidersReasonWhenNoneTakesAnOp) {
    const Model model = small_model();
    try {
        assign_steps(model, Precision::fp16,
                     one([](const Step& step) { return step.head_op().is<Attention>() ? "no fp16 here" : ""; }), {},
                     64);
        FAIL() << "attention has no provider";
    } catch (const Unsupported& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("attention of h.0.attn in fp16"));
        EXPECT_THAT(refusal.what(), HasSubstr("picky: no fp16 here"));
    }
}

TEST(Fuse, ChosenProvidersAreUsedOrRefusedByName) {
    const Model model = small_model();
    auto providers = one(takes_all);
    providers.push_back(picky("other", takes_all));
    for (const AssignedStep& s : assign_steps(model, Precision::fp32, providers, {{"gemm", "other"}}, 64))
        EXPECT_EQ(s.provider->name, op_name(s.step) == "gemm" ? "other" : "picky");
    for (const AssignedStep& s : assign_steps(model, Precision::fp32, providers, {{"*", "other"}}, 64))
        EXPECT_EQ(s.provider->name, "other");
    for (const AssignedStep& s : assign_steps(model, Precision::fp32, providers, {{"gelu", "other"}}, 64))
        EXPECT_EQ(s.provider->name, s.step.absorbs<Gelu>() ? "other" : "picky") << "named, also within another's step";
    providers.back() = picky("other", [](const Step& step) { return step.ops.size() > 1 ? "alone" : ""; });
    const auto apart = assign_steps(model, Precision::fp32, providers, {{"gelu", "other"}}, 64);
    EXPECT_EQ(shape_text(apart.at(6).step), "m16n256k64+bias");
    EXPECT_EQ(apart.at(7).provider->name, "other");
    EXPECT_THROW(assign_steps(model, Precision::fp32, providers, {{"gemm", "nobody"}}, 64), UsageError);
    EXPECT_THROW(assign_steps(model, Precision::fp32, providers, {{"gem", "other"}}, 64), UsageError);
}

/// Rows of 4 by 6 through `ops`, one behind the other, each with further inputs of its own.
class Chain {
  public:
    Chain() { last_ = tensor("input"); }
    /// `carried_at`: the place at which the op reads what the one before it made.
    Chain& then(const Op& op, std::size_t carried_at = 0) {
        OpNode node{op, std::to_string(model_.ops.size()), {}, {}};
        for (const OperandSpec& spec : op.operands(Direction::fwd))
            if (spec.use == OperandUse::input || spec.use == OperandUse::weight)
                node.inputs.push_back(node.inputs.size() == carried_at ? last_ : tensor(std::string(spec.name)));
        last_ = tensor("out");
        node.outputs = {last_};
        model_.ops.push_back(std::move(node));
        return *this;
    }
    /// What was made last is wanted besides by whoever runs the model.
    Chain& wanted() {
        model_.outputs.push_back(last_);
        return *this;
    }
    std::vector<std::string> steps() const {
        return kinds(assign_steps(model_, Precision::fp32, one(takes_all), {}, 1));
    }
    const Model& model() const { return model_; }

  private:
    TensorId tensor(const std::string& name) {
        model_.tensors.push_back({.name = name + std::to_string(model_.tensors.size()), .shape = {4, 6}});
        return model_.tensors.size() - 1;
    }

    Model model_;
    TensorId last_ = 0;
};

using testing::ElementsAre;

TEST(Fuse, AnOpInFrontOfTheHeadMayKeepItsResultOnlyWhereTheHeadTakesIt) {
    const Op bias = BiasAdd{4, 6}, residual = ResidualAdd{4, 6}, norm = LayerNorm{4, 6};
    EXPECT_THAT(Chain().then(bias).then(residual).then(norm).steps(), ElementsAre("layernorm r4w6+bias+residual"));
    const Chain sum = Chain().then(bias).then(residual).wanted().then(norm);
    EXPECT_THAT(sum.steps(), ElementsAre("layernorm r4w6+bias+residual"));
    const auto steps = assign_steps(sum.model(), Precision::fp32, one(takes_all), {}, 1);
    EXPECT_THAT(steps.at(0).step.kept, ElementsAre(1u));
    const Chain biased = Chain().then(bias).wanted().then(residual).then(norm);
    EXPECT_THAT(biased.steps(), ElementsAre("bias r4w6", "layernorm r4w6+residual"))
        << "providers leave one sum behind, that of all";
}

TEST(Fuse, WhatIsMadeBehindTheHeadHasNoOtherReaders) {
    const Op gemm = Gemm{4, 6, 6}, bias = BiasAdd{4, 6}, gelu = Gelu{4, 6};
    EXPECT_THAT(Chain().then(gemm).then(bias).then(gelu).wanted().steps(), ElementsAre("gemm m4n6k6+bias+gelu"));
    EXPECT_THAT(Chain().then(gemm).then(bias).wanted().then(gelu).steps(),
                ElementsAre("gemm m4n6k6+bias", "gelu r4w6"));
    EXPECT_THAT(Chain().then(gemm).wanted().then(bias).then(gelu).steps(),
                ElementsAre("gemm m4n6k6", "gelu r4w6+bias"));
}

TEST(Fuse, AnOpConsumesInItsFirstPlace) {
    const Op residual = ResidualAdd{4, 6}, norm = LayerNorm{4, 6};
    EXPECT_THAT(Chain().then(residual).then(norm).steps(), ElementsAre("layernorm r4w6+residual"));
    EXPECT_THAT(Chain().then(residual).then(norm, 1).steps(), ElementsAre("residual r4w6", "layernorm r4w6"))
        << "as its weight";
}

TEST(Fuse, BackwardTheFirstResultIsHandedOnAndTheOthersAreLeft) {
    const Step problem = parse_problem("layernorm", "r4w6+residual", Direction::bwd);
    const Model model = make_problem_model(problem, 1, 1);
    const auto steps = assign_steps(model, Precision::fp32, one(takes_all), {}, 1);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].step, problem);
    expect_all_ops_once(model, steps);
    std::vector<std::string> names;
    for (const TensorId id : steps[0].tensors) names.push_back(model.tensors[id].name);
    EXPECT_THAT(names, ElementsAre("x#0", "dy#0", "weight#0", "dy_residual#0", "dw#0", "db#0", "out#0"));
}

TEST(Fuse, NothingInAStepReadsWhatTheStepLeaves) {
    Model model = make_problem_model(parse_problem("layernorm", "r4w6+residual", Direction::bwd), 1, 1);
    EXPECT_EQ(steps_of(model, 2, 1).size(), 1u);
    model.ops[1].inputs[1] = model.ops[0].outputs[1];  // dw as the other gradient
    EXPECT_THROW(steps_of(model, 2, 1), Unsupported);
    EXPECT_EQ(steps_of(model, 1, 1).size(), 2u);
}

/// As `picky`, and leaves behind what ops behind a head take from one another.
Providers one_that_leaves_results() {
    Providers list = one(takes_all);
    for (ProviderOp& row : list.front()->ops) row.leaves_results = true;
    return list;
}

TEST(Fuse, WhatIsMadeBehindTheHeadMayBeLeftWhereTheProviderSaysSo) {
    const Op gemm = Gemm{4, 6, 6}, bias = BiasAdd{4, 6}, gelu = Gelu{4, 6};
    const Chain chain = Chain().then(gemm).then(bias).wanted().then(gelu);
    const auto steps = assign_steps(chain.model(), Precision::fp32, one_that_leaves_results(), {}, 1);
    EXPECT_EQ(kinds(steps), (std::vector<std::string>{"gemm m4n6k6+bias+gelu"}));
    EXPECT_THAT(steps.at(0).step.kept, ElementsAre(1u));
    EXPECT_EQ(steps[0].tensors.size(), operands(steps[0].step, Precision::fp32).size());
}

TEST(Fuse, GradientsOfABiasAndOfGeluGoAlongWithThoseOfProducts) {
    const Model model = with_backward(small_model());
    const auto steps = assign_steps(model, Precision::fp32, one_that_leaves_results(), {}, 1);
    expect_all_ops_once(model, steps);
    std::vector<std::string> of_block;
    for (const AssignedStep& s : steps) {
        const OpNode& node = model.ops[s.naming_op];
        if (node.forward && node.layer.starts_with("h.1.mlp"))
            of_block.push_back(node.layer.substr(8) + " " + std::string(name(s.step.direction)) + " " +
                               shape_text(s.step));
    }
    EXPECT_THAT(of_block, ElementsAre("c_proj wgrad m16n64k256+bias", "c_proj dgrad m16n64k256+gelu",
                                      "c_fc wgrad m16n256k64+bias", "c_fc dgrad m16n256k64"));
    for (const AssignedStep& s : steps)
        if (s.step.beside > 0) {
            EXPECT_EQ(model.ops[s.ops.at(0)].inputs.at(0), model.ops[s.ops.at(1)].inputs.at(1)) << "both read dy";
            EXPECT_EQ(s.tensors.at(2), model.ops[s.ops[0]].outputs.at(0)) << "db in front of dw";
        }
}

TEST(Fuse, BesideAHeadStandsOnlyWhatReadsTheSame) {
    const auto problem = [] {
        return make_problem_model(parse_problem("gemm", "m4n6k6+bias", Direction::wgrad), 1, 1);
    };
    EXPECT_EQ(steps_of(problem(), 2, 1).size(), 1u);
    Model other = problem();
    other.ops[0].inputs[0] = other.ops[1].inputs[0];  // x, which is as large
    EXPECT_THROW(steps_of(other, 2, 1), Unsupported);
    Model reads_it = problem();
    reads_it.ops[1].inputs[0] = reads_it.ops[0].outputs[0];
    EXPECT_THROW(steps_of(reads_it, 2, 1), Unsupported) << "what the step writes it cannot read";
    Model forward = problem();
    forward.ops[0].direction = Direction::fwd;
    EXPECT_THROW(steps_of(forward, 2, 1), Unsupported);
}

TEST(Fuse, PaddedRowsAreReadByProductsAlone) {
    // GELU in front of a head of 100 rows: dgrad reads gradients of padded rows, which no fused step knows.
    Model model;
    const auto tensor = [&](const char* name, std::int64_t rows, std::int64_t columns) {
        model.tensors.push_back({.name = name, .shape = {rows, columns}});
        return model.tensors.size() - 1;
    };
    const TensorId x = tensor("x", 4, 64), h = tensor("h", 4, 64), w = tensor("w", 100, 64), y = tensor("y", 4, 100),
                   dh = tensor("dh", 4, 64), dx = tensor("dx", 4, 64);
    const Gemm head{4, 100, 64, true};
    model.ops = {{Gelu{4, 64}, "act", {x}, {h}},
                 {head, "head", {h, w}, {y}},
                 {head, "head", {y, w}, {dh}, Direction::dgrad, 1},
                 {Gelu{4, 64}, "act", {dh, x}, {dx}, Direction::bwd, 0}};
    EXPECT_EQ(assign_steps(model, Precision::fp32, one(takes_all), {}, 1).size(), 3u);
    const auto padded = assign_steps(model, Precision::fp32, one(takes_all), {}, 64);
    EXPECT_EQ(padded.size(), 4u);
    EXPECT_EQ(shape_text(padded.at(2).step), "m4n100k64t+pad28");
}

TEST(Fuse, OnlyHeadsThatSaySoArePadded) {
    EXPECT_EQ(padded_columns(Gemm{2, 100, 3, true}, Direction::fwd, 64), 128);
    EXPECT_EQ(padded_columns(Gemm{2, 128, 3, true}, Direction::fwd, 64), 0) << "as many as there are";
    EXPECT_EQ(padded_columns(Gemm{2, 100, 3, true}, Direction::fwd, 1), 0);
    EXPECT_EQ(padded_columns(Gemm{2, 100, 3}, Direction::fwd, 64), 0) << "a weight of k rows has no room for them";
    for (const Direction direction : {Direction::dgrad, Direction::wgrad})
        EXPECT_EQ(padded_columns(Gemm{2, 100, 3, true}, direction, 64), 0) << "columns there are not the weight's rows";
    EXPECT_EQ(padded_columns(Gelu{2, 100}, Direction::fwd, 64), 0);
}

}  // namespace
}  // namespace kbench
