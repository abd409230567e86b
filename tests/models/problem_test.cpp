// Problems: shapes as text and back, and the models that run them again and again.
#include "models/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kbench/error.h"
#include "models/cost.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Written {
    std::string_view op, shape;
};
constexpr Written written[] = {
    {"gemm", "m1024n3840k1280"},
    {"gemm", "m1n50257k768t"},
    {"gemm", "m7n5k3+bias"},
    {"gemm", "m7n5k3+bias+gelu"},
    {"gemm", "m7n5k3+bias+gelu_erf"},
    {"gemm", "m7n5k3+relu"},
    {"gemm", "m7n5k3+bias+tanh"},
    {"gemm", "m7n5k3t+bias+residual"},
    {"gemm", "m7n5k3+gelu"},
    {"gemm", "m7n5k3+residual"},
    {"embedding", "r1024w1280v50257"},
    {"embedding", "r4096w1280v50257s1024"},
    {"embedding", "r4096w1280v50257s1024a"},
    {"layernorm", "r1024w1280"},
    {"layernorm", "r1024w1280+residual"},
    {"layernorm", "r1024w1280+bias+residual"},
    {"rmsnorm", "r1024w4096"},
    {"bias", "r1024w3840"},
    {"gelu", "r1024w5120"},
    {"gelu", "r1024w5120+bias"},
    {"gelu_fast", "r1024w5120+bias"},
    {"gelu_erf", "r1024w5120+bias"},
    {"quick_gelu", "r1024w5120+bias"},
    {"relu", "r1024w5120+bias"},
    {"silu", "r1024w5120+bias"},
    {"tanh", "r1024w5120+bias"},
    {"residual", "r1024w1280"},
    {"attention", "b4h20s1024d64"},
    {"attention", "b4h20s1024d64l"},
    {"attention_scores", "b4h20s128d64"},
    {"attention_scores", "b4h20s128d64+upcast"},
    {"scale_mask", "b4h20s128d64+upcast"},
    {"softmax", "r20480w1024"},
    {"attention_context", "b4h20s128d64"},
    {"conv2d", "n8c32h81w500k32r21s11u2p10q5b"},
    {"conv2d", "n1c1h5w5k1r3s3"},
    {"batchnorm", "r4000w1024"},
    {"batchnorm", "r4000w1024+residual"},
    {"batchnorm", "r20736w500c32h81"},
    {"hardtanh", "r10000w500"},
    {"time_mask", "n8r2592t500f2"},
    {"time_mask", "n8r2592t500"},
    {"to_sequence", "n8f1312t500"},
    {"lstm", "t500n8h1024f2"},
    {"gru", "t500n8h1024"},
    {"rnn", "t500n8h1024f2"},
    {"conv2d", "n2c3h9w20k4r3s5ba"},
    {"batchnorm", "r12w20c3h2ta"},
    {"lstm", "t500n8h1024f2sa"},
    {"ctc", "t500n8v29s150"},
    {"ctc", "t500n8v29s150f2"},
    {"cross_entropy", "r1024v50257"},
    {"cross_entropy", "r4096v50257s1024"},
    {"global_norm", "n1000t3"},
    {"adamw", "n1000t3"},
    {"adamw", "n1000t1m"},
    {"gemm", "m10n20k30ta"},
    {"bias", "r10w20a"},
    {"layernorm", "r10w20a"},
    {"rmsnorm", "r10w20a"},
    {"embedding", "r12w4v9s6ap"},
    {"embedding_at", "r1w1280v50257p1024"},
    {"embedding_at", "r12w4v9p8s6"},
    {"cached_attention", "b1h20q1k1024d64"},
    {"cached_attention", "b2h6q3k10d5g2w4"},
    {"fill_cache", "b1h20s992k1024d64"},
    {"fill_cache", "b2h6s3k10d5g2"},
    {"last_token", "b16s1024w1280"},
    {"adamw", "n1000t3mc"},
    {"token_embedding", "r12w4v9"},
    {"swiglu", "r10w20"},
    {"qk_norm", "r1h16d128"},
    {"qk_norm", "r3h6d10g2"},
    {"rotary_embedding", "b1h32q1d64"},
    {"rotary_embedding", "b2h6q3d10g2p2047"},
};

TEST(Problem, EveryOpKindCanBeWrittenAndReadAgain) {
    std::set<std::string_view> seen;
    for (const auto& [op, shape] : written) {
        const Step problem = parse_problem(op, shape);
        EXPECT_EQ(op_name(problem), op) << shape;
        EXPECT_EQ(shape_text(problem), shape) << op;
        seen.insert(op);
    }
    for (const OpKind* kind : op_kinds()) EXPECT_TRUE(seen.contains(kind->name)) << kind->name;
}

