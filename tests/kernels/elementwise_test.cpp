// Bias and residual addition against the reference.
#include "kernels/elementwise.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class ElementwiseOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(ElementwiseOnDevice, AddsBias) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 64, 100, 1280, 1283, 5120}) {
            SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width);
            const BiasAdd op{rows, width};
            const auto x = HostMatrix::normal(type, rows, width, 1, 3), bias = HostMatrix::normal(type, 1, width, 2);
            const DeviceMatrix device_x(x), device_bias(bias);
            const auto biased = DeviceMatrix::poisoned(type, rows, width);
            cuda::bias_add_forward(type, op, device_x.data(), device_bias.data(), biased.data(), nullptr);
            const auto elements = elements_of(rows, width);
            const auto expected = reference::bias_activation(x.view(), bias.view(), std::nullopt, elements);
            expect_agrees(biased.download(), elements, expected, precision_of(type));
            cuda::bias_add_forward(type, op, device_x.data(), device_bias.data(), device_x.data(), nullptr);
            expect_agrees(device_x.download(), elements, expected, precision_of(type));
        }
}

TEST_P(ElementwiseOnDevice, MoreRowsThanAGridHasBlocks) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 600001, width = 8;
    const auto x = HostMatrix::normal(type, rows, width, 1), bias = HostMatrix::normal(type, 1, width, 2);
    const DeviceMatrix device_x(x), device_bias(bias);
    const auto out = DeviceMatrix::poisoned(type, rows, width);
    cuda::bias_add_forward(type, {rows, width}, device_x.data(), device_bias.data(), out.data(), nullptr);
    const auto elements = elements_of(rows, width);
    expect_agrees(out.download(), elements, reference::bias_activation(x.view(), bias.view(), std::nullopt, elements),
                  precision_of(type));
}

TEST_P(ElementwiseOnDevice, AddsTheResidualAtAnyCountAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t count : {1, 7, 8, 255, 4097, 1000003})
        for (const std::int64_t offset : {0, 1}) {
            SCOPED_TRACE(testing::Message() << "count " << count << " offset " << offset);
            const ResidualAdd op{1, count};
            const auto x = HostMatrix::normal(type, 1, count, 1), residual = HostMatrix::normal(type, 1, count, 2);
            const DeviceMatrix device_x(x, offset), device_residual(residual);
            const auto out = DeviceMatrix::poisoned(type, 1, count);
            cuda::residual_add_forward(type, op, device_x.data(), device_residual.data(), out.data(), nullptr);
            const auto elements = elements_of(1, count);
            const auto expected = reference::residual_add(x.view(), residual.view(), elements);
            expect_agrees(out.download(), elements, expected, precision_of(type));
            cuda::residual_add_forward(type, op, device_x.data(), device_residual.data(), device_residual.data(),
                                       nullptr);
            expect_agrees(device_residual.download(), elements, expected, precision_of(type));
        }
}

INSTANTIATE_TEST_SUITE_P(Types, ElementwiseOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
