// What a mistyped name is compared with.
#include "models/base/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
    EXPECT_EQ(edit_distance("memory", "memory"), 0U);
    EXPECT_EQ(edit_distance("flaw", "lawn"), 2U);
}

TEST(EditDistance, TakesUpperAndLowerCaseAsEqual) { EXPECT_EQ(edit_distance("gh100", "GH100"), 0U); }

TEST(NearestNames, AreOrderedByDistanceAndThenByPlace) {
    const std::vector<std::string> names{"GB100", "GA100", "GH100", "AD102"};
    EXPECT_THAT(nearest_names("gh100", names, 2), ElementsAre("GH100", "GB100"));
    EXPECT_THAT(nearest_names("AD1", names, 1), ElementsAre("AD102"));
}

TEST(NearestNames, BeginWithTheNameOrContainItBeforeFewerEditsCount) {
    const std::vector<std::string> names{"l4",      "h100-sxm", "gh200-96gb", "a100-sxm4-40gb", "a100-pcie-80gb",
                                         "h200-sxm"};
    EXPECT_THAT(nearest_names("A100", names, 3), ElementsAre("a100-sxm4-40gb", "a100-pcie-80gb", "l4"));
    EXPECT_THAT(nearest_names("h200", names, 3), ElementsAre("h200-sxm", "gh200-96gb", "l4"));
    const std::vector<std::string> longer{"xl4", "l4-of-long-name"};
    EXPECT_THAT(nearest_names("l4", longer), ElementsAre("l4-of-long-name", "xl4")) << "however many edits it is away";
    EXPECT_THAT(nearest_names("sxm", names, 2), ElementsAre("h100-sxm", "h200-sxm"));
    EXPECT_THAT(nearest_names("", names, 2), ElementsAre("l4", "h100-sxm"));
}

TEST(NearestNames, AreNoMoreThanThereAre) {
    const std::vector<std::string> one{"core"};
    EXPECT_THAT(nearest_names("cores", one, 3), ElementsAre("core"));
    EXPECT_THAT(nearest_names("cores", {}, 3), IsEmpty());
}

}  // namespace
}  // namespace kbench
