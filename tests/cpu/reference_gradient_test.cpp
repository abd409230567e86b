// The reference's gradients are those of its forward.
#include "models/ops/list.h"
#include "models/ops/table.h"
#include "tests/cpu/differences.h"

namespace kbench {
namespace {

using test::Differences;
using test::elements;
using test::is_gradient;
using test::Matrix;

std::vector<reference::Expected> evaluated(const Step& step, const Matrix& first, const Matrix& second,
                                           const Matrix& of) {
    const reference::View views[] = {first.view(), second.view(), {}};
    return reference::evaluate(step, 2, views, elements(of.rows, of.columns));
}

TEST(ReferenceGradients, OfAGemmAreThoseOfItsForward) {
    for (const Gemm& gemm : {Gemm{3, 5, 7}, Gemm{3, 5, 7, true}, Gemm{1, 4, 6}, Gemm{5, 1, 3, true}}) {
        SCOPED_TRACE(gemm.text());
        Differences forward(gemm);
        const Matrix &x = forward.operand(0), &w = forward.operand(1), &dy = forward.dy();
        EXPECT_TRUE(is_gradient(forward, 0, evaluated(Step::of(gemm, Direction::dgrad), dy, w, x)));
        EXPECT_TRUE(is_gradient(forward, 1, evaluated(Step::of(gemm, Direction::wgrad), x, dy, w)));
    }
}

template <OpStruct... T>
std::vector<Op> ops_of(OpList<T...>, std::int64_t rows, std::int64_t width) {
    return {T{rows, width}...};
}

TEST(ReferenceGradients, OfActivationsAndOfABiasAreThoseOfTheirForward) {
    for (const Op& op : ops_of(Activations(), 5, 7)) {
        SCOPED_TRACE(name(op));
        Differences through(op);
        const reference::View views[] = {through.dy().view(), through.operand(0).view(), {}};
        EXPECT_TRUE(
            is_gradient(through, 0, reference::evaluate(Step::of(op, Direction::bwd), 2, views, elements(5, 7))));
    }
    const BiasAdd bias{5, 7};
    Differences added(bias);
    const reference::View bias_views[] = {added.dy().view(), {}};
    EXPECT_TRUE(
        is_gradient(added, 1, reference::evaluate(Step::of(bias, Direction::bwd), 1, bias_views, elements(1, 7))));
}

std::vector<double> values(const std::vector<reference::Expected>& expected) {
    std::vector<double> list;
    for (const reference::Expected& e : expected) list.push_back(e.value);
    return list;
}

TEST(ReferenceGradients, OfABiasBesideAWeightAreThoseOfBothApart) {
    for (const bool adds : {false, true}) {
        const Gemm gemm{6, 5, 7, false, adds};
        const BiasAdd bias{6, 5, adds};
        const Step both{{bias, gemm}, 1, Direction::wgrad, 0, false, {}, 1};
        const Matrix x = Matrix::normal(DataType::fp64, 6, 7, 1), dy = Matrix::normal(DataType::fp64, 6, 5, 2),
                     db = Matrix::normal(DataType::fp64, 1, 5, 3), dw = Matrix::normal(DataType::fp64, 7, 5, 4);
        std::vector<reference::View> views{x.view(), dy.view(), db.view(), dw.view()};
        if (adds) views = {db.view(), x.view(), dy.view(), dw.view()};
        const reference::View of_bias[] = {dy.view(), db.view()}, of_gemm[] = {x.view(), dy.view(), dw.view()};
        const auto sums = reference::evaluate(Step::of(bias, Direction::bwd), 1, of_bias, elements(1, 5));
        const auto products = reference::evaluate(Step::of(gemm, Direction::wgrad), 2, of_gemm, elements(7, 5));
        EXPECT_EQ(values(reference::evaluate(both, adds ? 0 : 2, views, elements(1, 5))), values(sums)) << adds;
        EXPECT_EQ(values(reference::evaluate(both, 3, views, elements(7, 5))), values(products)) << adds;
    }
}

TEST(ReferenceGradients, OfAnActivationBehindAProductAreThoseOfBothInTurn) {
    for (const ActivationFacts& facts : activation_table) {
        SCOPED_TRACE(facts.kind);
        const Gemm gemm{6, 5, 7};
        const Step both{{gemm, find_op_kind(facts.kind)->on(6, 7)}, 0, Direction::dgrad};
        const Matrix dy = Matrix::normal(DataType::fp64, 6, 5, 1), w = Matrix::normal(DataType::fp64, 7, 5, 2),
                     x = Matrix::normal(DataType::fp64, 6, 7, 3);
        const reference::View views[] = {dy.view(), w.view(), x.view(), {}};
        const auto found = reference::evaluate(both, 3, views, elements(6, 7));
        const auto product =
            reference::evaluate(Step::of(gemm, Direction::dgrad), 2, std::span(views).subspan(0, 3), elements(6, 7));
        for (std::size_t e = 0; e < product.size(); ++e) {
            const auto [row, column] = elements(6, 7)[e];
            // The slope by differences of the function.
            const double h = 1e-5, at = x(row, column);
            Matrix around(DataType::fp64, 1, 2);
            double sides[] = {at - h, at + h};
            int next = 0;
            around.fill([&] { return sides[next++]; });
            const auto sides_of = reference::bias_activation(around.view(), {}, facts.function, elements(1, 2));
            const double slope = (sides_of[1].value - sides_of[0].value) / (2 * h);
            EXPECT_NEAR(found[e].value, product[e].value * slope, 1e-8);
            const bool has_a_hardware_tanh = facts.function == Activation::gelu_tanh;
            EXPECT_TRUE(found[e].inner > 0 || !has_a_hardware_tanh) << "which is no error";
        }
    }
}

TEST(ReferenceGradients, FindADroppedSlopeInEveryPrecision) {
    const Gemm gemm{40, 30, 64};
    const Matrix x = Matrix::normal(DataType::fp64, 40, 64, 3);
    const Matrix dy = Matrix::normal(DataType::fp64, 40, 30, 1), w = Matrix::normal(DataType::fp64, 64, 30, 2);
    const auto all = elements(40, 64);
    const auto products = reference::gemm_gradient(gemm, Direction::dgrad, dy.view(), w.view(), all);
    const auto expected = reference::times_slope(Activation::gelu_tanh, products, x.view(), all);
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp32}) {
        std::size_t without = 0, of_the_wrong_element = 0;
        for (std::size_t e = 0; e < all.size(); ++e) {
            EXPECT_TRUE(reference::agrees(expected[e].value, expected[e], precision, storage_type(precision)));
            without += !reference::agrees(products[e].value, expected[e], precision, storage_type(precision));
            const double other = expected[e].value != 0 ? expected[(e + 1) % all.size()].value : 0;
            of_the_wrong_element += !reference::agrees(other, expected[e], precision, storage_type(precision));
        }
        EXPECT_GT(without, all.size() / 2) << name(precision);
        EXPECT_GT(of_the_wrong_element, all.size() * 9 / 10) << name(precision);
    }
}

