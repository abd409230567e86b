// Layer norm and what is fused in front of it, against the reference.
#include "kernels/norm/layernorm.h"
#include "kbench/error.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double epsilon = 1e-5;

class LayerNormOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    /// Where sum_out points.
    enum class SumOut { none, own, residual, x };

    struct Case {
        std::int64_t rows, width;
        bool pre_bias = true, residual = true;
        SumOut sum_out = SumOut::own;
        double mean = 0;
        std::int64_t offset = 0;  ///< where x begins, in elements from an aligned address
    };

    static void check(DataType type, const Case& c) {
        SCOPED_TRACE(testing::Message() << "rows " << c.rows << " width " << c.width << " pre_bias " << c.pre_bias
                                        << " residual " << c.residual << " sum_out " << static_cast<int>(c.sum_out)
                                        << " mean " << c.mean << " offset " << c.offset);
        const auto x = HostMatrix::normal(type, c.rows, c.width, 1, 1, c.mean);
        const auto residual = HostMatrix::normal(type, c.rows, c.width, 2);
        const auto pre_bias = HostMatrix::normal(type, 1, c.width, 3), bias = HostMatrix::normal(type, 1, c.width, 4);
        const auto weight = HostMatrix::normal(type, 1, c.width, 5, 0.3, 1);
        const DeviceMatrix device_x(x, c.offset), device_residual(residual), device_pre_bias(pre_bias),
            device_weight(weight), device_bias(bias);
        const auto own_sum = DeviceMatrix::poisoned(type, c.rows, c.width);
        const auto out = DeviceMatrix::poisoned(type, c.rows, c.width);
        const DeviceMatrix* const sums[] = {nullptr, &own_sum, &device_residual, &device_x};
        const DeviceMatrix* sum = sums[static_cast<int>(c.sum_out)];
        const LayerNorm op{c.rows, c.width, epsilon};
        cuda::layer_norm_forward(type, op, device_x.data(), c.pre_bias ? device_pre_bias.data() : nullptr,
                                 c.residual ? device_residual.data() : nullptr, device_weight.data(),
                                 device_bias.data(), sum ? sum->data() : nullptr, out.data(), nullptr);
        const auto elements = elements_of(c.rows, c.width, 4000);
        const reference::View none, b = c.pre_bias ? pre_bias.view() : none, r = c.residual ? residual.view() : none;
        expect_agrees(out.download(), elements,
                      reference::layer_norm(op, x.view(), b, r, weight.view(), bias.view(), elements),
                      precision_of(type));
        if (sum)
            expect_agrees(sum->download(), elements, reference::layer_norm_sum(op, x.view(), b, r, elements),
                          precision_of(type));
        if (c.sum_out != SumOut::x) {
            EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
        }
        if (c.sum_out != SumOut::residual) {
            EXPECT_EQ(device_residual.download().bytes, residual.bytes) << "residual was written";
        }
    }
};

TEST_P(LayerNormOnDevice, NormalisesRowsOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 64, 100, 768, 1280, 1283, 5120}) check(GetParam(), {rows, width});
    for (const std::int64_t width : {4096, 8191, 8192, 16383, 16384}) check(GetParam(), {3, width});
}

TEST_P(LayerNormOnDevice, EveryCombinationOfFusedInputsAndSum) {
    KBENCH_NEEDS_DEVICE();
    for (const bool pre_bias : {false, true})
        for (const bool residual : {false, true})
            for (const SumOut sum_out : {SumOut::none, SumOut::own, SumOut::residual, SumOut::x}) {
                if (sum_out == SumOut::residual && !residual) continue;
                for (const std::int64_t width : {1280, 1283})
                    check(GetParam(), {37, width, pre_bias, residual, sum_out});
            }
}

TEST_P(LayerNormOnDevice, RowsFarFromZeroKeepTheirVariance) {
    KBENCH_NEEDS_DEVICE();  // E[x^2] - E[x]^2 would lose it
    check(GetParam(), {.rows = 17, .width = 1280, .mean = 200});
}

TEST_P(LayerNormOnDevice, AnyAlignmentOfItsPointers) {
    KBENCH_NEEDS_DEVICE();
    check(GetParam(), {.rows = 17, .width = 1280, .offset = 1});
}

TEST_P(LayerNormOnDevice, CanBeCapturedInAGraph) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 64, width = 1280;
    const LayerNorm op{rows, width, epsilon};
    const auto x = HostMatrix::normal(type, rows, width, 1), weight = HostMatrix::normal(type, 1, width, 2);
    const DeviceMatrix device_x(x), device_weight(weight);
    const auto out = DeviceMatrix::poisoned(type, rows, width);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cuda::layer_norm_forward(type, op, device_x.data(), nullptr, nullptr, device_weight.data(), device_weight.data(),
                             nullptr, out.data(), stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    const auto elements = elements_of(rows, width);
    expect_agrees(out.download(), elements,
                  reference::layer_norm(op, x.view(), {}, {}, weight.view(), weight.view(), elements),
                  precision_of(type));
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Types, LayerNormOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(LayerNorm, RefusesRowsThatDoNotFitInRegisters) {
    try {
        cuda::layer_norm_forward(DataType::fp16, {1, 16392, epsilon}, nullptr, nullptr, nullptr, nullptr, nullptr,
                                 nullptr, nullptr, nullptr);
        FAIL() << "a width of 16392 was accepted";
    } catch (const Unsupported& reason) {
        EXPECT_NE(std::string(reason.what()).find("16392"), std::string::npos) << reason.what();
        EXPECT_NE(std::string(reason.what()).find("16384"), std::string::npos) << reason.what();
    }
}

}  // namespace
}  // namespace kbench::test