TEST(Problem, NumbersEndUpWhereTheirLettersSay) {
    const Gemm gemm = parse_problem("gemm", "k30n20m10t").as<Gemm>();
    EXPECT_EQ(gemm, (Gemm{10, 20, 30, true}));
    const Attention attention = parse_problem("attention", "b2h3s5d64").as<Attention>();
    EXPECT_EQ(attention.shape, (AttentionShape{2, 3, 5, 64}));
    EXPECT_DOUBLE_EQ(attention.scale, 0.125);
    EXPECT_FALSE(attention.saves_lse);
    EXPECT_TRUE(parse_problem("attention", "b2h3s5d64l").as<Attention>().saves_lse);
    const Embedding embedding = parse_problem("embedding", "r12w4v9s6").as<Embedding>();
    EXPECT_EQ(embedding, (Embedding{12, 6, 4, 9, 6}));
}

TEST(Problem, WhatIsNoShapeIsRefusedWithOneThatIs) {
    const Written wrong[] = {
        {"gemm", ""},
        {"gemm", "m1n2"},
        {"gemm", "m1n2k0"},
        {"gemm", "m1n2k3x4"},
        {"gemm", "m1n2k3m4"},
        {"gemm", "m1n2k-3"},
        {"gemm", "1024"},
        {"gemm", "m1n2k3t4"},
        {"gemm", "m1n2k3+foo"},
        {"gemm", "m1n2k3+gelu+bias"},
        {"gemm", "m1n2k3+gelu+residual"},
        {"layernorm", "r1"},
        {"layernorm", "r1w2+bias"},
        {"softmax", "r1w2+upcast"},
        {"attention", "b1h2s3"},
        {"embedding", "r10w4v9s3"},
        {"gelu", "r1w2+gelu"},
        {"gelu", "r1w2+relu"},
        {"gemm", "m1n2k3+gelu+relu"},
        {"conv2d", "n1c1h4w4k1r5s3"},
        {"batchnorm", "r10w5c3h2"},
        {"batchnorm", "r10w5h2"},
        {"lstm", "t5n3"},
        {"gemm", "m1n2k3+"},
        {"gemm", "m99999999999999999999n1k1"},
    };
    for (const auto& [op, shape] : wrong) {
        try {
            parse_problem(op, shape);
            ADD_FAILURE() << op << " " << shape << " was accepted";
        } catch (const UsageError& error) {
            EXPECT_THAT(error.what(), HasSubstr("must be written like")) << op << " " << shape;
        }
    }
    EXPECT_THROW(parse_problem("conv", "r1w2"), UsageError);
}

TEST(Problem, OfAModelAreItsDistinctOpsAndCanBeAskedForAgain) {
    const Model model = make_gpt2(gpt2_config("gpt2-large"), 4, 1024, AttentionKind::unfused);
    const std::vector<Step> problems = problems_of(model);
    std::vector<std::string> names;
    for (const Step& problem : problems) {
        names.push_back(std::string(op_name(problem)) + " " + shape_text(problem));
        EXPECT_EQ(parse_problem(op_name(problem), shape_text(problem)), problem);
    }
    EXPECT_THAT(names, ElementsAre("embedding r4096w1280v50257s1024", "layernorm r4096w1280", "gemm m4096n3840k1280",
                                   "bias r4096w3840", "attention_scores b4h20s1024d64", "scale_mask b4h20s1024d64",
                                   "softmax r81920w1024", "attention_context b4h20s1024d64", "gemm m4096n1280k1280",
                                   "bias r4096w1280", "residual r4096w1280", "gemm m4096n5120k1280", "bias r4096w5120",
                                   "gelu r4096w5120", "gemm m4096n1280k5120", "gemm m4096n50257k1280t"));
}

TEST(ProblemModel, RunsGoRoundTheSetsOfTensors) {
    const Model model = make_problem_model(parse_problem("gemm", "m2n3k4+bias"), 2, 5);
    ASSERT_EQ(model.ops.size(), 10u);
    for (std::size_t run = 0; run < 5; ++run) {
        const OpNode &gemm = model.ops[2 * run], &bias = model.ops[2 * run + 1];
        EXPECT_EQ(gemm.inputs, model.ops[2 * (run % 2)].inputs) << "set " << run % 2;
        EXPECT_EQ(bias.outputs, model.ops[2 * (run % 2) + 1].outputs);
        EXPECT_EQ(bias.inputs[0], gemm.outputs[0]) << "each consumes what the one before it made";
        EXPECT_EQ(gemm.layer, "run." + std::to_string(run));
    }
    EXPECT_NE(model.ops[0].inputs, model.ops[2].inputs);
    std::size_t resident = 0;
    for (const Tensor& tensor : model.tensors) resident += tensor.resident;
    EXPECT_EQ(resident, 2u * 4) << "x, w, bias and out of each set; what lies between the two ops is not";
}

TEST(ProblemModel, EveryRunCostsWhatOneCosts) {
    for (const auto& [op, shape] : written) {
        const Step problem = parse_problem(op, shape);
        const std::size_t ops = problem.ops.size();
        std::vector<std::size_t> first(ops);
        for (std::size_t i = 0; i < ops; ++i) first[i] = i;
        const Cost one = step_cost(make_problem_model(problem, 1, 1), first, Precision::fp16);
        const Model model = make_problem_model(problem, 2, 4);
        for (std::size_t run = 0; run < 4; ++run) {
            std::vector<std::size_t> of_run = first;
            for (std::size_t& i : of_run) i += run * ops;
            const Cost cost = step_cost(model, of_run, Precision::fp16);
            EXPECT_EQ(cost.flops, one.flops) << op << " " << shape;
            EXPECT_EQ(cost.bytes_read, one.bytes_read) << op << " " << shape << " run " << run;
            EXPECT_EQ(cost.bytes_written, one.bytes_written) << op << " " << shape << " run " << run;
        }
        EXPECT_GT(one.bytes(), 0) << op;
    }
}