TEST(ReferenceForward, OfAFusedGemmIsAlsoWhatItLeavesBehind) {
    Step step{{Gemm{6, 5, 7}, BiasAdd{6, 5}, Gelu{6, 5}}, 0};
    const Matrix x = Matrix::normal(DataType::fp64, 6, 7, 1), w = Matrix::normal(DataType::fp64, 7, 5, 2),
                 bias = Matrix::normal(DataType::fp64, 1, 5, 3);
    const std::vector<reference::View> views{x.view(), w.view(), bias.view(), {}, {}, {}};
    const auto all = elements(6, 5);
    const auto product = reference::gemm(Gemm{6, 5, 7}, x.view(), w.view(), {}, std::nullopt, {}, all),
               sum = reference::gemm(Gemm{6, 5, 7}, x.view(), w.view(), bias.view(), std::nullopt, {}, all),
               out = reference::gemm(Gemm{6, 5, 7}, x.view(), w.view(), bias.view(), Activation::gelu_tanh, {}, all);
    step.kept = {1};
    EXPECT_EQ(values(reference::evaluate(step, 3, views, all)), values(sum));
    EXPECT_EQ(values(reference::evaluate(step, 4, views, all)), values(out));
    step.kept = {0, 1};
    EXPECT_EQ(values(reference::evaluate(step, 3, views, all)), values(product));
    EXPECT_EQ(values(reference::evaluate(step, 4, views, all)), values(sum));
    EXPECT_EQ(values(reference::evaluate(step, 5, views, all)), values(out));
}

