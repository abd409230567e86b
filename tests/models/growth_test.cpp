// Larger steps of the same kind: which size grows, and what follows it.
#include "models/growth.h"

#include <gtest/gtest.h>

#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

std::string grown_text(const Step& step, std::int64_t factor) {
    const std::optional<GrownStep> larger = grown(step, factor);
    return larger ? std::string(larger->axis) + " " + shape_text(larger->step) : "nothing";
}

std::string grown_text(std::string_view op, std::string_view shape, Direction direction = Direction::fwd) {
    return grown_text(parse_problem(op, shape, direction), 2);
}

TEST(GrownSteps, OfAProductSumOverMoreInEveryDirection) {
    EXPECT_EQ(grown_text("gemm", "m3n5k7"), "k m3n5k14");
    EXPECT_EQ(grown_text("gemm", "m3n5k7t"), "k m3n5k14t");
    EXPECT_EQ(grown_text("gemm", "m3n5k7", Direction::dgrad), "k m3n10k7") << "dx [m, k] stays";
    EXPECT_EQ(grown_text("gemm", "m3n5k7", Direction::wgrad), "k m6n5k7") << "dw [k, n] stays";
}

TEST(GrownSteps, KeepTheEpilogueOfAProduct) {
    const Step step = parse_problem("gemm", "m3n5k7+bias+residual");
    const std::optional<GrownStep> larger = grown(step, 4);
    ASSERT_TRUE(larger);
    EXPECT_EQ(shape_text(larger->step), "m3n5k28+bias+residual");
    EXPECT_EQ(larger->step.ops[1], step.ops[1]);
    EXPECT_EQ(larger->step.ops[2], step.ops[2]);
}

TEST(GrownSteps, GrowWhatReadsTheSameArrayBesideTheHead) {
    // A bias's gradient sums the rows of the dy that wgrad multiplies.
    const Step step{.ops = {BiasAdd{3, 5}, Gemm{3, 5, 7}}, .head = 1, .direction = Direction::wgrad, .beside = 1};
    const std::optional<GrownStep> larger = grown(step, 2);
    ASSERT_TRUE(larger);
    EXPECT_EQ(larger->step.ops[0], Op(BiasAdd{6, 5}));
    EXPECT_EQ(larger->step.ops[1], Op(Gemm{6, 5, 7}));
}

TEST(GrownSteps, PadAsMuchMoreWhereThePaddedColumnsGrow) {
    Step step = parse_problem("gemm", "m3n5k7t");
    step.padded_columns = 8;
    EXPECT_EQ(grown(step, 2)->step.padded_columns, 8);
    step.direction = Direction::wgrad;
    EXPECT_EQ(grown(step, 2)->step.padded_columns, 8);
    step.direction = Direction::dgrad;
    EXPECT_EQ(grown(step, 2)->step.padded_columns, 16);
}

TEST(GrownSteps, OfOneRowAfterAnotherHaveMoreRowsInAllTheirOps) {
    EXPECT_EQ(grown_text("softmax", "r6w3"), "rows r12w3");
    const std::optional<GrownStep> larger = grown(parse_problem("layernorm", "r3w5+bias+residual"), 4);
    ASSERT_TRUE(larger);
    EXPECT_EQ(larger->axis, "rows");
    EXPECT_EQ(larger->step.ops[0], Op(BiasAdd{12, 5}));
    EXPECT_EQ(larger->step.ops[1], Op(ResidualAdd{12, 5}));
    const std::optional<GrownStep> backward = grown(parse_problem("layernorm", "r3w5+residual", Direction::bwd), 2);
    ASSERT_TRUE(backward);
    EXPECT_EQ(backward->step.ops[1], Op(ResidualAdd{6, 5}));
}

