// The causal mask and softmax against the reference.
#include <cmath>
#include <limits>
#include <tuple>

#include "kbench/error.h"
#include "kernels/softmax.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Types {
    DataType scores, probabilities;
};

class SoftmaxOnDevice : public ::testing::TestWithParam<Types> {
  protected:
    static Softmax op(const HostMatrix& scores) {
        return {scores.rows, scores.columns, GetParam().scores != GetParam().probabilities};
    }

    static HostMatrix run(const HostMatrix& scores, bool in_place = false) {
        const DeviceMatrix device_scores(scores);
        const auto own = DeviceMatrix::poisoned(GetParam().probabilities, scores.rows, scores.columns);
        const DeviceMatrix& out = in_place ? device_scores : own;
        cuda::softmax_forward(scores.type, GetParam().probabilities, op(scores), device_scores.data(), out.data(),
                              nullptr);
        return out.download();
    }

    static void check(const HostMatrix& scores, bool in_place = false) {
        SCOPED_TRACE(testing::Message() << "rows " << scores.rows << " width " << scores.columns);
        const auto elements = elements_of(scores.rows, scores.columns, 4000);
        expect_agrees(run(scores, in_place), elements, reference::softmax(op(scores), scores.view(), elements),
                      precision_of(scores.type));
    }
};

TEST_P(SoftmaxOnDevice, RowsOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 17, 64, 100, 1024, 1283, 5120})
            check(HostMatrix::normal(GetParam().scores, rows, width, 1, 3));
    for (const std::int64_t width : {16383, 16384, 16385, 50257})
        check(HostMatrix::normal(GetParam().scores, 3, width, 1, 3));
}

TEST_P(SoftmaxOnDevice, InPlaceWhereTheSizesAreEqual) {
    KBENCH_NEEDS_DEVICE();
    if (GetParam().scores != GetParam().probabilities) GTEST_SKIP() << "probabilities are narrower than scores";
    for (const std::int64_t width : {1024, 1283, 20000})
        check(HostMatrix::normal(GetParam().scores, 17, width, 1), true);
}

TEST_P(SoftmaxOnDevice, MaskedEntriesBecomeZero) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t width : {100, 1024, 17000}) {
        auto scores = HostMatrix::normal(GetParam().scores, 5, width, 1);
        for (std::int64_t row = 0; row < 5; ++row)
            for (std::int64_t column = row * 7 + 1; column < width; ++column) scores.set(row, column, -infinity);
        const HostMatrix probabilities = run(scores);
        EXPECT_EQ(probabilities(0, 0), 1);
        for (std::int64_t row = 0; row < 5; ++row)
            for (std::int64_t column = row * 7 + 1; column < width; ++column)
                ASSERT_EQ(probabilities(row, column), 0) << row << ", " << column;
        check(scores);
    }
}

TEST_P(SoftmaxOnDevice, HugeScoresDoNotOverflow) {
    KBENCH_NEEDS_DEVICE();
    const double huge = GetParam().scores == DataType::fp16 ? 60000 : 1e30;
    for (const std::int64_t width : {1024, 17000}) {
        HostMatrix scores(GetParam().scores, 2, width);
        for (std::int64_t column = 0; column < width; ++column) {
            scores.set(0, column, column == 5 ? huge : -huge);
            scores.set(1, column, -huge);
        }
        const HostMatrix probabilities = run(scores);
        EXPECT_EQ(probabilities(0, 5), 1);
        EXPECT_EQ(probabilities(0, 6), 0);
        EXPECT_NEAR(probabilities(1, width - 1) * static_cast<double>(width), 1, 0.01);
    }
}

TEST_P(SoftmaxOnDevice, WhollyMaskedRowsAreZeroAndNansStay) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t width : {64, 1024, 17000}) {
        auto scores = HostMatrix::normal(GetParam().scores, 2, width, 1);
        for (std::int64_t column = 0; column < width; ++column) scores.set(0, column, -infinity);
        scores.set(1, 3, std::numeric_limits<double>::quiet_NaN());
        const HostMatrix probabilities = run(scores);
        EXPECT_EQ(probabilities(0, 0), 0);
        EXPECT_EQ(probabilities(0, width - 1), 0);
        EXPECT_TRUE(std::isnan(probabilities(1, 0)));
        EXPECT_TRUE(std::isnan(probabilities(1, 3)));
    }
}

INSTANTIATE_TEST_SUITE_P(Types, SoftmaxOnDevice,
                         ::testing::Values(Types{DataType::fp16, DataType::fp16}, Types{DataType::bf16, DataType::bf16},
                                           Types{DataType::fp32, DataType::fp32}, Types{DataType::fp64, DataType::fp64},
                                           Types{DataType::fp32, DataType::fp16},
                                           Types{DataType::fp32, DataType::bf16}),
                         [](const auto& parameter) {
                             return std::string(name(parameter.param.scores)) + "_to_" +
                                    std::string(name(parameter.param.probabilities));
                         });

TEST(Softmax, RefusesToWidenOrMixTypes) {
    const Softmax op{1, 8, true};
    EXPECT_THROW(cuda::softmax_forward(DataType::fp16, DataType::fp32, op, nullptr, nullptr, nullptr), UsageError);
    EXPECT_THROW(cuda::softmax_forward(DataType::fp64, DataType::fp16, op, nullptr, nullptr, nullptr), UsageError);
}

class ScaleMaskOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(ScaleMaskOnDevice, ScalesWhatIsVisibleAndNeverReadsTheRest) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr double scale = 0.125;
    for (const std::int64_t seq : {1, 17, 64, 100, 1024, 1283}) {
        SCOPED_TRACE(testing::Message() << "seq " << seq);
        const std::int64_t heads = 2, rows = heads * seq;
        const ScaleMask op{{1, heads, seq, 64}, scale, false};
        auto scores = HostMatrix::normal(type, rows, seq, 1);
        auto poisoned = scores;  // a masked NaN that is read and scaled stays NaN
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t column = row % seq + 1; column < seq; ++column)
                poisoned.set(row, column, std::numeric_limits<double>::quiet_NaN());
        const DeviceMatrix device_scores(poisoned);
        cuda::scale_mask_forward(type, op, device_scores.data(), nullptr);
        const auto elements = elements_of(rows, seq);
        expect_agrees(device_scores.download(), elements, reference::scale_mask(op, scores.view(), elements),
                      precision_of(type));
    }
}

INSTANTIATE_TEST_SUITE_P(Types, ScaleMaskOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
