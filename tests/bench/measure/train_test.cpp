// Training as a whole, on the CPU: a small GPT-2 learns a source of known entropy, goes on from its file, and leaves
// out steps whose gradients are not finite.
#include "bench/measure/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bench/plan/data/markov.h"
#include "bench/plan/device_support.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/backward.h"
#include "models/gpt2.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

struct Setting {
    Precision precision = Precision::fp32;
    bool master = false;
    TrainOptions train = {.lr = 3e-3};
};

/// A model, its plan and its trainer.
class Training {
  public:
    explicit Training(const Setting& setting, const std::filesystem::path& weights = {})
        : model_(with_backward(
              make_gpt2({.name = "tiny", .n_embd = 32, .n_layer = 1, .n_head = 2, .n_ctx = 32, .vocab_size = 67}, 8, 32,
                        AttentionKind::fused),
              {.adamw = true, .master = setting.master, .norm = true})),
          plan_(model_, setting.precision, assign_steps(model_, setting.precision, providers_, {}, 1)) {
        if (weights.empty()) {
            RandomWeights random(3);
            plan_.allocate(cpu(), random);
        } else {
            SafetensorsWeights file(weights);
            plan_.allocate(cpu(), file);
        }
        trainer_.emplace(plan_, cpu(), setting.train);
        tokens_.resize(static_cast<std::size_t>(trainer_->tokens()));
    }

    TrainedStep step() {
        source_.fill(tokens_);
        return trainer_->step(tokens_);
    }
    double entropy() const { return source_.entropy(); }
    Trainer& trainer() { return *trainer_; }
    void skip_a_batch() { source_.fill(tokens_); }
    /// A copy of all weights.
    std::vector<std::byte> weights() const {
        std::vector<std::byte> bytes;
        for (TensorId id = 0; id < model_.tensors.size(); ++id)
            if (model_.tensors[id].role == Role::weights) {
                const auto* data = static_cast<const std::byte*>(plan_.address(id));
                bytes.insert(bytes.end(), data, data + plan_.operand(id).bytes());
            }
        return bytes;
    }

  private:
    Model model_;
    Providers providers_ = make_providers(BackendKind::cpu, {});
    Plan plan_;
    MarkovSource source_{1};
    std::optional<Trainer> trainer_;
    std::vector<std::int32_t> tokens_;
};

TEST(Train, LearnsASourceNearlyToItsEntropy) {
    Training run({});
    const double first = run.step().loss;
    EXPECT_NEAR(first, std::log(67.0), 0.1) << "nothing is known at first";
    double mean = 0;
    for (int step = 1; step < 200; ++step) {
        const double loss = run.step().loss;
        if (step >= 190) mean += loss / 10;
    }
    EXPECT_LT(mean, run.entropy() + 0.35);
    EXPECT_GT(mean, run.entropy() - 0.1) << "no model can";
}

TEST(Train, WithALearningRateOfNothingNothingIsLearnt) {
    Training run({.train = {.lr = 0}});
    const std::vector<std::byte> before = run.weights();
    for (int step = 0; step < 3; ++step) run.step();
    EXPECT_EQ(run.weights(), before);
}

TEST(Train, GoesOnFromItsFileWithTheSameLoss) {
    TemporaryDirectory directory;
    Training run({});
    for (int step = 0; step < 5; ++step) run.step();
    run.trainer().save(directory / "w.safetensors");
    Training next({}, directory / "w.safetensors");
    for (int step = 0; step < 5; ++step) next.skip_a_batch();
    EXPECT_EQ(next.step().loss, run.step().loss) << "bit by bit";
}

TEST(Train, SavesTheMasterWeightsWhereThereAreSuch) {
    if (const std::string why = unsupported(cpu(), Precision::bf16); !why.empty()) GTEST_SKIP() << why;
    TemporaryDirectory directory;
    const Setting setting{.precision = Precision::bf16, .master = true};
    Training run(setting);
    for (int step = 0; step < 5; ++step) run.step();
    run.trainer().save(directory / "w.safetensors");
    Training next(setting, directory / "w.safetensors");
    EXPECT_EQ(next.weights(), run.weights());
    Training without({.precision = Precision::bf16});
    without.trainer().save(directory / "narrow.safetensors");
    EXPECT_LT(std::filesystem::file_size(directory / "narrow.safetensors"),
              std::filesystem::file_size(directory / "w.safetensors"));
}

TEST(Train, AStepWhoseGradientsAreNotFiniteIsSkippedAndTheLossScaleHalved) {
    // In fp32, which every CPU has: there the norm is infinite where its square is beyond 3.4e38.
    constexpr double scale = 1e24;
    Training run({.train = {.lr = 1e-3, .loss_scale = scale, .dynamic_scale = true, .growth_interval = 3}});
    const std::vector<std::byte> before = run.weights();
    int skipped = 0;
    TrainedStep step;
    while ((step = run.step()).skipped) {
        EXPECT_EQ(step.loss_scale, std::ldexp(scale, -skipped));
        EXPECT_TRUE(std::isfinite(step.loss)) << "of the forward alone";
        ASSERT_EQ(run.weights(), before);
        ASSERT_LT(++skipped, 30);
    }
    EXPECT_GT(skipped, 10);
    EXPECT_NE(run.weights(), before);
    for (int good = 1; good < 3; ++good) EXPECT_EQ(run.step().loss_scale, step.loss_scale);
    EXPECT_EQ(run.step().loss_scale, 2 * step.loss_scale) << "after three good ones";
}

TEST(Train, AGradientThatIsNotFiniteEndsATrainingWhoseScaleStays) {
    Training run({.train = {.loss_scale = 1e24}});
    EXPECT_THAT(error_line<MeasurementError>([&] { run.step(); }),
                HasSubstr("a gradient is not finite after 0 updates, at loss scale 1e+24"));
}

TEST(Train, TheLossScaleChangesNeitherNormNorUpdate) {
    Training plain({.precision = Precision::fp64}),
        scaled({.precision = Precision::fp64, .train = {.lr = 3e-3, .loss_scale = 4}});
    for (int step = 0; step < 3; ++step) {
        const TrainedStep one = plain.step(), other = scaled.step();
        EXPECT_NEAR(one.loss, other.loss, 1e-12);
        EXPECT_NEAR(one.norm, other.norm, 1e-12);
    }
}

TEST(Train, GradientsLongerThanTheNormAskedForAreCutDown) {
    // A first step of AdamW moves each weight by lr whatever its gradient, unless that is as small as epsilon.
    const auto moved = [](double clip_norm) {
        Training run({.precision = Precision::fp64, .train = {.lr = 1e-3, .clip_norm = clip_norm}});
        run.step();
        return run.step().loss;
    };
    EXPECT_EQ(moved(0), moved(1e6));
    EXPECT_GT(moved(1e-9), moved(0) + 0.001) << "hardly moved";
}

}  // namespace
}  // namespace kbench
