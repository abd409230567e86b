// A whole model's gradients against differences of its own loss, in fp64 by the CPU's providers: order, names, sums of
// gradients that meet, and memory that a later step must not have taken.
#include "models/backward.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "bench/plan/data/inputs.h"
#include "bench/plan/plan.h"
#include "bench/plan/provider.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

/// Weights that hide nothing: as GPT-2 begins, biases are 0 and weights of layer norms 1.
Model forward_model(bool tied) {
    Model model = make_gpt2({.name = "small",
                             .n_embd = 12,
                             .n_layer = 2,
                             .n_head = 3,
                             .n_ctx = 9,
                             .vocab_size = 23,
                             .tie_word_embeddings = tied},
                            2, 7, AttentionKind::fused);
    for (Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights) tensor.contents = Contents::normal(0.5);
    return model;
}

class Training {
  public:
    explicit Training(Model model, const ProviderChoice& choice = {})
        : model_(std::move(model)),
          plan_(model_, Precision::fp64, assign_steps(model_, Precision::fp64, providers_, choice, 1)) {
        RandomWeights weights(3);
        plan_.allocate(cpu(), weights);
        for (const TensorId id : model_.inputs)
            plan_.set_input(id, input_bytes(model_.tensors[id], plan_.operand(id), "", 5));
    }

    void run(std::size_t first = 0) {
        for (std::size_t step = first; step < plan_.steps().size(); ++step) plan_.run_step(step, nullptr);
    }
    /// Runs the forward up to the step that makes the losses.
    double loss() {
        for (std::size_t step = 0; step < plan_.steps().size(); ++step) {
            plan_.run_step(step, nullptr);
            if (plan_.steps()[step].step.head_op().is<CrossEntropy>()) break;
        }
        const Tensor& losses = model_.tensors[model_.outputs.at(0)];
        const double* values = numbers(model_.outputs.at(0));
        return std::accumulate(values, values + losses.elements(), 0.0) / (2 * 6);
    }
    double* numbers(TensorId id) { return static_cast<double*>(plan_.address(id)); }
    const Model& model() const { return model_; }
    const Plan& plan() const { return plan_; }

  private:
    Model model_;
    Providers providers_ = make_providers(BackendKind::cpu, {});
    Plan plan_;
};

/// Largest error of the gradient of `weight` at some of its elements, relative to the largest element.
double gradient_error(Training& training, TensorId weight, TensorId gradient) {
    const std::int64_t elements = training.model().tensors[weight].elements();
    training.run();
    const double* found = training.numbers(gradient);
    const std::vector<double> all(found, found + elements);
    double largest = 1e-6, worst = 0;
    for (const double value : all) largest = std::max(largest, std::abs(value));
    for (std::int64_t e = 0; e < elements; e += std::max<std::int64_t>(1, elements / 7)) {
        constexpr double step = 1e-5;
        double& value = training.numbers(weight)[e];
        const double before = value;
        value = before + step;
        const double above = training.loss();
        value = before - step;
        const double below = training.loss();
        value = before;
        worst = std::max(worst, std::abs((above - below) / (2 * step) - all[static_cast<std::size_t>(e)]));
    }
    return worst / largest;
}

TEST(BackwardPlan, GradientsAreThoseOfTheLoss) {
    for (const bool tied : {true, false}) {
        Training training(with_backward(forward_model(tied)));
        ASSERT_TRUE(std::isfinite(training.loss()));
        for (const auto& [weight, gradient] : training.model().gradients)
            EXPECT_LT(gradient_error(training, weight, gradient), 1e-6) << training.model().tensors[weight].name;
    }
}

/// The steps of `training` that absorb something, by what they are called: how often each.
std::map<std::string, int> fused_steps(const Training& training) {
    std::map<std::string, int> counts;
    for (const PlannedStep& step : training.plan().steps())
        if (step.step.head_op().is<Gemm>() && step.step.ops.size() > 1)
            ++counts[fmt::format("{} {}{}", name(step.step.direction), shape_text(step.step),
                                 step.step.keeps_results() ? ", kept" : "")];
    return counts;
}

