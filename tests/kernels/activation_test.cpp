// Each activation and its backward, in every stored type, against the reference.
#include "kernels/activation.h"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class ActivationOnDevice : public ::testing::TestWithParam<std::tuple<Activation, DataType>> {
  protected:
    void SetUp() override { KBENCH_NEEDS_DEVICE(); }
    Activation function = std::get<0>(GetParam());
    DataType type = std::get<1>(GetParam());

    /// `values`, as the type stores them, and what becomes of each; dy is 3.
    HostMatrix stored(std::initializer_list<double> values) const {
        HostMatrix x(type, 1, static_cast<std::int64_t>(values.size()));
        std::int64_t i = 0;
        for (const double value : values) x.set(0, i++, value);
        return x;
    }
    HostMatrix activated(const HostMatrix& x) const {
        const DeviceMatrix device_x(x);
        const auto out = DeviceMatrix::poisoned(type, 1, x.columns);
        cuda::bias_activation_forward(type, function, 1, x.columns, device_x.data(), nullptr, out.data(), nullptr);
        return out.download();
    }
    HostMatrix gradient(const HostMatrix& x) const {
        HostMatrix dy(type, 1, x.columns);
        for (std::int64_t i = 0; i < x.columns; ++i) dy.set(0, i, 3);
        const DeviceMatrix device_x(x), device_dy(dy);
        const auto dx = DeviceMatrix::poisoned(type, 1, x.columns);
        cuda::activation_backward(type, function, x.columns, device_x.data(), device_dy.data(), dx.data(), nullptr);
        return dx.download();
    }
};
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST_P(ActivationOnDevice, BehindABiasOrNoneHoldsOnOddShapesAndInPlace) {
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 64, 100, 1280, 1283, 5120})
            for (const double deviation : {0.01, 3.0})
                for (const bool with_bias : {true, false}) {
                    SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width << " deviation "
                                                    << deviation << " bias " << with_bias);
                    const auto x = HostMatrix::normal(type, rows, width, 1, deviation),
                               bias = HostMatrix::normal(type, 1, width, 2, deviation);
                    const DeviceMatrix device_x(x), device_bias(bias);
                    const void* added = with_bias ? device_bias.data() : nullptr;
                    const auto out = DeviceMatrix::poisoned(type, rows, width);
                    cuda::bias_activation_forward(type, function, rows, width, device_x.data(), added, out.data(),
                                                  nullptr);
                    cuda::bias_activation_forward(type, function, rows, width, device_x.data(), added, device_x.data(),
                                                  nullptr);
                    const auto elements = elements_of(rows, width);
                    const auto expected = reference::bias_activation(
                        x.view(), with_bias ? bias.view() : reference::View{}, function, elements);
                    expect_agrees(out.download(), elements, expected, precision_of(type));
                    expect_agrees(device_x.download(), elements, expected, precision_of(type));
                }
}

TEST_P(ActivationOnDevice, BackwardHoldsAtAnyCountAndAlignmentAndInPlace) {
    for (const double deviation : {0.01, 1.0, 6.0, 40.0})
        for (const std::int64_t count : {1, 7, 8, 4097, 1000003})
            for (const std::int64_t offset : {0, 1}) {
                SCOPED_TRACE(testing::Message()
                             << "deviation " << deviation << " count " << count << " offset " << offset);
                const auto x = HostMatrix::normal(type, 1, count, 1, deviation);
                const auto dy = HostMatrix::normal(type, 1, count, 2);
                const DeviceMatrix device_x(x, offset), device_dy(dy);
                const auto dx = DeviceMatrix::poisoned(type, 1, count);
                cuda::activation_backward(type, function, count, device_x.data(), device_dy.data(), dx.data(), nullptr);
                const auto elements = elements_of(1, count);
                const auto expected = reference::activation_gradient(function, x.view(), dy.view(), elements);
                expect_agrees(dx.download(), elements, expected, precision_of(type));
                cuda::activation_backward(type, function, count, device_x.data(), device_dy.data(), device_dy.data(),
                                          nullptr);
                expect_agrees(device_dy.download(), elements, expected, precision_of(type));
            }
}

TEST_P(ActivationOnDevice, IsExactFarFromZeroAndKeepsNaN) {
    const double most = type == DataType::fp16 ? 65504 : 1e30;  // its cube and its square overflow fp32
    const HostMatrix x = stored({most, -most, 0, 100, -1000, not_a_number}), y = activated(x);
    const bool is_tanh = function == Activation::tanh;
    EXPECT_EQ(y(0, 0), is_tanh ? 1 : x(0, 0));
    EXPECT_EQ(y(0, 1), is_tanh ? -1 : 0);
    EXPECT_EQ(y(0, 2), 0);
    EXPECT_EQ(y(0, 3), is_tanh ? 1 : 100);
    EXPECT_EQ(y(0, 4), is_tanh ? -1 : 0);
    EXPECT_TRUE(std::isnan(y(0, 5)));
}

TEST_P(ActivationOnDevice, SlopeIsExactFarFromZeroAndANumberNowhereElse) {
    const double most = type == DataType::fp16 ? 65504 : 1e30;
    const HostMatrix dx = gradient(stored({most, -most, 0, 1000, -1000, not_a_number}));
    const bool is_tanh = function == Activation::tanh, is_relu = function == Activation::relu;
    EXPECT_EQ(dx(0, 0), is_tanh ? 0 : 3);
    EXPECT_EQ(dx(0, 1), 0);
    EXPECT_EQ(dx(0, 2), is_tanh ? 3 : is_relu ? 0 : 1.5);
    EXPECT_EQ(dx(0, 3), is_tanh ? 0 : 3);
    EXPECT_EQ(dx(0, 4), 0);
    EXPECT_TRUE(std::isnan(dx(0, 5)) || is_relu);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, ActivationOnDevice,
    testing::Combine(testing::Values(Activation::gelu_tanh, Activation::gelu_fast, Activation::gelu_erf,
                                     Activation::quick_gelu, Activation::relu, Activation::silu, Activation::tanh),
                     testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64)),
    [](const auto& test) {
        return std::string(facts_of(std::get<0>(test.param)).kind) + "_" + std::string(name(std::get<1>(test.param)));
    });

class SwiGluOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(SwiGluOnDevice, GatesTheSecondHalfByTheFirst) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 7, 64, 100, 1283, 8192}) {
            SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width);
            const SwiGlu op{rows, width};
            const auto gate_up = HostMatrix::normal(type, rows, 2 * width, 1, 4);
            const DeviceMatrix device_gate_up(gate_up);
            const auto out = DeviceMatrix::poisoned(type, rows, width);
            cuda::swiglu_forward(type, op, device_gate_up.data(), out.data(), nullptr);
            const auto elements = elements_of(rows, width);
            expect_agrees(out.download(), elements, reference::swiglu(op, gate_up.view(), elements),
                          precision_of(type));
        }
}

INSTANTIATE_TEST_SUITE_P(Types, SwiGluOnDevice,
                         testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& of) { return std::string(name(of.param)); });

}  // namespace
}  // namespace kbench::test
