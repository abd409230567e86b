// Every op kind of the table, asked in every direction, and what a struct must have to become one.
#include "kbench/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr Direction all_directions[] = {Direction::fwd, Direction::bwd, Direction::dgrad, Direction::wgrad};

/// The shape that a kind's example begins with.
Op example_of(const OpKind& kind) {
    ShapeText shape(example_shape(kind));
    Op op = kind.parse(shape);
    EXPECT_FALSE(shape.letters_left()) << kind.name;
    EXPECT_TRUE(shape.suffixes().empty()) << kind.name;
    return op;
}

TEST(OpKinds, HaveNamesOfTheirOwnThatTheCommandLineCanGive) {
    std::set<std::string_view> names;
    std::size_t place = 0;
    for (const OpKind* kind : op_kinds()) {
        EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
        EXPECT_EQ(kind->name.find_first_of(",=* /"), std::string_view::npos) << kind->name;
        EXPECT_FALSE(kind->what.empty()) << kind->name;
        EXPECT_EQ(find_op_kind(kind->name), kind);
        EXPECT_EQ(&require_op_kind(kind->name), kind);
        EXPECT_EQ(index_of(*kind), place++);
    }
    EXPECT_GE(names.size(), 11u);
    EXPECT_EQ(find_op_kind("conv"), nullptr);
    try {
        require_op_kind("conv", "--op conv: ");
        FAIL() << "there is no such kind";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--op conv: unknown op 'conv'; did you mean conv2d? (`kbench list ops`)"));
    }
}

TEST(OpKinds, ReadTheirExampleAndWriteItAgain) {
    for (const OpKind* kind : op_kinds()) {
        const Op op = example_of(*kind);
        EXPECT_EQ(&op.kind(), kind);
        EXPECT_EQ(name(op), kind->name);
        EXPECT_EQ(op.text(), example_shape(*kind)) << kind->name;
        EXPECT_EQ(op, example_of(*kind)) << "of the same shape: " << kind->name;
        EXPECT_EQ(parse_problem(kind->name, op.text()), Step::of(op)) << kind->name;
    }
}

TEST(OpKinds, EveryDirectionTheyListHasOperandsWorkAndAUnit) {
    for (const OpKind* kind : op_kinds()) {
        ASSERT_FALSE(kind->directions.empty()) << kind->name;
        const Op op = example_of(*kind);
        for (const Direction direction : kind->directions) {
            SCOPED_TRACE(std::string(kind->name) + " " + std::string(name(direction)));
            EXPECT_TRUE(kind->has(direction));
            std::set<std::string_view> names;
            int made = 0, made_anew = 0;
            for (const OperandSpec& spec : op.operands(direction)) {
                EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
                EXPECT_GE(spec.rows, 1) << spec.name;
                EXPECT_GE(spec.columns, 1) << spec.name;
                const Part part = spec.part_read();
                EXPECT_LE(part.rows, static_cast<double>(spec.rows)) << spec.name;
                EXPECT_LE(0, part.first_column) << spec.name;
                EXPECT_LT(part.first_column, part.last_column) << spec.name;
                EXPECT_LE(part.last_column, spec.columns) << spec.name;
                made += spec.use == OperandUse::output || spec.use == OperandUse::in_place;
                made_anew += spec.use == OperandUse::output;
                EXPECT_TRUE(made_anew == 0 || spec.use == OperandUse::output)
                    << spec.name << " is read, and stands behind what is only written";
            }
            EXPECT_GE(made, 1) << "nothing is made";
            const Work work = op.work(direction);
            EXPECT_GE(work.flops, 0);
            EXPECT_GE(work.matrix_flops, 0);
            EXPECT_GE(work.masked_flops, 0);
            EXPECT_LE(work.matrix_flops, work.flops + work.masked_flops);
            const RoofUnit unit = kind->unit(direction);
            EXPECT_TRUE(unit == RoofUnit::plain || unit == RoofUnit::matrix);
            EXPECT_TRUE(unit == RoofUnit::matrix || work.matrix_flops == 0) << "products run on tensor cores";
        }
    }
}

