// The order of a sweep's points, and what they are called.
#include "bench/measure/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

AxisValues gpt2() {
    AxisValues values;
    values.set("seq", 1024);
    values.set("attention", "fused");
    values.set("phase", "forward");
    values.set("past", 1023);
    values.set("new", 0);
    return values;
}

std::vector<std::string> names(const SweepOptions& sweep) {
    std::vector<std::string> all;
    for (const PointSpec& point : sweep_points(sweep, gpt2())) all.push_back(point.name());
    return all;
}

SweepOptions two_by_two() {
    SweepOptions sweep;
    sweep.values["seq"] = {128, 512};
    sweep.values["batch"] = {1, max_batch};
    sweep.values["precision"] = {"fp16", "fp32"};
    return sweep;
}

TEST(SweepPoints, NeighboursDifferInPrecisionFirst) {
    EXPECT_THAT(names(two_by_two()), ElementsAre("seq128-batch1-fp16", "seq128-batch1-fp32", "seq128-batchmax-fp16",
                                                 "seq128-batchmax-fp32", "seq512-batch1-fp16", "seq512-batch1-fp32",
                                                 "seq512-batchmax-fp16", "seq512-batchmax-fp32"));
}

TEST(SweepPoints, RepeatsAreRoundsOfTheWholeList) {
    SweepOptions sweep = two_by_two();
    sweep.values.erase("seq");
    sweep.values["batch"] = {4};
    sweep.repeats = 3;
    EXPECT_THAT(names(sweep), ElementsAre("seq1024-batch4-fp16", "seq1024-batch4-fp32", "seq1024-batch4-fp16-repeat2",
                                          "seq1024-batch4-fp32-repeat2", "seq1024-batch4-fp16-repeat3",
                                          "seq1024-batch4-fp32-repeat3"));
}

TEST(SweepPoints, EveryPointIsInOneShardAndNoShardHasOnePrecisionAlone) {
    SweepOptions three = two_by_two();
    three.values["precision"] = {"fp16", "fp32", "bf16"};
    for (const SweepOptions& sweep : {two_by_two(), three}) {
        const std::vector<std::string> all = names(sweep);
        for (std::size_t shards = 1; shards <= all.size(); ++shards) {
            std::vector<std::string> dealt;
            for (std::size_t shard = 1; shard <= shards; ++shard) {
                SweepOptions part = sweep;
                part.shard = static_cast<int>(shard);
                part.shards = static_cast<int>(shards);
                const std::vector<PointSpec> mine = sweep_points(part, gpt2());
                EXPECT_GE(mine.size() + 1, (all.size() + shards - 1) / shards) << shard << "/" << shards;
                EXPECT_LE(mine.size(), (all.size() + shards - 1) / shards + 1) << shard << "/" << shards;
                std::set<std::string> precisions;
                for (const PointSpec& point : mine) {
                    precisions.insert(point.axes.text("precision"));
                    dealt.push_back(point.name());
                }
                if (mine.size() > 1) {
                    EXPECT_GT(precisions.size(), 1u) << shard << "/" << shards;
                }
            }
            EXPECT_THAT(dealt, UnorderedElementsAreArray(all)) << shards << " shards";
        }
    }
    SweepOptions first_of_two = two_by_two();
    first_of_two.shards = 2;
    EXPECT_THAT(names(first_of_two), ElementsAre("seq128-batch1-fp16", "seq128-batchmax-fp32", "seq512-batch1-fp16",
                                                 "seq512-batchmax-fp32"));
    first_of_two.shards = 9;
    EXPECT_THAT(refusal_of([&] { names(first_of_two); }), HasSubstr("--shard 1/9: the sweep has 8 points"));
}

TEST(SweepPoints, ZippedListsGoInStep) {
    SweepOptions sweep = two_by_two();
    sweep.zip = {"batch", "seq"};
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq128-batch1-fp32", "seq512-batchmax-fp16",
                                          "seq512-batchmax-fp32"));
    sweep.zip = {"seq", "precision"};  // with batch between them
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq128-batchmax-fp16", "seq512-batch1-fp32",
                                          "seq512-batchmax-fp32"));
    sweep.zip = {"seq", "batch", "precision"};
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp16", "seq512-batchmax-fp32"));
}

