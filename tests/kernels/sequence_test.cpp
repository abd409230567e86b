// Clipping, masks and the transposition against the reference.
#include "kernels/sequence.h"

#include <cmath>
#include <limits>

#include "tests/kernels/device_matrix.h"
#include "tests/kernels/place.h"

namespace kbench::test {
namespace {

class SequenceOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(SequenceOnDevice, HardtanhClipsAtBothEnds) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const std::int64_t count : {1, 7, 16, 4097, 1000003}) {
        SCOPED_TRACE(testing::Message() << "count " << count);
        const Hardtanh op{1, count};
        const auto x = HostMatrix::normal(type, 1, count, 1, 20, 10);
        for (const Place& place : places)
            check_at(
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
            check_at(
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
                check_at(
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
