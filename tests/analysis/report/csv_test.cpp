// steps.csv must be readable by any reader of RFC 4180, column by column.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

/// A minimal reader of RFC 4180, written apart from the writer.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
    std::vector<std::vector<std::string>> rows(1);
    std::string cell;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
            cell += text[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == ',' || c == '\n')) {
            rows.back().push_back(std::exchange(cell, {}));
            if (c == '\n') rows.emplace_back();
        } else
            cell += c;
    }
    rows.pop_back();  // the text ends with a line feed
    return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row, const std::string& column) {
    const auto found = std::find(rows[0].begin(), rows[0].end(), column);
    EXPECT_NE(found, rows[0].end()) << column;
    return rows[row][static_cast<std::size_t>(found - rows[0].begin())];
}

TEST(StepsCsv, EndsWithTheCountersOfTheResult) {
    const auto rows = parse_csv(write_steps_csv(example::profiled_result()));
    const std::vector<std::string>& header = rows.at(0);
    ASSERT_GT(header.size(), 6u);
    const std::vector<std::string> last(header.end() - 6, header.end());
    EXPECT_EQ(last,
              (std::vector<std::string>{"device_us", "kernels", "tc", "mismatch", "tensor_active", "tcgen05_inst"}));
    const std::vector<std::string> cells(rows.at(1).end() - 5, rows.at(1).end());
    EXPECT_EQ(cells, (std::vector<std::string>{"1", "1", "", "41.5", ""}));
}

TEST(StepsCsv, MatchesTheGoldenFile) { expect_golden("steps.csv", write_steps_csv(example::short_result())); }

TEST(StepsCsv, HasOneRowForEachStepAndAsManyCellsAsTheHeader) {
    const Result result = example::result();
    const auto rows = parse_csv(write_steps_csv(result));
    std::size_t steps = 0;
    for (const Point& point : result.points) steps += point.steps.size();
    ASSERT_EQ(rows.size(), steps + 1);
    for (const auto& row : rows) ASSERT_EQ(row.size(), rows[0].size());
}

TEST(StepsCsv, NamesABytesColumnForEveryRole) {
    const auto rows = parse_csv(write_steps_csv({}));
    for (const std::string_view role : role_names)
        EXPECT_THAT(rows[0], testing::Contains("bytes_" + std::string(role)));
}

TEST(StepsCsv, QuotesWhatTheFormatReserves) {
    Result result = example::short_result();
    result.points.resize(1);
    const std::string nasty = "tile \"128x128\", stages 4\nline two\r";
    result.points[0].steps[0].implementation = nasty;
    EXPECT_EQ(cell(parse_csv(write_steps_csv(result)), 1, "implementation"), nasty);
}

TEST(StepsCsv, KeepsFullPrecision) {
    Result result = example::short_result();
    result.points[0].steps[0].time_us->median = 0.1 + 0.2;
    EXPECT_EQ(std::stod(cell(parse_csv(write_steps_csv(result)), 1, "time_us_median")), 0.1 + 0.2);
}

TEST(StepsCsv, LeavesTimesAndRatesEmptyWithoutATime) {
    Result result = example::short_result();
    result.points[0].steps[0].time_us.reset();
    const auto rows = parse_csv(write_steps_csv(result));
    for (const char* column : {"time_us_median", "time_us_ci_high", "n", "tflop_per_s", "gb_per_s"})
        EXPECT_EQ(cell(rows, 1, column), "") << column;
    EXPECT_NE(cell(rows, 1, "flops"), "");
}

TEST(KernelsCsv, HasOneRowForEachKernel) {
    Result result = example::short_result();
    KernelResult kernel;
    kernel.name = "void gemm<half, 128>(int, float)";
    kernel.short_name = "gemm";
    kernel.time_us = 12.5;
    kernel.grid = {8, 4, 1};
    kernel.limiters = {"registers", "blocks"};
    result.points[0].steps[1].kernels = {kernel, kernel};
    result.points[0].steps[1].kernels[1].waves = Quantity::derived(0.5);
    const auto rows = parse_csv(write_kernels_csv(result));
    ASSERT_EQ(rows.size(), 3u);
    for (const auto& row : rows) ASSERT_EQ(row.size(), rows[0].size());
    EXPECT_EQ(cell(rows, 2, "step"), "1");
    EXPECT_EQ(cell(rows, 2, "kernel_index"), "1");
    EXPECT_EQ(cell(rows, 1, "kernel_full"), kernel.name);
    EXPECT_EQ(cell(rows, 1, "time_us_median"), "12.5");
    EXPECT_EQ(cell(rows, 1, "grid"), "8,4,1");
    EXPECT_EQ(cell(rows, 1, "occ_limiter"), "registers,blocks");
    EXPECT_EQ(cell(rows, 1, "waves"), "");
    EXPECT_EQ(cell(rows, 2, "waves"), "0.5");
}

TEST(KernelsCsv, IsAHeaderWithoutKernels) {
    EXPECT_EQ(parse_csv(write_kernels_csv(example::short_result())).size(), 1u);
}

TEST(StepsCsv, BytesAreTheSumOfTheRoles) {
    const auto rows = parse_csv(write_steps_csv(example::short_result()));
    for (std::size_t row = 1; row < rows.size(); ++row) {
        double sum = 0;
        for (const std::string_view role : role_names) sum += std::stod(cell(rows, row, "bytes_" + std::string(role)));
        EXPECT_DOUBLE_EQ(std::stod(cell(rows, row, "bytes")), sum);
    }
}

}  // namespace
}  // namespace kbench
