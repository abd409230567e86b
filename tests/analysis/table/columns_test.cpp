// Columns: what they take from a step, what a group of steps makes of them, and that an unknown is never a number.
#include "analysis/table/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "analysis/explain/explain.h"
#include "analysis/explain/point_roofs.h"
#include "analysis/explain/verdict.h"
#include "analysis/table/table_query.h"
#include "kbench/error.h"
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
    result.cost.bytes_read[static_cast<std::size_t>(Role::weights)] = bytes;
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
    for (const char* name :
         {"tc", "stream", "grid", "block", "tid", "altseq", "trace", "sil", "time_us", "event_min_us", "event_low_us",
          "event_high_us", "n", "tflop_per_s", "gb_per_s", "device", "latency_ms"})
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
    for (const char* name : {"event_min_us", "event_p25_us", "event_p75_us", "event_low_us", "event_high_us"})
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

/// A step whose one kernel, or each of whose kernels, took `kernel_us`.
StepResult recorded(std::vector<double> kernel_us) {
    StepResult result = step(10, 1e9, 5e6);
    for (const double time_us : kernel_us) {
        KernelResult kernel;
        kernel.name = "void ns::gemm<float>(int)";
        kernel.short_name = "gemm";
        kernel.time_us = time_us;
        kernel.gap_us = 0.5;
        kernel.grid = {128, 2, 1};
        kernel.block = {384, 1, 1};
        kernel.registers = 168;
        kernel.dynamic_shared_bytes = 1024;
        kernel.cluster_blocks = 2;
        kernel.stream = 7;
        kernel.theoretical_occupancy_pct = Quantity::derived(10 * time_us);
        kernel.waves = Quantity::derived(1.25);
        kernel.lost_in_last_wave_pct = Quantity::unavailable("clusters");
        kernel.limiters = {"registers", "shared memory"};
        kernel.occupancy_hint = "fewer";
        result.kernels.push_back(kernel);
    }
    return result;
}

TEST(KernelColumns, ShowAStepsOnlyKernel) {
    const Row row({recorded({4})});
    const std::pair<const char*, const char*> cells[] = {
        {"kernel", "gemm"},
        {"kernel_full", "void ns::gemm<float>(int)"},
        {"kernels", "1"},
        {"grid", "128,2,1"},
        {"block", "384,1,1"},
        {"stream", "7"},
        {"device", "0"},
        {"regs", "168"},
        {"smem_static", "0"},
        {"smem_dynamic", "1024"},
        {"local_bytes", "0"},
        {"cluster", "2"},
        {"kernel_us", "4"},
        {"gap_us", "0.5"},
        {"occ_theory", "40"},
        {"occ_limiter", "registers,shared memory"},
        {"waves", "1.25"},
        {"lost_last_wave", "na"},
        {"occ_hint", "fewer"},
        {"occ_achieved", "na"},
        {"event_us", "10"},
        {"time_us", "4"},
        {"implementation", "tile 128x128"},
    };
    for (const auto& [column, text] : cells) EXPECT_EQ(row.text(column), text) << column;
}

TEST(KernelColumns, OfSeveralKernelsAreJoinedSharedSummedOrWeighted) {
    StepResult two = recorded({1, 3});
    two.kernels[1].short_name = "reduce";
    two.kernels[1].registers = 32;
    const Row row({two});
    EXPECT_EQ(row.text("kernel"), "gemm+reduce");
    EXPECT_EQ(row.text("kernels"), "2");
    EXPECT_EQ(row.text("regs"), "various");
    EXPECT_EQ(row.text("grid"), "128,2,1");
    EXPECT_EQ(row.text("kernel_us"), "4");
    EXPECT_EQ(row.text("gap_us"), "1");
    EXPECT_EQ(row.text("occ_theory"), "25") << "(1 us of 10 %, 3 us of 30 %) / 4 us";
}

TEST(KernelColumns, AreNaWhereAStepsKernelsAreNotKnown) {
    const Row row({recorded({4}), step(10, 1, 1)});
    for (const char* name : {"kernels", "kernel_full", "kernel_us", "gap_us", "regs", "grid", "occ_theory", "waves"}) {
        const Value value = row.value(name);
        EXPECT_TRUE(std::holds_alternative<NoValue>(value)) << name << ": " << exact(value);
    }
}

