// Batch norm with running statistics and in training, and the backward of it, of clipping and of the transposition,
// against the reference.
#include "kernels/norm/batchnorm.h"

#include <algorithm>

#include "kernels/sequence.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/place.h"

namespace kbench::test {
namespace {

using reference::View;

class BatchNormOnDevice : public ::testing::TestWithParam<DataType> {};

DataType at_least_fp32(DataType type) { return type == DataType::fp64 ? type : DataType::fp32; }

DeviceMatrix workspace_of(DataType type, const BatchNorm& op) {
    return DeviceMatrix::poisoned(
        DataType::fp32, 1, static_cast<std::int64_t>(cuda::batch_norm_workspace_bytes(type, op) / sizeof(float)));
}

void expect_operand(const DeviceMatrix& made, const Step& step, std::size_t output, const std::vector<View>& views,
                    DataType type) {
    SCOPED_TRACE(testing::Message() << "operand " << output);
    const HostMatrix host = made.download();
    const auto elements = elements_of(host.rows, host.columns, 4000);
    expect_agrees(host, elements, reference::evaluate(step, output, views, elements), precision_of(type));
}

void check_forward(DataType type, const BatchNorm& op, bool with_residual, const Place& place) {
    SCOPED_TRACE(testing::Message() << op.text() << " residual " << with_residual);
    const std::int64_t channels = op.channel_count();
    const auto x = HostMatrix::normal(type, op.rows, op.width, 1, 2, 5);
    const auto residual = HostMatrix::normal(type, op.rows, op.width, 2);
    const auto weight = HostMatrix::normal(type, 1, channels, 3), bias = HostMatrix::normal(type, 1, channels, 4);
    const auto mean = HostMatrix::normal(type, 1, channels, 5, 1, 5);
    const auto variance = HostMatrix::normal(type, 1, channels, 6, 0.1, 1);
    const DeviceMatrix device_residual(residual), device_weight(weight), device_bias(bias), device_mean(mean),
        device_variance(variance);
    check_at(
        x, place, op.rows, op.width,
        [&](const void* in, void* out) {
            cuda::batch_norm_forward(type, op, in, with_residual ? device_residual.data() : nullptr,
                                     device_weight.data(), device_bias.data(), device_mean.data(),
                                     device_variance.data(), out, nullptr);
        },
        [&](const auto& elements) {
            return reference::batch_norm(op, x.view(), weight.view(), bias.view(), mean.view(), variance.view(),
                                         elements, with_residual ? residual.view() : reference::View{});
        });
}

void check_training(DataType type, BatchNorm op, double around, bool in_place, std::int64_t offset = 0) {
    op.training = true;
    SCOPED_TRACE(testing::Message() << op.text() << " around " << around << " in place " << in_place << " offset "
                                    << offset);
    const std::int64_t channels = op.channel_count();
    const auto x = HostMatrix::normal(type, op.rows, op.width, 1, 2, around);
    const auto weight = HostMatrix::normal(type, 1, channels, 2), bias = HostMatrix::normal(type, 1, channels, 3);
    const auto mean = HostMatrix::normal(type, 1, channels, 4), var = HostMatrix::normal(type, 1, channels, 5, 0.1, 1);
    const std::vector<View> views{x.view(),   weight.view(), bias.view(), mean.view(),
                                  var.view(), View{},        View{},      View{}};
    const DeviceMatrix device_x(x, offset), device_weight(weight), device_bias(bias);
    const auto workspace = workspace_of(type, op);
    std::vector<HostMatrix> first;
    for (const int turn : {0, 1}) {  // the second over x where in place, and the same bits
        const DeviceMatrix running_mean(mean), running_var(var);
        const auto means = DeviceMatrix::poisoned(at_least_fp32(type), 1, channels);
        const auto rstds = DeviceMatrix::poisoned(at_least_fp32(type), 1, channels);
        const auto own = DeviceMatrix::poisoned(type, op.rows, op.width, 0, offset);
        const DeviceMatrix& out = in_place && turn == 1 ? device_x : own;
        cuda::batch_norm_in_training(type, op, device_x.data(), device_weight.data(), device_bias.data(),
                                     running_mean.data(), running_var.data(), means.data(), rstds.data(), out.data(),
                                     workspace.data(), nullptr);
        const DeviceMatrix* made[] = {&running_mean, &running_var, &means, &rstds, &out};
        for (std::size_t i = 0; i < 5; ++i) {
            if (turn == 0) {
                expect_operand(*made[i], Step::of(op), 3 + i, views, type);
                first.push_back(made[i]->download());
            } else {
                EXPECT_EQ(made[i]->download().bytes == first[i].bytes, true) << "other bits of operand " << 3 + i;
            }
        }
    }
    workspace.download();
}

void check_backward(DataType type, BatchNorm op, bool accumulates, bool in_place, std::int64_t offset = 0) {
    op.training = true;
    op.accumulates = accumulates;
    SCOPED_TRACE(testing::Message() << op.text() << " in place " << in_place << " offset " << offset);
    const std::int64_t channels = op.channel_count();
    const auto x = HostMatrix::normal(type, op.rows, op.width, 1, 2, 5);
    // Small enough that their sums over a channel are numbers of fp16.
    const auto dy = HostMatrix::normal(type, op.rows, op.width, 2, 0.125, 0.03125);
    const auto weight = HostMatrix::normal(type, 1, channels, 3), before = HostMatrix::normal(type, 1, channels, 4);
    const auto mean = HostMatrix::normal(at_least_fp32(type), 1, channels, 5, 0.1, 5);
    const auto rstd = HostMatrix::normal(at_least_fp32(type), 1, channels, 6, 0.05, 0.5);
    std::vector<View> views{x.view(), dy.view(), weight.view(), mean.view(), rstd.view()};
    if (accumulates) views.insert(views.end(), 2, before.view());
    views.resize(8);
    const std::size_t dx_at = accumulates ? 7 : 5, dw_at = accumulates ? 5 : 6;
    const DeviceMatrix device_x(x, offset), device_dy(dy, offset), device_weight(weight), device_mean(mean),
        device_rstd(rstd);
    const auto workspace = workspace_of(type, op);
    std::vector<HostMatrix> first;
    for (const int turn : {0, 1}) {
        const auto dw = accumulates ? DeviceMatrix(before) : DeviceMatrix::poisoned(type, 1, channels);
        const auto db = accumulates ? DeviceMatrix(before) : DeviceMatrix::poisoned(type, 1, channels);
        const auto own = DeviceMatrix::poisoned(type, op.rows, op.width, 0, offset);
        const DeviceMatrix& dx = in_place && turn == 1 ? device_dy : own;
        cuda::batch_norm_backward(type, op, device_x.data(), device_dy.data(), device_weight.data(), device_mean.data(),
                                  device_rstd.data(), dx.data(), dw.data(), db.data(), workspace.data(), nullptr);
        const DeviceMatrix* made[] = {&dx, &dw, &db};
        const std::size_t operands[] = {dx_at, dw_at, dw_at + 1};
        for (std::size_t i = 0; i < 3; ++i) {
            if (turn == 0) {
                expect_operand(*made[i], Step::of(op, Direction::bwd), operands[i], views, type);
                first.push_back(made[i]->download());
            } else {
                EXPECT_EQ(made[i]->download().bytes == first[i].bytes, true) << "other bits of operand " << operands[i];
            }
        }
    }
    workspace.download();
}

const BatchNorm shapes[] = {{2, 1},
                            {7, 8},
                            {130, 65},
                            {3000, 100},
                            {37, 1283},
                            {257, 1024},
                            {70001, 8},
                            {2 * 3 * 4, 9, 3, 4},
                            {5 * 2, 33, 5, 1},
                            {1, 70, 1, 1},
                            {64, 1, 8, 1},
                            {3 * 4 * 41, 59, 4, 41},
                            {8 * 32 * 41, 500, 32, 41},
                            {12, 5000, 3, 2},
                            {2 * 10000, 1, 10, 1000},
                            {2 * 7000, 2, 7000, 1}};

TEST_P(BatchNormOnDevice, ForwardOfColumnsOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 7, 130, 3000})
        for (const std::int64_t width : {1, 8, 65, 100, 1024, 1283, 2112})
            for (const bool residual : {false, true}) check_forward(GetParam(), {rows, width}, residual, {});
    for (const Place& place : places)
        for (const std::int64_t width : {1024, 1283})
            for (const bool residual : {false, true}) check_forward(GetParam(), {37, width}, residual, place);
}

