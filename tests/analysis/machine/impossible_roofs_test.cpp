// Roofs of all cores that cannot be, beside what one core reached alone.
#include "analysis/machine/impossible_roofs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::IsEmpty;

Ceiling ceiling(const std::string& name, double value, int threads) {
    Ceiling result;
    result.name = name;
    result.value = Quantity::measured(value);
    result.low = result.high = value;
    result.threads = threads;
    return result;
}

CeilingRun triads(double all, int threads, double one) {
    CeilingRun run;
    run.ceilings = {ceiling("cpu_dram_triad", all, threads), ceiling("cpu_dram_triad_one_core", one, 1)};
    return run;
}

TEST(ImpossibleRoofs, AreBelowOneCore) {
    EXPECT_THAT(impossible_roofs(triads(25, 2, 25.3)), IsEmpty()) << "cores may share one core's bandwidth";
    EXPECT_THAT(impossible_roofs(triads(23, 2, 25.3)), IsEmpty()) << "two measurements differ";
    const std::vector<ImpossibleRoof> found = impossible_roofs(triads(12, 2, 25.3));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].ceiling, "cpu_dram_triad");
    EXPECT_EQ(found[0].why, "12 GB/s by 2 threads is less than the 25.3 GB/s of one core");
}

TEST(ImpossibleRoofs, AreAboveWhatSoManyCoresCanDo) {
    EXPECT_THAT(impossible_roofs(triads(50, 2, 25.3)), IsEmpty());
    EXPECT_THAT(impossible_roofs(triads(800, 32, 25.3)), IsEmpty());
    ASSERT_EQ(impossible_roofs(triads(83, 2, 25.3)).size(), 1u);
    EXPECT_EQ(impossible_roofs(triads(83, 2, 25.3))[0].why,
              "83 GB/s by 2 threads is more than 2 times the 25.3 GB/s of one core");
    ASSERT_EQ(impossible_roofs(triads(83, 1, 25.3)).size(), 1u);
    EXPECT_EQ(impossible_roofs(triads(83, 1, 25.3))[0].why,
              "83 GB/s by 1 thread is more than the 25.3 GB/s of one core");
}

TEST(ImpossibleRoofs, AreOfComputeToo) {
    CeilingRun run;
    run.ceilings = {ceiling("avx2_fp32", 0.05, 4), ceiling("avx2_fp64", 0.1, 4), ceiling("avx2_fp32_one_core", 0.1, 1),
                    ceiling("avx2_fp64_one_core", 0.03, 1)};
    ASSERT_EQ(impossible_roofs(run).size(), 1u);
    EXPECT_EQ(impossible_roofs(run)[0].ceiling, "avx2_fp32");
}

TEST(ImpossibleRoofs, NeedBothAndTheNumberOfThreads) {
    CeilingRun run = triads(83, 2, 25.3);
    run.ceilings[0].threads.reset();
    EXPECT_THAT(impossible_roofs(run), IsEmpty()) << "an older file";
    run.threads = 2;
    EXPECT_EQ(impossible_roofs(run).size(), 1u);
    run.ceilings[1].value = Quantity::unavailable("not enough memory");
    EXPECT_THAT(impossible_roofs(run), IsEmpty());
    run.ceilings.pop_back();
    EXPECT_THAT(impossible_roofs(run), IsEmpty());
    EXPECT_THAT(impossible_roofs({}), IsEmpty());
}

TEST(ImpossibleRoofs, AreUnavailableWithTheReasonOnceDiscarded) {
    CeilingRun run = triads(83, 2, 25.3);
    discard(run, impossible_roofs(run));
    EXPECT_FALSE(run.ceilings[0].value.value);
    EXPECT_THAT(run.ceilings[0].value.reason, testing::StartsWith("cannot be: 83 GB/s by 2 threads"));
    EXPECT_EQ(run.ceilings[0].high, 0);
    EXPECT_TRUE(run.ceilings[1].value.value) << "one core's stays";
    EXPECT_THAT(impossible_roofs(run), IsEmpty());
}

}  // namespace
}  // namespace kbench
