// Is it bandwidth? What is said of comparisons whose figures are planted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/compare/compare.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

void answer(PointSide& side, BandwidthAnswer bandwidth, Bound bound) {
    side.verdict.emplace().bound = bound;
    side.bandwidth = {bandwidth, "a reason"};
}

void set_bound(GroupSide& side, Bound bound, double us) { side.bound_us[static_cast<std::size_t>(bound)] = us; }

/// B takes ten times as long, with a tenth of the bandwidth and a twentieth of the FLOP/s; both sides are known to be
/// compute-bound in all of 1000 us.
class ComparedTest : public testing::Test {
  protected:
    ComparedTest() {
        point_.set("precision", Precision::fp32);
        compared_.a = {&point_, "A", {}};
        compared_.b = {&point_, "B", {}};
        times(10, 10, 20);
        for (PointSide* side : {&compared_.a, &compared_.b}) {
            side->roofs.bandwidth.emplace().origin = Origin::measured;
            side->all.time_us = Interval::exactly(1000);
            set_bound(side->all, Bound::compute, 1000);
        }
        for (PointSide* side : {&compared_.a, &compared_.b}) answer(*side, BandwidthAnswer::no, Bound::compute);
    }
    void times(double ratio, double bandwidth, double flops) {
        compared_.ratio = Interval::exactly(ratio);
        compared_.naive = test_ratio(compared_.ratio, bandwidth, flops);
    }
    void fit(Fit fit, double of_a, double of_b) {
        compared_.a.fit[static_cast<std::size_t>(fit)] = of_a;
        compared_.b.fit[static_cast<std::size_t>(fit)] = of_b;
    }
    /// A row that takes so much of either side's 1000 us, bound by bandwidth on A.
    void add_row(const std::string& name, double us) {
        GroupComparison& row = compared_.groups.emplace_back();
        row.name = name;
        row.a.time_us = row.b.time_us = Interval::exactly(us);
        set_bound(row.a, Bound::bandwidth, us);
        set_bound(row.b, Bound::compute, us);
    }
    std::string said(const std::string& about) const {
        for (const Evidence& evidence : evidence_of(compared_))
            if (evidence.about == about) return evidence.text;
        return "";
    }

    Point point_;
    PointComparison compared_;
};

TEST_F(ComparedTest, TheNaiveTestSaysHowRoofsDifferEitherWay) {
    EXPECT_EQ(
        said("naive test"),
        "B takes 10.0 times as long [10.0, 10.0]; A has 10.0 times the DRAM bandwidth and 20.0 times the fp32 FLOP/s. Ratio of bandwidth fits within a factor of 1.3, that of FLOP/s does not: a hint, to be confirmed step by step.");
    times(10, 0.25, 10);
    EXPECT_THAT(said("naive test"), AllOf(HasSubstr("A has 1/4.00 of the DRAM bandwidth and 10.0 times the fp32"),
                                          HasSubstr("Ratio of FLOP/s fits within a factor of 1.3, that of bandwidth")));
    compared_.naive = test_ratio(compared_.ratio, 10, std::nullopt);
    EXPECT_THAT(said("naive test"), HasSubstr("DRAM bandwidth. Bandwidth fits within a factor of 1.3; the FLOP/s are"));
    compared_.naive = test_ratio(compared_.ratio, 20, std::nullopt);
    EXPECT_THAT(said("naive test"), HasSubstr("Bandwidth does not fit"));
}

TEST_F(ComparedTest, OutsideOfBothRatiosOneSideReachesMoreOfItsRoofs) {
    times(10, 3, 5);
    EXPECT_THAT(said("naive test"),
                EndsWith("Neither fits within a factor of 1.3: A reaches a larger share of its roofs."));
    times(10, 30, 20);
    EXPECT_THAT(said("naive test"), EndsWith(": A reaches a smaller share of its roofs."));
    times(10, 30, 3);
    EXPECT_THAT(said("naive test"), EndsWith(": the time lies between them."));
}

TEST_F(ComparedTest, RatiosThatAreTooCloseAreNoEvidenceThoughOneFits) {
    times(10, 12, 15);
    EXPECT_THAT(said("naive test"),
                HasSubstr("Only bandwidth fits within a factor of 1.3, but the two ratios are too"));
    times(10, 15, 12);
    EXPECT_THAT(said("naive test"), HasSubstr("Only FLOP/s fits"));
}

TEST_F(ComparedTest, RoofsOfADatasheetAreSaidToBe) {
    EXPECT_THAT(said("naive test"), Not(HasSubstr("datasheet")));
    compared_.b.roofs.bandwidth->origin = Origin::estimated;
    EXPECT_THAT(said("naive test"), HasSubstr(" (roofs of B: datasheet, estimated)."));
    compared_.a.roofs.bandwidth->origin = Origin::estimated;
    EXPECT_THAT(said("naive test"), HasSubstr(" (roofs of A and B: datasheet, estimated)."));
}

TEST_F(ComparedTest, WithoutARatioOfRoofsNothingIsTested) {
    compared_.naive.bandwidth.reset();
    EXPECT_THAT(said("naive test"), EndsWith("; not tested: a roof of DRAM is missing."));
    EXPECT_EQ(said("by step"), "");
    compared_.b.roofs.unavailable = "nobody measured them";
    EXPECT_THAT(said("naive test"), EndsWith("; not tested: B has no roofs (nobody measured them)."));
    compared_.a.roofs.unavailable = "none";
    EXPECT_THAT(said("naive test"), EndsWith("; not tested: A has no roofs (none)."));
}

