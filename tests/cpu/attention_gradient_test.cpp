// The CPU's own backward of attention agrees with the reference in every stored type, at sequences and heads that end
// within a block and a vector, with an out and an lse that are the forward's and with any others.
#include <gmock/gmock.h>
#include <omp.h>

#include "cpu/native/attention_gradient.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

/// What backward reads.
struct Inputs {
    Matrix qkv, out, dout, lse;

    static DataType lse_type(DataType type) { return type == DataType::fp64 ? DataType::fp64 : DataType::fp32; }
    /// With the out and the lse of the reference's forward, rounded to what they are stored as.
    Inputs(const Attention& op, DataType type, double deviation = 1)
        : qkv(Matrix::normal(type, op.shape.rows(), 3 * op.shape.width(), 1, deviation)),
          out(type, op.shape.rows(), op.shape.width()),
          dout(Matrix::normal(type, op.shape.rows(), op.shape.width(), 2)),
          lse(lse_type(type), op.shape.batch * op.shape.heads, op.shape.seq) {
        fill(out, reference::attention(op, qkv.view(), elements(out.rows, out.columns)));
        fill(lse, reference::attention_lse(op, qkv.view(), elements(lse.rows, lse.columns)));
    }
    static void fill(Matrix& matrix, const std::vector<reference::Expected>& expected) {
        std::size_t next = 0;
        matrix.fill([&] { return expected[next++].value; });
    }

    Matrix gradient(const Attention& op) const {
        Matrix dqkv = Matrix::poisoned(qkv.type, qkv.rows, qkv.columns);
        test::Workspace workspace(attention_gradient_workspace(qkv.type, op));
        attention_gradient(qkv.type, op, qkv.data(), out.data(), dout.data(), lse.data(), dqkv.data(),
                           workspace.data());
        return dqkv;
    }
    void expect_gradient_agrees(const Attention& op, std::int64_t row_step = 1, std::int64_t column_step = 1) const {
        const Matrix dqkv = gradient(op);
        const auto some = elements(dqkv.rows, dqkv.columns, row_step, column_step);
        expect_agrees(dqkv, some,
                      reference::attention_gradient(op, qkv.view(), out.view(), dout.view(), lse.view(), some),
                      precision_of(qkv.type));
    }
};

class AttentionGradient : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, AttentionGradient,
                         testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_P(AttentionGradient, HoldsAtEverySequenceEndWithinABlock) {
    for (const std::int64_t seq : {1, 17, 63, 64, 65, 130}) {
        SCOPED_TRACE(seq);
        const Attention op{{2, 3, seq, 64}, 0.125};
        Inputs(op, GetParam()).expect_gradient_agrees(op, 3, 7);
    }
}

TEST_P(AttentionGradient, HoldsForOtherHeadSizes) {
    for (const std::int64_t head_size : {5, 32, 80, 128}) {
        SCOPED_TRACE(head_size);
        const Attention op{{1, 2, 100, head_size}, 0.1};
        Inputs(op, GetParam()).expect_gradient_agrees(op, 3, 3);
    }
}

TEST_P(AttentionGradient, HoldsForLargeScores) {
    const Attention op{{1, 2, 150, 64}, 0.5};
    Inputs(op, GetParam(), 3).expect_gradient_agrees(op, 3, 7);
}

TEST_P(AttentionGradient, TakesAnyOutAndLse) {
    const Attention op{{1, 2, 90, 64}, 0.125};
    Inputs inputs(op, GetParam());
    inputs.out = Matrix::normal(inputs.out.type, inputs.out.rows, inputs.out.columns, 5, 0.1);
    inputs.lse = Matrix::normal(inputs.lse.type, inputs.lse.rows, inputs.lse.columns, 6, 0.5, 4);
    inputs.expect_gradient_agrees(op, 3, 7);
}

TEST_P(AttentionGradient, IsTheSameWhateverTheThreads) {
    const Attention op{{1, 5, 200, 64}, 0.125};
    const Inputs inputs(op, GetParam());
    const Matrix by_all = inputs.gradient(op);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const Matrix by_one = inputs.gradient(op);
    omp_set_num_threads(threads);
    EXPECT_EQ(by_one, by_all);
}

TEST(AttentionGradientBound, RefusesAWrongScaleAMissingDAndAnotherQuerysLse) {
    const Attention op{{1, 2, 60, 64}, 0.125};
    for (const DataType type : {DataType::fp16, DataType::fp32}) {
        const Inputs inputs(op, type);
        const auto all = elements(inputs.qkv.rows, inputs.qkv.columns);
        const auto expected = reference::attention_gradient(op, inputs.qkv.view(), inputs.out.view(),
                                                            inputs.dout.view(), inputs.lse.view(), all);
        /// The share of wrong elements of part `part` of dqkv.
        const auto wrong = [&](const Attention& other, const Inputs& of, std::int64_t part) {
            const Matrix dqkv = of.gradient(other);
            double count = 0, refused = 0;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i].column / op.shape.width() != part) continue;
                ++count;
                refused += !reference::agrees(dqkv(all[i].row, all[i].column), expected[i], precision_of(type), type);
            }
            return refused / count;
        };
        Attention scaled = op;
        scaled.scale *= 1.05;
        Inputs no_d = inputs, shifted = inputs;
        no_d.out.fill([] { return 0; });
        shifted.lse.fill([next = 0, &inputs]() mutable {
            const std::int64_t i = next++;  // of the query before
            return inputs.lse(i / 60, std::max<std::int64_t>(i % 60 - 1, 0));
        });
        for (const std::int64_t part : {0, 1, 2}) {
            EXPECT_EQ(wrong(op, inputs, part), 0) << part;
            EXPECT_GT(wrong(scaled, inputs, part), 0.5) << part;
            EXPECT_GT(wrong(op, shifted, part), 0.3) << part;
        }
        EXPECT_GT(wrong(op, no_d, 0), 0.5);
        EXPECT_GT(wrong(op, no_d, 1), 0.5);
        EXPECT_EQ(wrong(op, no_d, 2), 0) << "dv knows no D";
    }
}

}  // namespace
}  // namespace kbench::cpu
