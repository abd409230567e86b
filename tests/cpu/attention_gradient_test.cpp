// The CPU's backwards of attention, our own and oneDNN's, agree with the reference in every type that they store and
// this CPU has, at sequences and heads that end within a block and a vector, with an out and an lse that are the
// forward's and with any others.
#include <gmock/gmock.h>
#include <omp.h>

#include "cpu/native/attention_gradient.h"
#include "cpu/onednn/onednn.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

enum class By { native, onednn };

/// One of the two, in one type.
struct Backward {
    By by;
    DataType type;
};
void PrintTo(const Backward& of, std::ostream* out) {
    *out << (of.by == By::native ? "native " : "onednn ") << name(of.type);
}

/// What backward reads.
struct Inputs {
    Matrix qkv, out, dout, lse;

    static DataType lse_type(DataType type) { return type == DataType::fp64 ? DataType::fp64 : DataType::fp32; }
    /// With the out and the lse of the reference's forward, rounded to what they are stored as.
    Inputs(const Attention& op, DataType type, double deviation = 1) : Inputs(op, type, deviation, 0, 0) {
        fill(out, reference::attention(op, qkv.view(), elements(out.rows, out.columns)));
        fill(lse, reference::attention_lse(op, qkv.view(), elements(lse.rows, lse.columns)));
    }
    /// With random ones; the sums of exponentials should be about e^lse_mean.
    static Inputs with_any_sums(const Attention& op, DataType type, double lse_mean) {
        return Inputs(op, type, 1, 0.1, lse_mean);
    }

    Matrix gradient(const Attention& op, By by) const {
        Matrix dqkv = Matrix::poisoned(qkv.type, qkv.rows, qkv.columns);
        if (by == By::native) {
            test::Workspace workspace(attention_gradient_workspace(qkv.type, op));
            attention_gradient(qkv.type, op, qkv.data(), out.data(), dout.data(), lse.data(), dqkv.data(),
                               workspace.data());
        } else {
            const CausalAttentionGradient step(op, precision_of(qkv.type));
            test::Workspace workspace(step.workspace_bytes());
            step.run(qkv.data(), out.data(), dout.data(), static_cast<const float*>(lse.data()), dqkv.data(),
                     workspace.data());
        }
        return dqkv;
    }
    void expect_gradient_agrees(const Attention& op, By by, std::int64_t row_step = 1,
                                std::int64_t column_step = 1) const {
        const Matrix dqkv = gradient(op, by);
        const auto some = elements(dqkv.rows, dqkv.columns, row_step, column_step);
        expect_agrees(dqkv, some,
                      reference::attention_gradient(op, qkv.view(), out.view(), dout.view(), lse.view(), some),
                      precision_of(qkv.type));
    }

  private:
    Inputs(const Attention& op, DataType type, double deviation, double out_deviation, double lse_mean)
        : qkv(Matrix::normal(type, op.shape.rows(), 3 * op.shape.width(), 1, deviation)),
          out(Matrix::normal(type, op.shape.rows(), op.shape.width(), 5, out_deviation)),
          dout(Matrix::normal(type, op.shape.rows(), op.shape.width(), 2)),
          lse(Matrix::normal(lse_type(type), op.shape.batch * op.shape.heads, op.shape.seq, 6, 0.5, lse_mean)) {}
    static void fill(Matrix& matrix, const std::vector<reference::Expected>& expected) {
        std::size_t next = 0;
        matrix.fill([&] { return expected[next++].value; });
    }
};

class AttentionGradient : public testing::TestWithParam<Backward> {
  protected:
    void SetUp() override {
        if (by != By::onednn) return;
        if (const std::string reason = onednn_unsupported(precision_of(type)); !reason.empty()) GTEST_SKIP() << reason;
    }
    By by = GetParam().by;
    DataType type = GetParam().type;
};
INSTANTIATE_TEST_SUITE_P(, AttentionGradient,
                         testing::Values(Backward{By::native, DataType::fp16}, Backward{By::native, DataType::bf16},
                                         Backward{By::native, DataType::fp32}, Backward{By::native, DataType::fp64},
                                         Backward{By::onednn, DataType::fp16}, Backward{By::onednn, DataType::bf16},
                                         Backward{By::onednn, DataType::fp32}),
                         [](const auto& of) {
                             return (of.param.by == By::native ? "native_" : "onednn_") +
                                    std::string(name(of.param.type));
                         });

