// The backward of layer norm and of RMS norm against the reference.
#include "kernels/norm/norm_backward.h"

#include "kbench/error.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

constexpr double epsilon = 1e-5;

DeviceMatrix workspace_of(std::size_t bytes) {
    return DeviceMatrix::poisoned(DataType::fp32, 1, static_cast<std::int64_t>(bytes / sizeof(float)));
}

class NormBackwardOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    enum class Into { own, dy, residual };

    struct Case {
        std::int64_t rows, width;
        bool residual = false;
        Into dx = Into::own;
        double mean = 0;
        std::int64_t offset = 0;  ///< where x begins, in elements from an aligned address
        std::size_t elements = 4000;
    };

    static testing::Message text(const Case& c) {
        return testing::Message() << "rows " << c.rows << " width " << c.width << " residual " << c.residual
                                  << " dx into " << static_cast<int>(c.dx) << " mean " << c.mean << " offset "
                                  << c.offset;
    }

    static void check_layer_norm(const Case& c) {
        SCOPED_TRACE(text(c));
        const DataType type = GetParam();
        const auto x = HostMatrix::normal(type, c.rows, c.width, 1, 1, c.mean),
                   dy = HostMatrix::normal(type, c.rows, c.width, 2),
                   residual = HostMatrix::normal(type, c.rows, c.width, 3),
                   weight = HostMatrix::normal(type, 1, c.width, 4, 0.3, 1);
        const LayerNorm op{c.rows, c.width, epsilon};
        const auto run = [&] {
            const DeviceMatrix device_x(x, c.offset), device_dy(dy), device_residual(residual), device_weight(weight);
            const auto own = DeviceMatrix::poisoned(type, c.rows, c.width);
            const auto dw = DeviceMatrix::poisoned(type, 1, c.width), db = DeviceMatrix::poisoned(type, 1, c.width);
            const auto workspace = workspace_of(cuda::layer_norm_backward_workspace_bytes(type, op));
            const DeviceMatrix* const targets[] = {&own, &device_dy, &device_residual};
            const DeviceMatrix& dx = *targets[static_cast<int>(c.dx)];
            cuda::layer_norm_backward(type, op, device_x.data(), device_dy.data(), device_weight.data(),
                                      c.residual ? device_residual.data() : nullptr, dx.data(), dw.data(), db.data(),
                                      workspace.data(), nullptr);
            std::vector<HostMatrix> made{dx.download(), dw.download(), db.download()};
            workspace.download();  // for its guards
            EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
            if (c.dx != Into::dy) {
                EXPECT_EQ(device_dy.download().bytes, dy.bytes) << "dy was written";
            }
            if (c.dx != Into::residual) {
                EXPECT_EQ(device_residual.download().bytes, residual.bytes) << "residual was written";
            }
            return made;
        };
        const std::vector<HostMatrix> made = run(), again = run();
        for (std::size_t i = 0; i < made.size(); ++i)
            EXPECT_EQ(made[i].bytes, again[i].bytes) << "output " << i << " has other bits in another run";
        const Precision precision = precision_of(type);
        const auto elements = elements_of(c.rows, c.width, c.elements), columns = elements_of(1, c.width, 300);
        const reference::View past = c.residual ? residual.view() : reference::View{};
        expect_agrees(made[0], elements,
                      reference::layer_norm_dx(op, x.view(), dy.view(), weight.view(), past, elements), precision);
        expect_agrees(made[1], columns, reference::layer_norm_dw(op, x.view(), dy.view(), columns), precision);
        expect_agrees(made[2], columns, reference::bias_gradient({c.rows, c.width}, dy.view(), columns), precision);
    }

    static void check_rms_norm(const Case& c) {
        SCOPED_TRACE(text(c));
        const DataType type = GetParam();
        const auto x = HostMatrix::normal(type, c.rows, c.width, 1, 1, c.mean),
                   dy = HostMatrix::normal(type, c.rows, c.width, 2),
                   weight = HostMatrix::normal(type, 1, c.width, 4, 0.3, 1);
        const RmsNorm op{c.rows, c.width, epsilon};
        const auto run = [&] {
            const DeviceMatrix device_x(x, c.offset), device_dy(dy), device_weight(weight);
            const auto own = DeviceMatrix::poisoned(type, c.rows, c.width),
                       dw = DeviceMatrix::poisoned(type, 1, c.width);
            const auto workspace = workspace_of(cuda::rms_norm_backward_workspace_bytes(type, op));
            const DeviceMatrix& dx = c.dx == Into::dy ? device_dy : own;
            cuda::rms_norm_backward(type, op, device_x.data(), device_dy.data(), device_weight.data(), dx.data(),
                                    dw.data(), workspace.data(), nullptr);
            std::vector<HostMatrix> made{dx.download(), dw.download()};
            workspace.download();  // for its guards
            EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
            return made;
        };
        const std::vector<HostMatrix> made = run(), again = run();
        for (std::size_t i = 0; i < made.size(); ++i)
            EXPECT_EQ(made[i].bytes, again[i].bytes) << "output " << i << " has other bits in another run";
        const auto elements = elements_of(c.rows, c.width, c.elements), columns = elements_of(1, c.width, 300);
        expect_agrees(made[0], elements, reference::rms_norm_dx(op, x.view(), dy.view(), weight.view(), elements),
                      precision_of(type));
        expect_agrees(made[1], columns, reference::rms_norm_dw(op, x.view(), dy.view(), columns), precision_of(type));
    }
};