StepResult with_counters(double time_us, std::map<std::string, double> counters) {
    StepResult result = step(time_us, 1e9, 5e6);
    result.counters = std::move(counters);
    return result;
}

TEST(ExecutedColumns, FollowTheCounters) {
    StepResult counted = with_counters(2, {{"tensor_fp16_ops", 1.5e9},
                                           {"tensor_bf16_ops", 0},
                                           {"tensor_tf32_ops", 0},
                                           {"tensor_fp64_ops", 0},
                                           {"sass_fadd", 1e6},
                                           {"sass_fmul", 0},
                                           {"sass_ffma", 2e6},
                                           {"sass_dadd", 0},
                                           {"sass_dmul", 0},
                                           {"sass_dfma", 7},
                                           {"sass_hadd", 0},
                                           {"sass_hmul", 0},
                                           {"sass_hfma", 3},
                                           {"cf_executed", 11},
                                           {"dram_read_bytes", 6e6},
                                           {"dram_write_bytes", 4e6},
                                           {"l2_bytes", 2e7},
                                           {"smsp_active", 20},
                                           {"achieved_occupancy", 23},
                                           {"ipc", 1.5},
                                           {"time", 8000},
                                           {"sm_cycles_active", 900},
                                           {"sm_cycles_elapsed", 4000}});
    counted.padding_flops = 3e8;
    counted.spared_flops = 1e8;
    counted.matrix_flops = 1.2e9;
    const Row row({counted});
    const std::pair<const char*, double> cells[] = {
        {"executed_fp16", 1.5e9},
        {"executed_fp32", 5e6},
        {"executed_fp64", 14},
        {"executed_bf16", 0},
        {"executed_flops", 1505000026},
        {"executed_over_model", 1505000026 / 1.2e9},
        {"padding_flops", 3e8},
        {"spared_flops", 1e8},
        {"matrix_flops", 1.2e9},
        {"flop_count_sp", 5e6},
        {"flop_count_dp", 14},
        {"flop_count_hp", 12},
        {"cf_executed", 11},
        {"dram_bytes", 1e7},
        {"dram_over_unfused", 2},
        {"l2_over_unfused", 4},
        {"dram_gb_per_s", 5000},
        {"dram_read_throughput", 3000},
        {"dram_write_throughput", 2000},
        {"sm_active", 90},
        {"sm_efficiency", 90},
        {"achieved_occupancy", 23},
        {"occ_achieved", 23},
        {"ipc", 1.5},
    };
    for (const auto& [column, value] : cells) EXPECT_DOUBLE_EQ(std::get<double>(row.value(column)), value) << column;
    EXPECT_EQ(row.text("tc"), "1");
    EXPECT_EQ(row.text("mismatch"), "na");
}

TEST(ExecutedColumns, AreNaWithoutCounters) {
    const Row row({step(1, 1, 1)});
    for (const char* name :
         {"tc", "executed_flops", "executed_fp16", "executed_over_model", "mismatch", "flop_count_sp", "cf_executed",
          "dram_bytes", "dram_over_unfused", "l2_over_unfused", "dram_gb_per_s", "sm_active", "ipc"})
        EXPECT_EQ(row.value(name), Value(NoValue::na)) << name;
}

TEST(ExecutedColumns, SayWhatDoesNotMatch) {
    StepResult plain = with_counters(1, {{"tensor_pipe_active", 0}});
    plain.matrix_flops = 1e9;
    const Row row({plain});
    EXPECT_EQ(row.text("tc"), "0");
    EXPECT_EQ(row.text("mismatch"), "asked for fp16, but ran on plain cores");
}

TEST(CounterMeans, AreWeightedByMediansWithoutRecordsAndByRecordsWithThem) {
    StepResult fast = with_counters(1, {{"ipc", 100}}), slow = with_counters(3, {{"ipc", 20}});
    EXPECT_EQ(Row({fast, slow}).text("ipc"), "40");
    fast.kernels = recorded({3}).kernels;
    EXPECT_EQ(Row({fast, slow}).text("ipc"), "60") << "one of them alone has records";
    slow.kernels = recorded({1}).kernels;
    EXPECT_EQ(Row({fast, slow}).text("ipc"), "80");
    slow.counters.clear();
    EXPECT_EQ(Row({fast, slow}).text("ipc"), "na");
}

