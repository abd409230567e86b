// Columns: what they take from a step, what a group of steps makes of them, and that an unknown is never a number.
#include "analysis/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/table_query.h"
#include "models/error.h"
#include "tests/analysis/example_result.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// A row of steps that the row's test made.
struct Row {
    Point point;
    TableRow row;

    explicit Row(std::vector<StepResult> steps) {
        point.steps = std::move(steps);
        row.point = &point;
        double total = 0;
        for (const StepResult& step : point.steps) {
            row.steps.push_back({&step, 0});
            if (step.time_us) total += step.time_us->median;
        }
        row.point_time_us = total;
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;

    Value value(std::string_view column) const { return find_column(column).value(row); }
    std::string text(std::string_view column) const { return exact(value(column)); }
};

StepResult step(double time_us, double flops, double bytes) {
    StepResult result;
    result.layer = "h.0.mlp.c_fc";
    result.op = "gemm";
    result.absorbs = {"h.0.mlp.c_fc:gemm", "h.0.mlp.act:gelu"};
    result.provider = "cublaslt";
    result.implementation = "tile 128x128";
    result.shape = "m2n3k4";
    result.precision = Precision::fp16;
    result.cost.flops = flops;
    example::at(result.cost.bytes_read, Role::weights) = bytes;
    result.time_us = summarise(std::vector<double>(7, time_us));
    return result;
}

StepResult untimed() {
    StepResult result = step(1, 2, 3);
    result.time_us.reset();
    return result;
}

TEST(Columns, HaveNamesOfTheirOwnAndSayWhatTheyMean) {
    std::set<std::string> names;
    for (const Column& column : columns()) {
        EXPECT_TRUE(names.insert(column.name).second) << column.name << " twice";
        EXPECT_NE(column.header, "") << column.name;
        EXPECT_NE(column.what, "") << column.name;
        EXPECT_FALSE(column.shortens && column.align == Align::right) << column.name << ": numbers are never shortened";
    }
}

TEST(Columns, KeepTheNamesThatPyProfUsersKnow) {
    for (const char* name :
         {"idx",    "seq",    "altseq", "tid", "layer",  "trace",  "dir",  "sub",   "mod",   "op",
          "kernel", "params", "sil",    "tc",  "device", "stream", "grid", "block", "flops", "bytes"})
        EXPECT_NO_THROW(find_column(name)) << name;
}

TEST(Columns, ShowAStep) {
    const Row row({step(2.5, 1e9, 5e6)});
    EXPECT_EQ(row.text("dir"), "fwd");
    EXPECT_EQ(row.text("mod"), "cublaslt");
    EXPECT_EQ(row.text("kernel"), "tile 128x128");
    EXPECT_EQ(row.text("params"), "[m2n3k4]fp16");
    EXPECT_EQ(row.text("seq"), "0,1") << "a fused step computes two ops";
    EXPECT_EQ(row.value("sil"), Value(std::int64_t{2500})) << "whole nanoseconds";
    EXPECT_EQ(row.text("absorbs"), "h.0.mlp.c_fc:gemm;h.0.mlp.act:gelu");
    EXPECT_EQ(row.text("n"), "7");
    EXPECT_EQ(row.text("bytes_weights"), "5000000");
    EXPECT_EQ(row.value("tflop_per_s"), Value(1e9 / 2.5 * 1e-6));
    EXPECT_EQ(row.value("gb_per_s"), Value(5e6 / 2.5 * 1e-3));
    EXPECT_EQ(row.value("share"), Value(100.0));
}

TEST(Columns, WhatIsNotKnownIsNaAndNeverZero) {
    const Row row({untimed()});
    for (const char* name : {"tc", "stream", "grid", "block", "tid", "altseq", "trace", "sil", "time_us", "time_min_us",
                             "ci_low_us", "ci_high_us", "n", "tflop_per_s", "gb_per_s", "device", "latency_ms"})
        EXPECT_EQ(row.value(name), Value(NoValue::na)) << name;
    EXPECT_EQ(row.text("flops"), "2") << "costs need no time";
}

TEST(Columns, AGroupSumsAmountsAndRecomputesRates) {
    const Row row({step(1, 1e9, 4e6), step(3, 2e9, 5e6)});
    EXPECT_EQ(row.text("steps"), "2");
    EXPECT_EQ(row.text("time_us"), "4");
    EXPECT_EQ(row.text("sil"), "4000");
    EXPECT_EQ(row.text("flops"), "3000000000");
    EXPECT_EQ(row.text("bytes"), "9000000");
    EXPECT_EQ(row.value("tflop_per_s"), Value(3e9 / 4 * 1e-6)) << "not the mean of the steps' rates";
    EXPECT_EQ(row.value("gb_per_s"), Value(9e6 / 4 * 1e-3));
}

TEST(Columns, AGroupHasNoOrderStatisticOfASum) {
    const Row row({step(1, 1, 1), step(1, 1, 1)});
    for (const char* name : {"time_min_us", "time_p25_us", "time_p75_us", "ci_low_us", "ci_high_us"})
        EXPECT_EQ(row.value(name), Value(NoValue::na)) << name;
}

TEST(Columns, AGroupShowsWhatItsStepsShareAndNamesTheRestVarious) {
    StepResult other = step(1, 1, 1);
    other.index = 1;
    other.implementation = "tile 64x64";
    other.precision = Precision::fp32;
    const Row row({step(1, 1, 1), other});
    EXPECT_EQ(row.text("op"), "gemm");
    EXPECT_EQ(row.text("layer"), "h.0.mlp.c_fc");
    for (const char* name : {"kernel", "implementation", "params", "precision", "step"})
        EXPECT_EQ(row.value(name), Value(NoValue::various)) << name;
}

TEST(Columns, ASumWithoutOneOfItsPartsIsNa) {
    const Row row({step(1, 1, 1), untimed()});
    for (const char* name : {"time_us", "sil", "tflop_per_s", "gb_per_s"})
        EXPECT_EQ(row.value(name), Value(NoValue::na)) << name;
}

TEST(Columns, OnlyForwardStepsNumberTheirOps) {
    StepResult backward = step(1, 1, 1);
    backward.direction = Direction::dgrad;
    EXPECT_EQ(Row({backward}).value("seq"), Value(NoValue::na));
}

TEST(Columns, PeopleGetDecimalsAndOneLineProgramsGetEveryDigit) {
    StepResult odd = step(0.1 + 0.2, 1, 1);
    odd.implementation = "two\nlines";
    const Row row({odd});
    const auto people = [&](const char* name) { return shown(find_column(name), row.value(name)); };
    EXPECT_EQ(people("time_us"), "0.300");
    EXPECT_EQ(row.text("time_us"), "0.30000000000000004");
    EXPECT_EQ(people("kernel"), "two lines");
    EXPECT_EQ(people("tc"), "na");
}

TEST(Columns, AnUnknownNameGetsTheNearestOnes) {
    try {
        find_column("tflops_per_s");
        FAIL() << "no error";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no column 'tflops_per_s'; nearest: tflop_per_s, "));
    }
}

}  // namespace
}  // namespace kbench