TEST(ReferenceGradients, OfALayerNormAreThoseOfItsForward) {
    const LayerNorm op{4, 9};
    Differences forward(op);
    const auto gradient = [&](std::size_t output, const Matrix& of) {
        const reference::View views[] = {
            forward.operand(0).view(), forward.dy().view(), forward.operand(1).view(), {}, {}, {}};
        return reference::evaluate(Step::of(op, Direction::bwd), output, views, elements(of.rows, of.columns));
    };
    EXPECT_TRUE(is_gradient(forward, 0, gradient(3, forward.operand(0))));
    EXPECT_TRUE(is_gradient(forward, 1, gradient(4, forward.operand(1))));
    EXPECT_TRUE(is_gradient(forward, 2, gradient(5, forward.operand(2))));
    // Planted: dx without the term of g n's mean.
    const Matrix &x = forward.operand(0), &weight = forward.operand(1), &dy = forward.dy();
    const auto width = static_cast<double>(op.width);
    auto without = gradient(3, x);
    for (std::int64_t row = 0; row < op.rows; ++row) {
        double mean = 0, variance = 0, mean_gn = 0;
        for (std::int64_t c = 0; c < op.width; ++c) mean += x(row, c) / width;
        for (std::int64_t c = 0; c < op.width; ++c) variance += (x(row, c) - mean) * (x(row, c) - mean) / width;
        const double rstd = 1 / std::sqrt(variance + op.epsilon);
        for (std::int64_t c = 0; c < op.width; ++c)
            mean_gn += dy(row, c) * weight(0, c) * (x(row, c) - mean) * rstd / width;
        for (std::int64_t c = 0; c < op.width; ++c)
            without[static_cast<std::size_t>(row * op.width + c)].value += rstd * rstd * (x(row, c) - mean) * mean_gn;
    }
    EXPECT_FALSE(is_gradient(forward, 0, without));
}

TEST(ReferenceGradients, OfAnEmbeddingAreThoseOfItsForward) {
    const Embedding op{.rows = 6, .seq = 3, .width = 4, .vocab = 5, .positions = 4};
    Differences forward(op);
    const Matrix &tokens = forward.operand(0), &wte = forward.operand(1), &wpe = forward.operand(2);
    const auto gradient = [&](const Embedding& of, std::size_t output) {
        const reference::View views[] = {tokens.view(), forward.dy().view(), wte.view(), {}};
        const Matrix& like = output == 2 ? wte : wpe;
        return reference::evaluate(Step::of(of, Direction::bwd), output, views, elements(like.rows, like.columns));
    };
    const auto dwte = gradient(op, 2);
    EXPECT_TRUE(is_gradient(forward, 1, dwte));
    EXPECT_TRUE(is_gradient(forward, 2, gradient(op, 3)));
    Embedding accumulating = op;
    accumulating.accumulates = true;
    const auto added = gradient(accumulating, 2);
    for (std::size_t i = 0; i < added.size(); ++i)
        EXPECT_NEAR(added[i].value,
                    dwte[i].value + wte(static_cast<std::int64_t>(i) / 4, static_cast<std::int64_t>(i) % 4), 1e-14);
    // Planted: added to what is there where that should not be, and positions counted through the whole batch.
    EXPECT_FALSE(is_gradient(forward, 1, added));
    EXPECT_FALSE(is_gradient(forward, 2, gradient({6, 6, 4, 5, 4}, 3)));
}

