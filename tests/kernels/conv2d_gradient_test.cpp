// A convolution's gradients on the device against the reference, in every precision, twice the same, and planted errors
// against its bound.
#include "kernels/convolution/conv2d_gradient.h"

#include <cmath>
#include <string>
#include <vector>

#include "kernels/check.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/less_shared_memory.h"

namespace kbench::test {
namespace {

using reference::Element;
using reference::Expected;

class Conv2dGradientsOnDevice : public ::testing::TestWithParam<Precision> {};

DeviceMatrix workspace_of(std::size_t bytes) {
    return DeviceMatrix::poisoned(DataType::fp32, 1, static_cast<std::int64_t>(bytes / sizeof(float)) + 1);
}

/// Gradients that keep sums of so many terms near 1, as in the op's operands.
struct GradientData {
    Conv2d op;
    Precision precision;
    HostMatrix x, weight, dy, small_dy, dw, db;

    GradientData(const Conv2d& of, Precision in)
        : op(of),
          precision(in),
          x(HostMatrix::normal(type(), of.batch * of.in_channels * of.height, of.width, 1)),
          weight(HostMatrix::normal(type(), of.out_channels * of.in_channels * of.kernel_h, of.kernel_w, 2,
                                    1 / std::sqrt(static_cast<double>(of.taps())))),
          dy(HostMatrix::normal(type(), of.batch * of.out_channels * of.out_height(), of.out_width(), 3)),
          small_dy(HostMatrix::normal(type(), dy.rows, dy.columns, 4, 1 / std::sqrt(positions()))),
          dw(HostMatrix::normal(type(), weight.rows, weight.columns, 5)),
          db(HostMatrix::normal(type(), 1, of.out_channels, 6)) {}

    DataType type() const { return storage_type(precision); }
    double positions() const { return static_cast<double>(op.batch * op.out_height() * op.out_width()); }