TEST_P(AttentionGradient, HoldsAtEverySequenceEndWithinABlock) {
    for (const std::int64_t seq : {1, 17, 63, 64, 65, 127, 130}) {
        SCOPED_TRACE(seq);
        const Attention op{{2, 3, seq, 64}, 0.125};
        Inputs(op, type).expect_gradient_agrees(op, by, 3, 7);
    }
}

TEST_P(AttentionGradient, HoldsForOtherHeadSizes) {
    for (const std::int64_t head_size : {5, 32, 80, 128}) {
        SCOPED_TRACE(head_size);
        const Attention op{{1, 2, 100, head_size}, 0.1};
        Inputs(op, type).expect_gradient_agrees(op, by, 3, 3);
    }
}

TEST_P(AttentionGradient, HoldsForLargeScores) {
    const Attention op{{1, 2, 150, 64}, 0.5};
    Inputs(op, type, 3).expect_gradient_agrees(op, by, 3, 7);
}

TEST_P(AttentionGradient, TakesAnyOutAndLse) {
    const Attention op{{1, 2, 90, 64}, 0.125};
    Inputs::with_any_sums(op, type, 4).expect_gradient_agrees(op, by, 3, 7);
}

// More than the 512 queries of a product, which make several with each block of keys, and packed in several pieces.
TEST_P(AttentionGradient, HoldsForLongSequences) {
    for (const auto& [heads, seq, head_size] : {std::tuple{1, 640, 64}, {2, 1000, 64}, {1, 700, 80}, {1, 530, 128}}) {
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_size << ", " << seq << " queries");
        const Attention op{{1, heads, seq, head_size}, 0.125};
        Inputs::with_any_sums(op, type, 7).expect_gradient_agrees(op, by, 41, 11);
    }
}

TEST_P(AttentionGradient, IsTheSameOnEveryRunAndHoldsOnOneThread) {
    const Attention op{{1, 5, 200, 64}, 0.125};
    const Inputs inputs(op, type);
    const Matrix by_all = inputs.gradient(op, by);
    EXPECT_EQ(inputs.gradient(op, by), by_all);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const Matrix by_one = inputs.gradient(op, by);
    inputs.expect_gradient_agrees(op, by, 7, 11);
    omp_set_num_threads(threads);
    if (by == By::native) {
        EXPECT_EQ(by_one, by_all) << "whatever the threads";
    }
}

// A head in several tasks, each with its own sum dQ: one head is too few for two threads, and for 16 one is split into
// as many tasks as it has pairs of blocks.
TEST_P(AttentionGradient, HoldsWhereThreadsShareAHead) {
    const int threads = omp_get_max_threads();
    for (const int shared : {2, 3, 16}) {
        SCOPED_TRACE(shared);
        omp_set_num_threads(shared);
        for (const std::int64_t seq : {200, 900}) {
            const Attention op{{1, 1, seq, 64}, 0.125};
            Inputs::with_any_sums(op, type, 6).expect_gradient_agrees(op, by, 41, 11);
        }
    }
    omp_set_num_threads(threads);
}

// Also a test of what it computes: the planted errors are those of an implementation that leaves something out.
TEST_P(AttentionGradient, IsFoundWrongWithAWrongScaleAMissingDOrAnotherQuerysLse) {
    const Attention op{{1, 2, 60, 64}, 0.125};
    const Inputs inputs(op, type);
    const auto all = elements(inputs.qkv.rows, inputs.qkv.columns);
    const auto expected = reference::attention_gradient(op, inputs.qkv.view(), inputs.out.view(), inputs.dout.view(),
                                                        inputs.lse.view(), all);
    /// The share of wrong elements of part `part` of dqkv.
    const auto wrong = [&](const Attention& other, const Inputs& of, std::int64_t part) {
        const Matrix dqkv = of.gradient(other, by);
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
        const std::int64_t i = next++;  // each query takes the sum of the one before
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

}  // namespace
}  // namespace kbench::cpu