TEST(OpKinds, RefuseDirectionsThatTheyHaveNotInsteadOfGivingAnothersFigures) {
    int refused = 0;
    for (const OpKind* kind : op_kinds()) {
        const Op op = example_of(*kind);
        for (const Direction direction : all_directions) {
            if (kind->has(direction)) continue;
            SCOPED_TRACE(std::string(kind->name) + " " + std::string(name(direction)));
            EXPECT_THROW(op.operands(direction), Unsupported);
            EXPECT_THROW(op.work(direction), Unsupported);
            EXPECT_THROW(operands(Step::of(op, direction), Precision::fp32), Unsupported);
            EXPECT_THROW(matrix_flops(Step::of(op, direction)), Unsupported);
            EXPECT_THROW(parse_problem(kind->name, op.text(), direction), UsageError);
            ++refused;
        }
    }
    EXPECT_GE(refused, 20) << "kinds of the forward pass have no backward";
}

TEST(OpKinds, AGemmsGradientsAreProductsOfItsOperands) {
    for (const bool transposed : {false, true}) {
        const Gemm gemm{64, 32, 16, transposed};
        const auto shape = [](const OperandSpec& spec) { return std::pair(spec.rows, spec.columns); };
        const auto forward = gemm.operands(Direction::fwd), dgrad = gemm.operands(Direction::dgrad),
                   wgrad = gemm.operands(Direction::wgrad);
        EXPECT_EQ(shape(dgrad[0]), shape(forward[2])) << "dy is as y";
        EXPECT_EQ(shape(dgrad[1]), shape(forward[1]));
        EXPECT_EQ(shape(dgrad[2]), shape(forward[0])) << "dx is as x";
        EXPECT_EQ(shape(wgrad[0]), shape(forward[0]));
        EXPECT_EQ(shape(wgrad[1]), shape(forward[2]));
        EXPECT_EQ(shape(wgrad[2]), shape(forward[1])) << "dw is as w";
        for (const Direction direction : Gemm::directions) {
            EXPECT_EQ(gemm.work(direction).flops, 2 * 64 * 32 * 16);
            const Gemm::Product p = gemm.product(direction);
            auto specs = gemm.operands(direction);
            if (p.left_is_second) std::swap(specs[0], specs[1]);
            EXPECT_EQ(shape(specs[0]), p.left_transposed ? std::pair(p.k, p.m) : std::pair(p.m, p.k));
            EXPECT_EQ(shape(specs[1]), p.right_transposed ? std::pair(p.n, p.k) : std::pair(p.k, p.n));
            EXPECT_EQ(shape(specs[2]), std::pair(p.m, p.n));
        }
    }
}

struct ExpectedOperand {
    std::string_view name;
    OperandUse use;
    std::int64_t elements;
    bool operator==(const ExpectedOperand&) const = default;
};
void PrintTo(const ExpectedOperand& operand, std::ostream* out) {
    *out << operand.name << " " << static_cast<int>(operand.use) << " " << operand.elements;
}

