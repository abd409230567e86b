// Which unit was the busiest, and whether one that nobody counted may have been.
#include "analysis/explain/units.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

/// As kbench counts by default: idle but for a tenth of the issue slots.
StepResult counted_step() {
    StepResult step;
    step.counters = {{"tensor_pipe_active", 0}, {"pipe_xu", 0},    {"pipe_lsu", 0},
                     {"pipe_shared_memory", 0}, {"l2_lookups", 0}, {"ipc", 0.4}};
    return step;
}

UnitActivity activity_of(const StepResult& step) { return unit_activity(make_step_facts(step)); }

TEST(Units, TheBusiestPipeAndTheBusiestMemoryAreNamed) {
    StepResult step = counted_step();
    step.counters["pipe_xu"] = 30;
    step.counters["pipe_lsu"] = 20;
    step.counters["pipe_shared_memory"] = 25;
    step.counters["l2_to_sms"] = 26;
    UnitActivity activity = activity_of(step);
    EXPECT_EQ(activity.pipe.name, "special-function unit");
    EXPECT_DOUBLE_EQ(activity.pipe.share, 0.30);
    EXPECT_EQ(activity.memory.name, "L2");
    EXPECT_DOUBLE_EQ(activity.memory.share, 0.26);
    EXPECT_EQ(activity.busiest().name, "special-function unit");
    step.counters["pipe_shared_memory"] = 31;
    activity = activity_of(step);
    EXPECT_EQ(activity.busiest().name, "shared memory");
    EXPECT_EQ(activity.pipe.name, "special-function unit");
}

TEST(Units, OfEquallyBusyOnesThePipeSpeaks) {
    StepResult step = counted_step();
    step.counters["pipe_xu"] = step.counters["pipe_shared_memory"] = 70;
    EXPECT_EQ(activity_of(step).busiest().name, "special-function unit");
}

/// Additions in L2 keep its own unit busy, and may leave all its ways half idle.
TEST(Units, L2IsAsBusyAsItsBusiestPart) {
    StepResult step = counted_step();
    step.counters["l2_to_sms"] = 2;
    step.counters["sms_to_l2"] = 45;
    step.counters["l2_atomics"] = 90;
    EXPECT_EQ(activity_of(step).busiest().name, "L2");
    EXPECT_DOUBLE_EQ(activity_of(step).busiest().share, 0.90);
}

/// A part that was counted alone is L2 as well: a memory, which is busy in cycles of its own.
TEST(Units, EachPartOfL2IsAMemoryOfItsOwnCycles) {
    for (const char* part : {"l2_lookups", "l2_tags", "l2_data", "l2_atomics", "l2_to_sms", "sms_to_l2"}) {
        StepResult step;
        step.counters = {{part, 70}, {"pipe_shared_memory", 60}};
        EXPECT_EQ(activity_of(step).memory.name, "L2") << part;
        for (const BusyUnit& unit : activity_of(step).all) EXPECT_EQ(unit.of_active, unit.name != "L2") << part;
    }
}

TEST(Units, SchedulersAreOneOfThem) {
    StepResult step = counted_step();
    EXPECT_EQ(activity_of(step).pipe.name, unit::issue_slots);
    EXPECT_DOUBLE_EQ(activity_of(step).pipe.share, 0.1);  // 0.4 instructions a cycle of four schedulers
    step.counters["issue_active"] = 12;
    EXPECT_DOUBLE_EQ(activity_of(step).pipe.share, 0.12);
}

/// An instruction keeps the ALU busy for two cycles at most.
TEST(Units, ThatWereNotCountedMatterOnlyWhereThereAreIssuesEnough) {
    StepResult step = counted_step();
    EXPECT_TRUE(activity_of(step).known);
    step.counters["issue_active"] = 29.9;
    EXPECT_TRUE(activity_of(step).known);
    step.counters["issue_active"] = 30;
    EXPECT_FALSE(activity_of(step).known);
    for (const char* pipe : {"pipe_alu", "pipe_fma"}) step.counters[pipe] = 5;
    EXPECT_FALSE(activity_of(step).known);
    step.counters["pipe_fp64"] = 0;
    EXPECT_TRUE(activity_of(step).known);
}

TEST(Units, AreNoCeilings) {
    for (const std::string_view unit : {"tensor pipe", "shared memory", "load-store unit", "L2"})
        EXPECT_TRUE(is_unit(unit));
    EXPECT_TRUE(is_unit(unit::issue_slots));
    for (const std::string_view other : {"fp32_plain", "DRAM", ""}) EXPECT_FALSE(is_unit(other));
}

TEST(Units, ThatFewInstructionsKeepBusyMustBeCounted) {
    for (const char* unit : {"tensor_pipe_active", "pipe_xu", "pipe_lsu", "pipe_shared_memory", "l2_lookups", "ipc"}) {
        StepResult step = counted_step();
        step.counters.erase(unit);
        EXPECT_FALSE(activity_of(step).known) << unit;
    }
    StepResult fp64 = counted_step();
    fp64.precision = Precision::fp64;
    EXPECT_FALSE(activity_of(fp64).known);
    fp64.counters["pipe_fp64"] = 0;
    EXPECT_TRUE(activity_of(fp64).known);
    StepResult tcgen05 = counted_step();
    tcgen05.counters["tcgen05_inst"] = 0;
    EXPECT_TRUE(activity_of(tcgen05).known);
    tcgen05.counters["tcgen05_inst"] = 1;
    EXPECT_FALSE(activity_of(tcgen05).known);
}

}  // namespace
}  // namespace kbench
