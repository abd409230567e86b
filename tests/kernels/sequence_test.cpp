// Batch norm, clipping, masks and the transposition against the reference.
#include "kernels/sequence.h"

#include <cmath>
#include <limits>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class SequenceOnDevice : public ::testing::TestWithParam<DataType> {};

/// Where a result lies: `offset` elements past a 256-byte boundary, or where the input lies.
struct Place {
    std::int64_t offset_in = 0, offset_out = 0;
    bool in_place = false;
};
constexpr Place places[] = {{}, {1, 1}, {0, 1}, {3, 0}, {.in_place = true}, {.offset_in = 5, .in_place = true}};

/// Runs `run(x, out)` on the device and compares all or `limit` elements.
template <class Run, class Reference>
void check(const HostMatrix& x, const Place& place, std::int64_t out_rows, std::int64_t out_columns, Run run,
           Reference reference) {
    SCOPED_TRACE(testing::Message() << "offsets " << place.offset_in << ", " << place.offset_out << " in place "
                                    << place.in_place);
    const DeviceMatrix device_x(x, place.offset_in);
    const auto own = DeviceMatrix::poisoned(x.type, out_rows, out_columns, 0, place.offset_out);
    const DeviceMatrix& out = place.in_place ? device_x : own;
    run(device_x.data(), out.data());
    const auto elements = elements_of(out_rows, out_columns);
    expect_agrees(out.download(), elements, reference(elements), precision_of(x.type));
    if (!place.in_place) {
        EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
    }
}

void check_norm(DataType type, const BatchNorm& op, bool with_residual, const Place& place) {
    SCOPED_TRACE(testing::Message() << op.text() << " residual " << with_residual);
    const std::int64_t channels = op.channel_count();
    const auto x = HostMatrix::normal(type, op.rows, op.width, 1, 2, 5);
    const auto residual = HostMatrix::normal(type, op.rows, op.width, 2);
    const auto weight = HostMatrix::normal(type, 1, channels, 3), bias = HostMatrix::normal(type, 1, channels, 4);
    const auto mean = HostMatrix::normal(type, 1, channels, 5, 1, 5);
    const auto variance = HostMatrix::normal(type, 1, channels, 6, 0.1, 1);
    const DeviceMatrix device_residual(residual), device_weight(weight), device_bias(bias), device_mean(mean),
        device_variance(variance);
    check(
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

TEST_P(SequenceOnDevice, BatchNormOfColumnsOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t rows : {1, 7, 130, 3000})
        for (const std::int64_t width : {1, 8, 65, 100, 1024, 1283, 2112})
            for (const bool residual : {false, true}) check_norm(GetParam(), {rows, width}, residual, {});
    for (const Place& place : places)
        for (const std::int64_t width : {1024, 1283})
            for (const bool residual : {false, true}) check_norm(GetParam(), {37, width}, residual, place);
}

TEST_P(SequenceOnDevice, BatchNormOfImagesOfAnyShapeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    const BatchNorm shapes[] = {{2 * 3 * 4, 9, 3, 4}, {5 * 2, 33, 5, 1},          {1, 70, 1, 1},
                                {64, 1, 8, 1},        {3 * 4 * 41, 59, 4, 41},    {4 * 32 * 41, 500, 32, 41},
                                {12, 5000, 3, 2},     {2 * 100000, 1, 10, 10000}, {2 * 70000, 2, 70000, 1}};
    for (const BatchNorm& op : shapes)
        for (const Place& place : places) check_norm(GetParam(), op, false, place);
}

TEST_P(SequenceOnDevice, BatchNormAtTheSizesOfAModel) {
    KBENCH_NEEDS_DEVICE();
    check_norm(GetParam(), {16000, 1024}, false, {});
    check_norm(GetParam(), {16000, 1024}, true, {});
    check_norm(GetParam(), {41984, 500, 32, 41}, false, {});
    check_norm(GetParam(), {600001, 8}, true, {});
}

TEST_P(SequenceOnDevice, BatchNormOfColumnsWritesOverTheResidual) {
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

TEST_P(SequenceOnDevice, HardtanhClipsAtBothEnds) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t count : {1, 7, 16, 4097, 1000003}) {
        SCOPED_TRACE(testing::Message() << "count " << count);
        const Hardtanh op{1, count};
        const auto x = HostMatrix::normal(type, 1, count, 1, 20, 10);
        for (const Place& place : places)
            check(
                x, place, 1, count,
                [&](const void* in, void* out) { cuda::hardtanh_forward(type, op, in, out, nullptr); },
                [&](const auto& elements) { return reference::hardtanh(op, x.view(), elements); });
    }
}

TEST_P(SequenceOnDevice, HardtanhKeepsNaNAndTakesInfinityToTheEnds) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    HostMatrix x(type, 1, 8);
    const double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 0, 20, 20.5, -0.5, 3};
    for (int i = 0; i < 8; ++i) x.set(0, i, values[i]);
    const DeviceMatrix device_x(x);
    cuda::hardtanh_forward(type, {1, 8}, device_x.data(), device_x.data(), nullptr);
    const HostMatrix made = device_x.download();
    EXPECT_TRUE(std::isnan(made(0, 0)));
    const double expected[] = {20, 0, 0, 20, 20, 0, 3};
    for (int i = 0; i < 7; ++i) EXPECT_EQ(made(0, i + 1), expected[i]) << i;
}