    HostMatrix dx_of(const HostMatrix& weights, std::int64_t offset = 0) const {
        const DeviceMatrix from(dy, offset), by(weights, offset);
        const auto dx = DeviceMatrix::poisoned(type(), x.rows, x.columns, 0, offset);
        const DeviceMatrix workspace = workspace_of(cuda::conv2d_dgrad_workspace(op, precision));
        cuda::conv2d_dgrad(precision, op, from.data(), by.data(), dx.data(), workspace.data(), nullptr);
        workspace.download();  // its guards
        return dx.download();
    }
    /// dw and, of an op with a bias, db.
    std::vector<HostMatrix> dw_db_of(const HostMatrix& images, std::int64_t offset = 0) const {
        const auto memory = [&](const HostMatrix& before) {
            return op.accumulates ? DeviceMatrix(before, offset)
                                  : DeviceMatrix::poisoned(type(), before.rows, before.columns, 0, offset);
        };
        const DeviceMatrix in(images, offset), from(small_dy, offset), taps = memory(dw), bias = memory(db);
        const DeviceMatrix workspace = workspace_of(cuda::conv2d_wgrad_workspace(op, precision));
        cuda::conv2d_wgrad(precision, op, in.data(), from.data(), taps.data(), op.bias ? bias.data() : nullptr,
                           workspace.data(), nullptr);
        workspace.download();
        std::vector<HostMatrix> made{taps.download()};
        if (op.bias) made.push_back(bias.download());
        return made;
    }
    std::vector<Expected> expected_dx(const std::vector<Element>& at) const {
        return reference::conv2d_dgrad(op, dy.view(), weight.view(), at);
    }
    std::vector<Expected> expected_wgrad(std::size_t output, const std::vector<Element>& at) const {
        std::vector<reference::View> views{x.view(), small_dy.view(), dw.view()};
        if (op.bias) views.push_back(db.view());
        return reference::evaluate(Step::of(op, Direction::wgrad), output, views, at);
    }
};

void check(const Conv2d& op, Precision precision, std::size_t limit = 20000, std::int64_t offset = 0) {
    const GradientData data(op, precision);
    {
        SCOPED_TRACE("dx of " + op.text() + " by " + cuda::conv2d_dgrad_kernel_name(op, precision));
        const HostMatrix dx = data.dx_of(data.weight, offset);
        const std::vector<Element> at = elements_of(data.x.rows, data.x.columns, limit);
        expect_agrees(dx, at, data.expected_dx(at), precision);
        EXPECT_EQ(data.dx_of(data.weight, offset).bytes, dx.bytes) << "not the same twice";
    }
    SCOPED_TRACE("dw of " + op.text() + " by " + cuda::conv2d_wgrad_kernel_name(op, precision));
    const std::vector<HostMatrix> made = data.dw_db_of(data.x, offset), again = data.dw_db_of(data.x, offset);
    for (std::size_t i = 0; i < made.size(); ++i) {
        const std::vector<Element> at = elements_of(made[i].rows, made[i].columns, limit);
        expect_agrees(made[i], at, data.expected_wgrad(2 + i, at), precision);
        EXPECT_EQ(again[i].bytes, made[i].bytes) << "not the same twice";
    }
}

const Conv2d small[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, true},
    {3, 1, 21, 37, 4, 11, 5, 2, 2, 5, 2, true},
    {3, 4, 13, 40, 6, 5, 11, 2, 1, 2, 5},
    {1, 2, 5, 100, 3, 5, 7, 3, 2, 0, 0},
    {1, 7, 9, 33, 33, 9, 11, 1, 1, 4, 5, true},
    {2, 65, 17, 29, 5, 3, 1, 1, 3, 2, 0, true},
    {2, 5, 17, 29, 65, 2, 1, 3, 4, 2, 0, true},  // classes that meet no tap
    {1, 2, 2, 3, 3, 1, 1, 4, 5, 0, 0},           // strides past the image
    {1, 2, 3, 2, 2, 3, 9, 1, 1, 2, 8},           // taps that never meet x
    {70, 3, 1, 1, 70, 1, 1, 1, 1, 0, 0, true},
    {5, 64, 14, 14, 130, 3, 3, 1, 1, 1, 1},
};
/// Many channels: the forward's kernels make dx, and sums of rows make dw. There are even and odd heights, widths of
/// whole vectors and others, more positions than a stage has.
const Conv2d by_forward[] = {
    {3, 32, 15, 60, 32, 21, 11, 2, 1, 10, 5, true},
    {2, 32, 9, 59, 32, 5, 11, 1, 1, 2, 5},
    {2, 32, 15, 31, 32, 21, 11, 2, 1, 10, 5, true},
    {1, 64, 17, 300, 32, 9, 11, 2, 1, 4, 5, true},
};
/// In long rows, whose dx has Winograd's in fp32: of whole tiles of 4 and others, even and odd heights, fewer and more
/// filters than channels, no padding but dx's own, two blocks to a row, one row of blocks and several.
const Conv2d of_long_rows[] = {
    {2, 32, 15, 399, 32, 21, 11, 2, 1, 10, 5, true}, {2, 32, 9, 300, 48, 5, 11, 1, 1, 2, 5},
    {1, 32, 15, 1030, 16, 7, 11, 2, 1, 3, 6, true},  {3, 32, 1, 504, 32, 1, 11, 1, 1, 0, 5},
    {1, 32, 34, 267, 64, 9, 11, 1, 1, 4, 9},
};
/// The same of dw alone: filters in several blocks, rows of the kernel that meet nothing, no padding.
const Conv2d by_rows[] = {
    {2, 32, 6, 70, 64, 23, 11, 1, 1, 11, 5, true},
    {1, 32, 30, 139, 32, 4, 11, 3, 1, 0, 0},
    {150, 64, 3, 20, 96, 2, 11, 1, 1, 1, 9, true},
};
/// One channel at stride 2 along the width, whose gradients have kernels of their own: odd and even heights, widths
/// and paddings, several tiles of positions, one filter more than a block has, rows of the kernel for two blocks,
/// strides past the kernel, padding that is wider than the kernel. The first four have more rows of tiles than dw has
/// blocks, which then walk from row to row, from tile to tile and from image to image.
const Conv2d of_one_channel[] = {
    {6, 1, 47, 301, 32, 41, 11, 2, 2, 20, 5, true},
    {12, 1, 19, 290, 33, 7, 11, 1, 2, 3, 5, true},
    {12, 1, 70, 75, 40, 53, 9, 3, 2, 10, 4, true},
    {50, 1, 23, 18, 70, 3, 1, 5, 2, 0, 0, true},
    {40, 1, 9, 5, 5, 4, 2, 2, 2, 1, 1},
    {1, 1, 5, 700, 8, 5, 10, 2, 2, 2, 12},
    {1, 1, 6, 40, 3, 100, 8, 1, 2, 50, 3, true},
};
/// The same of dx alone: two and three tiles of columns of dy, whose last pair of columns of dx is the last of a tile,
/// or one more; rows of dx that no tap meets, filters in several parts, columns of dx past all taps, blocks of many
/// rows.
const Conv2d of_one_channel_dx[] = {
    {1, 1, 13, 507, 5, 9, 11, 2, 2, 4, 5},    {1, 1, 13, 508, 5, 9, 11, 2, 2, 4, 5},
    {2, 1, 7, 1203, 70, 5, 11, 3, 2, 2, 5},   {1, 1, 30, 1004, 33, 4, 8, 7, 2, 0, 9},
    {1, 1, 3, 16, 2, 128, 11, 1, 2, 64, 700}, {40, 1, 50, 600, 16, 7, 11, 2, 2, 3, 5},
};
const Conv2d large[] = {
    {8, 32, 81, 500, 32, 21, 11, 2, 1, 10, 5, true},
    {8, 1, 161, 1000, 32, 41, 11, 2, 2, 20, 5, true},
};

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceOnAnyShape) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : small) {
        check(op, GetParam());
        check(op.accumulating(), GetParam());
    }
}

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceWhereTheForwardsKernelsMakeDx) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : by_forward) check(op, GetParam(), 4000);
    for (const Conv2d& op : of_long_rows) check(op, GetParam(), 4000);
    for (const Conv2d& op : by_rows) check(op, GetParam(), 4000);
    check(by_rows[0].accumulating(), GetParam(), 4000);
}

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceOnOneChannel) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : of_one_channel) {
        check(op, GetParam(), 4000);
        check(op.accumulating(), GetParam(), 4000);
    }
}

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceOnDxOfOneChannel) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : of_one_channel_dx)
        for (const std::int64_t offset : {0, 1}) check(op, GetParam(), 4000, offset);
}

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceOnLargeShapes) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : large) check(op, GetParam(), 1000);
}