TEST(ReferenceGradients, OfACrossEntropyAreThoseOfTheMeanOfItsLosses) {
    const CrossEntropy op{6, 3, 5};
    Differences forward(op);
    Matrix scale(DataType::fp64, 1, 1);
    scale.fill([] { return 8.0; });
    Matrix share = Matrix(DataType::fp64, 1, op.rows);
    share.fill([&] { return 8.0 / 4; });  // two of three rows have a target; the others' losses are 0
    forward.set_dy(share);
    const auto gradient = [&](const CrossEntropy& of, const Matrix& tokens) {
        const reference::View views[] = {forward.operand(0).view(), tokens.view(), scale.view(), {}};
        return reference::evaluate(Step::of(of, Direction::bwd), 0, views, elements(op.rows, op.vocab));
    };
    const Matrix& tokens = forward.operand(1);
    const auto right = gradient(op, tokens);
    EXPECT_TRUE(is_gradient(forward, 0, right));
    for (std::size_t row : {2, 5})
        for (std::size_t c = 0; c < 5; ++c) EXPECT_EQ(right[row * 5 + c].value, 0) << "the last row has no target";
    // Planted: a row's own token as its target, the end of a sequence overlooked, the mean over all rows.
    Matrix shifted = tokens;
    std::int64_t i = 0;
    shifted.fill([&] { return tokens(0, i++ == 0 ? 0 : i - 2); });
    EXPECT_FALSE(is_gradient(forward, 0, gradient(op, shifted)));
    EXPECT_FALSE(is_gradient(forward, 0, gradient({6, 6, 5}, tokens)));
    auto of_all = right;
    for (auto& element : of_all) element.value *= 4.0 / 6;
    EXPECT_FALSE(is_gradient(forward, 0, of_all));
}

/// Backward's answer at every element of dqkv, with the out and the lse of the forward that `forward` has.
std::vector<reference::Expected> attention_gradient(const Attention& op, const Differences& forward) {
    const Matrix &qkv = forward.operand(0), &dout = forward.dy();
    const auto made = [&](const Matrix& like, std::size_t output) {
        const reference::View views[] = {qkv.view(), {}, {}};
        const auto expected = reference::evaluate(Step::of(op), output, views, elements(like.rows, like.columns));
        Matrix matrix = like;
        std::size_t next = 0;
        matrix.fill([&] { return expected[next++].value; });
        return matrix;
    };
    const Matrix lse = made(forward.operand(1), 1), out = made(forward.operand(2), 2);
    const reference::View views[] = {qkv.view(), out.view(), dout.view(), lse.view(), {}};
    return reference::evaluate(Step::of(op, Direction::bwd), 4, views, elements(qkv.rows, qkv.columns));
}

TEST(ReferenceGradients, OfAttentionAreThoseOfItsForward) {
    for (const AttentionShape& shape : {AttentionShape{2, 3, 7, 5}, AttentionShape{1, 1, 1, 3}}) {
        const Attention op{shape, 0.4, true};
        Differences forward(op);
        auto gradient = attention_gradient(op, forward);
        EXPECT_TRUE(is_gradient(forward, 0, gradient));
        if (shape.seq == 1) continue;  // dq and dk are 0 there
        // Planted: dq, then dk, with a scale that is 1 % too large.
        const std::int64_t width = shape.width();
        auto wrong_dq = gradient, wrong_dk = gradient;
        for (std::size_t e = 0; e < gradient.size(); ++e) {
            const std::int64_t column = static_cast<std::int64_t>(e) % (3 * width);
            if (column < width) wrong_dq[e].value *= 1.01;
            if (column >= width && column < 2 * width) wrong_dk[e].value *= 1.01;
        }
        EXPECT_FALSE(is_gradient(forward, 0, wrong_dq));
        EXPECT_FALSE(is_gradient(forward, 0, wrong_dk));
    }
}