TEST(Problem, FusionsAreThoseOfTheirDirection) {
    const Step backward = parse_problem("layernorm", "r3w5+residual", Direction::bwd);
    EXPECT_NE(backward, parse_problem("layernorm", "r3w5+residual"));
    EXPECT_THROW(parse_problem("layernorm", "r3w5+bias+residual", Direction::bwd), UsageError);
    EXPECT_THROW(parse_problem("gelu", "r3w5+bias", Direction::bwd), UsageError);
    EXPECT_THROW(parse_problem("gemm", "m3n5k7+bias", Direction::dgrad), UsageError);
    EXPECT_THROW(parse_problem("gemm", "m3n5k7+gelu", Direction::wgrad), UsageError);
}

TEST(ProblemModel, WhatAnOpReadsWithTheHeadIsOneTensor) {
    const Step problem = parse_problem("gemm", "m10n20k30+bias", Direction::wgrad);
    const Model model = make_problem_model(problem, 2, 3);
    const OpNode &bias = model.ops.at(4), &gemm = model.ops.at(5);
    EXPECT_EQ(bias.direction, Direction::bwd);
    EXPECT_EQ(gemm.direction, Direction::wgrad);
    EXPECT_EQ(gemm.inputs.at(1), bias.inputs.at(0)) << "dy";
    EXPECT_NE(gemm.inputs.at(0), bias.inputs.at(0));
    EXPECT_EQ(bias.inputs, model.ops.at(0).inputs) << "the third run is on the first set again";
    EXPECT_NE(bias.inputs, model.ops.at(2).inputs);
    EXPECT_THAT(model.outputs, ElementsAre(bias.outputs.at(0), gemm.outputs.at(0)));
    EXPECT_EQ(model.tensors[bias.outputs[0]].name, "db#0");
    EXPECT_EQ(model.tensors[gemm.outputs[0]].name, "dw#0");
    EXPECT_EQ(problem_bytes(problem, Precision::fp32), 4 * (10 * 30 + 10 * 20 + 20 + 30 * 20));
    EXPECT_EQ(step_cost(model, {4, 5}, Precision::fp32).bytes(), problem_bytes(problem, Precision::fp32));
    EXPECT_EQ(step_cost(model, {4, 5}, Precision::fp32).flops, 2 * 10 * 20 * 30 + 10 * 20);
}

TEST(ProblemModel, WhatAnOpMakesBesidesWhatItHandsOnIsAResultToo) {
    const Step problem = parse_problem("layernorm", "r10w20+residual", Direction::bwd);
    const Model model = make_problem_model(problem, 2, 3);
    const OpNode &norm = model.ops.at(4), &sum = model.ops.at(5);
    ASSERT_EQ(norm.outputs.size(), 3u);
    EXPECT_EQ(sum.inputs.at(0), norm.outputs[0]);
    EXPECT_FALSE(model.tensors[norm.outputs[0]].resident) << "made and consumed within the step";
    EXPECT_EQ(model.tensors[norm.outputs[1]].name, "dw#0");
    EXPECT_EQ(model.tensors[norm.outputs[2]].name, "db#0");
    EXPECT_THAT(model.outputs, ElementsAre(norm.outputs[1], norm.outputs[2], sum.outputs.at(0)));
    EXPECT_EQ(norm.inputs, model.ops.at(0).inputs) << "the third run is on the first set again";
    const Cost cost = step_cost(model, {4, 5}, Precision::fp32);
    EXPECT_EQ(cost.bytes(), 4 * (4 * 200 + 3 * 20)) << "x, dy, dy_residual, dx; weight, dw, db";
    EXPECT_EQ(problem_bytes(problem, Precision::fp32), 4 * (4 * 200 + 3 * 20));
}

TEST(ProblemModel, BytesOfASetAreThoseOfItsArrays) {
    EXPECT_EQ(problem_bytes(parse_problem("gemm", "m10n20k30+bias"), Precision::fp32),
              4 * (10 * 30 + 30 * 20 + 20 + 10 * 20));
    EXPECT_EQ(problem_bytes(parse_problem("layernorm", "r10w20"), Precision::fp64), 8 * (200 + 20 + 20 + 200));
    EXPECT_EQ(problem_bytes(parse_problem("adamw", "n100t3"), Precision::fp32), 4 * (8 + 4 * 100)) << "once, in place";
    EXPECT_EQ(problem_bytes(parse_problem("attention_scores", "b1h2s3d4+upcast"), Precision::fp16),
              2 * (3 * 3 * 2 * 4) + 4 * (2 * 3 * 3));
}

}  // namespace
}  // namespace kbench
