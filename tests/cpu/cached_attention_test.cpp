// Attention over a cache on the CPU: the reference against attention without a cache, and the native loops against the
// reference at ragged positions, with groups, several new tokens and windows.
#include "cpu/native/cached_attention.h"

#include <omp.h>

#include <cmath>

#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

struct Shape {
    std::int64_t batch, heads, kv_heads, queries, past, head_size, window = 0;
    kbench::CachedAttention op() const {
        return {batch, heads,     kv_heads, queries,
                past,  head_size, window,   1 / std::sqrt(static_cast<double>(head_size))};
    }
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.op().text(); }

/// What the op reads, and what it leaves.
struct Operands {
    kbench::CachedAttention op;
    Matrix qkv, keys, values, out;
    std::vector<std::int32_t> positions;

    /// The last sequence has the whole past, those before it ever less.
    Operands(DataType type, const kbench::CachedAttention& of)
        : op(of),
          qkv(Matrix::normal(type, op.batch * op.queries, op.qkv_width(), 1)),
          keys(Matrix::normal(type, op.batch * op.kv_heads * op.keys(), op.head_size, 2)),
          values(Matrix::normal(type, op.batch * op.kv_heads * op.keys(), op.head_size, 3)),
          out(Matrix::poisoned(type, op.batch * op.queries, op.heads * op.head_size)) {
        for (std::int64_t sequence = 0; sequence < op.batch; ++sequence)
            positions.push_back(static_cast<std::int32_t>(op.past / (op.batch - sequence)));
    }
    reference::View position_view() const { return {positions.data(), DataType::int32, op.batch, 1, 1}; }
    std::vector<reference::View> views() const { return {qkv.view(), keys.view(), values.view(), position_view(), {}}; }
    std::vector<reference::Expected> expected(std::size_t operand, const Matrix& of) const {
        return reference::evaluate(Step::of(op), operand, views(), elements(of.rows, of.columns));
    }
    void run() {
        test::Workspace workspace(cached_attention_workspace(qkv.type, op));
        cached_attention(qkv.type, op, qkv.data(), keys.data(), values.data(), positions.data(), out.data(),
                         workspace.data());
    }
};

class CachedAttention : public testing::TestWithParam<Shape> {};

TEST_P(CachedAttention, AgreesWithTheReferenceInEveryType) {
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
        SCOPED_TRACE(name(type));
        Operands o(type, GetParam().op());
        const auto out = o.expected(4, o.out), keys = o.expected(1, o.keys), values = o.expected(2, o.values);
        o.run();
        const Precision precision = precision_of(type);
        expect_agrees(o.out, elements(o.out.rows, o.out.columns), out, precision);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            ASSERT_EQ(o.keys(at / o.op.head_size, at % o.op.head_size), keys[i].value) << "copied, or left alone";
            ASSERT_EQ(o.values(at / o.op.head_size, at % o.op.head_size), values[i].value);
        }
    }
}

TEST_P(CachedAttention, IsTheSameAgainAndWhateverTheThreads) {
    Operands once(DataType::fp32, GetParam().op());
    once.run();
    Operands again = once;
    again.run();
    EXPECT_EQ(again.out, once.out) << "the new rows are in the caches already";
    EXPECT_EQ(again.keys, once.keys);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    Operands alone(DataType::fp32, GetParam().op());
    alone.run();
    omp_set_num_threads(threads);
    EXPECT_EQ(alone.out, once.out);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CachedAttention,
                         testing::Values(Shape{1, 2, 2, 1, 0, 64}, Shape{3, 2, 2, 1, 1, 80}, Shape{2, 4, 1, 1, 63, 128},
                                         Shape{3, 8, 1, 3, 300, 64}, Shape{1, 4, 1, 3, 1000, 80},
                                         Shape{2, 3, 3, 5, 0, 7}, Shape{3, 4, 2, 3, 300, 64, 130},
                                         Shape{2, 4, 2, 3, 63, 80, 1}, Shape{2, 4, 2, 1, 300, 33, 1000}));

/// Attention of a whole sequence is that of new tokens after none.
TEST(CachedAttentionReference, OfAllTokensIsCausalAttention) {
    Operands o(DataType::fp64, Shape{2, 3, 3, 9, 0, 5}.op());
    const Attention attention{{2, 3, 9, 5}, o.op.scale};
    const auto all = elements(o.out.rows, o.out.columns);
    const auto expected = reference::attention(attention, o.qkv.view(), all), found = o.expected(4, o.out);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(found[i].value, expected[i].value, 1e-14);
}

/// A window that sees no more than w keys is attention over a cache that holds no more.
TEST(CachedAttentionReference, OfAWindowSeesItsLastKeysAlone) {
    Operands windowed(DataType::fp64, Shape{1, 2, 1, 1, 9, 5, 4}.op());
    Operands shorter(DataType::fp64, Shape{1, 2, 1, 1, 3, 5}.op());
    shorter.qkv = windowed.qkv;
    for (auto [from, to] : {std::pair{&windowed.keys, &shorter.keys}, std::pair{&windowed.values, &shorter.values}})
        std::copy_n(from->bytes.begin() + 6 * 5 * 8, 3 * 5 * 8, to->bytes.begin());  // tokens 6, 7 and 8
    const auto expected = shorter.expected(4, shorter.out), found = windowed.expected(4, windowed.out);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i].value, expected[i].value, 1e-14);
}

/// What must not pass: a mask that is off by one, and a query head that reads another group's keys.
TEST(CachedAttentionReference, RejectsAMaskOffByOneAndTheWrongGroup) {
    const Shape shape{2, 4, 2, 2, 40, 16};
    Operands right(DataType::fp32, shape.op()), wrong = right;
    const auto expected = right.expected(4, right.out);
    const auto agreeing = [&](const Operands& of) {
        int agree = 0;
        const auto all = elements(of.out.rows, of.out.columns);
        for (std::size_t i = 0; i < all.size(); ++i)
            agree += reference::agrees(of.out(all[i].row, all[i].column), expected[i], Precision::fp32, DataType::fp32);
        return static_cast<double>(agree) / static_cast<double>(all.size());
    };
    right.run();
    EXPECT_EQ(agreeing(right), 1);
    for (std::int32_t& position : wrong.positions) --position;
    wrong.run();
    EXPECT_LT(agreeing(wrong), 0.01);
    Operands swapped(DataType::fp32, shape.op());
    const auto head = static_cast<std::ptrdiff_t>(swapped.op.keys() * swapped.op.head_size * 4);
    for (Matrix* cache : {&swapped.keys, &swapped.values})
        std::swap_ranges(cache->bytes.begin(), cache->bytes.begin() + head, cache->bytes.begin() + head);
    swapped.run();
    EXPECT_LT(agreeing(swapped), 0.55) << "sequence 0 is wrong";
}

}  // namespace
}  // namespace kbench::cpu