TEST(BackwardPlan, GradientsOfFusedProductsAreThoseOfTheLossToo) {
    // The oracle, on request, takes whatever may be fused: c_attn, c_proj, c_fc and c_proj of two blocks.
    Training fused(with_backward(forward_model(true)), {{"gemm", "reference"}}),
        apart(with_backward(forward_model(true)));
    EXPECT_TRUE(fused_steps(apart).empty()) << "no provider of a CPU has them in fp64";
    const std::map<std::string, int> expected{
        {"fwd m14n36k12+bias", 2},          {"fwd m14n12k12+bias+residual", 2}, {"fwd m14n48k12+bias+gelu, kept", 2},
        {"fwd m14n12k48+bias+residual", 2}, {"wgrad m14n36k12+bias", 2},        {"wgrad m14n12k12+bias", 2},
        {"wgrad m14n48k12+bias", 2},        {"wgrad m14n12k48+bias", 2},        {"dgrad m14n12k48+gelu", 2}};
    EXPECT_EQ(fused_steps(fused), expected);
    fused.run();
    apart.run();
    for (std::size_t i = 0; i < apart.model().gradients.size(); ++i) {
        const auto& [weight, gradient] = apart.model().gradients[i];
        for (std::int64_t e = 0; e < apart.model().tensors[weight].elements(); ++e)
            ASSERT_NEAR(fused.numbers(gradient)[e], apart.numbers(gradient)[e], 1e-12)
                << apart.model().tensors[weight].name;
    }
    for (const PlannedStep& step : fused.plan().steps())
        if (step.step.direction == Direction::dgrad && step.step.absorbs<Gelu>()) {
            EXPECT_NE(fused.plan().address(step.tensors.at(2)), fused.plan().address(step.tensors.at(3)))
                << "a product may write before it has read all of GELU's argument";
        }
}

TEST(BackwardPlan, FusedProductsAddToGradientsThatAreThere) {
    Training once(with_backward(forward_model(true))),
        sums(with_backward(forward_model(true), {.accumulate = true}), {{"gemm", "reference"}});
    EXPECT_EQ(fused_steps(sums).at("wgrad m14n48k12a+bias"), 2);
    once.run();
    for (int run = 1; run <= 2; ++run) sums.run();
    for (std::size_t i = 0; i < once.model().gradients.size(); ++i) {
        const auto& [weight, gradient] = once.model().gradients[i];
        const double* added = sums.numbers(sums.model().gradients.at(i).second);
        for (std::int64_t e = 0; e < once.model().tensors[weight].elements(); ++e)
            ASSERT_NEAR(added[e], 2 * once.numbers(gradient)[e], 1e-12) << once.model().tensors[weight].name;
    }
}

TEST(BackwardPlan, FindsAPlantedError) {
    Model model = with_backward(forward_model(true));
    // The gradient that comes past a layer norm is dropped: its own takes both places.
    for (OpNode& node : model.ops)
        if (node.layer == "h.1.ln_2" && node.op.is<ResidualAdd>() && node.direction == Direction::bwd)
            node.inputs[1] = node.inputs[0];
    Training training(std::move(model));
    double worst = 0;
    for (const auto& [weight, gradient] : training.model().gradients)
        worst = std::max(worst, gradient_error(training, weight, gradient));
    EXPECT_GT(worst, 0.01);
}

TEST(BackwardPlan, AloneRunsAgainAndAgainBehindOneForward) {
    Training whole(with_backward(forward_model(true))), alone(backward_alone(forward_model(true)));
    whole.run();
    alone.run();
    ASSERT_GT(alone.plan().first_timed(), 0U);
    for (int repeat = 0; repeat < 2; ++repeat) alone.run(alone.plan().first_timed());
    for (std::size_t i = 0; i < whole.model().gradients.size(); ++i) {
        const auto& [weight, gradient] = whole.model().gradients[i];
        const TensorId again = alone.model().gradients[i].second;
        for (std::int64_t e = 0; e < whole.model().tensors[weight].elements(); ++e)
            ASSERT_EQ(whole.numbers(gradient)[e], alone.numbers(again)[e]) << whole.model().tensors[weight].name;
    }
}

TEST(BackwardPlan, AccumulatedGradientsAreSumsOverTheRuns) {
    for (const bool tied : {true, false}) {
        Training once(with_backward(forward_model(tied))),
            sums(with_backward(forward_model(tied), {.accumulate = true}));
        once.run();
        for (int run = 1; run <= 3; ++run) {
            sums.run();
            for (std::size_t i = 0; i < once.model().gradients.size(); ++i) {
                const auto& [weight, gradient] = once.model().gradients[i];
                const double* added = sums.numbers(sums.model().gradients.at(i).second);
                for (std::int64_t e = 0; e < once.model().tensors[weight].elements(); ++e)
                    ASSERT_NEAR(added[e], run * once.numbers(gradient)[e], 1e-12)
                        << once.model().tensors[weight].name << " after " << run;
            }
        }
    }
}

TEST(BackwardPlan, KeepsGradientsInMemoryOfTheirOwn) {
    for (const bool accumulate : {false, true}) {
        Training training(with_backward(forward_model(true), {.accumulate = accumulate}));
        const MemoryPlan& memory = training.plan().layout().memory;
        double bytes = 0;
        for (const auto& [weight, gradient] : training.model().gradients)
            bytes += static_cast<double>((training.model().tensors[weight].elements() * 8 + 255) / 256 * 256);
        EXPECT_EQ(static_cast<double>(memory.bytes[static_cast<std::size_t>(Role::gradients)]), bytes);
    }
}

}  // namespace
}  // namespace kbench
