// Counters by their fields, and that nobody looks one up by a name of his own.
#include "analysis/facts/counters.h"

#include "analysis/explain/cycles.h"
#include "analysis/facts/point_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Counters, AreFieldsByTheirNames) {
    StepResult step;
    step.counters = {{"ipc", 1.5}, {"time", 2e3}, {"xu_inst", 0}, {"of_a_later_kbench", 7}};
    const Counters counters = counters_of(step);
    EXPECT_EQ(counters.ipc, 1.5);
    EXPECT_EQ(counters.time, 2e3);
    EXPECT_EQ(counters.xu_inst, 0) << "counted";
    EXPECT_EQ(counters.lsu_inst, std::nullopt) << "not counted";
    EXPECT_EQ(counter_named(step, "of_a_later_kbench"), 7);
    EXPECT_EQ(counter_named(step, "lsu_inst"), std::nullopt);
    EXPECT_EQ(name_of(&Counters::sass_hfma), "sass_hfma");
}

TEST(Counters, HaveAFieldForEachMetric) {
    std::ifstream file(std::filesystem::path(KBENCH_SOURCE_DIR) / "bench/profile/metrics.txt");
    const std::regex row(R"(^[a-z][a-z-]*\s+([a-z][a-z0-9_]*)\s+\S+\s.*)");
    std::size_t rows = 0;
    std::smatch match;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("chips") || !std::regex_match(line, match, row)) continue;
        ++rows;
        StepResult step;
        step.counters[match[1]] = 3;
        const Counters counters = counters_of(step);
        EXPECT_EQ(std::ranges::count_if(counter_fields, [&](const CounterField& f) { return counters.*f.value == 3; }),
                  1)
            << match[1];
    }
    EXPECT_GT(rows, std::size(counter_fields)) << "some are in two sets";
}

/// A GEMM of 28 us that was counted in a range of 61 us at 1,700 MHz, and was active for 27 of them.
StepResult step_of_long_range() {
    StepResult step;
    step.kernels.emplace_back().time_us = 28;
    step.counters = {{"time", 61e3},
                     {"sm_cycles_elapsed", 61 * 1700.0},
                     {"sm_cycles_active", 26 * 1700.0},
                     {"sm_cycles_active_max", 27 * 1700.0},
                     {"smsp_active", 42},
                     {"l2_lookups", 20},
                     {"dram_throughput", 15},
                     {"ipc", 1.1},
                     {"tensor_pipe_active", 55},
                     {"dram_read_bytes", 5e6},
                     {"tensor_tf32_ops", 3e9}};
    return step;
}

TEST(Counters, PerElapsedCycleAreWithheldWhereTheRangeIsLongerThanItsKernels) {
    StepResult step = step_of_long_range();
    EXPECT_EQ(elapsed_withheld(step),
              "the counters' range took 61.0 us, its kernels 28.0 us: figures per elapsed cycle are withheld");
    const Counters counters = counters_of(step);
    for (const CounterOf gone : {&Counters::smsp_active, &Counters::l2_lookups, &Counters::dram_throughput}) {
        EXPECT_EQ(counters.*gone, std::nullopt) << name_of(gone);
        EXPECT_EQ(counter_named(step, name_of(gone)), std::nullopt) << name_of(gone);
    }
    for (const CounterOf sum : {&Counters::dram_read_bytes, &Counters::tensor_tf32_ops, &Counters::sm_cycles_active,
                                &Counters::ipc, &Counters::tensor_pipe_active, &Counters::time}) {
        EXPECT_TRUE(counters.*sum) << name_of(sum);
        EXPECT_TRUE(counter_named(step, name_of(sum))) << name_of(sum);
    }
    EXPECT_DOUBLE_EQ(scheduler_cycles(step).value(), 0.42 * 61 * 1700) << "a sum";
}

TEST(Counters, PerElapsedCycleStayWhereTheRangeIsItsKernels) {
    StepResult step = step_of_long_range();
    const auto is_withheld = [&](double range_us, double active_us) {
        step.counters["time"] = range_us * 1e3;
        step.counters["sm_cycles_elapsed"] = range_us * 1700;
        step.counters["sm_cycles_active_max"] = active_us * 1700;
        return !elapsed_withheld(step).empty();
    };
    EXPECT_FALSE(is_withheld(29, 27.5)) << "a microsecond more is usual";
    EXPECT_FALSE(is_withheld(33.7, 28));
    EXPECT_TRUE(is_withheld(33.9, 28));
    EXPECT_FALSE(is_withheld(61, 60)) << "its SMs were at work all the time: it ran at a lower clock";
    EXPECT_EQ(counters_of(step).smsp_active, 42);
    step.kernels.clear();
    EXPECT_FALSE(is_withheld(61, 27)) << "without a record nothing is known";
    StepResult several = step_of_long_range();
    several.kernels = {several.kernels[0], several.kernels[0]};
    several.kernels[1].gap_us = 2;
    EXPECT_TRUE(elapsed_withheld(several).empty()) << "two kernels of 28 us and the gap between them are 58";
}

TEST(Counters, OfTheCycleAccountHoldForALongRange) {
    StepResult step = step_of_long_range();
    EXPECT_EQ(counters_of(step).sm_cycles_active, 26 * 1700.0);
    EXPECT_TRUE(make_step_facts(step).has_cycles());
    step.counters["smsp_active"] = 21;
    const CycleAccount of_half_its_schedulers = account_of(make_step_facts(step));
    EXPECT_NEAR(of_half_its_schedulers.no_warp, 1 - 0.21 * 61 / 28, 1e-9);
}

TEST(Counters, OfStatesAreThoseOfOnePrefix) {
    StepResult step;
    step.counters = {{"stall_wait", 2}, {"stall_barrier", 1}, {"stalled", 9}, {"ipc", 1}};
    EXPECT_THAT(counters_by_state(step, "stall_"), ElementsAre(Pair("barrier", 1), Pair("wait", 2)));
}

TEST(Counters, OfDramAreTrafficWhereBothWaysWereCounted) {
    Counters counters;
    counters.dram_read_bytes = 3;
    EXPECT_EQ(dram_traffic(counters), std::nullopt);
    counters.dram_write_bytes = 4;
    EXPECT_EQ(dram_traffic(counters), 7);
}

/// A name in the code is a field's, which the compiler knows.
TEST(Counters, AreLookedUpByNameNowhereElse) {
    const std::regex look_up(R"re(\bcounter(_named)?\([^()]*"|counters(\(\))?\.(find|at|contains)\("|counters\[")re");
    const std::filesystem::path root = KBENCH_SOURCE_DIR;
    for (const char* folder : {"analysis", "bench"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
            if (!std::set<std::string>{".h", ".cpp", ".cu", ".cuh"}.contains(entry.path().extension())) continue;
            std::ifstream file(entry.path());
            for (std::string line; std::getline(file, line);)
                EXPECT_FALSE(std::regex_search(line, look_up)) << entry.path() << ": " << line;
        }
}

}  // namespace
}  // namespace kbench