TEST(Columns, AnUnknownNameGetsTheNearestOnes) {
    try {
        find_column("tflops_per_s");
        FAIL() << "no error";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no column 'tflops_per_s'; did you mean tflop_per_s?"));
    }
}

Ceiling measured_ceiling(std::string name, double value) {
    Ceiling ceiling;
    ceiling.name = std::move(name);
    ceiling.value = Quantity::measured(value);
    return ceiling;
}

TEST(Columns, ShareOfAnIsasPeakIsOfTheSameIsaAndPrecision) {
    StepResult fp32 = step(100, 1e8, 1);  // 1 TFLOP/s
    fp32.implementation = "brg:avx512_core";
    fp32.precision = Precision::fp32;
    StepResult bf16 = fp32;
    bf16.implementation = "brg:avx512_core_amx";
    bf16.precision = Precision::bf16;
    Result result;
    result.ceilings.ceilings = {measured_ceiling("avx512_fp32", 4), measured_ceiling("amx_bf16", 20),
                                measured_ceiling("avx512_fp32_one_core", 0.25)};
    const auto share = [&result](std::vector<StepResult> steps, const std::string& backend = "cpu") {
        Row row(std::move(steps));
        row.point.set("backend", backend);
        row.row.result = &result;
        return row.text("isa_peak_pct");
    };
    EXPECT_EQ(share({fp32}), "25");
    EXPECT_EQ(share({bf16}), "5");
    EXPECT_EQ(share({fp32, bf16}), "15") << "the time at each one's own peak over the time taken";
    EXPECT_EQ(share({fp32}, "cuda"), "na");
    StepResult fp64 = fp32;
    fp64.precision = Precision::fp64;
    EXPECT_EQ(share({fp64}), "na") << "no ceiling of that precision";
    EXPECT_EQ(share({fp32, fp64}), "na") << "a part must not pass for the whole";
    result.ceilings.ceilings.clear();
    EXPECT_EQ(share({fp32}), "na");
    EXPECT_EQ(Row({fp32}).text("isa_peak_pct"), "na") << "a row of no result";
}

TEST(Columns, OfAWholePointSayHowItStandsToTheRoofs) {
    const ResultFile file{"result.json", example::profiled_result()};
    TableQuery query;
    query.level = &find_level("point");
    query.columns = {"latency_low_ms", "latency_ms",   "latency_high_ms", "tokens_per_s", "point_tflop_per_s",
                     "roof_share",     "binding_roof", "verdict",         "reason",       "compulsory_bytes"};
    const QueriedTable table = query_table({&file, 1}, query);
    const auto cell = [&](std::size_t row, std::size_t column) {
        return table.columns[column].value(table.rows.at(row));
    };
    const Point& point = file.result.points[0];
    const Summary& latency = point.end_to_end->latency.summary_ms;
    EXPECT_EQ(cell(0, 0), Value(latency.ci_low));
    EXPECT_EQ(cell(0, 1), Value(latency.median));
    EXPECT_EQ(cell(0, 2), Value(latency.ci_high));
    EXPECT_EQ(cell(0, 3), Value(point.end_to_end->tokens_per_s.value()));
    EXPECT_DOUBLE_EQ(std::get<double>(cell(0, 4)), point.cost.flops / latency.median * 1e-9);
    EXPECT_EQ(cell(0, 9), Value(point.compulsory_bytes.value()));

    const Explanation explained = explain(file.result, point);
    double roof_us = 0;
    for (const StepRoofTimes& step : explained.roof_times) roof_us += step.binding() ? step.binding()->us : 0;
    EXPECT_NEAR(std::get<double>(cell(0, 5)), 100 * roof_us / (1e3 * latency.median), 1e-6);
    ASSERT_NE(explained.breakdown.roof_times.longest(), nullptr);
    EXPECT_EQ(cell(0, 6), Value(explained.breakdown.roof_times.longest()->name));
    const std::string verdict = std::get<std::string>(cell(0, 7));
    EXPECT_TRUE(verdict.starts_with(name(explained.verdicts.model.bound))) << verdict;
    for (std::size_t column = 0; column < 8; ++column) EXPECT_EQ(cell(3, column), Value(NoValue::na)) << column;
    EXPECT_THAT(std::get<std::string>(cell(3, 8)), HasSubstr("fp16 needs AVX512_FP16"));

    query.level = &find_level("op");
    const QueriedTable parts = query_table({&file, 1}, query);
    for (std::size_t column = 5; column < 8; ++column)
        EXPECT_EQ(parts.columns[column].value(parts.rows.front()), Value(NoValue::na)) << "a part of a point";
}

