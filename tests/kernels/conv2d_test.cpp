// Convolutions on the device against the reference, in every precision, and planted errors against its bound.
#include "kernels/convolution/conv2d.h"

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "kernels/check.h"
#include "kernels/convolution/splits.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/less_shared_memory.h"

namespace kbench::test {
namespace {

using reference::Element;
using reference::Expected;

class Conv2dOnDevice : public ::testing::TestWithParam<Precision> {};

struct Data {
    HostMatrix x, weight, bias;
    Data(const Conv2d& op, DataType type)
        : x(HostMatrix::normal(type, op.batch * op.in_channels * op.height, op.width, 1)),
          weight(HostMatrix::normal(type, op.out_channels * op.in_channels * op.kernel_h, op.kernel_w, 2,
                                    1 / std::sqrt(static_cast<double>(op.taps())))),
          bias(HostMatrix::normal(type, 1, op.out_channels, 3)) {}
    std::vector<Expected> expected(const Conv2d& op, const std::vector<Element>& at) const {
        return reference::conv2d(op, x.view(), weight.view(), op.bias ? bias.view() : reference::View{}, at);
    }
};

std::int64_t out_rows(const Conv2d& op) { return op.batch * op.out_channels * op.out_height(); }

/// So many bytes, NaN in any type, between guards.
DeviceMatrix workspace_of(std::size_t bytes) {
    return DeviceMatrix::poisoned(DataType::fp32, 1, static_cast<std::int64_t>(bytes / sizeof(float)) + 1);
}

HostMatrix computed(const Conv2d& op, Precision precision, const Data& data, std::int64_t offset = 0,
                    const cuda::Conv2dEpilogue& behind = {}) {
    const DeviceMatrix x(data.x, offset), weight(data.weight), bias(data.bias);
    const auto out = DeviceMatrix::poisoned(storage_type(precision), out_rows(op), op.out_width(), 0, offset);
    const DeviceMatrix workspace = workspace_of(cuda::conv2d_workspace(op, precision));
    cuda::Conv2dEpilogue epilogue = behind;
    epilogue.bias = op.bias ? bias.data() : nullptr;
    cuda::conv2d_forward(precision, op, {x.data(), weight.data(), out.data(), workspace.data()}, epilogue, nullptr);
    workspace.download();  // its guards
    return out.download();
}

void check(const Conv2d& op, Precision precision, std::size_t limit = 20000, std::int64_t offset = 0) {
    SCOPED_TRACE(op.text() + " by " + cuda::conv2d_kernel_name(op, precision));
    const Data data(op, storage_type(precision));
    const std::vector<Element> at = elements_of(out_rows(op), op.out_width(), limit);
    expect_agrees(computed(op, precision, data, offset), at, data.expected(op, at), precision);
}

TEST_P(Conv2dOnDevice, AgreesWithTheReferenceOnAnyShape) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : {
             Conv2d{1, 1, 1, 1, 1, 1, 1},
             {2, 3, 7, 9, 5, 3, 3, 1, 1, 1, 1, true},
             {3, 1, 21, 37, 4, 11, 5, 2, 2, 5, 2, true},
             {3, 4, 13, 40, 6, 5, 11, 2, 1, 2, 5},
             {1, 2, 5, 100, 3, 5, 7, 3, 2, 0, 0},
             {1, 7, 9, 33, 33, 9, 11, 1, 1, 4, 5, true},
             {2, 5, 17, 29, 65, 3, 1, 1, 3, 2, 0, true},
             {1, 2, 5, 450, 3, 3, 11, 1, 2, 1, 5, true},
             {1, 2, 3, 2, 2, 3, 9, 1, 1, 2, 8},  // taps that never meet x
             {40, 3, 1, 1, 70, 1, 1, 1, 1, 0, 0, true},
             {5, 64, 14, 14, 130, 3, 3, 1, 1, 1, 1},
         })
        check(op, GetParam());
}

