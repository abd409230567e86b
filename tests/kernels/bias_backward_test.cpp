// The sums of columns against the reference.
#include "kernels/bias_backward.h"

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class BiasBackwardOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    static void check(std::int64_t rows, std::int64_t width, std::int64_t offset = 0) {
        SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width << " offset " << offset);
        const DataType type = GetParam();
        const BiasAdd op{rows, width};
        const auto dy = HostMatrix::normal(type, rows, width, 1);
        const DeviceMatrix device_dy(dy, offset);
        const auto run = [&] {
            const auto db = DeviceMatrix::poisoned(type, 1, width);
            const auto workspace = DeviceMatrix::poisoned(
                DataType::fp32, 1,
                static_cast<std::int64_t>(cuda::bias_backward_workspace_bytes(type, op) / sizeof(float)));
            cuda::bias_backward(type, op, device_dy.data(), db.data(), workspace.data(), nullptr);
            workspace.download();  // for its guards
            return db.download();
        };
        const HostMatrix db = run();
        EXPECT_EQ(run().bytes, db.bytes) << "other bits in another run";
        const auto columns = elements_of(1, width, 500);
        expect_agrees(db, columns, reference::bias_gradient(op, dy.view(), columns), precision_of(type));
        if (rows < 2 || rows > 100 || width < 100) return;
        std::size_t wrong = 0;
        const auto without = reference::bias_gradient({rows - 1, width}, dy.view(), columns);
        for (std::size_t i = 0; i < columns.size(); ++i)
            wrong += !reference::agrees(db(0, columns[i].column), without[i], precision_of(type), type);
        EXPECT_GE(2 * wrong, columns.size()) << "a row that is left out would not show";
    }
};

TEST_P(BiasBackwardOnDevice, AddsUpColumnsOfAnyShape) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 17, 64, 65, 1000, 8193})
        for (const std::int64_t width : {1, 8, 24, 100, 1280, 1283, 5120}) check(rows, width);
}

TEST_P(BiasBackwardOnDevice, AddsToWhatIsThereOfAnyWidth) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t rows : {1, 65, 8193})
        for (const std::int64_t width : {1, 24, 100, 1280, 1283}) {
            SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width);
            const BiasAdd op{rows, width, true};
            const auto dy = HostMatrix::normal(type, rows, width, 1), before = HostMatrix::normal(type, 1, width, 2, 9);
            const DeviceMatrix device_dy(dy), db(before);
            const auto workspace = DeviceMatrix::poisoned(
                DataType::fp32, 1,
                static_cast<std::int64_t>(cuda::bias_backward_workspace_bytes(type, op) / sizeof(float)));
            cuda::bias_backward(type, op, device_dy.data(), db.data(), workspace.data(), nullptr);
            const auto columns = elements_of(1, width, 500);
            expect_agrees(db.download(), columns,
                          reference::added_to(before.view(), columns,
                                              reference::bias_gradient({rows, width}, dy.view(), columns)),
                          precision_of(type));
        }
}

TEST_P(BiasBackwardOnDevice, AddsUpManyRows) {
    KBENCH_NEEDS_DEVICE();
    check(4096, 5120);
    check(8192, 1280);
    check(600001, 8);
}

TEST_P(BiasBackwardOnDevice, AnyAlignmentOfDy) {
    KBENCH_NEEDS_DEVICE();
    check(1000, 1280, 1);
}

INSTANTIATE_TEST_SUITE_P(Types, BiasBackwardOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
