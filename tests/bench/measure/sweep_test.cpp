// The order of a sweep's points, and what they are called.
#include "bench/measure/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const SweepOptions& sweep) {
    std::vector<std::string> all;
    for (const PointSpec& point : sweep_points(sweep, 1024)) all.push_back(point.name());
    return all;
}

SweepOptions two_by_two() {
    SweepOptions sweep;
    sweep.seqs = {128, 512};
    sweep.batches = {1, max_batch};
    sweep.precisions = {Precision::fp16, Precision::fp32};
    return sweep;
}

TEST(SweepPoints, NeighboursDifferInPrecisionFirst) {
    EXPECT_THAT(names(two_by_two()), ElementsAre("seq128-batch1-fp16", "seq128-batch1-fp32", "seq128-batchmax-fp16",
                                                 "seq128-batchmax-fp32", "seq512-batch1-fp16", "seq512-batch1-fp32",
                                                 "seq512-batchmax-fp16", "seq512-batchmax-fp32"));
}

TEST(SweepPoints, RepeatsAreRoundsOfTheWholeList) {
    SweepOptions sweep = two_by_two();
    sweep.seqs = {};
    sweep.batches = {4};
    sweep.repeats = 3;
    EXPECT_THAT(names(sweep), ElementsAre("seq1024-batch4-fp16", "seq1024-batch4-fp32", "seq1024-batch4-fp16-repeat2",
                                          "seq1024-batch4-fp32-repeat2", "seq1024-batch4-fp16-repeat3",
                                          "seq1024-batch4-fp32-repeat3"));
    sweep.only_repeat = 2;
    EXPECT_THAT(names(sweep), ElementsAre("seq1024-batch4-fp16-repeat2", "seq1024-batch4-fp32-repeat2"));
}

TEST(SweepPoints, ZippedListsGoInStep) {
    SweepOptions sweep = two_by_two();
    sweep.zip = {SweepAxis::batch, SweepAxis::seq};
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq128-batch1-fp32", "seq512-batchmax-fp16",
                                          "seq512-batchmax-fp32"));
    sweep.zip = {SweepAxis::seq, SweepAxis::precision};  // with batch between them
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq128-batchmax-fp16", "seq512-batch1-fp32",
                                          "seq512-batchmax-fp32"));
    sweep.zip = {SweepAxis::seq, SweepAxis::batch, SweepAxis::precision};
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq512-batchmax-fp32"));
}

TEST(SweepPoints, ZippedListsOfDifferentLengthsAreRefused) {
    SweepOptions sweep = two_by_two();
    sweep.batches = {1, 2, 4};
    sweep.zip = {SweepAxis::batch, SweepAxis::seq};
    EXPECT_THAT(refusal_of([&] { sweep_points(sweep, 1024); }), HasSubstr("--seq has 2 values and --batch 3"));
}

TEST(SweepPoints, APointTwiceIsRefusedButAValueTwiceInStepIsNot) {
    SweepOptions sweep = two_by_two();
    sweep.batches = {4, 4};
    EXPECT_THAT(refusal_of([&] { sweep_points(sweep, 1024); }), HasSubstr("seq128-batch4-fp16 is asked for twice"));
    sweep.zip = {SweepAxis::batch, SweepAxis::seq};
    EXPECT_EQ(names(sweep).size(), 4u);
}

}  // namespace
}  // namespace kbench
