// Lengths as a loader would give them, and the work that utterances of several lengths need, beside counts by hand.
#include "models/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "models/ops/list.h"
#include "models/registry.h"

namespace kbench {
namespace {

/// Two layers of six units.
ModelSpec small(const std::string& cell) {
    return read_model(R"({"model_type": "deepspeech2", "rnn_type": ")" + cell +
                          R"(", "hidden_size": 6, "hidden_layers": 2, "conv_channels": 3, "labels": 5,
                              "sample_rate": 1600})",
                      "small.json");
}
ModelPoint at(std::int64_t batch, std::int64_t frames) { return {{{"batch", batch}, {"frames", frames}}}; }

/// Pairs of a position and a tap, in one dimension, that meet one of `size` elements.
double pairs(std::int64_t size, std::int64_t positions, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    double count = 0;
    for (std::int64_t p = 0; p < positions; ++p)
        for (std::int64_t tap = 0; tap < kernel; ++tap) {
            const std::int64_t x = p * stride - pad + tap;
            count += x >= 0 && x < size ? 1 : 0;
        }
    return count;
}

class UsefulFlops : public testing::TestWithParam<const char*> {};

TEST_P(UsefulFlops, AreThoseOfStepsWithinUtterancesCountedByHand) {
    const ModelSpec spec = small(GetParam());
    const std::vector<std::int32_t> lengths{21, 8, 13, 0};
    const double steps = 11 + 4 + 7;  // two frames each, begun ones too
    const Model model = spec.build(at(4, 21));
    const std::vector<double> useful = useful_flops(spec, at(4, 21), lengths);
    ASSERT_EQ(useful.size(), model.ops.size());
    for (std::size_t i = 0; i < useful.size(); ++i) {
        const OpNode& node = model.ops[i];
        const double padded = node.op.work(Direction::fwd).flops;
        SCOPED_TRACE(node.layer + " " + std::string(name(node.op)));
        if (const auto* conv = node.op.get_if<Conv2d>()) {
            double products = 0, positions = 0;
            for (const std::int32_t length : {21, 8, 13}) {
                const std::int64_t out = (length + 1) / 2, width = conv->stride_w == 2 ? length : out;
                products += pairs(width, out, 11, conv->stride_w, 5);
                positions += static_cast<double>(out);
            }
            const double high = pairs(conv->height, conv->out_height(), conv->kernel_h, 2, conv->pad_h);
            const auto channels = static_cast<double>(conv->in_channels);
            EXPECT_EQ(useful[i],
                      3 * (2 * channels * high * products + static_cast<double>(conv->out_height()) * positions));
        } else if (const auto* norm = node.op.get_if<BatchNorm>()) {
            const double elements = static_cast<double>(norm->rows * norm->width) / (4 * 11) * steps;
            EXPECT_EQ(useful[i], 3 * elements + 3 * static_cast<double>(norm->channel_count()));
        } else if (const auto* gemm = node.op.get_if<Gemm>()) {
            EXPECT_EQ(useful[i], 2 * steps * static_cast<double>(gemm->n * gemm->k));
        } else {
            EXPECT_EQ(useful[i], padded / (4 * 11) * steps) << "in proportion";
        }
    }
}

TEST_P(UsefulFlops, AreAllWhereAllUtterancesAreAsLong) {
    const ModelSpec spec = small(GetParam());
    for (const std::int64_t batch : {1, 3}) {
        const Model model = spec.build(at(batch, 21));
        const std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch), 21);
        const std::vector<double> useful = useful_flops(spec, at(batch, 21), lengths);
        for (std::size_t i = 0; i < useful.size(); ++i)
            EXPECT_EQ(useful[i], model.ops[i].op.work(Direction::fwd).flops) << model.ops[i].layer;
    }
    for (const double flops : useful_flops(spec, at(2, 21), std::vector<std::int32_t>{0, 0})) EXPECT_EQ(flops, 0);
}

INSTANTIATE_TEST_SUITE_P(Cells, UsefulFlops, testing::Values("lstm", "gru", "rnn"),
                         [](const auto& test) { return std::string(test.param); });

TEST(LibrispeechLike, TheLongestComesFirstAndHasAllFrames) {
    for (const std::int64_t batch : {1, 2, 32}) {
        const std::vector<std::int32_t> lengths = librispeech_like(7, batch, 1000);
        ASSERT_EQ(lengths.size(), static_cast<std::size_t>(batch));
        EXPECT_EQ(lengths.front(), 1000);
        EXPECT_TRUE(std::ranges::is_sorted(lengths, std::greater<>()));
        EXPECT_GE(lengths.back(), 1);
    }
    EXPECT_EQ(librispeech_like(7, 32, 1), std::vector<std::int32_t>(32, 1));
    EXPECT_EQ(librispeech_like(7, 32, 1000), librispeech_like(7, 32, 1000));
    EXPECT_NE(librispeech_like(7, 32, 1000), librispeech_like(8, 32, 1000));
}

/// Before they are scaled.
TEST(LibrispeechLike, MostUtterancesHaveTenToSixteenSecondsAndFewLessThanFive) {
    const std::vector<std::int32_t> lengths = librispeech_like(1, 20000, 100'000);
    // The scale follows from the mean, 12.67 s: 78 % of 14.2 and 22 % of 7.25.
    const double mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / 20000;
    const double second = mean / 12.67;
    const auto share = [&](double from, double to) {
        return static_cast<double>(std::ranges::count_if(
                   lengths, [&](std::int32_t one) { return one >= from * second && one < to * second; })) /
               20000;
    };
    EXPECT_NEAR(share(10, 16), 0.74, 0.03);
    EXPECT_NEAR(share(0, 5), 0.067, 0.01);
    EXPECT_LT(100'000 / second, 24.5);
    EXPECT_GT(100'000 / second, 18);
}

}  // namespace
}  // namespace kbench