TEST_P(Conv2dGradientsOnDevice, AgreeWithTheReferenceOnAGpuOfLessSharedMemory) {
    KBENCH_NEEDS_DEVICE();
    const LessSharedMemory as_a_4090_has;
    check(of_long_rows[0], GetParam(), 4000);
    for (const Conv2d& op : by_rows) check(op, GetParam(), 4000);
    for (const Conv2d& op : of_one_channel) check(op, GetParam(), 4000);
    check(of_one_channel_dx[4], GetParam(), 4000);  // taps of 128 rows
}

TEST_P(Conv2dGradientsOnDevice, AgreeOnAnyAlignment) {
    KBENCH_NEEDS_DEVICE();
    check({2, 3, 13, 41, 9, 5, 3, 2, 1, 2, 1, true}, GetParam(), 20000, 1);
    check(by_forward[0], GetParam(), 4000, 1);
    check(of_long_rows[3], GetParam(), 4000, 1);
    check(of_one_channel[0], GetParam(), 4000, 1);
    check(of_one_channel[1], GetParam(), 4000, 1);  // rows of an even width behind an odd address
}

TEST(Conv2dGradients, OfManyChannelsAreMadeByTheForwardsKernels) {
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp64})
        EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(large[0], precision).substr(0, 20), "conv2d_channels_last");
    EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(large[0], Precision::fp32).substr(0, 21), "conv2d_winograd<4, 4>");
    for (const Conv2d& op : of_long_rows)
        EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(op, Precision::fp32).substr(0, 21), "conv2d_winograd<4, 4>")
            << op.text();
    // Short rows would leave most of a block's 128 tiles empty, few filters would not pay for the transforms, and
    // elements that meet less than half of the taps would have their neighbours' rounding.
    for (const Conv2d& op : {by_forward[0],
                             {1, 32, 9, 256, 32, 5, 11, 1, 1, 2, 5},
                             {1, 32, 9, 257, 8, 5, 11, 1, 1, 2, 5},
                             {1, 32, 9, 257, 32, 5, 11, 1, 1, 2, 3}})
        EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(op, Precision::fp32).find("winograd"), std::string::npos) << op.text();
    EXPECT_NE(cuda::conv2d_dgrad_kernel_name({1, 32, 9, 257, 32, 5, 11, 1, 1, 2, 5}, Precision::fp32).find("winograd"),
              std::string::npos);
    EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(small[3], Precision::fp16), "conv2d_dgrad_general<32>");
    for (const Precision precision : all_precisions)
        for (const Conv2d& op : {large[0], by_forward[0], by_rows[0], by_rows[1], by_rows[2]})
            EXPECT_EQ(cuda::conv2d_wgrad_kernel_name(op, precision).substr(0, 17), "conv2d_wgrad_rows") << op.text();
}