TEST_P(BatchNormOnDevice, ForwardOfImagesOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    const BatchNorm images[] = {{2 * 3 * 4, 9, 3, 4}, {5 * 2, 33, 5, 1},          {1, 70, 1, 1},
                                {64, 1, 8, 1},        {3 * 4 * 41, 59, 4, 41},    {4 * 32 * 41, 500, 32, 41},
                                {12, 5000, 3, 2},     {2 * 100000, 1, 10, 10000}, {2 * 70000, 2, 70000, 1}};
    for (const BatchNorm& op : images)
        for (const Place& place : places) check_forward(GetParam(), op, false, place);
}

TEST_P(BatchNormOnDevice, ForwardAtTheSizesOfAModel) {
    KBENCH_NEEDS_DEVICE();
    check_forward(GetParam(), {16000, 1024}, false, {});
    check_forward(GetParam(), {16000, 1024}, true, {});
    check_forward(GetParam(), {41984, 500, 32, 41}, false, {});
    check_forward(GetParam(), {600001, 8}, true, {});
}

TEST_P(BatchNormOnDevice, ForwardOfColumnsWritesOverTheResidual) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    const BatchNorm op{37, 1024};
    const auto x = HostMatrix::normal(type, 37, 1024, 1), residual = HostMatrix::normal(type, 37, 1024, 2);
    const auto vector = HostMatrix::normal(type, 1, 1024, 3, 0.1, 1);
    const DeviceMatrix device_x(x), device_residual(residual), device(vector);
    cuda::batch_norm_forward(type, op, device_x.data(), device_residual.data(), device.data(), device.data(),
                             device.data(), device.data(), device_residual.data(), nullptr);
    const auto elements = elements_of(37, 1024);
    expect_agrees(device_residual.download(), elements,
                  reference::batch_norm(op, x.view(), vector.view(), vector.view(), vector.view(), vector.view(),
                                        elements, residual.view()),
                  precision_of(type));
}

