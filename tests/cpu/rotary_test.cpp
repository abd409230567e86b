// The norm and the rotation of heads on the CPU: the reference by hand, and the native loops against the reference in
// every stored type, in place, and at positions that fp32 could not tell apart.
#include "cpu/native/rotary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};

kbench::RotaryEmbedding rotation(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                                 std::int64_t past, std::int64_t size, double factor = 1) {
    return {batch, heads, kv_heads, queries, past, size, kbench::RotaryEmbedding::plain_frequencies(size, 10000),
            factor};
}

/// What a rotation reads; the last sequence stands at the whole past, those before it ever less.
struct Rotated {
    kbench::RotaryEmbedding op;
    Matrix qkv;
    std::vector<std::int32_t> positions;

    Rotated(DataType type, kbench::RotaryEmbedding of)
        : op(std::move(of)), qkv(Matrix::normal(type, op.rows(), op.all_heads() * op.head_size, 1)) {
        for (std::int64_t sequence = 0; sequence < op.batch; ++sequence)
            positions.push_back(static_cast<std::int32_t>(op.past / (op.batch - sequence)));
    }
    std::vector<reference::Expected> expected() const {
        return reference::rotary_embedding(op, qkv.view(), {positions.data(), DataType::int32, op.batch, 1, 1},
                                           elements(qkv.rows, qkv.columns));
    }
    Matrix run(bool in_place) const {
        Matrix from = qkv, own = Matrix::poisoned(qkv.type, qkv.rows, qkv.columns);
        Matrix& to = in_place ? from : own;
        rotary_embedding(qkv.type, op, from.data(), positions.data(), to.data());
        return to;
    }
};

TEST(RotaryEmbeddingReference, TurnsFirstHalvesAgainstSecondOnesByThePositionsAngle) {
    Rotated one(DataType::fp64, rotation(1, 1, 1, 2, 7, 4, 1.5));
    const auto expected = one.expected();
    const auto x = [&](std::int64_t row, std::int64_t column) { return one.qkv(row, column); };
    for (std::int64_t row = 0; row < 2; ++row)
        for (std::int64_t head = 0; head < 2; ++head)
            for (std::int64_t i = 0; i < 2; ++i) {
                const double angle = static_cast<double>(7 + row) * (i == 0 ? 1 : 0.01), c = 1.5 * std::cos(angle),
                             s = 1.5 * std::sin(angle);
                const std::int64_t low = 4 * head + i, high = low + 2;
                const auto at = [&](std::int64_t column) {
                    return expected[static_cast<std::size_t>(row * 12 + column)].value;
                };
                EXPECT_NEAR(at(low), x(row, low) * c - x(row, high) * s, 1e-14);
                EXPECT_NEAR(at(high), x(row, high) * c + x(row, low) * s, 1e-14);
                EXPECT_EQ(at(8 + 2 * head + i), x(row, 8 + 2 * head + i)) << "values are not turned";
            }
}

TEST(RotaryEmbedding, AgreesWithTheReferenceInEveryTypeAlsoInPlace) {
    for (const DataType type : types)
        for (const auto& op : {rotation(1, 2, 2, 1, 0, 64), rotation(3, 4, 2, 1, 131071, 64),
                               rotation(2, 3, 1, 5, 300, 10), rotation(2, 8, 2, 3, 40, 600, 1.2)}) {
            SCOPED_TRACE(testing::Message() << name(type) << " " << op.text());
            const Rotated one(type, op);
            const auto all = elements(one.qkv.rows, one.qkv.columns);
            const Matrix out = one.run(false);
            expect_agrees(out, all, one.expected(), precision_of(type));
            EXPECT_EQ(one.run(true), out);
        }
}

/// What must not pass: pairs of neighbours instead of halves, and a token that stands one place off.
TEST(RotaryEmbeddingReference, RejectsNeighboursAndTheWrongPosition) {
    Rotated right(DataType::fp32, rotation(1, 4, 2, 1, 1000, 64)), wrong = right;
    const auto expected = right.expected();
    const auto agreeing = [&](const Matrix& out) {
        int agree = 0;
        const std::int64_t rotated = (right.op.heads + right.op.kv_heads) * right.op.head_size;
        for (std::int64_t c = 0; c < rotated; ++c)
            agree +=
                reference::agrees(out(0, c), expected[static_cast<std::size_t>(c)], Precision::fp32, DataType::fp32);
        return static_cast<double>(agree) / static_cast<double>(rotated);
    };
    EXPECT_EQ(agreeing(right.run(false)), 1);
    --wrong.positions[0];
    EXPECT_LT(agreeing(wrong.run(false)), 0.1);

    Matrix neighbours = right.qkv;
    auto* data = reinterpret_cast<float*>(neighbours.bytes.data());
    for (std::int64_t head = 0; head < 6; ++head)
        for (std::int64_t i = 0; i < 32; ++i) {
            float &low = data[head * 64 + 2 * i], &high = data[head * 64 + 2 * i + 1];
            const double angle = 1000 * right.op.frequencies[static_cast<std::size_t>(i)];
            const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
            std::tie(low, high) = std::pair(low * c - high * s, high * c + low * s);
        }
    EXPECT_LT(agreeing(neighbours), 0.1);
}

TEST(QkNormReference, IsRmsNormOfEachHeadWithTheWeightOfItsKind) {
    const kbench::QkNorm op{2, 3, 1, 6, 1e-5};
    const Matrix qkv = Matrix::normal(DataType::fp64, 2, 30, 1), q = Matrix::normal(DataType::fp64, 1, 6, 2),
                 k = Matrix::normal(DataType::fp64, 1, 6, 3);
    const auto found = reference::qk_norm(op, qkv.view(), q.view(), k.view(), elements(2, 30));
    const reference::View heads{qkv.data(), DataType::fp64, 10, 6, 6};  // five a row
    for (std::int64_t head = 0; head < 10; ++head) {
        const std::vector<reference::Element> row{{head, 0}, {head, 5}};
        const auto& weight = head % 5 < 3 ? q : k;
        const auto normalised = reference::rms_norm({10, 6, 1e-5}, heads, weight.view(), row);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const double value = found[static_cast<std::size_t>(head * 6 + row[i].column)].value;
            EXPECT_EQ(value, head % 5 < 4 ? normalised[i].value : heads(head, row[i].column));
        }
    }
}

TEST(QkNorm, AgreesWithTheReferenceInEveryTypeAlsoInPlace) {
    for (const DataType type : types)
        for (const auto& op :
             {kbench::QkNorm{1, 16, 8, 128}, kbench::QkNorm{3, 3, 1, 10}, kbench::QkNorm{7, 2, 2, 33}}) {
            SCOPED_TRACE(testing::Message() << name(type) << " " << op.text());
            Matrix qkv = Matrix::normal(type, op.rows, op.all_heads() * op.head_size, 1),
                   out = Matrix::poisoned(type, qkv.rows, qkv.columns);
            const Matrix q = Matrix::normal(type, 1, op.head_size, 2), k = Matrix::normal(type, 1, op.head_size, 3);
            const auto all = elements(qkv.rows, qkv.columns);
            const auto expected = reference::qk_norm(op, qkv.view(), q.view(), k.view(), all);
            qk_norm(type, op, qkv.data(), q.data(), k.data(), out.data());
            expect_agrees(out, all, expected, precision_of(type));
            qk_norm(type, op, qkv.data(), q.data(), k.data(), qkv.data());
            EXPECT_EQ(qkv, out);
        }
}

}  // namespace
}  // namespace kbench::cpu