TEST(ReferenceGradients, OfARmsNormAreThoseOfItsForward) {
    const RmsNorm op{4, 9, 1e-3};
    Differences forward(op);
    const Matrix &x = forward.operand(0), &weight = forward.operand(1), &dy = forward.dy();
    const auto gradient = [&](std::size_t output, const Matrix& of) {
        const reference::View views[] = {x.view(), dy.view(), weight.view(), {}, {}};
        return reference::evaluate(Step::of(op, Direction::bwd), output, views, elements(of.rows, of.columns));
    };
    EXPECT_TRUE(is_gradient(forward, 0, gradient(3, x)));
    EXPECT_TRUE(is_gradient(forward, 1, gradient(4, weight)));
    // Planted: dx without the term of g n's mean, which is dy weight rstd; dw with dy's sum in place of dy n's.
    auto dx = gradient(3, x), dw = gradient(4, weight);
    for (std::int64_t row = 0; row < op.rows; ++row) {
        double squares = 0;
        for (std::int64_t c = 0; c < op.width; ++c) squares += x(row, c) * x(row, c);
        const double rstd = 1 / std::sqrt(squares / static_cast<double>(op.width) + op.epsilon);
        for (std::int64_t c = 0; c < op.width; ++c)
            dx[static_cast<std::size_t>(row * op.width + c)].value = dy(row, c) * weight(0, c) * rstd;
    }
    for (std::int64_t c = 0; c < op.width; ++c) {
        double& sum = dw[static_cast<std::size_t>(c)].value = 0;
        for (std::int64_t row = 0; row < op.rows; ++row) sum += dy(row, c);
    }
    EXPECT_FALSE(is_gradient(forward, 0, dx));
    EXPECT_FALSE(is_gradient(forward, 1, dw));
}

TEST(ReferenceGradients, OfAResidualIsTheSumOfTwo) {
    const Matrix dy = Matrix::normal(DataType::fp64, 3, 5, 1), past = Matrix::normal(DataType::fp64, 3, 5, 2);
    const reference::View views[] = {dy.view(), past.view(), {}};
    const auto all = elements(3, 5);
    const auto sum = reference::evaluate(Step::of(ResidualAdd{3, 5}, Direction::bwd), 2, views, all);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(sum[i].value, dy(all[i].row, all[i].column) + past(all[i].row, all[i].column));
}

TEST(ReferenceGradients, AResidualBehindALayerNormAddsToDxAndLeavesTheOthers) {
    const LayerNorm op{4, 9};
    const Matrix x = Matrix::normal(DataType::fp64, 4, 9, 1), dy = Matrix::normal(DataType::fp64, 4, 9, 2),
                 past = Matrix::normal(DataType::fp64, 4, 9, 3), weight = Matrix::normal(DataType::fp64, 1, 9, 4);
    const Step alone = Step::of(op, Direction::bwd), fused{{op, ResidualAdd{4, 9}}, 0, Direction::bwd};
    const reference::View plain[] = {x.view(), dy.view(), weight.view(), {}, {}, {}};
    const reference::View with[] = {x.view(), dy.view(), weight.view(), past.view(), {}, {}, {}};
    const auto all = elements(4, 9), columns = elements(1, 9);
    const auto dx = reference::evaluate(alone, 3, plain, all), sum = reference::evaluate(fused, 6, with, all);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(sum[i].value, dx[i].value + past(all[i].row, all[i].column));
    for (const std::size_t output : {4, 5}) {
        const auto of_alone = reference::evaluate(alone, output, plain, columns);
        const auto of_fused = reference::evaluate(fused, output, with, columns);
        for (std::size_t i = 0; i < columns.size(); ++i) EXPECT_EQ(of_fused[i].value, of_alone[i].value);
    }
}

