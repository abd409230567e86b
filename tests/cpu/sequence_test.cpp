// Batch norm, clipping, masks and the transposition: the reference against its definition, planted errors, and the
// CPU's loops in every stored type, in place too.
#include "cpu/native/sequence.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "models/problem.h"
#include "tests/cpu/matrix.h"
#include "tests/cpu/reference_data.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;
using test::Matrix;
using test::precision_of;

constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};

struct Norm {
    Matrix x, weight, bias, mean, variance;
    Norm(const BatchNorm& op, DataType type)
        : x(Matrix::normal(type, op.rows, op.width, 1, 2, 5)),
          weight(Matrix::normal(type, 1, op.channel_count(), 2)),
          bias(Matrix::normal(type, 1, op.channel_count(), 3)),
          mean(Matrix::normal(type, 1, op.channel_count(), 4, 1, 5)),
          variance(Matrix::normal(type, 1, op.channel_count(), 5, 0.1, 1)) {}
    std::vector<Expected> expected(const BatchNorm& op, std::span<const Element> at) const {
        return reference::batch_norm(op, x.view(), weight.view(), bias.view(), mean.view(), variance.view(), at);
    }
};

const BatchNorm norms[] = {{1, 1}, {7, 100}, {130, 65}, {2 * 3 * 4, 9, 3, 4}, {5 * 2, 33, 5, 1}, {1, 70, 1, 1}};

TEST(BatchNormReference, TakesEachChannelsStatisticsAndFindsOtherOnes) {
    for (const BatchNorm& op : norms) {
        const Norm data(op, DataType::fp32);
        const std::vector<Element> at = test::elements(op.rows, op.width);
        const std::vector<Expected> expected = data.expected(op, at);
        const auto by_hand = [&](Element e, std::int64_t off, double epsilon) {
            const std::int64_t channel =
                ((op.channels > 0 ? e.row / op.height % op.channels : e.column) + off) % op.channel_count();
            return (data.x(e.row, e.column) - data.mean(0, channel)) / std::sqrt(data.variance(0, channel) + epsilon) *
                       data.weight(0, channel) +
                   data.bias(0, channel);
        };
        const auto share = [&](std::int64_t off, double epsilon) {
            return reference::disagreement(
                at, expected, [&](Element e) { return by_hand(e, off, epsilon); }, Precision::fp32, DataType::fp32);
        };
        EXPECT_EQ(share(0, op.epsilon), 0.0) << op.text();
        EXPECT_GT(share(0, 1e-3), 0.8) << op.text() << ": another epsilon";
        if (op.channel_count() > 1) {
            EXPECT_GT(share(1, op.epsilon), 0.9) << op.text() << ": the next channel's";
        }
    }
}

TEST(BatchNormReference, AddsTheResidualOfAStepAndKnowsTheSumItKeeps) {
    const BatchNorm op{7, 33};
    const Norm data(op, DataType::fp32);
    const Matrix residual = Matrix::normal(DataType::fp32, op.rows, op.width, 6);
    Matrix sum(DataType::fp64, op.rows, op.width);
    std::int64_t next = 0;
    sum.fill([&] {
        const std::int64_t row = next / op.width, column = next++ % op.width;
        return data.x(row, column) + residual(row, column);
    });
    const std::vector<Element> at = test::elements(op.rows, op.width);
    const std::vector<Expected> of_sum = reference::batch_norm(op, sum.view(), data.weight.view(), data.bias.view(),
                                                               data.mean.view(), data.variance.view(), at);
    Step step = parse_problem("batchnorm", "r7w33+residual");
    step.kept = {0};
    const std::vector<View> views{
        data.x.view(), residual.view(), data.weight.view(), data.bias.view(), data.mean.view(), data.variance.view(),
        View{},        View{}};
    const std::vector<Expected> made = reference::evaluate(step, 7, views, at),
                                kept = reference::evaluate(step, 6, views, at);
    for (std::size_t i = 0; i < at.size(); ++i) {
        EXPECT_EQ(made[i].value, of_sum[i].value);
        EXPECT_GE(made[i].magnitude, of_sum[i].magnitude);
        EXPECT_EQ(kept[i].value, sum(at[i].row, at[i].column));
    }
}

TEST(NativeSequence, BatchNormAgreesInBothLayoutsAndInPlace) {
    for (const DataType type : types)
        for (const BatchNorm& op : norms) {
            Norm data(op, type);
            const std::vector<Element> at = test::elements(op.rows, op.width);
            const std::vector<Expected> expected = data.expected(op, at);
            cpu::batch_norm(type, op, data.x.data(), data.weight.data(), data.bias.data(), data.mean.data(),
                            data.variance.data(), data.x.data());
            test::expect_agrees(data.x, at, expected, precision_of(type));
        }
}

