// Every row is visited once, whatever the slab, and special values are told by their bits.
#include "bench/measure/point/device_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "bench/plan/data/convert.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

constexpr std::int64_t rows = 10, columns = 3, stride = 4, row_bytes = stride * 8;

/// First rows and numbers of rows of the slabs; checks that each holds the matrix's own values.
std::vector<std::pair<std::int64_t, std::int64_t>> slabs(Device& device, std::int64_t most_bytes) {
    std::vector<double> matrix(rows * stride);
    std::iota(matrix.begin(), matrix.end(), 0.0);
    const Operand operand{"out", OperandUse::output, DataType::fp64, rows, columns, stride, rows, {}};
    std::vector<std::pair<std::int64_t, std::int64_t>> visited;
    visit_rows(
        device, matrix.data(), operand,
        [&](const reference::View& slab, std::int64_t first) {
            EXPECT_EQ(slab.columns, columns);
            for (std::int64_t r = 0; r < slab.rows; ++r)
                for (std::int64_t c = 0; c < columns; ++c)
                    EXPECT_EQ(slab(r, c), matrix[static_cast<std::size_t>((first + r) * stride + c)]);
            visited.emplace_back(first, slab.rows);
        },
        most_bytes);
    return visited;
}

TEST(VisitRows, CoversEveryRowOnceInSlabsOfTheSizeAllowed) {
    OtherDevice other;
    other.apart = true;
    using testing::ElementsAre;
    using testing::Pair;
    for (Device* device : {static_cast<Device*>(&other), &cpu()}) {
        EXPECT_THAT(slabs(*device, 4 * row_bytes + 5), ElementsAre(Pair(0, 4), Pair(4, 4), Pair(8, 2)));
        EXPECT_THAT(slabs(*device, 1 << 20), ElementsAre(Pair(0, 10)));
        EXPECT_EQ(slabs(*device, 1).size(), 10u) << "one row at least";
    }
    EXPECT_EQ(other.largest_download, 10u * row_bytes);
}

TEST(CountSpecialValues, InEveryType) {
    constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    // The last column is padding. 65504 is the largest fp16.
    const std::array<double, 8> values{nan, -infinity, 65504, nan, -nan, infinity, -0.0, infinity};
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
        std::array<std::byte, sizeof values> stored;
        convert(DataType::fp64, values.data(), type, stored.data(), values.size());
        const reference::View view{stored.data(), type, 2, 3, 4};
        EXPECT_EQ(count_nan(view), 2) << name(type);
        EXPECT_EQ(count_not_finite(view), 4) << name(type);
    }
    const std::array<std::int32_t, 8> integers{-1, -1, -1, -1, -1, -1, -1, -1};
    EXPECT_EQ(count_nan({integers.data(), DataType::int32, 2, 3, 4}), 0);
}

}  // namespace
}  // namespace kbench
