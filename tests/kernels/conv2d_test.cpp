// Convolutions on the device against the reference, in every precision, and planted errors against its bound.
#include "kernels/convolution/conv2d.h"

#include <cmath>
#include <string>

#include "kernels/check.h"
#include "tests/kernels/device_matrix.h"

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

TEST_P(Conv2dOnDevice, AgreesOnAnyAlignment) {
    KBENCH_NEEDS_DEVICE();
    check({2, 3, 13, 41, 9, 5, 3, 2, 1, 2, 1, true}, GetParam(), 20000, 1);
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

INSTANTIATE_TEST_SUITE_P(Precisions, Conv2dOnDevice, ::testing::ValuesIn(all_precisions),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace kbench::test
