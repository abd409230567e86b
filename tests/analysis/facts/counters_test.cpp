// Counters by their fields, and that nobody looks one up by a name of his own.
#include "analysis/facts/counters.h"

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