/// From one thread's columns to the widest row: warps, several warps, whole blocks, vectors and single elements.
constexpr std::int64_t widths[] = {1, 8, 64, 100, 768, 1280, 1281, 1600, 2560, 5120};
constexpr std::int64_t wide[] = {4099, 8191, 8192, 10240, 10248, 12288, 16383, 16384};

TEST_P(NormBackwardOnDevice, LayerNormOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 1700})
        for (const std::int64_t width : widths)
            check_layer_norm({.rows = rows, .width = width, .residual = rows == 17, .elements = 1000});
    for (const std::int64_t width : wide) {
        check_layer_norm({.rows = 17, .width = width, .elements = 300});
        check_layer_norm({.rows = 300, .width = width, .residual = true, .elements = 300});
    }
}

TEST_P(NormBackwardOnDevice, RmsNormOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 1700})
        for (const std::int64_t width : widths) check_rms_norm({.rows = rows, .width = width, .elements = 1000});
    for (const std::int64_t width : wide) {
        check_rms_norm({.rows = 17, .width = width, .elements = 300});
        check_rms_norm({.rows = 300, .width = width, .elements = 300});
    }
}

TEST_P(NormBackwardOnDevice, ManyRows) {
    KBENCH_NEEDS_DEVICE();
    check_layer_norm({.rows = 8192, .width = 1280, .elements = 400});
    check_layer_norm({.rows = 8192, .width = 1280, .residual = true, .elements = 400});
    check_rms_norm({.rows = 8192, .width = 1280, .elements = 400});
    check_layer_norm({.rows = 100003, .width = 16, .elements = 400});
    check_layer_norm({.rows = 8191, .width = 1280, .residual = true, .dx = Into::residual, .elements = 400});
    check_rms_norm({.rows = 8191, .width = 1600, .elements = 400});
}

TEST_P(NormBackwardOnDevice, DxMayLieOverWhatItIsMadeOf) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t width : {100, 1280, 1283, 12288}) {
        check_layer_norm({.rows = 1700, .width = width, .dx = Into::dy, .elements = 500});
        check_layer_norm({.rows = 1700, .width = width, .residual = true, .dx = Into::dy, .elements = 500});
        check_layer_norm({.rows = 1700, .width = width, .residual = true, .dx = Into::residual, .elements = 500});
        check_rms_norm({.rows = 1700, .width = width, .dx = Into::dy, .elements = 500});
    }
}

TEST_P(NormBackwardOnDevice, RowsFarFromZeroKeepTheirVariance) {
    KBENCH_NEEDS_DEVICE();  // E[x^2] - E[x]^2 would lose it
    check_layer_norm({.rows = 17, .width = 1280, .mean = 200});
    for (const std::int64_t width : {100, 768, 1283, 2560, 8192, 12288})
        check_layer_norm({.rows = 33, .width = width, .residual = true, .mean = 200, .elements = 1000});
    check_layer_norm({.rows = 1700, .width = 1280, .mean = 1.7, .elements = 1000});  // some rows take a second pass
}