TEST(ReferenceGradients, OfAConvolutionAreThoseOfItsForward) {
    for (const Conv2d& op : {Conv2d{2, 3, 5, 6, 2, 3, 2, 2, 1, 1, 1, true}, Conv2d{1, 2, 7, 9, 3, 2, 4, 3, 2, 0, 2},
                             Conv2d{2, 1, 6, 5, 2, 4, 3, 1, 3, 2, 0, true}, Conv2d{1, 1, 1, 1, 1, 1, 1},
                             Conv2d{1, 2, 3, 2, 2, 3, 7, 1, 1, 2, 6}}) {  // taps that never meet x
        SCOPED_TRACE(op.text());
        Differences forward(op);
        const Matrix &x = forward.operand(0), &weight = forward.operand(1), &dy = forward.dy();
        const auto dx = [&](const Conv2d& as, const Matrix& of) {
            const reference::View views[] = {dy.view(), weight.view(), {}};
            return reference::evaluate(Step::of(as, Direction::dgrad), 2, views, elements(of.rows, of.columns));
        };
        const reference::View views[] = {x.view(), dy.view(), {}, {}};
        const auto gradient = [&](const Conv2d& as, std::size_t output, const Matrix& of) {
            return reference::evaluate(Step::of(as, Direction::wgrad), output, std::span(views).first(op.bias ? 4 : 3),
                                       elements(of.rows, of.columns));
        };
        EXPECT_TRUE(is_gradient(forward, 0, dx(op, x)));
        EXPECT_TRUE(is_gradient(forward, 1, gradient(op, 2, weight)));
        if (op.bias) {
            EXPECT_TRUE(is_gradient(forward, 2, gradient(op, 3, forward.operand(2))));
        }
        // Planted: x one column off, and a stride left out. Neither may move what lies beyond x or dy.
        if (op.pad_w > 0 && op.width > 1) {
            Conv2d moved = op;
            moved.width += 2, moved.pad_w -= 1;
            EXPECT_FALSE(is_gradient(forward, 0, [&] {
                std::vector<reference::Expected> of_x;
                const auto all = dx(moved, Matrix(DataType::fp64, x.rows, moved.width));
                for (std::size_t i = 0; i < all.size(); ++i)
                    if (static_cast<std::int64_t>(i) % moved.width < op.width) of_x.push_back(all[i]);
                return of_x;
            }()));
        }
        if (op.stride_h > 1) {
            Conv2d dense = op;
            dense.height = op.out_height() - 1 + op.kernel_h - 2 * op.pad_h, dense.stride_h = 1;
            if (dense.height > 0) {
                EXPECT_FALSE(is_gradient(forward, 1, gradient(dense, 2, weight)));
            }
        }
    }
}

TEST(ReferenceGradients, OfAConvolutionThatAccumulatesAreAddedToWhatIsThere) {
    const Conv2d op{2, 3, 5, 6, 2, 3, 2, 2, 1, 1, 1, true}, adds = op.accumulating();
    const Matrix x = Matrix::normal(DataType::fp64, 30, 6, 1), dy = Matrix::normal(DataType::fp64, 12, 7, 2);
    const Matrix dw = Matrix::normal(DataType::fp64, 18, 2, 3), db = Matrix::normal(DataType::fp64, 1, 2, 4);
    const reference::View views[] = {x.view(), dy.view(), dw.view(), db.view()};
    for (const std::size_t output : {2, 3}) {
        const Matrix& before = output == 2 ? dw : db;
        const auto at = elements(before.rows, before.columns);
        const auto alone = reference::evaluate(Step::of(op, Direction::wgrad), output, views, at);
        const auto added = reference::evaluate(Step::of(adds, Direction::wgrad), output, views, at);
        for (std::size_t i = 0; i < at.size(); ++i)
            EXPECT_DOUBLE_EQ(added[i].value, alone[i].value + before(at[i].row, at[i].column));
    }
}

TEST(ReferenceGradients, PlantedErrorsAreFound) {
    const Gemm square{4, 4, 4}, as_if_transposed{4, 4, 4, true};
    Differences forward(square);
    const Matrix &x = forward.operand(0), &w = forward.operand(1), &dy = forward.dy();
    EXPECT_FALSE(is_gradient(forward, 0, evaluated(Step::of(as_if_transposed, Direction::dgrad), dy, w, x)));
    EXPECT_FALSE(is_gradient(forward, 1, evaluated(Step::of(as_if_transposed, Direction::wgrad), x, dy, w)));
    EXPECT_FALSE(is_gradient(forward, 1, evaluated(Step::of(square, Direction::wgrad), dy, x, w)));
    std::vector<reference::Expected> off = evaluated(Step::of(square, Direction::dgrad), dy, w, x);
    off[7].value += 1e-5;
    EXPECT_FALSE(is_gradient(forward, 0, off));
}

}  // namespace
}  // namespace kbench