TEST(SweepPoints, ZippedListsOfDifferentLengthsAreRefused) {
    SweepOptions sweep = two_by_two();
    sweep.values["batch"] = {1, 2, 4};
    sweep.zip = {"batch", "seq"};
    EXPECT_THAT(refusal_of([&] { sweep_points(sweep, gpt2()); }), HasSubstr("--seq has 2 values and --batch 3"));
}

/// What a row of the table of axes gives a sweep, whatever the axis.
TEST(SweepPoints, EverySweptAxisHasItsPlaceAndGoesInStep) {
    std::vector<std::string_view> order;
    for (const Axis* axis : sweep_axes()) {
        order.push_back(axis->name);
        SweepOptions sweep;
        const bool is_count = axis->kind == AxisKind::count;
        const std::vector<AxisValue> values =
            is_count ? std::vector<AxisValue>{2, 3} : std::vector<AxisValue>{"fp16", "fp64"};
        sweep.values[std::string(axis->name)] = values;
        AxisValues own = gpt2();
        if (axis->of_model && is_count) own.set(axis->name, 1024);
        if (!axis->phases.empty()) sweep.values["phase"] = {std::string(axis->phases.front())};
        const std::vector<PointSpec> points = sweep_points(sweep, own);
        ASSERT_EQ(points.size(), 2u) << axis->name;
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(*points[i].axes.find(axis->name), values[i]);
            const std::string part = (is_count ? std::string(axis->name) : "") + text_of(values[i]);
            EXPECT_THAT("-" + points[i].name() + "-", HasSubstr("-" + part + "-"));
        }
        sweep.zip = {std::string(axis->name), "batch"};
        sweep.values["batch"] = {2, 3};
        EXPECT_EQ(sweep_points(sweep, own).size(), 2u) << axis->name;
    }
    EXPECT_TRUE(std::ranges::is_sorted(sweep_axes(), {}, &Axis::order));
    EXPECT_EQ(order.back(), "precision") << "neighbours in time differ in it";
}

TEST(SweepPoints, OnlyTrainingHasAnOptimizerAndMasterWeights) {
    SweepOptions sweep;
    sweep.values["direction"] = {"fwd", "train"};
    sweep.values["precision"] = {"fp32", "bf16"};
    sweep.values["master"] = {"fp32"};
    const std::vector<PointSpec> points = sweep_points(sweep, gpt2());
    EXPECT_THAT(names(sweep), ElementsAre("seq1024-batch1-fp32", "seq1024-batch1-bf16", "train-seq1024-batch1-fp32",
                                          "train-seq1024-batch1-bf16"));
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(points[1].axes.find("optimizer"), nullptr);
    EXPECT_EQ(points[1].axes.find("master"), nullptr);
    EXPECT_EQ(points[2].axes.text("optimizer"), "adamw") << "a training step updates weights unless asked otherwise";
    EXPECT_EQ(points[2].axes.find("master"), nullptr) << "fp32 weights have no copies";
    EXPECT_EQ(points[3].axes.text("master"), "fp32");
    sweep.values["optimizer"] = {"none"};
    EXPECT_EQ(sweep_points(sweep, gpt2())[3].axes.text("optimizer"), "none");
    sweep.values["direction"] = {"bwd"};
    EXPECT_EQ(refusal_of([&] { sweep_points(sweep, gpt2()); }), "--optimizer: only --direction train has one");
}