TEST(OpKinds, OperandsHaveTheElementsOfTheirShape) {
    using enum OperandUse;
    struct Case {
        std::string_view shape;
        std::vector<ExpectedOperand> operands;
    };
    // b2 h3 s5 d7: 10 rows of 3 * 21, scores of 2 * 3 * 5 rows of 5.
    const std::map<std::string_view, Case> cases{
        {"embedding",
         {"r12w4v9s6", {{"tokens", input, 12}, {"wte", weight, 36}, {"wpe", weight, 24}, {"out", output, 48}}}},
        {"embedding_at",
         {"r12w4v9p8s6",
          {{"tokens", input, 12},
           {"positions", input, 2},
           {"wte", weight, 36},
           {"wpe", weight, 32},
           {"out", output, 48}}}},
        {"token_embedding", {"r12w4v9", {{"tokens", input, 12}, {"table", weight, 36}, {"out", output, 48}}}},
        {"layernorm", {"r3w5", {{"x", input, 15}, {"weight", weight, 5}, {"bias", weight, 5}, {"out", output, 15}}}},
        {"rmsnorm", {"r3w5", {{"x", input, 15}, {"weight", weight, 5}, {"out", output, 15}}}},
        {"gemm", {"m3n5k7", {{"x", input, 21}, {"w", weight, 35}, {"out", output, 15}}}},
        {"bias", {"r3w5", {{"x", input, 15}, {"bias", weight, 5}, {"out", output, 15}}}},
        {"gelu", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"gelu_fast", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"gelu_erf", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"quick_gelu", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"relu", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"silu", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"tanh", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"swiglu", {"r3w5", {{"gate_up", input, 30}, {"out", output, 15}}}},
        {"residual", {"r3w5", {{"x", input, 15}, {"residual", input, 15}, {"out", output, 15}}}},
        {"attention", {"b2h3s5d7", {{"qkv", input, 630}, {"out", output, 210}}}},
        {"attention_scores", {"b2h3s5d7", {{"qkv", input, 630}, {"scores", output, 150}}}},
        {"scale_mask", {"b2h3s5d7", {{"scores", in_place, 150}}}},
        {"softmax", {"r3w5", {{"scores", input, 15}, {"probabilities", output, 15}}}},
        {"attention_context", {"b2h3s5d7", {{"probabilities", input, 150}, {"qkv", input, 630}, {"out", output, 210}}}},
        // b2 h6 q3 k10 d5 with 2 kv heads: 6 rows of (6 + 2 * 2) * 5, caches of 2 * 2 * 10 rows.
        {"cached_attention",
         {"b2h6q3k10d5g2",
          {{"qkv", input, 300},
           {"key_cache", in_place, 200},
           {"value_cache", in_place, 200},
           {"positions", input, 2},
           {"out", output, 180}}}},
        {"fill_cache",
         {"b2h6s3k10d5g2", {{"qkv", input, 300}, {"key_cache", in_place, 200}, {"value_cache", in_place, 200}}}},
        {"last_token", {"b2s3w5", {{"x", input, 30}, {"out", output, 10}}}},
        // 6 rows of (6 + 2 * 2) * 10.
        {"qk_norm",
         {"r6h6d10g2",
          {{"qkv", input, 600}, {"q_weight", weight, 10}, {"k_weight", weight, 10}, {"out", output, 600}}}},
        {"rotary_embedding", {"b2h6q3d10g2p9", {{"qkv", input, 600}, {"positions", input, 2}, {"out", output, 600}}}},
        {"conv2d",
         {"n2c3h5w7k4r3s2u2p1b",
          {{"x", input, 210}, {"weight", weight, 72}, {"bias", weight, 4}, {"out", output, 144}}}},
        {"batchnorm",
         {"r12w5c3h2",
          {{"x", input, 60},
           {"weight", weight, 3},
           {"bias", weight, 3},
           {"running_mean", weight, 3},
           {"running_var", weight, 3},
           {"out", output, 60}}}},
        {"hardtanh", {"r3w5", {{"x", input, 15}, {"out", output, 15}}}},
        {"time_mask", {"n3r4t5f2", {{"x", input, 60}, {"lengths", input, 3}, {"out", output, 60}}}},
        {"to_sequence", {"n3f4t5", {{"x", input, 60}, {"out", output, 60}}}},
        {"lstm",
         {"t5n3h5",
          {{"gates_x", input, 15 * 20},
           {"gates_x_reverse", input, 15 * 20},
           {"weight_hh", weight, 20 * 5},
           {"weight_hh_reverse", weight, 20 * 5},
           {"bias_ih", weight, 20},
           {"bias_ih_reverse", weight, 20},
           {"bias_hh", weight, 20},
           {"bias_hh_reverse", weight, 20},
           {"lengths", input, 3},
           {"out", output, 75},
           {"out_reverse", output, 75}}}},
        {"gru",
         {"t5n3h5",
          {{"gates_x", input, 15 * 15},
           {"gates_x_reverse", input, 15 * 15},
           {"weight_hh", weight, 15 * 5},
           {"weight_hh_reverse", weight, 15 * 5},
           {"bias_ih", weight, 15},
           {"bias_ih_reverse", weight, 15},
           {"bias_hh", weight, 15},
           {"bias_hh_reverse", weight, 15},
           {"lengths", input, 3},
           {"out", output, 75},
           {"out_reverse", output, 75}}}},
        {"rnn",
         {"t5n3h5",
          {{"gates_x", input, 15 * 5},
           {"gates_x_reverse", input, 15 * 5},
           {"weight_hh", weight, 5 * 5},
           {"weight_hh_reverse", weight, 5 * 5},
           {"bias_ih", weight, 5},
           {"bias_ih_reverse", weight, 5},
           {"bias_hh", weight, 5},
           {"bias_hh_reverse", weight, 5},
           {"lengths", input, 3},
           {"out", output, 75},
           {"out_reverse", output, 75}}}},
        {"cross_entropy", {"r6v9s3", {{"logits", input, 54}, {"tokens", input, 6}, {"losses", output, 6}}}},
        {"ctc",
         {"t5n3v4s2",
          {{"logits", input, 60},
           {"lengths", input, 3},
           {"targets", input, 6},
           {"target_lengths", input, 3},
           {"losses", output, 3}}}},
        {"global_norm", {"n7t2", {{"gradient0", input, 4}, {"gradient1", input, 3}, {"norm", output, 1}}}},
        {"adamw",
         {"n7t2",
          {{"schedule", input, 8},
           {"weight0", in_place, 4},
           {"gradient0", input, 4},
           {"m0", in_place, 4},
           {"v0", in_place, 4},
           {"weight1", in_place, 3},
           {"gradient1", input, 3},
           {"m1", in_place, 3},
           {"v1", in_place, 3}}}},
    };
    for (const OpKind* kind : op_kinds()) {
        const auto expected = cases.find(kind->name);
        ASSERT_NE(expected, cases.end()) << kind->name << " is in no case";
        ShapeText shape(expected->second.shape);
        std::vector<ExpectedOperand> operands;
        for (const OperandSpec& spec : kind->parse(shape).operands(Direction::fwd))
            operands.push_back({spec.name, spec.use, spec.rows * spec.columns});
        EXPECT_THAT(operands, ElementsAreArray(expected->second.operands)) << kind->name;
    }
}