TEST_P(SequenceOnDevice, TimeMaskLeavesExactlyTheStepsOfEachSequence) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    struct Case {
        std::int64_t rows_each, steps, frames;
    };
    const Case cases[] = {{3, 33, 1}, {3, 33, 2}, {1, 5, 3}, {41, 500, 2}, {7, 512, 2}, {2, 3001, 1}, {2592, 59, 2}};
    for (const auto& [rows_each, steps, frames] : cases) {
        const std::int64_t all = steps * frames;
        const std::vector<double> lengths{
            static_cast<double>(all),         0,  1,
            static_cast<double>(all / 2 + 1), 8,  static_cast<double>(all + 100),
            static_cast<double>(all - 1),     -3, static_cast<double>(std::min(all, std::int64_t{16}))};
        const auto batch = static_cast<std::int64_t>(lengths.size());
        HostMatrix host(DataType::int32, batch, 1);
        for (std::int64_t n = 0; n < batch; ++n) host.set(n, 0, lengths[static_cast<std::size_t>(n)]);
        const DeviceMatrix device_lengths(host);
        const TimeMask op{batch, rows_each, steps, frames};
        SCOPED_TRACE(op.text());
        const auto x = HostMatrix::normal(type, batch * rows_each, steps, 1, 1, 4);
        for (const Place& place : places)
            check(
                x, place, batch * rows_each, steps,
                [&](const void* in, void* out) {
                    cuda::time_mask_forward(type, op, in, static_cast<const std::int32_t*>(device_lengths.data()), out,
                                            nullptr);
                },
                [&](const auto& elements) { return reference::time_mask(op, x.view(), host.view(), elements); });
    }
}

TEST_P(SequenceOnDevice, TimeMaskDoesNotReadWhatItMasks) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    HostMatrix x = HostMatrix::normal(type, 6, 77, 1), lengths(DataType::int32, 2, 1);
    lengths.set(0, 0, 20), lengths.set(1, 0, 77);
    for (std::int64_t row = 0; row < 3; ++row)
        for (std::int64_t column = 20; column < 77; ++column)
            x.set(row, column, std::numeric_limits<double>::quiet_NaN());
    const DeviceMatrix device_x(x), device_lengths(lengths);
    const auto out = DeviceMatrix::poisoned(type, 6, 77);
    cuda::time_mask_forward(type, {2, 3, 77}, device_x.data(), static_cast<const std::int32_t*>(device_lengths.data()),
                            out.data(), nullptr);
    const HostMatrix made = out.download();
    for (std::int64_t row = 0; row < 6; ++row)
        for (std::int64_t column = 0; column < 77; ++column)
            EXPECT_EQ(made(row, column), row < 3 && column >= 20 ? 0 : x(row, column)) << row << ", " << column;
}

TEST_P(SequenceOnDevice, ToSequenceMovesEveryElementToItsPlace) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    const ToSequence shapes[] = {{1, 1, 1},     {2, 3, 5},     {3, 64, 128},  {2, 65, 129},
                                 {1, 63, 127},  {5, 1312, 59}, {2, 1312, 60}, {2, 1312, 58},
                                 {1, 1311, 64}, {3, 33, 500},  {70000, 2, 3}, {1, 2, 70001}};
    for (const ToSequence& op : shapes) {
        SCOPED_TRACE(op.text());
        const auto x = HostMatrix::normal(type, op.batch * op.features, op.steps, 1);
        for (const Place& place : places)
            if (!place.in_place)
                check(
                    x, place, op.steps * op.batch, op.features,
                    [&](const void* in, void* out) { cuda::to_sequence_forward(type, op, in, out, nullptr); },
                    [&](const auto& elements) { return reference::to_sequence(op, x.view(), elements); });
    }
}

TEST_P(SequenceOnDevice, ToSequenceMovesAllOfAModelsFeatures) {
    KBENCH_NEEDS_DEVICE();  // every element, byte by byte: a tile that is left out or moved twice would show
    const DataType type = GetParam();
    const ToSequence op{32, 1312, 500};
    const auto x = HostMatrix::normal(type, op.batch * op.features, op.steps, 1);
    const DeviceMatrix device_x(x);
    const auto out = DeviceMatrix::poisoned(type, op.steps * op.batch, op.features);
    cuda::to_sequence_forward(type, op, device_x.data(), out.data(), nullptr);
    const HostMatrix made = out.download();
    const std::size_t size = size_of(type);
    std::int64_t wrong = 0;
    for (std::int64_t n = 0; n < op.batch; ++n)
        for (std::int64_t f = 0; f < op.features; ++f)
            for (std::int64_t t = 0; t < op.steps; ++t) {
                const std::byte* from = x.bytes.data() + ((n * op.features + f) * op.steps + t) * size;
                wrong +=
                    !std::equal(from, from + size, made.bytes.data() + ((t * op.batch + n) * op.features + f) * size);
            }
    EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, SequenceOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