TEST_P(BatchNormOnDevice, InTrainingOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const BatchNorm& op : shapes)
        for (const std::int64_t offset : {0, 1, 4}) check_training(GetParam(), op, 5, true, offset);
}

TEST_P(BatchNormOnDevice, InTrainingKeepsTheVarianceOfAMeanFarFromZero) {
    KBENCH_NEEDS_DEVICE();
    for (const double around : {-200.0, 1000.0})
        for (const BatchNorm& op : {BatchNorm{3000, 100}, BatchNorm{3 * 4 * 41, 59, 4, 41}})
            check_training(GetParam(), op, around, false);
}

TEST_P(BatchNormOnDevice, BackwardOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const BatchNorm& op : shapes)
        for (const std::int64_t offset : {0, 1, 4})
            for (const bool accumulates : {false, true}) check_backward(GetParam(), op, accumulates, true, offset);
}

TEST_P(BatchNormOnDevice, AtTheSizesOfAModel) {
    KBENCH_NEEDS_DEVICE();
    for (const BatchNorm& op : {BatchNorm{16000, 1024}, BatchNorm{32 * 32 * 41, 500, 32, 41}}) {
        check_training(GetParam(), op, 0, false);
        check_backward(GetParam(), op, false, false);
    }
}

TEST_P(BatchNormOnDevice, HardtanhsBackwardPassesGradientsBetweenTheEnds) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t count : {1, 7, 16, 4097, 1000000})
        for (const std::int64_t offset : {0, 1}) {
            const Hardtanh op{1, count};
            HostMatrix y = HostMatrix::normal(type, 1, count, 1, 20, 10);
            for (std::int64_t i = 0; i < count; ++i) y.set(0, i, std::min(20.0, std::max(0.0, y(0, i))));
            const auto dy = HostMatrix::normal(type, 1, count, 2);
            const DeviceMatrix device_y(y, offset), device_dy(dy);
            const auto own = DeviceMatrix::poisoned(type, 1, count);
            for (const bool in_place : {false, true}) {
                const DeviceMatrix& dx = in_place ? device_dy : own;
                cuda::hardtanh_backward(type, op, device_y.data(), device_dy.data(), dx.data(), nullptr);
                expect_operand(dx, Step::of(op, Direction::bwd), 2, {y.view(), dy.view(), View{}}, type);
            }
        }
}

TEST_P(BatchNormOnDevice, ToSequencesBackwardMovesEveryElementBack) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    const ToSequence moved[] = {{1, 1, 1},     {2, 3, 5},     {3, 64, 128}, {2, 65, 129},  {1, 63, 127}, {5, 1312, 59},
                                {2, 1312, 60}, {1, 1311, 64}, {3, 33, 500}, {70000, 2, 3}, {1, 2, 70001}};
    for (const ToSequence& op : moved)
        for (const std::int64_t offset : {0, 1}) {
            SCOPED_TRACE(testing::Message() << op.text() << " offset " << offset);
            const auto x = HostMatrix::normal(type, op.batch * op.features, op.steps, 1);
            const DeviceMatrix device_x(x);
            const auto out = DeviceMatrix::poisoned(type, op.steps * op.batch, op.features, 0, offset);
            const auto back = DeviceMatrix::poisoned(type, op.batch * op.features, op.steps, 0, offset);
            cuda::to_sequence_forward(type, op, device_x.data(), out.data(), nullptr);
            cuda::to_sequence_backward(type, op, out.data(), back.data(), nullptr);
            EXPECT_EQ(back.download().bytes == x.bytes, true);
        }
}

INSTANTIATE_TEST_SUITE_P(Types, BatchNormOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
