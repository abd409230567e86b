// When a process counts as starved of its CPUs.
#include "kbench/cpu_share.h"

#include <gtest/gtest.h>

#include "kbench/records.h"

namespace kbench {
namespace {

TEST(CpuShare, IsOfTheLargestShareThatIsKnown) {
    CpuShare share;
    EXPECT_FALSE(share.lacked()) << "nothing is known";
    EXPECT_FALSE(share.starved());
    share.waited_share = Quantity::measured(0.01);
    share.steal_share = Quantity::unavailable("no /proc/stat");
    EXPECT_DOUBLE_EQ(*share.lacked(), 0.01);
    EXPECT_FALSE(share.starved()) << "an idle host takes as much";
    for (Quantity CpuShare::*one : {&CpuShare::waited_share, &CpuShare::steal_share, &CpuShare::throttled_share}) {
        CpuShare lacking = share;
        lacking.*one = Quantity::measured(0.3);
        EXPECT_DOUBLE_EQ(*lacking.lacked(), 0.3);
        EXPECT_TRUE(lacking.starved());
    }
}

TEST(CpuShare, ConditionsWithoutOneAreNotStarved) {
    Conditions conditions;
    EXPECT_FALSE(starved(conditions)) << "a GPU, or an older file";
    conditions.cpu_share.emplace().throttled_share = Quantity::measured(0.9);
    EXPECT_TRUE(starved(conditions));
}

}  // namespace
}  // namespace kbench
