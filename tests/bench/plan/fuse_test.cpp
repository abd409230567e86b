// Fusion follows what providers take, absorbs every op once, and binds the right tensors.
#include "bench/plan/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"
#include "models/gpt2.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// A provider that takes what a function says, and computes nothing.
class Picky final : public Provider {
  public:
    Picky(std::string name, std::function<std::string(const StepKind&)> unsupported)
        : name_(std::move(name)), unsupported_(std::move(unsupported)) {}
    std::string_view name() const override { return name_; }
    std::string unsupported(const StepKind& kind, Precision) const override { return unsupported_(kind); }
    std::unique_ptr<Computation> make(const StepKind&, Precision) override { return nullptr; }

  private:
    std::string name_;
    std::function<std::string(const StepKind&)> unsupported_;
};

Model small_model(AttentionKind attention = AttentionKind::fused) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    return make_gpt2(config, 2, 8, attention);
}

std::vector<std::unique_ptr<Provider>> one(std::function<std::string(const StepKind&)> unsupported) {
    std::vector<std::unique_ptr<Provider>> list;
    list.push_back(std::make_unique<Picky>("picky", std::move(unsupported)));
    return list;
}

std::vector<std::string> kinds(const std::vector<AssignedStep>& steps) {
    std::vector<std::string> list;
    for (const AssignedStep& s : steps)
        list.push_back(std::string(op_name(s.step.kind)) + " " + shape_text(s.step.kind));
    return list;
}

void expect_all_ops_once(const Model& model, const std::vector<AssignedStep>& steps) {
    std::size_t next = 0;
    for (const AssignedStep& s : steps) {
        ASSERT_EQ(s.step.tensors.size(), operands(s.step.kind, Precision::fp32).size());
        for (const std::size_t op : s.step.ops) EXPECT_EQ(op, next++);
        const std::vector<Operand> list = operands(s.step.kind, Precision::fp32);
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Tensor& tensor = model.tensors[s.step.tensors[i]];
            EXPECT_EQ(tensor.rows, list[i].rows) << tensor.name << " as " << list[i].name;
            EXPECT_EQ(tensor.columns, list[i].columns) << tensor.name << " as " << list[i].name;
        }
    }
    EXPECT_EQ(next, model.ops.size());
}

TEST(Fuse, TakesTheLongestPatternThatAProviderTakes) {
    const Model model = small_model();
    const auto providers = one([](const StepKind& kind) {
        const auto* gemm = std::get_if<GemmStep>(&kind);
        return gemm != nullptr && gemm->residual ? "no residual" : "";
    });
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
    const auto steps = assign_steps(model, Precision::fp32, one([](const StepKind&) { return ""; }), {}, 1);
    expect_all_ops_once(model, steps);
    EXPECT_EQ(shape_text(steps[4].step.kind), "m16n64k64+bias+residual");
    EXPECT_EQ(shape_text(steps[5].step.kind), "r16w64");
    EXPECT_EQ(shape_text(steps.back().step.kind), "m16n100k64t") << "no padding to multiples of one";
}

TEST(Fuse, WithoutEpiloguesTheBiasGoesToWhatFollows) {
    const Model model = small_model();
    const auto steps = assign_steps(model, Precision::fp64, one([](const StepKind& kind) {
                                        const auto* gemm = std::get_if<GemmStep>(&kind);
                                        return gemm != nullptr && (gemm->bias || gemm->gelu) ? "no epilogue" : "";
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
    const auto steps = assign_steps(model, Precision::fp32, one([](const StepKind& kind) {
                                        const auto* gemm = std::get_if<GemmStep>(&kind);
                                        return gemm != nullptr && gemm->residual ? "no residual" : "";
                                    }),
                                    {}, 64);
    EXPECT_TRUE(std::get<NormStep>(steps[5].step.kind).keep_sum);
    EXPECT_FALSE(std::get<NormStep>(steps[15].step.kind).keep_sum) << "nothing follows ln_f but the head";
}

TEST(Fuse, UnfusedAttentionIsFourSteps) {
    const Model model = small_model(AttentionKind::unfused);
    const auto steps = assign_steps(model, Precision::fp16, one([](const StepKind&) { return ""; }), {}, 64);
    std::size_t next = 0;
    for (const AssignedStep& s : steps) next += s.step.ops.size();
    EXPECT_EQ(next, model.ops.size());
    EXPECT_EQ(op_name(steps[3].step.kind), "attention_scores");
    EXPECT_EQ(op_name(steps[4].step.kind), "scale_mask");
    EXPECT_EQ(op_name(steps[5].step.kind), "softmax");
    EXPECT_EQ(op_name(steps[6].step.kind), "attention_context");
}

TEST(Fuse, ReportsEveryProvidersReasonWhenNoneTakesAnOp) {
    const Model model = small_model();
    try {
        assign_steps(model, Precision::fp16, one([](const StepKind& kind) {
                         return std::holds_alternative<Attention>(kind) ? "no fp16 here" : "";
                     }),
                     {}, 64);
        FAIL() << "attention has no provider";
    } catch (const Unsupported& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("attention of h.0.attn in fp16"));
        EXPECT_THAT(refusal.what(), HasSubstr("picky: no fp16 here"));
    }
}

TEST(Fuse, ChosenProvidersAreUsedOrRefusedByName) {
    const Model model = small_model();
    auto providers = one([](const StepKind&) { return ""; });
    providers.push_back(std::make_unique<Picky>("other", [](const StepKind&) { return ""; }));
    for (const AssignedStep& s : assign_steps(model, Precision::fp32, providers, {{"gemm", "other"}}, 64))
        EXPECT_EQ(s.provider->name(), op_name(s.step.kind) == "gemm" ? "other" : "picky");
    for (const AssignedStep& s : assign_steps(model, Precision::fp32, providers, {{"*", "other"}}, 64))
        EXPECT_EQ(s.provider->name(), "other");
    EXPECT_THROW(assign_steps(model, Precision::fp32, providers, {{"gemm", "nobody"}}, 64), UsageError);
    EXPECT_THROW(assign_steps(model, Precision::fp32, providers, {{"gem", "other"}}, 64), UsageError);
}

}  // namespace
}  // namespace kbench
