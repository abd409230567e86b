// Bias, GELU and residual addition against the reference.
#include <cmath>
#include <limits>

#include "kernels/elementwise.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class ElementwiseOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(ElementwiseOnDevice, AddsBiasAndAppliesGelu) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 64, 100, 1280, 1283, 5120}) {
            SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width);
            const auto x = HostMatrix::normal(type, rows, width, 1, 3), bias = HostMatrix::normal(type, 1, width, 2);
            const DeviceMatrix device_x(x), device_bias(bias);
            const auto biased = DeviceMatrix::poisoned(type, rows, width);
            const auto activated = DeviceMatrix::poisoned(type, rows, width);
            cuda::bias_add_forward(type, device_x.data(), device_bias.data(), biased.data(), rows, width, nullptr);
            cuda::bias_gelu_forward(type, device_x.data(), device_bias.data(), activated.data(), rows, width, nullptr);
            const auto elements = elements_of(rows, width);
            expect_agrees(biased.download(), elements, reference::bias_gelu(x.view(), bias.view(), false, elements),
                          precision_of(type));
            expect_agrees(activated.download(), elements, reference::bias_gelu(x.view(), bias.view(), true, elements),
                          precision_of(type));
        }
}

TEST_P(ElementwiseOnDevice, WorksInPlaceAndWithoutBias) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 33, width = 320;
    const auto x = HostMatrix::normal(type, rows, width, 1), bias = HostMatrix::normal(type, 1, width, 2);
    const DeviceMatrix device_x(x), device_y(x), device_bias(bias);
    cuda::bias_gelu_forward(type, device_x.data(), nullptr, device_x.data(), rows, width, nullptr);
    cuda::bias_add_forward(type, device_y.data(), device_bias.data(), device_y.data(), rows, width, nullptr);
    const auto elements = elements_of(rows, width);
    expect_agrees(device_x.download(), elements, reference::bias_gelu(x.view(), {}, true, elements),
                  precision_of(type));
    expect_agrees(device_y.download(), elements, reference::bias_gelu(x.view(), bias.view(), false, elements),
                  precision_of(type));
}

TEST_P(ElementwiseOnDevice, MoreRowsThanAGridHasBlocks) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 600001, width = 8;
    const auto x = HostMatrix::normal(type, rows, width, 1), bias = HostMatrix::normal(type, 1, width, 2);
    const DeviceMatrix device_x(x), device_bias(bias);
    const auto out = DeviceMatrix::poisoned(type, rows, width);
    cuda::bias_add_forward(type, device_x.data(), device_bias.data(), out.data(), rows, width, nullptr);
    const auto elements = elements_of(rows, width);
    expect_agrees(out.download(), elements, reference::bias_gelu(x.view(), bias.view(), false, elements),
                  precision_of(type));
}

TEST_P(ElementwiseOnDevice, GeluIsExactFarFromZero) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    const double most = type == DataType::fp16 ? 65504 : 1e30;  // its cube overflows fp32
    HostMatrix x(type, 1, 5);
    const double values[] = {most, -most, 0, 40, -40};
    for (int i = 0; i < 5; ++i) x.set(0, i, values[i]);
    const double kept = x(0, 0);
    const DeviceMatrix device_x(x);
    const auto out = DeviceMatrix::poisoned(type, 1, 5);
    cuda::bias_gelu_forward(type, device_x.data(), nullptr, out.data(), 1, 5, nullptr);
    const HostMatrix y = out.download();
    EXPECT_EQ(y(0, 0), kept);
    EXPECT_EQ(y(0, 1), 0);
    EXPECT_EQ(y(0, 2), 0);
    EXPECT_EQ(y(0, 3), 40);
    EXPECT_EQ(y(0, 4), 0);
}

TEST_P(ElementwiseOnDevice, GelusBackwardHoldsAtAnyCountAndAlignmentAndInPlace) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const double deviation : {1.0, 6.0, 40.0})
        for (const std::int64_t count : {1, 7, 8, 4097, 1000003})
            for (const std::int64_t offset : {0, 1}) {
                SCOPED_TRACE(testing::Message()
                             << "deviation " << deviation << " count " << count << " offset " << offset);
                const auto x = HostMatrix::normal(type, 1, count, 1, deviation);
                const auto dy = HostMatrix::normal(type, 1, count, 2);
                const DeviceMatrix device_x(x, offset), device_dy(dy);
                const auto dx = DeviceMatrix::poisoned(type, 1, count);
                cuda::gelu_backward(type, device_x.data(), device_dy.data(), dx.data(), count, nullptr);
                const auto elements = elements_of(1, count);
                const auto expected = reference::gelu_gradient(x.view(), dy.view(), elements);
                expect_agrees(dx.download(), elements, expected, precision_of(type));
                cuda::gelu_backward(type, device_x.data(), device_dy.data(), device_dy.data(), count, nullptr);
                expect_agrees(device_dy.download(), elements, expected, precision_of(type));
            }
}

TEST_P(ElementwiseOnDevice, GelusSlopeIsExactFarFromZeroAndANumberNowhereElse) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    const double most = type == DataType::fp16 ? 65504 : 1e30;  // its cube overflows fp32
    HostMatrix x(type, 1, 6), dy(type, 1, 6);
    const double values[] = {most, -most, 0, 40, -40, std::numeric_limits<double>::quiet_NaN()};
    for (int i = 0; i < 6; ++i) x.set(0, i, values[i]), dy.set(0, i, 3);
    const DeviceMatrix device_x(x), device_dy(dy);
    const auto dx = DeviceMatrix::poisoned(type, 1, 6);
    cuda::gelu_backward(type, device_x.data(), device_dy.data(), dx.data(), 6, nullptr);
    const HostMatrix made = dx.download();
    EXPECT_EQ(made(0, 0), 3);
    EXPECT_EQ(made(0, 1), 0);
    EXPECT_EQ(made(0, 2), 1.5);
    EXPECT_EQ(made(0, 3), 3);
    EXPECT_EQ(made(0, 4), 0);
    EXPECT_TRUE(std::isnan(made(0, 5)));
}

TEST_P(ElementwiseOnDevice, AddsTheResidualAtAnyCountAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t count : {1, 7, 8, 255, 4097, 1000003})
        for (const std::int64_t offset : {0, 1}) {
            SCOPED_TRACE(testing::Message() << "count " << count << " offset " << offset);
            const auto x = HostMatrix::normal(type, 1, count, 1), residual = HostMatrix::normal(type, 1, count, 2);
            const DeviceMatrix device_x(x, offset), device_residual(residual);
            const auto out = DeviceMatrix::poisoned(type, 1, count);
            cuda::residual_add_forward(type, device_x.data(), device_residual.data(), out.data(), count, nullptr);
            const auto elements = elements_of(1, count);
            const auto expected = reference::residual_add(x.view(), residual.view(), elements);
            expect_agrees(out.download(), elements, expected, precision_of(type));
            cuda::residual_add_forward(type, device_x.data(), device_residual.data(), device_residual.data(), count,
                                       nullptr);
            expect_agrees(device_residual.download(), elements, expected, precision_of(type));
        }
}

INSTANTIATE_TEST_SUITE_P(Types, ElementwiseOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
