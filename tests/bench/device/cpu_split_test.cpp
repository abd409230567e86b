// How cores are divided between work and a thief, and where they are not.
#include "bench/device/cpu_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

void expect_split(const CoresForThief& has, int work, int thief) {
    const CoreSplit split = split_for_thief(has);
    ASSERT_FALSE(split.refused) << text_of(*split.refused);
    EXPECT_EQ(split.work, work);
    EXPECT_EQ(split.thief, thief);
    EXPECT_LE(split.work + split.thief, has.cores);
}

TEST(CpuSplit, AThiefHasAQuarterOfTheCores) {
    expect_split({.threads = 16, .cores = 16}, 12, 4);
    expect_split({.threads = 4, .cores = 4}, 3, 1);
    expect_split({.threads = 7, .cores = 7}, 6, 1);
}

TEST(CpuSplit, CoresThatTheWorkLeavesFreeAreTakenFirst) {
    expect_split({.threads = 1, .cores = 2}, 1, 1);
    expect_split({.threads = 1, .cores = 16}, 1, 4);
    expect_split({.threads = 8, .cores = 16}, 8, 4);
    expect_split({.threads = 14, .cores = 16}, 12, 4);
}

TEST(CpuSplit, WorkKeepsThreeQuartersOfItsThreads) {
    for (int cores = 1; cores <= 64; ++cores)
        for (int threads = 1; threads <= cores; ++threads) {
            const CoreSplit split = split_for_thief({.threads = threads, .cores = cores});
            if (split.refused) continue;
            EXPECT_GE(4 * split.work, 3 * threads) << threads << " threads on " << cores;
            EXPECT_GE(split.thief, 1);
            EXPECT_LE(split.work + split.thief, cores);
        }
}

TEST(CpuSplit, RefusalsSayWhy) {
    const auto why = [](const CoresForThief& has) { return split_for_thief(has).refused; };
    EXPECT_EQ(why({.threads = 1, .cores = 1}), NoThief::too_few_cores);
    EXPECT_EQ(why({.threads = 2, .cores = 2}), NoThief::too_few_cores);
    EXPECT_EQ(why({.threads = 3, .cores = 3}), NoThief::too_few_cores);
    EXPECT_EQ(why({.threads = 32, .cores = 16}), NoThief::threads_share_cores);
    EXPECT_EQ(why({.threads = 32, .cores = 32, .sockets = 2}), NoThief::several_sockets);
    EXPECT_EQ(why({.threads = 8, .cores = 16, .pinned = false}), NoThief::not_pinned);
    EXPECT_EQ(why({.threads = 8, .cores = 16, .quota = 8.0}), NoThief::quota);
    EXPECT_EQ(why({.threads = 8, .cores = 16, .quota = 12.0}), std::nullopt) << "enough for both";
    EXPECT_THAT(std::string(text_of(NoThief::quota)), testing::HasSubstr("quota"));
    EXPECT_THAT(std::string(text_of(NoThief::too_few_cores)), testing::HasSubstr("too few cores"));
}

}  // namespace
}  // namespace kbench
