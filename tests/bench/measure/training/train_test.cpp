// Training as a whole, on the CPU: a small GPT-2 learns a source of known entropy, goes on from its file, and leaves
// out steps whose gradients are not finite.
#include "bench/measure/training/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/plan/data/write_safetensors.h"
#include "kbench/error.h"
#include "tests/bench/program.h"
#include "tests/bench/small_run.h"
#include "tests/bench/small_training.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

TEST(Train, LearnsASourceNearlyToItsEntropy) {
    SmallTraining run(cpu(), {});
    const double first = run.step().loss;
    EXPECT_NEAR(first, std::log(67.0), 0.1) << "nothing is known at first";
    const double mean = run.loss_after(200);
    EXPECT_LT(mean, run.entropy() + 0.35);
    EXPECT_GT(mean, run.entropy() - 0.1) << "no model can";
}

/// By the formula, from the gradients that each step leaves (Loshchilov and Hutter, 2019, algorithm 2).
TEST(Train, EveryStepIsAdamWs) {
    constexpr double lr = 1e-2, decay = 0.1, clip_norm = 0.5;
    SmallTraining run(cpu(), {.precision = Precision::fp64,
                              .train = {.lr = lr, .weight_decay = decay, .clip_norm = clip_norm, .loss_scale = 8}});
    const std::string name = "h.0.mlp.c_fc.weight";
    const auto now = [&] {
        const std::span<const double> numbers = run.numbers(name);
        return std::vector<double>(numbers.begin(), numbers.end());
    };
    std::vector<double> weight = now(), m(weight.size()), v(weight.size());
    ASSERT_FALSE(weight.empty());
    for (int t = 1; t <= 4; ++t) {
        const double norm = run.step().norm;
        ASSERT_GT(norm, clip_norm) << "so that there is something to clip";
        const std::span<const double> gradient = run.numbers(name + ".grad");
        const std::vector<double> found = now();
        for (std::size_t i = 0; i < weight.size(); ++i) {
            const double g = gradient[i] / 8 * clip_norm / (norm + 1e-6);
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            const double mean = m[i] / (1 - std::pow(0.9, t)), square = v[i] / (1 - std::pow(0.999, t));
            weight[i] -= lr * (mean / (std::sqrt(square) + 1e-8) + decay * weight[i]);
            ASSERT_NEAR(found[i], weight[i], 1e-12) << "step " << t << ", element " << i;
        }
    }
}

TEST(Train, WithALearningRateOfNothingNothingIsLearnt) {
    SmallTraining run(cpu(), {.train = {.lr = 0}});
    const std::vector<std::byte> before = run.weights();
    for (int step = 0; step < 3; ++step) run.step();
    EXPECT_EQ(run.weights(), before);
}

TEST(Train, CopiesOfTheWeightsBeginAsTheWeights) {
    const TrainingSetting of_fp64{.precision = Precision::fp64, .master = true};
    SmallTraining with(cpu(), of_fp64), without(cpu(), {.precision = Precision::fp64});
    const auto copy = with.numbers("h.0.mlp.c_fc.weight.master"), weight = with.numbers("h.0.mlp.c_fc.weight");
    EXPECT_TRUE(std::ranges::equal(copy, weight));
    EXPECT_TRUE(std::ranges::any_of(copy, [](double number) { return number != 0; }));
    for (int step = 0; step < 3; ++step) EXPECT_EQ(with.step().loss, without.step().loss) << "copies of the same type";
}

TEST(Train, GoesOnFromItsFileWithTheSameLoss) {
    TemporaryDirectory directory;
    SmallTraining run(cpu(), {});
    for (int step = 0; step < 5; ++step) run.step();
    run.trainer().save(directory / "w.safetensors");
    SmallTraining next(cpu(), {}, directory / "w.safetensors");
    for (int step = 0; step < 5; ++step) next.leave_out_a_batch();
    EXPECT_EQ(next.step().loss, run.step().loss) << "bit by bit";
}