/// 21 products instead of 44, on tiles of rows that have 128 for 125, of which the last three meet padding.
TEST(Conv2dGradients, SayWhatTheirAlgorithmSpares) {
    const double all = large[0].work(Direction::dgrad).flops;
    EXPECT_NEAR(cuda::conv2d_dgrad_spared_flops(large[0], Precision::fp32) / all, 1 - 21.0 / 44 * 128 / 125, 0.02);
    EXPECT_EQ(cuda::conv2d_dgrad_spared_flops(large[0], Precision::fp16), 0);
    EXPECT_EQ(cuda::conv2d_dgrad_spared_flops(large[1], Precision::fp32), 0);
}

TEST(Conv2dGradients, OfOneChannelAtStrideTwoHaveAKernelForTheWeights) {
    const auto kernel = [](const Conv2d& op, Precision precision) {
        const std::string name = cuda::conv2d_wgrad_kernel_name(op, precision);
        return name.substr(0, name.find_first_of("< "));
    };
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp32}) {
        EXPECT_EQ(kernel(large[1], precision), "conv2d_wgrad_single_channel");
        for (const Conv2d& op : of_one_channel)
            EXPECT_EQ(kernel(op, precision), "conv2d_wgrad_single_channel") << op.text();
        EXPECT_EQ(kernel({1, 1, 20, 50, 32, 5, 12, 2, 2}, precision), "conv2d_wgrad_general") << "12 taps wide";
        EXPECT_EQ(kernel({1, 1, 20, 50, 32, 5, 11, 2, 1}, precision), "conv2d_wgrad_general") << "stride 1";
        EXPECT_EQ(kernel({1, 2, 20, 50, 32, 5, 11, 2, 2}, precision), "conv2d_wgrad_general") << "two channels";
    }
    EXPECT_EQ(kernel(large[1], Precision::fp64), "conv2d_wgrad_general");
    // As many parts as blocks for two of each SM, whatever the batch, so that one image keeps the device busy, too.
    for (const std::int64_t batch : {1, 8, 32}) {
        Conv2d op = large[1];
        op.batch = batch;
        EXPECT_EQ(cuda::conv2d_wgrad_kernel_name(op, Precision::fp32), "conv2d_wgrad_single_channel in 264 parts");
    }
}