/// Many channels: widths of whole vectors and others, one tile and several, rows in pairs and one left over, filters
/// that meet the image on one side alone, and both kernels of Deep Speech 2.
const Conv2d of_many_channels[] = {
    {3, 32, 15, 60, 32, 21, 11, 2, 1, 10, 5, true}, {2, 32, 9, 59, 32, 5, 11, 1, 1, 2, 5},
    {1, 64, 7, 300, 32, 4, 11, 3, 1, 0, 1, true},   {2, 32, 3, 31, 32, 21, 11, 2, 1, 10, 5, true},
    {1, 32, 1, 11, 32, 1, 11, 1, 1, 0, 0},          {2, 16, 6, 257, 32, 3, 11, 2, 1, 3, 5, true},
    {5, 32, 12, 256, 32, 2, 11, 4, 1, 1, 0},        {1, 32, 40, 20, 32, 7, 11, 2, 1, 3, 9, true},
};
const Conv2d of_one_channel[] = {
    {3, 1, 45, 120, 32, 41, 11, 2, 2, 20, 5, true},
    {2, 1, 33, 117, 32, 41, 11, 2, 2, 20, 5, true},
    {1, 1, 5, 600, 32, 3, 11, 2, 2, 1, 5},
    {2, 1, 161, 64, 32, 41, 11, 2, 2, 20, 5, true},
    {1, 1, 1, 1, 32, 9, 11, 2, 2, 7, 5},
    {1, 1, 20, 1101, 32, 10, 11, 2, 2, 0, 5, true},
    {2, 1, 9, 48, 32, 4, 11, 2, 2, 2, 13, true},
};
const Conv2d large[] = {
    {8, 32, 81, 500, 32, 21, 11, 2, 1, 10, 5, true},
    {40, 32, 81, 200, 32, 21, 11, 2, 1, 10, 5, true},
    {1, 1, 161, 1000, 32, 41, 11, 2, 2, 20, 5, true},
    {16, 1, 161, 1000, 32, 41, 11, 2, 2, 20, 5, true},
};

TEST_P(Conv2dOnDevice, AgreesWithTheReferenceOnShapesOfKernelsOfTheirOwn) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : of_many_channels) check(op, GetParam());
    for (const Conv2d& op : of_one_channel) check(op, GetParam());
}

TEST_P(Conv2dOnDevice, AgreesWithTheReferenceOnLargeShapes) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : large) check(op, GetParam(), 3000);
}

TEST(Conv2dKernels, AreTheOnesOfTheShapeAndPrecision) {
    const auto starts = [](const Conv2d& op, Precision precision, const std::string& name) {
        EXPECT_EQ(cuda::conv2d_kernel_name(op, precision).substr(0, name.size()), name) << op.text();
    };
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
        starts(large[0], precision, "conv2d_channels_last");
        starts(large[3], precision, "conv2d_single_channel<4>");
        starts(large[2], precision, "conv2d_single_channel<2>");
    }
    for (const Precision precision : {Precision::tf32, Precision::fp64}) {
        starts(large[0], precision, "conv2d_channels_last");
        starts(large[3], precision, "conv2d_single_channel_ring<4>");
        starts(large[2], precision, "conv2d_single_channel_ring<2>");
    }
    for (const Conv2d& op : large) starts(op, Precision::fp32, "conv2d_direct_fp32");
}

TEST(Conv2dKernels, OfAGpuOfLessSharedMemoryHaveRoomThere) {
    const LessSharedMemory as_a_4090_has;
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32})
        EXPECT_EQ(cuda::conv2d_kernel_name(large[0], precision).find("conv2d_channels_last"), std::string::npos);
    EXPECT_EQ(cuda::conv2d_kernel_name(large[0], Precision::fp64).find("conv2d_channels_last"), 0U);
}

TEST_P(Conv2dOnDevice, AgreesWithTheReferenceOnAGpuOfLessSharedMemory) {
    KBENCH_NEEDS_DEVICE();
    const LessSharedMemory as_a_4090_has;
    for (const Conv2d& op : of_many_channels) check(op, GetParam(), 4000);
    for (const Conv2d& op : of_one_channel) check(op, GetParam(), 4000);
}