TEST(Train, GoingOnEqualsNeverHavingStopped) {
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16}) {
        if (!unsupported(cpu(), precision).empty()) continue;
        TemporaryDirectory directory;
        TrainingSetting setting{.precision = precision,
                                .master = precision == Precision::bf16,
                                .train = {.warmup = 5, .lr = 3e-3, .loss_scale = 64, .dynamic_scale = true}};
        setting.train.growth_interval = 4;  // which the second part sees the end of
        SmallTraining whole(cpu(), setting);
        std::vector<double> losses;
        for (int step = 0; step < 6; ++step) {
            if (step == 3) whole.trainer().save(directory / "three.safetensors");
            losses.push_back(whole.step().loss);
        }
        SmallTraining rest(cpu(), setting, directory / "three.safetensors");
        ASSERT_TRUE(rest.goes_on());
        EXPECT_EQ(rest.trainer().progress().steps, 3);
        EXPECT_EQ(rest.trainer().progress().examples, 3 * rest.trainer().examples());
        for (int step = 0; step < 3; ++step) rest.leave_out_a_batch();
        for (std::size_t step = 3; step < 6; ++step) EXPECT_EQ(rest.step().loss, losses[step]) << name(precision);
        EXPECT_EQ(rest.weights(), whole.weights()) << name(precision);
        EXPECT_EQ(rest.trainer().progress().loss_scale, 128);
        EXPECT_EQ(whole.trainer().progress().loss_scale, 128);
    }
}

TEST(Train, AFileOfWeightsAloneStartsTheOptimizerAnew) {
    TemporaryDirectory directory;
    const std::filesystem::path file = directory / "w.safetensors";
    const float number = 0.01f;
    const Model model = make_gpt2(
        {.name = "tiny", .n_embd = 32, .n_layer = 1, .n_head = 2, .n_ctx = 32, .vocab_size = SmallTraining::vocab}, 8,
        32, AttentionKind::fused);
    std::vector<SafetensorsTensor> tensors;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights)
            tensors.push_back(
                {tensor.name, DataType::fp32, tensor.shape, [&number, count = tensor.elements()](const FileSink& sink) {
                     for (std::int64_t i = 0; i < count; ++i) sink(std::as_bytes(std::span(&number, 1)));
                 }});
    write_safetensors(file, tensors);
    SmallTraining run(cpu(), {}, file);
    EXPECT_FALSE(run.goes_on());
    EXPECT_EQ(run.trainer().progress().updates, 0);
    run.step();
    EXPECT_EQ(run.trainer().progress().updates, 1);
}