TEST(Columns, ByCauseAddUpToTheLatencyAndOpsToTheirSteps) {
    const ResultFile file{"result.json", example::profiled_result()};
    TableQuery query;
    query.columns = {"useful_work_us",  "clock_us",         "main_loop_us", "fixed_time_us",
                     "uneven_waves_us", "extra_work_us",    "gaps_us",      "dependency_us",
                     "latency_ms",      "not_explained_us", "misfit_pct",   "undecided_pct"};
    const auto table_by = [&](std::string_view level) {
        query.level = &find_level(level);
        return query_table({&file, 1}, query);
    };
    const auto column_sum = [&](const QueriedTable& table, std::size_t column) {
        double sum = 0;
        for (const TableRow& row : table.rows)
            if (row.point_index == 0) sum += std::get<double>(table.columns[column].value(row));
        return sum;
    };
    const QueriedTable points = table_by("point"), ops = table_by("op"), steps = table_by("step");
    double all_us = 0;
    for (std::size_t column = 0; column < 10; ++column) {
        if (query.columns[column] == "latency_ms") continue;
        all_us += std::get<double>(points.columns[column].value(points.rows[0]));
        EXPECT_NEAR(column_sum(ops, column), column_sum(steps, column), 1e-6) << query.columns[column];
    }
    EXPECT_NEAR(all_us, file.result.points[0].end_to_end->latency.summary_ms.median * 1e3, 1e-6);
    EXPECT_GT(column_sum(steps, 0), 0) << "useful work";
    const Causes causes = explain(file.result, file.result.points[0]).causes;
    EXPECT_EQ(points.columns[10].value(points.rows[0]), Value(100 * causes.whole.misfit_share()));
    EXPECT_EQ(ops.columns[10].value(ops.rows[0]), Value(NoValue::na)) << "a part of a point";
    EXPECT_FALSE(explain(file.result, file.result.points[0]).concludes());
    EXPECT_EQ(points.columns[11].value(points.rows[0]), Value(NoValue::na)) << "nothing is decided without ground";
    const QueriedTable kernels = table_by("kernel");
    for (const TableRow& row : kernels.rows)
        if (row.kernel != nullptr) {
            EXPECT_EQ(kernels.columns[0].value(row), Value(NoValue::na)) << "causes are those of steps";
        }
}

TEST(PointRoofs, AreTheDemandOverTheTimeAndItsLargestPart) {
    TimeBreakdown breakdown;
    EXPECT_FALSE(roof_share(breakdown)) << "nothing was timed";
    breakdown.end_to_end_us = 10;
    EXPECT_EQ(binding_roof(breakdown), "") << "there is no roof time";
    breakdown.roof_times.useful_us = 8;
    breakdown.roof_times.by_roof = {{"DRAM", false, Interval::exactly(5)}, {"tensor pipe", true, Interval::exactly(9)}};
    EXPECT_DOUBLE_EQ(roof_share(breakdown).value(), 0.8);
    EXPECT_EQ(binding_roof(breakdown), "DRAM") << "a unit's busy time is no roof time";
    breakdown.unavailable = "the point was not timed";
    EXPECT_FALSE(roof_share(breakdown));
    EXPECT_EQ(binding_roof(breakdown), "");
}

TEST(Columns, AreFoundByTheNamesThatTheyHadBefore) {
    for (const auto& [before, now] :
         {std::pair{"least_bytes", "compulsory_bytes"}, std::pair{"dependent_us", "time_step_us"},
          std::pair{"dram_over_streaming", "dram_over_unfused"}})
        EXPECT_EQ(find_column(before, {}).name, now);
}

}  // namespace
}  // namespace kbench
