// Softmax with cross-entropy against the reference.
#include "kernels/cross_entropy.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class CrossEntropyOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    DataType type = GetParam(), wide = type == DataType::fp64 ? type : DataType::fp32;

    struct Made {
        HostMatrix losses, gradient;
    };

    static HostMatrix tokens_of(const CrossEntropy& op) {
        HostMatrix tokens(DataType::int32, 1, op.rows);
        std::mt19937 generator(3);
        // Also the first and the last of the vocabulary: where a row begins and ends between vectors.
        for (std::int64_t row = 0; row < op.rows; ++row)
            tokens.set(0, row,
                       static_cast<double>(row % 4 == 1   ? 0
                                           : row % 4 == 2 ? op.vocab - 1
                                                          : static_cast<std::int64_t>(generator()) % op.vocab));
        return tokens;
    }

    HostMatrix scale_of(double value) const {
        HostMatrix scale(wide, 1, 1);
        scale.set(0, 0, value);
        return scale;
    }

    Made run(const CrossEntropy& op, const HostMatrix& logits, double scale, std::int64_t offset = 0) const {
        const DeviceMatrix device_logits(logits, offset), device_tokens(tokens_of(op)), device_scale(scale_of(scale));
        const auto losses = DeviceMatrix::poisoned(wide, 1, op.rows);
        cuda::cross_entropy_gradient(type, op, logits.stride, device_logits.data(),
                                     static_cast<const std::int32_t*>(device_tokens.data()), device_scale.data(),
                                     losses.data(), nullptr);
        return {losses.download(), device_logits.download()};
    }

    HostMatrix losses_of_forward(const CrossEntropy& op, const HostMatrix& logits, std::int64_t offset = 0) const {
        const DeviceMatrix device_logits(logits, offset), device_tokens(tokens_of(op));
        const auto losses = DeviceMatrix::poisoned(wide, 1, op.rows);
        cuda::cross_entropy_forward(type, op, logits.stride, device_logits.data(),
                                    static_cast<const std::int32_t*>(device_tokens.data()), losses.data(), nullptr);
        return losses.download();
    }

    void check(const CrossEntropy& op, std::int64_t stride, std::int64_t offset = 0, double deviation = 2) const {
        SCOPED_TRACE(testing::Message() << op.text() << " stride " << stride << " offset " << offset);
        const auto logits = HostMatrix::normal(type, op.rows, op.vocab, 1, deviation, 0, stride);
        const HostMatrix tokens = tokens_of(op), scale = scale_of(4096);
        const auto each = elements_of(1, op.rows), some = elements_of(op.rows, op.vocab);
        const auto losses = reference::cross_entropy_losses(op, logits.view(), tokens.view(), each);
        const Made made = run(op, logits, 4096, offset);
        expect_agrees(losses_of_forward(op, logits, offset), each, losses, precision_of(type));
        expect_agrees(made.losses, each, losses, precision_of(type));
        expect_agrees(made.gradient, some,
                      reference::cross_entropy_gradient(op, logits.view(), tokens.view(), scale.view(), some),
                      precision_of(type));
        reference::View whole = made.gradient.view();
        for (std::int64_t row = 0; row < op.rows; ++row)
            for (std::int64_t column = op.vocab; column < stride; ++column)
                ASSERT_EQ(whole(row, column), 0) << row << ", " << column;
        for (std::int64_t row = op.seq - 1; row < op.rows; row += op.seq)
            for (std::int64_t column = 0; column < op.vocab; ++column) ASSERT_EQ(whole(row, column), 0) << row;
    }
};

TEST_P(CrossEntropyOnDevice, RowsOfAnyLengthAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t vocab : {1, 2, 7, 8, 9, 15, 64, 100, 1000, 1283, 8191, 50257, 50304, 130001})
        check({6, 3, vocab}, vocab);
    for (const std::int64_t vocab : {5, 1000, 50257})
        for (const std::int64_t offset : {1, 3, 7}) check({4, 2, vocab}, vocab, offset);
}

TEST_P(CrossEntropyOnDevice, PaddingBecomesZero) {
    KBENCH_NEEDS_DEVICE();
    check({6, 3, 1000}, 1003);
    check({6, 3, 50257}, 50304);
    check({6, 2, 50257}, 50258, 1);
    check({2, 2, 3}, 200);
}

TEST_P(CrossEntropyOnDevice, ManyRowsAndLargeLogits) {
    KBENCH_NEEDS_DEVICE();
    check({1024, 1024, 50257}, 50257);
    check({64, 16, 5000}, 5000, 0, 40);
}

TEST_P(CrossEntropyOnDevice, RowsWithoutATargetAmongTheRowsOfABlock) {
    KBENCH_NEEDS_DEVICE();
    check({560, 7, 50257}, 50304);
    check({301, 7, 50257}, 50257, 1);
    check({300, 2, 50257}, 50257);
    for (const std::int64_t vocab : {100, 1003}) check({20000, 10, vocab}, vocab + 5);
}

TEST_P(CrossEntropyOnDevice, TwoRunsHaveTheSameBits) {
    KBENCH_NEEDS_DEVICE();
    const CrossEntropy op{64, 32, 50257};
    const auto logits = HostMatrix::normal(type, op.rows, op.vocab, 1, 3);
    const Made first = run(op, logits, 1000), second = run(op, logits, 1000);
    EXPECT_EQ(first.losses.bytes, second.losses.bytes);
    EXPECT_EQ(first.gradient.bytes, second.gradient.bytes);
    EXPECT_EQ(first.losses.bytes, losses_of_forward(op, logits).bytes);
}

TEST_P(CrossEntropyOnDevice, MaskedLogitsHaveNoShareAndNansShow) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t vocab : {100, 50257, 130001}) {
        SCOPED_TRACE(vocab);
        const CrossEntropy op{4, 4, vocab};
        auto logits = HostMatrix::normal(type, 4, vocab, 1);
        for (std::int64_t column = 3; column < vocab; ++column)
            if (column % 3 != 0 && column != vocab - 1) logits.set(0, column, -std::numeric_limits<double>::infinity());
        logits.set(2, 5, std::numeric_limits<double>::quiet_NaN());
        const Made made = run(op, logits, 64);
        EXPECT_EQ(made.gradient(0, 4), 0);
        EXPECT_TRUE(std::isfinite(made.losses(0, 0)));
        EXPECT_TRUE(std::isfinite(made.losses(0, 1)));
        EXPECT_TRUE(std::isnan(made.losses(0, 2)));
        EXPECT_TRUE(std::isnan(made.gradient(2, 0)));
    }
}

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