/// The numbers of its progress are the file's last five.
TEST(Train, AFileWithNumbersThatNoTrainingLeavesIsRefused) {
    TemporaryDirectory directory;
    const std::filesystem::path file = directory / "w.safetensors";
    SmallTraining run(cpu(), {});
    run.step();
    run.trainer().save(file);
    EXPECT_TRUE(SmallTraining(cpu(), {}, file).goes_on());
    const auto with = [&](int number, double value) {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(-8 * (5 - number), std::ios::end);
        stream.write(reinterpret_cast<const char*>(&value), sizeof value);
        stream.close();
        try {
            SmallTraining(cpu(), {}, file);
        } catch (const UsageError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_THAT(with(3, 0), HasSubstr("training.loss_scale is 0, which no training leaves"));
    EXPECT_THAT(with(2, 1e300), HasSubstr("training.tokens is 1e+300"));
    EXPECT_THAT(with(0, -1), HasSubstr("training.steps is -1"));
    EXPECT_THAT(with(0, 1.5), HasSubstr("training.steps is 1.5"));
    EXPECT_THAT(with(0, std::nan("")), HasSubstr("training.steps: number 0 is nan"));
}

TEST(Train, WeightsThatAreNotFiniteAreNotSavedAndAnEarlierFileStays) {
    TemporaryDirectory directory;
    const std::filesystem::path file = directory / "w.safetensors";
    SmallTraining(cpu(), {}).trainer().save(file);
    const std::string before = read_text(file);
    SmallTraining run(cpu(), {.train = {.lr = 1e39}});
    run.step();
    EXPECT_THAT(error_line<MeasurementError>([&] { run.trainer().save(file); }), HasSubstr("wte.weight: number 0 is "));
    EXPECT_EQ(read_text(file), before);
}

/// The last number of a tensor in a file is another one.
TEST(Train, AStateThatNoTrainingLeavesIsRefused) {
    TemporaryDirectory directory;
    const std::filesystem::path file = directory / "w.safetensors";
    SmallTraining run(cpu(), {});
    run.step();
    run.trainer().save(file);
    const std::string good = read_text(file);
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, good.data(), sizeof header_bytes);
    const auto header = nlohmann::json::parse(good.substr(8, header_bytes));
    const auto with = [&](const std::string& tensor, float value) {
        const std::size_t end = 8 + header_bytes + header[tensor]["data_offsets"][1].get<std::size_t>();
        std::string bad = good;
        std::memcpy(bad.data() + end - sizeof value, &value, sizeof value);
        std::ofstream(file, std::ios::binary) << bad;
        return error_line<UsageError>([&] { SmallTraining(cpu(), {}, file); });
    };
    EXPECT_THAT(with("ln_f.bias", NAN), HasSubstr("w.safetensors: ln_f.bias: number 31 is nan in fp32"));
    EXPECT_THAT(with("ln_f.bias", INFINITY), HasSubstr("ln_f.bias: number 31 is inf in fp32; it should be finite"));
    EXPECT_THAT(with("ln_f.bias.m", NAN), HasSubstr("ln_f.bias.m: number 31 is nan"));
    EXPECT_THAT(with("ln_f.bias.v", INFINITY), HasSubstr("ln_f.bias.v: number 31 is inf"));
    EXPECT_THAT(with("ln_f.bias.v", -1e-9f), HasSubstr("ln_f.bias.v: number 31 is -"));
    std::ofstream(file, std::ios::binary) << good;
    EXPECT_TRUE(SmallTraining(cpu(), {}, file).goes_on());
}

TEST(Train, TheRateRisesOverTheWarmUp) {
    // AdamW's first step moves a weight by the rate, whatever its gradient, unless that is as small as epsilon.
    const auto moved = [](std::int64_t warmup) {
        SmallTraining run(cpu(),
                          {.precision = Precision::fp64, .train = {.warmup = warmup, .lr = 1e-3, .weight_decay = 0}});
        const auto weight = [&] { return run.numbers("h.0.mlp.c_fc.weight")[7]; };
        std::vector<double> by;
        for (int step = 0; step < 3; ++step) {
            const double before = weight();
            run.step();
            by.push_back(std::abs(weight() - before));
        }
        return by;
    };
    const std::vector<double> at_once = moved(0), two = moved(2), ten = moved(10);
    EXPECT_NEAR(at_once[0], 1e-3, 1e-5);
    EXPECT_NEAR(two[0], 0.5 * at_once[0], 1e-12);
    EXPECT_NEAR(ten[0], 0.1 * at_once[0], 1e-12);
    EXPECT_EQ(moved(1), at_once);
}

TEST(Train, SavesTheMasterWeightsWhereThereAreSuch) {
    if (const std::string why = unsupported(cpu(), Precision::bf16); !why.empty()) GTEST_SKIP() << why;
    TemporaryDirectory directory;
    const TrainingSetting setting{.precision = Precision::bf16, .master = true};
    SmallTraining run(cpu(), setting);
    for (int step = 0; step < 5; ++step) run.step();
    run.trainer().save(directory / "w.safetensors");
    SmallTraining next(cpu(), setting, directory / "w.safetensors");
    EXPECT_EQ(next.weights(), run.weights());
    SmallTraining without(cpu(), {.precision = Precision::bf16});
    without.trainer().save(directory / "narrow.safetensors");
    EXPECT_LT(std::filesystem::file_size(directory / "narrow.safetensors"),
              std::filesystem::file_size(directory / "w.safetensors"));
}

TEST(Train, AStepWhoseGradientsAreNotFiniteIsSkippedAndTheLossScaleHalved) {
    // In fp32, which every CPU has: there the norm is infinite where its square is beyond 3.4e38.
    constexpr double scale = 1e24;
    SmallTraining run(cpu(), {.train = {.lr = 1e-3, .loss_scale = scale, .dynamic_scale = true, .growth_interval = 3}});
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
    SmallTraining run(cpu(), {.train = {.loss_scale = 1e24}});
    EXPECT_THAT(error_line<MeasurementError>([&] { run.step(); }),
                HasSubstr("a gradient is not finite after 0 updates, at loss scale 1e+24"));
}

TEST(Train, ALossThatIsNotFiniteEndsIt) {
    SmallTraining run(cpu(), {.train = {.lr = 1e30}});
    EXPECT_THAT(error_line<MeasurementError>([&] {
                    for (int step = 0; step < 5; ++step) run.step();
                }),
                HasSubstr("a smaller --lr may help"));
}

TEST(Train, TheLossScaleChangesNeitherNormNorUpdate) {
    SmallTraining plain(cpu(), {.precision = Precision::fp64}),
        scaled(cpu(), {.precision = Precision::fp64, .train = {.lr = 3e-3, .loss_scale = 4}});
    for (int step = 0; step < 3; ++step) {
        const TrainedStep one = plain.step(), other = scaled.step();
        EXPECT_NEAR(one.loss, other.loss, 1e-12);
        EXPECT_NEAR(one.norm, other.norm, 1e-12);
    }
}

TEST(Train, AStepOfSeveralBatchesIsThatOfTheirSequencesAtOnce) {
    for (const auto& [precision, allowed] : {std::pair{Precision::fp64, 1e-12}, {Precision::fp32, 1e-4}}) {
        SmallTraining whole(cpu(), {.precision = precision, .layers = 2, .batch = 4}),
            parts(cpu(), {.precision = precision, .train = {.lr = 3e-3, .micro_batches = 2}, .layers = 2, .batch = 2});
        ASSERT_EQ(whole.trainer().examples(), parts.trainer().examples());
        for (int step = 0; step < 3; ++step) {
            const TrainedStep one = whole.step(), other = parts.step();
            EXPECT_NEAR(one.loss, other.loss, allowed);
            EXPECT_NEAR(one.norm, other.norm, allowed);
            if (precision != Precision::fp64) continue;
            for (const char* weight : {"wte.weight", "wpe.weight", "h.1.ln_1.weight", "h.0.attn.c_attn.bias",
                                       "h.0.mlp.c_fc.weight", "ln_f.bias"}) {
                const std::span<const double> a = whole.numbers(std::string(weight) + ".grad"),
                                              b = parts.numbers(std::string(weight) + ".grad");
                ASSERT_EQ(a.size(), b.size());
                ASSERT_FALSE(a.empty());
                for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], allowed) << weight << " " << i;
            }
        }
    }
}