/// Rows in the middle have whole blocks alone, the others have every part of a block, and each comes once.
TEST(Conv2dGrids, HaveEachBlockOnce) {
    using cuda::convolution::Grid;
    for (const Grid& grid : {Grid{1, 3, 1, 1}, {6, 2, 6, 1}, {7, 5, 0, 3}, {7, 5, 3, 2}, {8, 1, 3, 4}, {8, 2, 4, 8}}) {
        SCOPED_TRACE(std::to_string(grid.rows) + " rows, " + std::to_string(grid.whole) + " whole");
        std::set<std::array<int, 3>> seen;
        for (int i = 0; i < static_cast<int>(grid.blocks()); ++i) {
            const Grid::Block block = grid.block(i);
            const bool whole = block.row >= grid.whole_begin() && block.row < grid.whole_end();
            EXPECT_EQ(block.parts, whole ? 1 : grid.parts);
            EXPECT_TRUE(block.row >= 0 && block.row < grid.rows && block.of_row >= 0 && block.of_row < grid.of_row);
            EXPECT_TRUE(block.part >= 0 && block.part < block.parts);
            EXPECT_TRUE(seen.insert({block.row, block.of_row, block.part}).second) << i;
        }
    }
}

/// 336 blocks where 264 run at once would take as long as 528: those of the outermost rows are cut. A wave that is
/// nearly full is not.
TEST(Conv2dGrids, AreCutWhereTheLastWaveIsNearlyEmpty) {
    const Conv2d op{8, 32, 81, 500, 32, 21, 11, 2, 1, 10, 5, true};
    const auto grid = [&](double us) {
        return cuda::convolution::best_grid(
            op, {.out_rows = 2, .of_row = 16, .resident = 264, .us = us, .most_parts = 8, .sum_bytes = 4});
    };
    EXPECT_TRUE(grid(150).is_cut());
    EXPECT_GE(grid(150).whole, 14);
    EXPECT_LE(grid(150).whole, 16);
    EXPECT_FALSE(grid(1).is_cut());  // the sum of the parts takes longer
    const auto full = cuda::convolution::best_grid(
        op, {.out_rows = 2, .of_row = 16, .resident = 336, .us = 150, .most_parts = 8, .sum_bytes = 4});
    EXPECT_FALSE(full.is_cut());
}

TEST_P(Conv2dOnDevice, AgreesOnAnyAlignment) {
    KBENCH_NEEDS_DEVICE();
    check({2, 3, 13, 41, 9, 5, 3, 2, 1, 2, 1, true}, GetParam(), 20000, 1);
    check(of_many_channels[0], GetParam(), 20000, 1);
    check(of_one_channel[0], GetParam(), 20000, 1);
}

TEST_P(Conv2dOnDevice, PlantedErrorsAreFound) {
    KBENCH_NEEDS_DEVICE();
    const Conv2d op{2, 3, 12, 20, 4, 5, 7, 2, 1, 2, 3, true};
    const DataType type = storage_type(GetParam());
    const Data data(op, type);
    const std::vector<Element> at = elements_of(out_rows(op), op.out_width());
    const std::vector<Expected> expected = data.expected(op, at);
    const auto share = [&](const Data& wrong) {
        const HostMatrix out = computed(op, GetParam(), wrong);
        std::size_t found = 0;
        for (std::size_t i = 0; i < at.size(); ++i)
            found += !reference::agrees(out(at[i].row, at[i].column), expected[i], GetParam(), type);
        return static_cast<double>(found) / static_cast<double>(at.size());
    };
    EXPECT_EQ(share(data), 0.0);
    Data without_last_tap = data, moved = data, other_bias = data;
    for (std::int64_t row = 0; row < data.weight.rows; ++row) without_last_tap.weight.set(row, op.kernel_w - 1, 0);
    for (std::int64_t row = 0; row < data.x.rows; ++row)
        for (std::int64_t column = 0; column < op.width; ++column)
            moved.x.set(row, column, column > 0 ? data.x(row, column - 1) : 0.0);
    for (std::int64_t k = 0; k < op.out_channels; ++k) other_bias.bias.set(0, k, data.bias(0, k) + 0.1);
    EXPECT_GT(share(without_last_tap), 0.7);
    EXPECT_GT(share(moved), 0.9);
    EXPECT_GT(share(other_bias), 0.7);
}

/// A convolution with what follows it where images are spectrograms of utterances.
struct Chain {
    Conv2d op;
    std::int64_t rows = out_rows(op);
    TimeMask mask{op.batch, op.out_channels* op.out_height(), op.out_width(), 2};
    BatchNorm norm{rows, op.out_width(), op.out_channels, op.out_height()};
    Hardtanh clip{rows, op.out_width(), 0.1, 1};

