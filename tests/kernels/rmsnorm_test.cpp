// RMS norm against the reference.
#include "kernels/norm/rmsnorm.h"

#include "kbench/error.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double epsilon = 1e-5;

class RmsNormOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    struct Case {
        std::int64_t rows, width;
        bool in_place = false;
        double deviation = 1;
        std::int64_t offset = 0;  ///< where x begins, in elements from an aligned address
    };

    static void check(DataType type, const Case& c) {
        SCOPED_TRACE(testing::Message() << "rows " << c.rows << " width " << c.width << " in_place " << c.in_place
                                        << " deviation " << c.deviation << " offset " << c.offset);
        const auto x = HostMatrix::normal(type, c.rows, c.width, 1, c.deviation);
        const auto weight = HostMatrix::normal(type, 1, c.width, 2, 0.3, 1);
        const DeviceMatrix device_x(x, c.offset), device_weight(weight);
        const auto own = DeviceMatrix::poisoned(type, c.rows, c.width);
        const DeviceMatrix& out = c.in_place ? device_x : own;
        const RmsNorm op{c.rows, c.width, epsilon};
        cuda::rms_norm_forward(type, op, device_x.data(), device_weight.data(), out.data(), nullptr);
        const auto elements = elements_of(c.rows, c.width, 4000);
        expect_agrees(out.download(), elements, reference::rms_norm(op, x.view(), weight.view(), elements),
                      precision_of(type));
        if (!c.in_place) {
            EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
        }
    }
};

TEST_P(RmsNormOnDevice, NormalisesRowsOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 7, 64, 100, 768, 1280, 1283, 1536, 2048, 5120})
            check(GetParam(), {rows, width});
    for (const std::int64_t width : {4096, 4099, 8191, 8192, 16383, 16384}) check(GetParam(), {3, width});
}

TEST_P(RmsNormOnDevice, WorksInPlace) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t width : {1280, 1283, 8192})
        check(GetParam(), {.rows = 17, .width = width, .in_place = true});
}

TEST_P(RmsNormOnDevice, EpsilonCountsWhereRowsAreSmall) {
    KBENCH_NEEDS_DEVICE();
    check(GetParam(), {.rows = 17, .width = 1280, .deviation = 0.003});
}

TEST_P(RmsNormOnDevice, AnyAlignmentOfItsPointers) {
    KBENCH_NEEDS_DEVICE();
    check(GetParam(), {.rows = 17, .width = 1280, .offset = 1});
}

TEST_P(RmsNormOnDevice, CanBeCapturedInAGraph) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 64, width = 1280;
    const RmsNorm op{rows, width, epsilon};
    const auto x = HostMatrix::normal(type, rows, width, 1), weight = HostMatrix::normal(type, 1, width, 2);
    const DeviceMatrix device_x(x), device_weight(weight);
    const auto out = DeviceMatrix::poisoned(type, rows, width);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cuda::rms_norm_forward(type, op, device_x.data(), device_weight.data(), out.data(), stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const auto elements = elements_of(rows, width);
    expect_agrees(out.download(), elements, reference::rms_norm(op, x.view(), weight.view(), elements),
                  precision_of(type));
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Types, RmsNormOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(RmsNorm, RefusesRowsThatDoNotFitInRegisters) {
    for (const std::int64_t width : {16385, 16392, 65536}) {
        try {
            cuda::rms_norm_forward(DataType::fp16, {1, width, epsilon}, nullptr, nullptr, nullptr, nullptr);
            FAIL() << "a width of " << width << " was accepted";
        } catch (const Unsupported& reason) {
            EXPECT_NE(std::string(reason.what()).find(std::to_string(width)), std::string::npos) << reason.what();
            EXPECT_NE(std::string(reason.what()).find("16384"), std::string::npos) << reason.what();
        }
    }
}

}  // namespace
}  // namespace kbench::test
