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

TEST(NearestName, IsOneThatBeginsWithTheTypedOneOrHoldsItBeforeFewerEditsCount) {
    const std::vector<std::string> commands{"run", "micro", "compare", "report"};
    EXPECT_EQ(nearest_name("micor", commands), "did you mean micro? One of run, micro, compare, report");
    EXPECT_EQ(nearest_name("REP", commands), "did you mean report? One of run, micro, compare, report");
    EXPECT_EQ(nearest_name("par", commands), "did you mean compare? One of run, micro, compare, report");
    EXPECT_EQ(nearest_name("RUN", commands), "did you mean run? One of run, micro, compare, report");
    EXPECT_EQ(nearest_name("frobnicate", commands), "must be one of run, micro, compare, report");
    EXPECT_EQ(nearest_name("", commands), "must be one of run, micro, compare, report");
    const std::vector<std::string> cards{"l4", "a100-pcie", "a100-sxm4", "a10"};
    EXPECT_EQ(nearest_name("A1", cards),
              "did you mean a10, a100-pcie or a100-sxm4? One of l4, a100-pcie, a100-sxm4, a10");
    EXPECT_EQ(nearest_name("A10", cards), "did you mean a10? One of l4, a100-pcie, a100-sxm4, a10")
        << "but for its case";
}

TEST(NearestName, LeavesOutALongList) {
    std::vector<std::string> many;
    for (int i = 100; i < 200; ++i) many.push_back("column" + std::to_string(i));
    EXPECT_EQ(nearest_name("colum123", many), "did you mean column123?");
    EXPECT_EQ(nearest_name("frobnicate", many), "nearest: column100, column101, column102");
}

TEST(NearestNames, AreNoMoreThanThereAre) {
    const std::vector<std::string> one{"core"};
    EXPECT_THAT(nearest_names("cores", one, 3), ElementsAre("core"));
    EXPECT_THAT(nearest_names("cores", {}, 3), IsEmpty());
}

}  // namespace
}  // namespace kbench