    HostMatrix of_channels(DataType type, unsigned seed, double deviation, double mean) const {
        return HostMatrix::normal(type, 1, op.out_channels, seed, deviation, mean);
    }
    /// Each mask has its own lengths and the clip leaves no 0, so that one that is left out shows.
    HostMatrix lengths(std::int64_t shift) const {
        HostMatrix matrix(DataType::int32, op.batch, 1);
        for (std::int64_t n = 0; n < op.batch; ++n)
            matrix.set(n, 0, static_cast<double>((shift + 7 * n) * op.out_width() / 10 + shift % 2));
        return matrix;
    }
};

void check_chain(const Conv2d& op, Precision precision, std::size_t limit = 20000) {
    SCOPED_TRACE(op.text() + " by " + cuda::conv2d_kernel_name(op, precision));
    const DataType type = storage_type(precision);
    const Chain chain{op};
    const Data data(op, type);
    const HostMatrix weight = chain.of_channels(type, 4, 0.2, 1), shift = chain.of_channels(type, 5, 0.3, 0.3);
    const HostMatrix mean = chain.of_channels(type, 6, 0.5, 0), variance = chain.of_channels(type, 7, 0.1, 1);
    const HostMatrix lengths[] = {chain.lengths(10), chain.lengths(12), chain.lengths(15)};
    const DeviceMatrix d_weight(weight), d_shift(shift), d_mean(mean), d_variance(variance);
    const DeviceMatrix d_lengths[] = {DeviceMatrix(lengths[0]), DeviceMatrix(lengths[1]), DeviceMatrix(lengths[2])};
    cuda::Conv2dEpilogue epilogue;
    epilogue.chain = true;
    for (int i = 0; i < 3; ++i)
        epilogue.masks[i] = {static_cast<const std::int32_t*>(d_lengths[i].data()), chain.mask.frames_per_step};
    epilogue.weight = d_weight.data();
    epilogue.shift = d_shift.data();
    epilogue.mean = d_mean.data();
    epilogue.variance = d_variance.data();
    epilogue.epsilon = chain.norm.epsilon;
    epilogue.low = chain.clip.low;
    epilogue.high = chain.clip.high;

    const Step step{{op, chain.mask, chain.norm, chain.mask, chain.clip, chain.mask}, 0};
    std::vector<reference::View> views{data.x.view(), data.weight.view()};
    if (op.bias) views.push_back(data.bias.view());
    for (const HostMatrix* operand : {&lengths[0], &weight, &shift, &mean, &variance, &lengths[1], &lengths[2]})
        views.push_back(operand->view());
    const HostMatrix out = computed(op, precision, data, 0, epilogue);
    views.push_back(out.view());
    const std::vector<Element> at = elements_of(chain.rows, op.out_width(), limit);
    const auto expected = [&] { return reference::evaluate(step, views.size() - 1, views, at); };
    expect_agrees(out, at, expected(), precision);

    // Each operand of the chain left out, or another's in its place, shows.
    const HostMatrix none = chain.lengths(0), other = chain.of_channels(type, 8, 0.3, 0.8);
    for (std::size_t operand = op.bias ? 3 : 2; operand + 1 < views.size(); ++operand) {
        const reference::View right = views[operand];
        views[operand] = right.type == DataType::int32 ? none.view() : other.view();
        const std::vector<Expected> wrong = expected();
        std::size_t found = 0;
        for (std::size_t i = 0; i < at.size(); ++i)
            found += !reference::agrees(out(at[i].row, at[i].column), wrong[i], precision, type);
        EXPECT_GT(found, at.size() / 100) << "operand " << operand;
        views[operand] = right;
    }
}

TEST_P(Conv2dOnDevice, MasksNormalisesAndClipsWithoutRoundingInBetween) {
    KBENCH_NEEDS_DEVICE();
    for (const Conv2d& op : {Conv2d{3, 1, 21, 80, 32, 11, 5, 2, 2, 5, 2, true},
                             {3, 5, 17, 29, 40, 3, 1, 1, 1, 2, 0},
                             {3, 32, 15, 60, 32, 21, 11, 2, 1, 10, 5, true},
                             {3, 32, 15, 600, 32, 21, 11, 2, 1, 10, 5, true},
                             {3, 1, 45, 120, 32, 41, 11, 2, 2, 20, 5, true},
                             {3, 1, 45, 1200, 32, 41, 11, 2, 2, 20, 5, true}})
        check_chain(op, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Precisions, Conv2dOnDevice, ::testing::ValuesIn(all_precisions),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace kbench::test