TEST(OpKinds, WhatStandsInAFusionCanBeMadeForAMatrix) {
    for (const OpKind* kind : op_kinds())
        for (const Direction direction : kind->directions)
            for (const Fusion& fusion : kind->fusions(direction))
                for (const auto* names : {&fusion.before, &fusion.after, &fusion.beside})
                    for (const std::string_view other : *names) {
                        const OpKind* absorbed = find_op_kind(other);
                        ASSERT_NE(absorbed, nullptr) << kind->name << " with " << other;
                        ASSERT_NE(absorbed->on, nullptr) << kind->name << " with " << other;
                        const Direction along = direction_along(*absorbed, direction);
                        ASSERT_TRUE(absorbed->has(along)) << kind->name << " with " << other;
                        std::vector<OperandSpec> specs = absorbed->on(3, 5).operands(along);
                        if (names == &fusion.beside) specs.resize(1);  // nothing that it makes is handed on
                        for (const OperandSpec& spec : {specs.front(), specs.back()})
                            EXPECT_EQ(std::pair(spec.rows, spec.columns), std::pair(std::int64_t{3}, std::int64_t{5}));
                    }
}

TEST(OpKinds, WhatGoesAlongWithAGemmsGradientsGoesBackward) {
    EXPECT_EQ(direction_along(op_kind<BiasAdd>(), Direction::wgrad), Direction::bwd);
    EXPECT_EQ(direction_along(op_kind<Gelu>(), Direction::dgrad), Direction::bwd);
    EXPECT_EQ(direction_along(op_kind<Gemm>(), Direction::wgrad), Direction::wgrad);
    EXPECT_EQ(direction_along(op_kind<Gelu>(), Direction::fwd), Direction::fwd);
    EXPECT_EQ(direction_along(op_kind<Softmax>(), Direction::bwd), Direction::bwd) << "which it has not";
}

TEST(Op, IsEqualToOneOfTheSameKindAndShape) {
    const Op gemm = Gemm{3, 5, 7}, copy = gemm;
    EXPECT_EQ(gemm, copy);
    EXPECT_EQ(gemm, Op(Gemm{3, 5, 7}));
    EXPECT_NE(gemm, Op(Gemm{3, 5, 8}));
    EXPECT_NE(Op(BiasAdd{3, 5}), Op(Gelu{3, 5})) << "of the same members";
    EXPECT_TRUE(gemm.is<Gemm>());
    EXPECT_EQ(gemm.get_if<Gemm>()->n, 5);
    EXPECT_EQ(gemm.get_if<Gelu>(), nullptr);
}

TEST(DataType, OfAnElementFollowsThePrecisionWhereItMay) {
    EXPECT_EQ(data_type(ElementType::storage, Precision::bf16), DataType::bf16);
    EXPECT_EQ(data_type(ElementType::storage, Precision::tf32), DataType::fp32);
    for (const Precision precision : all_precisions) {
        EXPECT_EQ(data_type(ElementType::int32, precision), DataType::int32);
        EXPECT_EQ(data_type(ElementType::at_least_fp32, precision),
                  precision == Precision::fp64 ? DataType::fp64 : DataType::fp32);
    }
}

// ---- shapes --------------------------------------------------------------------------------------------------------