TEST(GrownSteps, OfImagesHaveMoreOfThem) {
    const Conv2d conv{
        .batch = 2, .in_channels = 1, .height = 8, .width = 9, .out_channels = 4, .kernel_h = 3, .kernel_w = 3};
    const BatchNorm norm{.rows = 2 * 4 * 6, .width = 7, .channels = 4, .height = 6};
    const std::optional<GrownStep> larger =
        grown({{conv, TimeMask{2, 24, 7}, norm, TimeMask{2, 24, 7}, Hardtanh::on(48, 7)}}, 2);
    ASSERT_TRUE(larger);
    EXPECT_EQ(larger->axis, "batch");
    EXPECT_EQ(larger->step.ops[1], Op(TimeMask{4, 24, 7}));
    EXPECT_EQ(larger->step.ops[2].get_if<BatchNorm>()->rows, 96);
    EXPECT_EQ(larger->step.ops[4], Op(Hardtanh::on(96, 7)));
}

TEST(GrownSteps, OfSequencesAreLonger) {
    EXPECT_EQ(grown_text("attention", "b1h2s8d4"), "seq b1h2s16d4");
    EXPECT_EQ(grown_text("attention", "b1h2s8d4", Direction::bwd), "seq b1h2s16d4");
    EXPECT_EQ(grown_text("cached_attention", "b2h6q1k8d5g2"), "keys b2h6q1k16d5g2");
    EXPECT_EQ(grown_text("cached_attention", "b2h6q3k8d5w4"), "keys b2h6q3k16d5w8") << "as many new tokens";
    EXPECT_EQ(grown_text("fill_cache", "b2h6s3k8d5g2"), "seq b2h6s6k16d5g2");
    EXPECT_EQ(grown_text("lstm", "t5n2h8"), "time_steps t10n2h8");
    EXPECT_EQ(grown_text("gru", "t5n2h8", Direction::wgrad), "time_steps t10n2h8");
    EXPECT_EQ(time_steps(grown(parse_problem("rnn", "t5n2h8"), 4)->step), 20);
    EXPECT_EQ(time_steps(grown(parse_problem("rnn", "t20n2h8"), {1, 4})->step), 5);
}

TEST(GrownSteps, AreNoneWhereTheKindNamesNoSize) {
    EXPECT_EQ(grown_text("adamw", "n100t2"), "nothing");
    EXPECT_EQ(grown_text("global_norm", "n100t2"), "nothing");
}

struct CannotGrow {
    static constexpr std::string_view kind = "cannot_grow", what = "an op of a test", example = "r1w1";
    static constexpr Direction directions[] = {Direction::fwd};
    std::int64_t rows, width;
    bool operator==(const CannotGrow&) const = default;
    static CannotGrow parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const { return {input("x", rows, width), output("out", rows, width)}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {1}; }
};

TEST(GrownSteps, AreNoneWhereAnOpAlongWithTheHeadCannotFollow) {
    EXPECT_FALSE(grown({{CannotGrow{3, 5}, LayerNorm{3, 5}}, 1}, 2));
    EXPECT_FALSE(grown({{LayerNorm{3, 5}, CannotGrow{3, 5}}}, 2));
    EXPECT_TRUE(grown({{Gemm{3, 5, 7}, CannotGrow{3, 5}}}, 2)) << "what it is handed is no larger";
}

TEST(GrownSteps, OfEveryKindDoTwiceTheWork) {
    std::size_t kinds = 0;
    for (const OpKind* kind : op_kinds()) {
        if (kind->grown == nullptr) continue;
        ++kinds;
        for (const Direction direction : kind->directions) {
            const Step step = parse_problem(kind->name, example_shape(*kind), direction);
            const std::optional<GrownStep> larger = grown(step, 2);
            ASSERT_TRUE(larger) << kind->name;
            EXPECT_EQ(parse_problem(kind->name, shape_text(larger->step), direction), larger->step)
                << kind->name << ": its text says all of it";
            const double before = step.head_op().work(direction).flops,
                         now = larger->step.head_op().work(direction).flops;
            if (before > 0) {
                EXPECT_GE(now, 1.9 * before) << kind->name << " " << name(direction);
                EXPECT_LE(now, 4.1 * before) << kind->name << " " << name(direction);
            } else {
                EXPECT_GT(problem_bytes(larger->step, Precision::fp32), 1.9 * problem_bytes(step, Precision::fp32))
                    << kind->name << ": it only moves numbers";
            }
        }
    }
    EXPECT_GE(kinds, 25u);
}

}  // namespace
}  // namespace kbench
