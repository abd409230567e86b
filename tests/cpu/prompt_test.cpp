// Keys and values of a prompt in their cache, and the last token's row, on the CPU: against the reference, and the
// reference against rows that are told one by one.
#include "cpu/native/prompt.h"

#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::Matrix;

constexpr DataType stored_types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};

struct Filled {
    FillCache op;
    Matrix qkv, keys, values;

    Filled(DataType type, const FillCache& of)
        : op(of),
          qkv(Matrix::normal(type, op.batch * op.seq, op.qkv_width(), 1)),
          keys(Matrix::normal(type, op.batch * op.kv_heads * op.capacity, op.head_size, 2)),
          values(Matrix::normal(type, op.batch * op.kv_heads * op.capacity, op.head_size, 3)) {}
    std::vector<reference::Expected> expected(std::size_t operand) const {
        return reference::evaluate(Step::of(op), operand, {{qkv.view(), keys.view(), values.view()}},
                                   elements(keys.rows, keys.columns));
    }
};

void expect_exactly(const Matrix& made, const std::vector<reference::Expected>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        ASSERT_EQ(made(at / made.columns, at % made.columns), expected[i].value) << "copied, or left alone: " << i;
    }
}

TEST(FillCache, CopiesKeysAndValuesInEveryType) {
    for (const DataType type : stored_types)
        for (const FillCache& op : {FillCache{1, 2, 2, 1, 1, 64}, {3, 6, 2, 5, 9, 7}, {2, 4, 4, 33, 40, 80}}) {
            SCOPED_TRACE(std::string(name(type)) + " " + op.text());
            Filled filled(type, op);
            const auto keys = filled.expected(1), values = filled.expected(2);
            fill_cache(type, op, filled.qkv.data(), filled.keys.data(), filled.values.data());
            expect_exactly(filled.keys, keys);
            expect_exactly(filled.values, values);
        }
}

/// By hand: 6 query heads and 2 kv heads of 7 columns, so keys begin at column 42 and values at 56.
TEST(FillCacheReference, HasATokensRowOfItsHeadAndLeavesTheRest) {
    const Filled filled(DataType::fp64, {3, 6, 2, 5, 9, 7});
    const auto keys = filled.expected(1), values = filled.expected(2);
    const auto at = [](std::int64_t sequence, std::int64_t head, std::int64_t token, std::int64_t column) {
        return static_cast<std::size_t>(((sequence * 2 + head) * 9 + token) * 7 + column);
    };
    EXPECT_EQ(keys[at(2, 1, 4, 3)].value, filled.qkv(2 * 5 + 4, 42 + 7 + 3));
    EXPECT_EQ(values[at(1, 0, 0, 6)].value, filled.qkv(5, 56 + 6));
    EXPECT_EQ(keys[at(2, 1, 5, 3)].value, filled.keys((2 * 2 + 1) * 9 + 5, 3)) << "behind the prompt";
}

TEST(LastToken, IsTheLastRowOfEachSequence) {
    for (const DataType type : stored_types)
        for (const LastToken& op : {LastToken{1, 1, 5}, {3, 4, 33}}) {
            const Matrix x = Matrix::normal(type, op.batch * op.seq, op.width, 1);
            Matrix out = Matrix::poisoned(type, op.batch, op.width);
            last_token(type, op, x.data(), out.data());
            expect_exactly(out, reference::last_token(op, x.view(), elements(op.batch, op.width)));
            EXPECT_EQ(out(op.batch - 1, 2), x(op.batch * op.seq - 1, 2));
        }
}

}  // namespace
}  // namespace kbench::cpu
