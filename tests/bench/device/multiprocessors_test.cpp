// Which numbers of SMs a GPU can be taken as, as an error tells them and as shares of the device are chosen.
#include "bench/device/multiprocessors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::ElementsAre;

std::vector<int> steps(int first, int last, int step, int all) {
    std::vector<int> counts;
    for (int count = first; count <= last; count += step) counts.push_back(count);
    counts.push_back(all);
    return counts;
}

TEST(Multiprocessors, PossibleCountsAreToldAsStepsWhereTheyAreMany) {
    EXPECT_EQ(counts_text(steps(8, 128, 8, 132)), "8 to 128 in steps of 8 or 132");
    EXPECT_EQ(counts_text(steps(4, 106, 2, 108)), "4 to 108 in steps of 2");
    EXPECT_EQ(counts_text(std::vector{8, 16, 20}), "8, 16 or 20");
    EXPECT_EQ(counts_text(std::vector{2}), "2");
}

TEST(Multiprocessors, SharesAreRoundedDownToWhatIsPossible) {
    EXPECT_THAT(counts_at_shares(steps(8, 128, 8, 132)), ElementsAre(132, 96, 64, 32));
    EXPECT_THAT(counts_at_shares(steps(4, 106, 2, 108)), ElementsAre(108, 80, 54, 26));
    EXPECT_THAT(counts_at_shares(steps(8, 136, 8, 148)), ElementsAre(148, 104, 72, 32));
}

TEST(Multiprocessors, AShareThatCannotBeHadIsLeftOutAndNoneComesTwice) {
    EXPECT_THAT(counts_at_shares(std::vector{8, 14}), ElementsAre(14, 8));
    EXPECT_THAT(counts_at_shares(std::vector{8, 12}), ElementsAre(12, 8));
    EXPECT_THAT(counts_at_shares(std::vector{14}), ElementsAre(14));
}

TEST(Multiprocessors, AThiefHasFifteenPercent) {
    EXPECT_EQ(multiprocessors_of_thief(132), 20);
    EXPECT_EQ(multiprocessors_of_thief(108), 17);
    EXPECT_EQ(multiprocessors_of_thief(6), 0) << "one SM takes too little";
}

}  // namespace
}  // namespace kbench