TEST(Conv2dGradients, OfOneChannelAtStrideTwoHaveAKernelForDx) {
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp32}) {
        const auto kernel = [&](const Conv2d& op) { return cuda::conv2d_dgrad_kernel_name(op, precision); };
        EXPECT_EQ(kernel(large[1]), "conv2d_dgrad_single_channel");
        for (const Conv2d& op : of_one_channel) EXPECT_EQ(kernel(op), "conv2d_dgrad_single_channel") << op.text();
        for (const Conv2d& op : of_one_channel_dx) EXPECT_EQ(kernel(op), "conv2d_dgrad_single_channel") << op.text();
        EXPECT_EQ(kernel({1, 1, 20, 50, 32, 5, 12, 2, 2}), "conv2d_dgrad_general<32>") << "12 taps wide";
        EXPECT_EQ(kernel({1, 1, 20, 50, 32, 5, 11, 2, 3}), "conv2d_dgrad_general<32>") << "stride 3";
        EXPECT_EQ(kernel({1, 1, 20, 50, 32, 5, 11, 2, 1}).find("single_channel"), std::string::npos) << "stride 1";
        EXPECT_EQ(kernel({1, 2, 20, 50, 32, 5, 11, 2, 2}), "conv2d_dgrad_general<32>") << "two channels";
        EXPECT_EQ(kernel({1, 1, 200, 50, 32, 129, 11, 2, 2}), "conv2d_dgrad_general<32>") << "129 rows of taps";
    }
    EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(large[1], Precision::fp64), "conv2d_dgrad_general<32>");
}

TEST(Conv2dGradients, RefuseWhatTheyCannotCount) {
    EXPECT_EQ(cuda::conv2d_gradient_refusal(large[0]), "");
    EXPECT_NE(cuda::conv2d_gradient_refusal({1 << 20, 1, 64, 64, 1, 1, 1}), "");
}

TEST_P(Conv2dGradientsOnDevice, PlantedErrorsAreFound) {
    KBENCH_NEEDS_DEVICE();
    const GradientData data({2, 3, 12, 20, 4, 5, 7, 2, 1, 2, 3, true}, GetParam());
    const auto share = [&](const HostMatrix& made, const std::vector<Element>& at,
                           const std::vector<Expected>& expected) {
        std::size_t found = 0;
        for (std::size_t i = 0; i < at.size(); ++i)
            found += !reference::agrees(made(at[i].row, at[i].column), expected[i], GetParam(), data.type());
        return static_cast<double>(found) / static_cast<double>(at.size());
    };
    const std::vector<Element> of_x = elements_of(data.x.rows, data.x.columns);
    const std::vector<Element> taps = elements_of(data.dw.rows, data.dw.columns);
    HostMatrix without_last_tap = data.weight, moved = data.x;
    for (std::int64_t row = 0; row < data.weight.rows; ++row) without_last_tap.set(row, data.op.kernel_w - 1, 0);
    for (std::int64_t row = 0; row < data.x.rows; ++row)
        for (std::int64_t column = 0; column < data.op.width; ++column)
            moved.set(row, column, column > 0 ? data.x(row, column - 1) : 0.0);
    const std::vector<Expected> dx = data.expected_dx(of_x), dw = data.expected_wgrad(2, taps);
    EXPECT_EQ(share(data.dx_of(data.weight), of_x, dx), 0.0);
    EXPECT_GT(share(data.dx_of(without_last_tap), of_x, dx), 0.7);
    EXPECT_EQ(share(data.dw_db_of(data.x)[0], taps, dw), 0.0);
    EXPECT_GT(share(data.dw_db_of(moved)[0], taps, dw), 0.9);
}

/// 15 images are, and two behind them.
TEST(Conv2dGradients, OfMoreImagesThanAreTransformedAtOnceAgree) {
    KBENCH_NEEDS_DEVICE();
    const Conv2d op{17, 32, 200, 1000, 16, 3, 11, 1, 1, 1, 5};
    EXPECT_EQ(cuda::conv2d_dgrad_kernel_name(op, Precision::fp32).substr(0, 21), "conv2d_winograd<4, 4>");
    EXPECT_LT(cuda::conv2d_dgrad_workspace(op, Precision::fp32), (std::size_t{1} << 30) + (std::size_t{1} << 20));
    const GradientData data(op, Precision::fp32);
    const std::vector<Element> at = elements_of(data.x.rows, data.x.columns, 4000);
    expect_agrees(data.dx_of(data.weight), at, data.expected_dx(at), Precision::fp32);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Conv2dGradientsOnDevice, ::testing::ValuesIn(all_precisions),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace kbench::test