TEST_F(ComparedTest, SharesOfAHundredthAreWorthAWord) {
    fit(Fit::bandwidth, 0.009, 0.001);
    fit(Fit::flops, 0.70, 0.989);
    fit(Fit::neither, 0.291, 0.004);
    EXPECT_EQ(
        said("by step"),
        "Of the steps' time on A and on B, 70 % and 99 % follow FLOP/s and not bandwidth; 29 % and under 1 % follow neither.");
    fit(Fit::bandwidth, 0.002, 0.011);
    EXPECT_THAT(said("by step"), HasSubstr("on B, under 1 % and 1 % follow bandwidth and not FLOP/s; "));
    fit(Fit::neither, 0.291, 0.006);
    EXPECT_THAT(said("by step"), HasSubstr("29 % and 1 % follow neither"));
    fit(Fit::neither, 0.291, 0);
    EXPECT_THAT(said("by step"), HasSubstr("29 % and 0 % follow neither")) << "nothing at all is not little";
}

TEST_F(ComparedTest, VerdictsTellTheBoundsOfEachSideTheLargestFirst) {
    set_bound(compared_.b.all, Bound::compute, 300);
    set_bound(compared_.b.all, Bound::launch, 691);
    set_bound(compared_.b.all, Bound::latency, 9);
    EXPECT_EQ(
        said("verdicts"),
        "A: 100 % compute-bound of the steps' time. B: 69 % launch-bound, 30 % compute-bound of the steps' time. No row is bandwidth-bound on either.");
    compared_.b.roofs.unavailable = "nobody measured them";
    compared_.b.verdict.reset();
    EXPECT_THAT(said("verdicts"), EndsWith(" B: none, for lack of roofs. No row is bandwidth-bound on A."));
    compared_.b.verdict.swap(compared_.a.verdict);
    EXPECT_THAT(said("verdicts"), EndsWith("No row is bandwidth-bound on B."));
    compared_.b.verdict.reset();
    EXPECT_EQ(said("verdicts"), "");
}

TEST_F(ComparedTest, RowsThatBandwidthBindsAreNamedFourAtMost) {
    add_row("first", 4.8);
    add_row("second", 400);
    set_bound(compared_.groups[1].b, Bound::bandwidth, 300);
    set_bound(compared_.groups[1].b, Bound::compute, 100);
    EXPECT_THAT(said("verdicts"),
                EndsWith("with their share of the time: first (A under 1 %), second (A 40 %, B 40 %)."));
    add_row("third", 30);
    add_row("fourth", 20);
    EXPECT_THAT(said("verdicts"), EndsWith(", third (A 3 %), fourth (A 2 %)."));
    add_row("fifth", 10);
    add_row("sixth", 10);
    EXPECT_THAT(said("verdicts"), EndsWith(", fourth (A 2 %) and 2 more."));
}

TEST_F(ComparedTest, ScalingOfHalfOfBothSidesSpeaksForTheWhole) {
    fit(Fit::flops, 0.5, 0.5);
    EXPECT_EQ(
        said("bandwidth?"),
        "By each run: A no (compute-bound; a reason); B no (compute-bound; a reason). Scaling agrees: most of the steps' time follows FLOP/s.");
    fit(Fit::flops, 0.49, 0.5);
    EXPECT_THAT(said("bandwidth?"), EndsWith("Scaling, step by step, cannot tell."));
    fit(Fit::bandwidth, 0.51, 0.5);
    EXPECT_THAT(said("bandwidth?"), EndsWith("Scaling contradicts this: most of the steps' time follows bandwidth."));
    for (PointSide* side : {&compared_.a, &compared_.b}) answer(*side, BandwidthAnswer::yes, Bound::bandwidth);
    EXPECT_EQ(
        said("bandwidth?"),
        "By each run: A yes (bandwidth-bound; a reason); B yes (bandwidth-bound; a reason). Scaling agrees: most of the steps' time follows bandwidth.");
    compared_.same_roofs = true;
    EXPECT_THAT(said("bandwidth?"), EndsWith("Scaling, step by step, cannot tell.")) << "whatever the fits are";
}

TEST_F(ComparedTest, VerdictsThatDifferOrCannotTellSayWhatIsLeft) {
    fit(Fit::flops, 0.9, 0.9);
    answer(compared_.b, BandwidthAnswer::yes, Bound::bandwidth);
    EXPECT_THAT(said("bandwidth?"), EndsWith("They differ, so that no single ratio of roofs can explain the whole."));
    answer(compared_.b, BandwidthAnswer::cannot_tell, Bound::not_identifiable);
    EXPECT_THAT(said("bandwidth?"),
                EndsWith("; B cannot tell (a reason). By scaling alone, most of the steps' time follows FLOP/s."));
    std::swap(compared_.a, compared_.b);
    std::swap(compared_.a.letter, compared_.b.letter);
    EXPECT_THAT(said("bandwidth?"), HasSubstr("By scaling alone"));
    compared_.b.verdict.reset();
    EXPECT_EQ(said("bandwidth?"), "By each run: A cannot tell (a reason); B cannot tell, for lack of roofs.");
    std::swap(compared_.a, compared_.b);
    std::swap(compared_.a.letter, compared_.b.letter);
    EXPECT_EQ(said("bandwidth?"), "By each run: B cannot tell (a reason); A cannot tell, for lack of roofs.");
}

}  // namespace
}  // namespace kbench