TEST(Train, WhatAStepOfSeveralBatchesLeftIsNotInTheNext) {
    // Infinite gradients, which no addition would ever make finite again.
    SmallTraining run(
        cpu(),
        {.train = {.lr = 1e-3, .loss_scale = 1e24, .dynamic_scale = true, .growth_interval = 1000, .micro_batches = 2},
         .batch = 4});
    TrainedStep step;
    for (int i = 0; (step = run.step()).skipped; ++i) ASSERT_LT(i, 40);
    for (int i = 0; i < 3; ++i) {
        step = run.step();
        EXPECT_FALSE(step.skipped);
        EXPECT_LT(step.norm, 10);
    }
}

TEST(Train, GradientsLongerThanTheNormAskedForAreCutDown) {
    // A first step of AdamW moves each weight by lr whatever its gradient, unless that is as small as epsilon.
    const auto moved = [](double clip_norm) {
        SmallTraining run(cpu(), {.precision = Precision::fp64, .train = {.lr = 1e-3, .clip_norm = clip_norm}});
        run.step();
        return run.step().loss;
    };
    EXPECT_EQ(moved(0), moved(1e6));
    EXPECT_GT(moved(1e-9), moved(0) + 0.001) << "hardly moved";
}

}  // namespace
}  // namespace kbench