TEST(ShapeText, GivesEachPartOnce) {
    ShapeText text("m12k3t+upcast+bias+gelu");
    EXPECT_EQ(text.size('m'), 12);
    EXPECT_THROW(text.size('m'), ShapeText::Wrong) << "taken already";
    EXPECT_EQ(text.size_or('s', 9), 9);
    EXPECT_TRUE(text.flag('t'));
    EXPECT_FALSE(text.flag('t'));
    EXPECT_TRUE(text.letters_left()) << "k";
    EXPECT_EQ(text.size_or('k', 9), 3);
    EXPECT_FALSE(text.letters_left());
    EXPECT_FALSE(text.suffix("bias")) << "upcast comes next";
    EXPECT_TRUE(text.suffix("upcast"));
    EXPECT_THAT(text.suffixes(), testing::ElementsAre("bias", "gelu"));
}

TEST(ShapeText, RefusesWhatIsNoShape) {
    for (const char* wrong : {"M1", "1", "m0", "m1m2", "m1 n2", "m-1", "m99999999999999999999"})
        EXPECT_THROW(ShapeText{wrong}, ShapeText::Wrong) << wrong;
    ShapeText letter("m"), number("t4");
    EXPECT_THROW(letter.size('m'), ShapeText::Wrong) << "without a number";
    EXPECT_THROW(number.flag('t'), ShapeText::Wrong) << "with a number";
}

// ---- what a struct needs to be a kind ------------------------------------------------------------------------------

enum class Member { none, kind, what, example, directions, equality, text, parse, operands, work, unit };

template <bool has>
struct WithKind {
    static constexpr std::string_view kind = "sample";
};
template <bool has>
struct WithWhat {
    static constexpr std::string_view what = "a sample";
};
template <bool has>
struct WithExample {
    static constexpr std::string_view example = "r1w1";
};
template <bool has>
struct WithDirections {
    static constexpr Direction directions[1] = {Direction::fwd};
};
template <>
struct WithKind<false> {};
template <>
struct WithWhat<false> {};
template <>
struct WithExample<false> {};
template <>
struct WithDirections<false> {};

/// An op kind but for one of its parts.
template <Member missing>
struct Sample : WithKind<missing != Member::kind>,
                WithWhat<missing != Member::what>,
                WithExample<missing != Member::example>,
                WithDirections<missing != Member::directions> {
    bool operator==(const Sample&) const requires(missing != Member::equality) { return true; }
    std::string text() const requires(missing != Member::text) { return "r1w1"; }
    static Sample parse(ShapeText&) requires(missing != Member::parse) { return {}; }
    std::vector<OperandSpec> operands(Direction) const requires(missing != Member::operands) {
        return {output("out", 1, 1)};
    }
    Work work(Direction) const requires(missing != Member::work) { return {}; }
    static RoofUnit unit(Direction) requires(missing != Member::unit) { return RoofUnit::plain; }
};

static_assert(OpStruct<Sample<Member::none>>);
static_assert(!OpStruct<Sample<Member::kind>>);
static_assert(!OpStruct<Sample<Member::what>>);
static_assert(!OpStruct<Sample<Member::example>>);
static_assert(!OpStruct<Sample<Member::directions>>);
static_assert(!OpStruct<Sample<Member::equality>>);
static_assert(!OpStruct<Sample<Member::text>>);
static_assert(!OpStruct<Sample<Member::parse>>);
static_assert(!OpStruct<Sample<Member::operands>>);
static_assert(!OpStruct<Sample<Member::work>>);
static_assert(!OpStruct<Sample<Member::unit>>);

/// Its work is the forward's, whatever is asked: written before there were directions.
struct WithoutDirection : Sample<Member::none> {
    static WithoutDirection parse(ShapeText&) { return {}; }
    Work work() const { return {}; }
};
static_assert(!OpStruct<WithoutDirection>);

/// Its work is a bare number.
struct WithBareWork : Sample<Member::none> {
    static WithBareWork parse(ShapeText&) { return {}; }
    double work(Direction) const { return 0; }
};
static_assert(!OpStruct<WithBareWork>);
static_assert(!OpStruct<int>);

TEST(OpStruct, WhatAKindMayLeaveOutHasADefault) {
    const OpKind& kind = op_kind<Sample<Member::none>>();
    EXPECT_EQ(&kind, &op_kind<Sample<Member::none>>()) << "one address";
    EXPECT_TRUE(kind.fusions(Direction::fwd).empty());
    EXPECT_EQ(kind.on, nullptr);
    EXPECT_FALSE(Op(Sample<Member::none>()).pads_columns());
    EXPECT_EQ(Op(Sample<Member::none>()).time_steps(), 1);
    EXPECT_FALSE(kind.has(Direction::wgrad));
    EXPECT_EQ(find_op_kind("sample"), nullptr) << "a row is no place in the table";
}

}  // namespace
}  // namespace kbench
