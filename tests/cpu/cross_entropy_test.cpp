// Softmax with cross-entropy on CPUs against the reference, and the reference against figures worked out by hand.
#include <gmock/gmock.h>

#include <cmath>

#include "cpu/native/cross_entropy.h"
#include "kbench/error.h"
#include "models/problem.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};
DataType loss_type(DataType type) { return type == DataType::fp64 ? type : DataType::fp32; }

std::vector<std::int32_t> tokens_of(const CrossEntropy& op) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(op.rows));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = static_cast<std::int32_t>((i * 7 + 3) % static_cast<std::size_t>(op.vocab));
    return tokens;
}
reference::View view_of(const std::vector<std::int32_t>& tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    return {tokens.data(), DataType::int32, 1, count, count};
}
Matrix number(DataType type, double value) {
    Matrix matrix(type, 1, 1);
    matrix.fill([=] { return value; });
    return matrix;
}

TEST(CrossEntropyReference, IsTheLogarithmOfTheTargetsProbability) {
    const CrossEntropy op{2, 2, 3};
    Matrix logits(DataType::fp64, 2, 3);
    double next = 0;
    logits.fill([&] { return std::log(++next); });  // row 0: probabilities 1/6, 2/6, 3/6
    const std::vector<std::int32_t> tokens{0, 1};
    const auto losses = reference::cross_entropy_losses(op, logits.view(), view_of(tokens), elements(1, 2));
    EXPECT_NEAR(losses[0].value, std::log(3), 1e-15);
    EXPECT_EQ(losses[1].value, 0);
    const Matrix scale = number(DataType::fp64, 12);
    const auto gradient =
        reference::cross_entropy_gradient(op, logits.view(), view_of(tokens), scale.view(), elements(2, 3));
    const double expected[] = {2, -8, 6, 0, 0, 0};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(gradient[i].value, expected[i], 1e-14) << i;
}

TEST(CrossEntropy, AgreesWithTheReferenceInEveryTypeWhateverThePadding) {
    for (const DataType type : types)
        for (const std::int64_t vocab : {2, 64, 1001})
            for (const std::int64_t padding : {0, 7})
                for (const double deviation : {1.0, 30.0}) {
                    SCOPED_TRACE(testing::Message() << name(type) << " vocab " << vocab << " padding " << padding);
                    const CrossEntropy op{12, 4, vocab};
                    const std::vector<std::int32_t> tokens = tokens_of(op);
                    const std::int64_t stride = vocab + padding;
                    Matrix logits = Matrix::normal(type, op.rows, stride, 1, deviation);
                    const Matrix scale = number(loss_type(type), 1024);
                    reference::View in = logits.view();
                    in.columns = vocab;
                    const auto all = elements(op.rows, vocab), each = elements(1, op.rows);
                    const auto expected_losses = reference::cross_entropy_losses(op, in, view_of(tokens), each);
                    const auto expected = reference::cross_entropy_gradient(op, in, view_of(tokens), scale.view(), all);
                    Matrix losses = Matrix::poisoned(loss_type(type), 1, op.rows), again = losses;
                    cross_entropy(type, op, stride, logits.data(), tokens.data(), losses.data());
                    expect_agrees(losses, each, expected_losses, precision_of(type));
                    cross_entropy_gradient(type, op, stride, logits.data(), tokens.data(), scale.data(), again.data());
                    EXPECT_EQ(again, losses) << "forward and backward have the same losses";
                    expect_agrees(logits, all, expected, precision_of(type));
                    for (std::int64_t r = 0; r < op.rows; ++r)
                        for (std::int64_t c = vocab; c < stride; ++c) ASSERT_EQ(logits(r, c), 0) << r << ", " << c;
                }
}

TEST(CrossEntropy, TheBoundRejectsAForgottenTargetAndAForgottenTerm) {
    const CrossEntropy op{4, 4, 100};
    const std::vector<std::int32_t> tokens = tokens_of(op);
    const Matrix logits = Matrix::normal(DataType::bf16, op.rows, op.vocab, 1), scale = number(DataType::fp32, 1024);
    const auto all = elements(op.rows, op.vocab);
    const auto expected = reference::cross_entropy_gradient(op, logits.view(), view_of(tokens), scale.view(), all);
    const auto agrees = [](double value, const reference::Expected& e) {
        return reference::agrees(value, e, Precision::bf16, DataType::bf16);
    };
    const std::size_t target = static_cast<std::size_t>(tokens[1]);  // row 0's target
    EXPECT_TRUE(agrees(expected[target].value, expected[target]));
    EXPECT_FALSE(agrees(expected[target].value + 1024.0 / 3, expected[target])) << "without the 1 of onehot";
    EXPECT_FALSE(agrees(expected[0].value * 1.02, expected[0])) << "a sum that lacks 2 %";
    EXPECT_FALSE(agrees(expected[0].value * 3 / 4, expected[0])) << "the mean over all rows";
    const auto losses = reference::cross_entropy_losses(op, logits.view(), view_of(tokens), elements(1, op.rows));
    EXPECT_FALSE(reference::agrees(losses[0].value + 1e-3, losses[0], Precision::bf16, DataType::fp32));
}

TEST(CrossEntropy, MaskedLogitsHaveNoShareAndHugeOnesDoNotOverflow) {
    const CrossEntropy op{2, 2, 100};
    Matrix logits(DataType::fp32, 2, 100), losses(DataType::fp32, 1, 2);
    std::int64_t i = 0;
    logits.fill([&] { return i++ % 2 == 0 ? 1e30 : -std::numeric_limits<double>::infinity(); });
    const std::vector<std::int32_t> tokens{1, 0};
    cross_entropy_gradient(DataType::fp32, op, 100, logits.data(), tokens.data(), number(DataType::fp32, 1).data(),
                           losses.data());
    EXPECT_NEAR(losses(0, 0), std::log(50), 1e-6);
    EXPECT_NEAR(logits(0, 2), 0.02, 1e-8);
    EXPECT_EQ(logits(0, 1), 0);
}

TEST(CrossEntropy, ASequenceOfOneRowIsRefusedWithTheReason) {
    try {
        parse_problem("cross_entropy", "r4v10s1");
        FAIL() << "no row has a target";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("must be 2 or more"));
    }
    EXPECT_THROW(parse_problem("cross_entropy", "r5v10s2"), UsageError) << "5 rows are no whole sequences";
}

}  // namespace
}  // namespace kbench::cpu