TEST(NativeSequence, HardtanhClipsAtBothEndsAndKeepsNaN) {
    for (const DataType type : types)
        for (const std::int64_t width : {1, 100, 5000}) {
            const Hardtanh op{3, width};
            Matrix x = Matrix::normal(type, 3, width, 1, 20, 10);
            const std::vector<Element> at = test::elements(3, width);
            const std::vector<Expected> expected = reference::hardtanh(op, x.view(), at);
            for (std::size_t i = 0; i < at.size(); ++i)
                ASSERT_EQ(expected[i].value, std::min(std::max(x(at[i].row, at[i].column), 0.0), 20.0));
            cpu::hardtanh(type, op, x.data(), x.data());
            test::expect_agrees(x, at, expected, precision_of(type));
            Matrix nan = Matrix::poisoned(type, 3, width);
            cpu::hardtanh(type, op, nan.data(), nan.data());
            EXPECT_TRUE(std::isnan(nan(2, width - 1)));
        }
}

TEST(StepsOf, CountsABegunStepAndStaysWithinTheSteps) {
    EXPECT_EQ(steps_of(0, 2, 59), 0);
    EXPECT_EQ(steps_of(1, 2, 59), 1);
    EXPECT_EQ(steps_of(2, 2, 59), 1);
    EXPECT_EQ(steps_of(3, 2, 59), 2);
    EXPECT_EQ(steps_of(117, 2, 59), 59);
    EXPECT_EQ(steps_of(1000, 2, 59), 59);
    EXPECT_EQ(steps_of(-4, 2, 59), 0);
}

TEST(NativeSequence, TimeMaskLeavesExactlyTheStepsOfEachSequence) {
    const std::vector<std::int32_t> lengths{33, 0, 7, 1, 100};
    const View length_view{lengths.data(), DataType::int32, 5, 1, 1};
    for (const DataType type : types)
        for (const std::int64_t frames : {1, 2, 3}) {
            const TimeMask op{5, 3, 33 / frames, frames};
            Matrix x = Matrix::normal(type, 15, op.steps, 1, 1, 4);
            const Matrix before = x;
            const std::vector<Element> at = test::elements(15, op.steps);
            const std::vector<Expected> expected = reference::time_mask(op, x.view(), length_view, at);
            cpu::time_mask(type, op, x.data(), lengths.data(), x.data());
            test::expect_agrees(x, at, expected, precision_of(type));
            for (const auto& [row, column] : at) {
                const bool inside = column * frames < lengths[static_cast<std::size_t>(row / 3)];
                ASSERT_EQ(x(row, column), inside ? before(row, column) : 0.0) << row << ", " << column;
            }
            // A mask that is a step off.
            const auto share = [&](std::int32_t off) {
                std::vector<std::int32_t> wrong = lengths;
                for (std::int32_t& length : wrong) length += off * static_cast<std::int32_t>(frames);
                Matrix out = before;
                cpu::time_mask(type, op, before.data(), wrong.data(), out.data());
                return reference::disagreement(
                    at, expected, [&](Element e) { return out(e.row, e.column); }, precision_of(type), type);
            };
            EXPECT_GT(share(1), 0.01);
            EXPECT_GT(share(-1), 0.01);
        }
}

TEST(NativeSequence, ToSequenceMovesTimeToTheFront) {
    for (const DataType type : types)
        for (const ToSequence& op : {ToSequence{1, 1, 1}, {3, 70, 45}, {2, 33, 64}}) {
            const Matrix x = Matrix::normal(type, op.batch * op.features, op.steps, 1);
            Matrix out = Matrix::poisoned(type, op.steps * op.batch, op.features);
            cpu::to_sequence(type, op, x.data(), out.data());
            const std::vector<Element> at = test::elements(out.rows, out.columns);
            test::expect_agrees(out, at, reference::to_sequence(op, x.view(), at), precision_of(type));
            for (std::int64_t n = 0; n < op.batch; ++n)
                for (std::int64_t f = 0; f < op.features; ++f)
                    for (std::int64_t t = 0; t < op.steps; ++t)
                        ASSERT_EQ(out(t * op.batch + n, f), x(n * op.features + f, t));
        }
}

}  // namespace
}  // namespace kbench