TEST(SweepPoints, OnlyABackwardHasABlockToRecompute) {
    SweepOptions sweep;
    sweep.values["direction"] = {"fwd", "bwd", "train"};
    sweep.values["recompute"] = {"block"};
    const std::vector<PointSpec> points = sweep_points(sweep, gpt2());
    ASSERT_EQ(points.size(), 3U);
    EXPECT_EQ(points[0].axes.find("recompute"), nullptr);
    EXPECT_EQ(points[1].axes.text("recompute"), "block");
    EXPECT_EQ(points[2].axes.text("recompute"), "block");
    sweep.values["direction"] = {"fwd"};
    EXPECT_EQ(refusal_of([&] { sweep_points(sweep, gpt2()); }), "--recompute: only --direction bwd or train has one");
    sweep.values.erase("recompute");
    sweep.values["direction"] = {"bwd"};
    EXPECT_EQ(sweep_points(sweep, gpt2())[0].axes.text("recompute"), "none");
}

TEST(SweepPoints, OfAPhaseHaveItsAxesAlone) {
    SweepOptions sweep;
    sweep.values["phase"] = {"decode"};
    sweep.values["past"] = {127, 1023};
    EXPECT_THAT(names(sweep), ElementsAre("decode-past127-batch1-fp32", "decode-past1023-batch1-fp32"));
    for (const char* axis : {"seq", "attention"})
        EXPECT_EQ(sweep_points(sweep, gpt2())[0].axes.find(axis), nullptr) << axis;
    sweep.values["past"] = {0};
    EXPECT_THAT(names(sweep), ElementsAre("decode-past0-batch1-fp32")) << "the first token";
    sweep.values.clear();
    const PointSpec forward = sweep_points(sweep, gpt2()).front();
    EXPECT_EQ(forward.name(), "seq1024-batch1-fp32");
    for (const char* axis : {"phase", "past"}) EXPECT_EQ(forward.axes.find(axis), nullptr) << axis;
    sweep.values["phase"] = {"prefill"};
    sweep.values["new"] = {32};
    EXPECT_THAT(names(sweep), ElementsAre("prefill-seq1024-new32-batch1-fp32"));
    EXPECT_EQ(sweep_points(sweep, gpt2())[0].axes.count("new"), 32);
    sweep.values.erase("new");
    // A list that one phase alone has is no list for the other.
    sweep.values["phase"] = {"forward", "decode"};
    sweep.values["seq"] = {128, 512};
    EXPECT_THAT(names(sweep), ElementsAre("seq128-batch1-fp32", "seq512-batch1-fp32", "decode-past1023-batch1-fp32"));
    sweep.values["phase"] = {"decode"};
    EXPECT_EQ(refusal_of([&] { sweep_points(sweep, gpt2()); }), "--seq: only --phase forward or prefill has one");
    sweep.values.erase("seq");
    sweep.values["direction"] = {"train"};
    EXPECT_EQ(refusal_of([&] { sweep_points(sweep, gpt2()); }), "--direction train: --phase decode has fwd alone");
    sweep.values = {{"past", {7}}};
    EXPECT_EQ(refusal_of([&] { sweep_points(sweep, gpt2()); }), "--past: only --phase decode has one");
}

TEST(SweepPoints, OfAModelWithoutALengthHaveNone) {
    SweepOptions sweep;
    sweep.values["batch"] = {1, 2};
    const std::vector<PointSpec> points = sweep_points(sweep, {});
    ASSERT_EQ(points.size(), 2u);
    EXPECT_EQ(points[1].name(), "batch2-fp32");
    for (const char* axis : {"seq", "attention"}) EXPECT_EQ(points[1].axes.find(axis), nullptr) << axis;
    sweep.values["seq"] = {128};
    EXPECT_THAT(refusal_of([&] { sweep_points(sweep, {}); }), HasSubstr("--seq: the model has no sequence length"));
}

TEST(SweepPoints, APointTwiceIsRefusedButAValueTwiceInStepIsNot) {
    SweepOptions sweep = two_by_two();
    sweep.values["batch"] = {4, 4};
    EXPECT_THAT(refusal_of([&] { sweep_points(sweep, gpt2()); }), HasSubstr("seq128-batch4-fp16 is asked for twice"));
    sweep.zip = {"batch", "seq"};
    EXPECT_EQ(names(sweep).size(), 4u);
}

}  // namespace
}  // namespace kbench