TEST_P(NormBackwardOnDevice, AnyAlignmentOfItsPointers) {
    KBENCH_NEEDS_DEVICE();
    check_layer_norm({.rows = 17, .width = 1280, .residual = true, .offset = 1});
    check_rms_norm({.rows = 17, .width = 1280, .offset = 1});
}

TEST_P(NormBackwardOnDevice, BoundsTellARowLessAndANormOfTheOtherKind) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 33, width = 1280;
    const LayerNorm op{rows, width, epsilon};
    const auto x = HostMatrix::normal(type, rows, width, 1), dy = HostMatrix::normal(type, rows, width, 2),
               weight = HostMatrix::normal(type, 1, width, 4, 0.3, 1);
    const DeviceMatrix device_x(x), device_dy(dy), device_weight(weight);
    const auto dx = DeviceMatrix::poisoned(type, rows, width), dw = DeviceMatrix::poisoned(type, 1, width),
               db = DeviceMatrix::poisoned(type, 1, width);
    const auto workspace = workspace_of(cuda::layer_norm_backward_workspace_bytes(type, op));
    cuda::layer_norm_backward(type, op, device_x.data(), device_dy.data(), device_weight.data(), nullptr, dx.data(),
                              dw.data(), db.data(), workspace.data(), nullptr);
    const auto disagreement = [&](const HostMatrix& made, const std::vector<reference::Element>& elements,
                                  const std::vector<reference::Expected>& expected) {
        int wrong = 0;
        for (std::size_t i = 0; i < elements.size(); ++i)
            wrong +=
                !reference::agrees(made(elements[i].row, elements[i].column), expected[i], precision_of(type), type);
        return static_cast<double>(wrong) / static_cast<double>(elements.size());
    };
    const auto all = elements_of(rows, width), columns = elements_of(1, width);
    EXPECT_GT(disagreement(db.download(), columns, reference::bias_gradient({rows - 1, width}, dy.view(), columns)),
              0.5);
    EXPECT_GT(disagreement(dw.download(), columns,
                           reference::layer_norm_dw({rows - 1, width, epsilon}, x.view(), dy.view(), columns)),
              0.5);
    EXPECT_GT(disagreement(dx.download(), all,
                           reference::rms_norm_dx({rows, width, epsilon}, x.view(), dy.view(), weight.view(), all)),
              0.3);
}

TEST_P(NormBackwardOnDevice, CanBeCapturedInAGraph) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 64, width = 1280;
    const LayerNorm op{rows, width, epsilon};
    const auto x = HostMatrix::normal(type, rows, width, 1), dy = HostMatrix::normal(type, rows, width, 2),
               weight = HostMatrix::normal(type, 1, width, 3);
    const DeviceMatrix device_x(x), device_dy(dy), device_weight(weight);
    const auto dx = DeviceMatrix::poisoned(type, rows, width), dw = DeviceMatrix::poisoned(type, 1, width),
               db = DeviceMatrix::poisoned(type, 1, width);
    const auto workspace = workspace_of(cuda::layer_norm_backward_workspace_bytes(type, op));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    cuda::layer_norm_backward(type, op, device_x.data(), device_dy.data(), device_weight.data(), nullptr, dx.data(),
                              dw.data(), db.data(), workspace.data(), stream);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const auto columns = elements_of(1, width);
    expect_agrees(dw.download(), columns, reference::layer_norm_dw(op, x.view(), dy.view(), columns),
                  precision_of(type));
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(Types, NormBackwardOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(NormBackward, RefusesRowsThatDoNotFitInRegisters) {
    const auto refusal = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const Unsupported& reason) {
            return reason.what();
        }
        return "accepted";
    };
    for (const std::int64_t width : {16385, 16392, 65536}) {
        const std::string of_layer_norm = refusal([width] {
            cuda::layer_norm_backward(DataType::fp16, {1, width, epsilon}, nullptr, nullptr, nullptr, nullptr, nullptr,
                                      nullptr, nullptr, nullptr, nullptr);
        });
        const std::string of_rms_norm = refusal([width] {
            cuda::rms_norm_backward(DataType::fp16, {1, width, epsilon}, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, nullptr);
        });
        for (const std::string& text : {of_layer_norm, of_rms_norm}) {
            EXPECT_NE(text.find(std::to_string(width)), std::string::npos) << text;
            EXPECT_NE(text.find("16384"), std::string::npos) << text;
        }
    }
}

}  // namespace
}  // namespace kbench::test
