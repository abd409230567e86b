// Batch norm in training and backward, and the backward of what stands around it: the reference against its definition
// and against differences, planted errors, and the CPU's loops in every stored type.
#include "cpu/native/batchnorm.h"

#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>

#include "cpu/native/sequence.h"

#include "tests/cpu/differences.h"
#include "tests/cpu/reference_data.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;
using test::Differences;
using test::elements;
using test::is_gradient;
using test::Matrix;

BatchNorm training(std::int64_t rows, std::int64_t width, std::int64_t channels = 0, std::int64_t height = 1) {
    BatchNorm op{rows, width, channels, height};
    op.training = true;
    return op;
}

std::int64_t channel_of(const BatchNorm& op, std::int64_t row, std::int64_t column) {
    return op.channels > 0 ? row / op.height % op.channels : column;
}

Matrix values_of(const std::vector<Expected>& expected, std::int64_t rows, std::int64_t columns,
                 DataType type = DataType::fp64) {
    Matrix matrix(type, rows, columns);
    std::size_t next = 0;
    matrix.fill([&] { return expected[next++].value; });
    return matrix;
}

/// A training step's operands, and what the reference says of each.
struct Training {
    BatchNorm op;
    Matrix x, weight, bias, running_mean, running_var;
    Training(const BatchNorm& of, DataType type, double mean = 5)
        : op(of),
          x(Matrix::normal(type, op.rows, op.width, 1, 2, mean)),
          weight(Matrix::normal(type, 1, op.channel_count(), 2)),
          bias(Matrix::normal(type, 1, op.channel_count(), 3)),
          running_mean(Matrix::normal(type, 1, op.channel_count(), 4, 1, 5)),
          running_var(Matrix::normal(type, 1, op.channel_count(), 5, 0.1, 1)) {}
    std::vector<Expected> expected(std::size_t output) const {
        const View views[] = {x.view(), weight.view(), bias.view(), running_mean.view(), running_var.view(), {}, {},
                              {}};
        return reference::evaluate(Step::of(op), output, views,
                                   output == 7 ? elements(op.rows, op.width) : elements(1, op.channel_count()));
    }
};
constexpr std::size_t running_mean = 3, running_var = 4, mean = 5, rstd = 6, out = 7;

const BatchNorm shapes[] = {training(2, 1),        training(7, 5),          training(130, 65),
                            training(24, 9, 3, 4), training(10, 33, 5, 1),  training(1, 70, 1, 1),
                            training(12, 1, 2, 3), training(70, 100, 5, 7), training(300, 150)};

TEST(BatchNormInTraining, TakesTheBatchsStatisticsAndMovesTheRunningOnes) {
    for (const BatchNorm& op : shapes) {
        SCOPED_TRACE(op.text());
        const Training data(op, DataType::fp32);
        const auto count = static_cast<double>(op.count());
        const auto share_wrong = [&](std::size_t output, const auto& value_of) {
            const auto at = output == out ? elements(op.rows, op.width) : elements(1, op.channel_count());
            return reference::disagreement(at, data.expected(output), value_of, Precision::fp32, DataType::fp32);
        };
        std::vector<double> means(static_cast<std::size_t>(op.channel_count())), variances = means;
        for (const Element& e : elements(op.rows, op.width))
            means[static_cast<std::size_t>(channel_of(op, e.row, e.column))] += data.x(e.row, e.column) / count;
        for (const Element& e : elements(op.rows, op.width)) {
            const auto c = static_cast<std::size_t>(channel_of(op, e.row, e.column));
            variances[c] += std::pow(data.x(e.row, e.column) - means[c], 2) / count;
        }
        const auto of = [](const std::vector<double>& all, const Element& e) {
            return all[static_cast<std::size_t>(e.column)];
        };
        EXPECT_EQ(share_wrong(mean, [&](Element e) { return of(means, e); }), 0);
        EXPECT_EQ(share_wrong(rstd, [&](Element e) { return 1 / std::sqrt(of(variances, e) + op.epsilon); }), 0);
        EXPECT_EQ(share_wrong(running_mean,
                              [&](Element e) { return 0.9 * data.running_mean(0, e.column) + 0.1 * of(means, e); }),
                  0);
        const auto moved = [&](double correction) {
            return share_wrong(running_var, [&](Element e) {
                return 0.9 * data.running_var(0, e.column) + 0.1 * of(variances, e) * correction;
            });
        };
        EXPECT_EQ(moved(count / (count - 1)), 0);
        EXPECT_GT(moved(1), 0.9) << "planted: the biased variance";
        const auto normalised = [&](double of_variance) {
            return share_wrong(out, [&](Element e) {
                const std::int64_t c = channel_of(op, e.row, e.column);
                const auto i = static_cast<std::size_t>(c);
                return (data.x(e.row, e.column) - means[i]) / std::sqrt(variances[i] * of_variance + op.epsilon) *
                           data.weight(0, c) +
                       data.bias(0, c);
            });
        };
        EXPECT_EQ(normalised(1), 0);
        EXPECT_GT(normalised(count / (count - 1)), 0.8) << "planted: the unbiased variance";
    }
}

TEST(BatchNormInTraining, OfASumIsThatOfTheSum) {
    const BatchNorm op = training(7, 33);
    const Training data(op, DataType::fp32);
    const Matrix residual = Matrix::normal(DataType::fp32, op.rows, op.width, 6);
    Training of_sum(op, DataType::fp64);
    std::int64_t next = 0;
    of_sum.x.fill([&] {
        const std::int64_t row = next / op.width, column = next++ % op.width;
        return data.x(row, column) + residual(row, column);
    });
    of_sum.weight = data.weight, of_sum.bias = data.bias;
    of_sum.running_mean = data.running_mean, of_sum.running_var = data.running_var;
    Step step{{ResidualAdd{op.rows, op.width}, op}, 1};
    for (const bool kept : {false, true}) {
        if (kept) step.kept = {0};
        std::vector<View> views{data.x.view(),    residual.view(),          data.weight.view(),
                                data.bias.view(), data.running_mean.view(), data.running_var.view()};
        views.resize(views.size() + 3 + kept);
        const auto answer = [&](std::size_t output, bool whole) {
            return reference::evaluate(step, output, views, whole ? elements(7, 33) : elements(1, 33));
        };
        for (const std::size_t output : {running_mean, running_var, mean, rstd, out}) {
            const auto expected = of_sum.expected(output);
            const bool written = output > running_var;
            const auto found = answer(output + 1 + (written && kept), output == out);
            for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].value, expected[i].value) << output;
        }
        if (kept) {
            EXPECT_EQ(answer(6, true)[40].value, of_sum.x(1, 7));
        }
    }
}

/// The backward's operands for what `forward` has.
struct Backward {
    BatchNorm op;
    const Differences& forward;
    Matrix means, rstds;
    Backward(const BatchNorm& of, const Differences& differences)
        : op(of), forward(differences), means(DataType::fp64, 1, 1), rstds(means) {
        Training data(op, DataType::fp64);
        data.x = forward.operand(0);
        means = values_of(data.expected(mean), 1, op.channel_count());
        rstds = values_of(data.expected(rstd), 1, op.channel_count());
    }
    std::vector<Expected> gradient(std::size_t output) const {
        const View views[] = {forward.operand(0).view(),
                              forward.dy().view(),
                              forward.operand(1).view(),
                              means.view(),
                              rstds.view(),
                              {},
                              {},
                              {}};
        return reference::evaluate(Step::of(op, Direction::bwd), output, views,
                                   output == 5 ? elements(op.rows, op.width) : elements(1, op.channel_count()));
    }
};

TEST(ReferenceGradients, OfABatchNormAreThoseOfItsForward) {
    for (const BatchNorm& op : {training(7, 5), training(3, 4), training(24, 3, 3, 4), training(10, 5, 5, 1),
                                training(1, 9, 1, 1), training(12, 1, 2, 3)}) {
        SCOPED_TRACE(op.text());
        Differences forward(op);
        const Backward backward(op, forward);
        const auto dx = backward.gradient(5);
        EXPECT_TRUE(is_gradient(forward, 0, dx));
        EXPECT_TRUE(is_gradient(forward, 1, backward.gradient(6)));
        EXPECT_TRUE(is_gradient(forward, 2, backward.gradient(7)));
        // Planted: dx without the mean of dy, without n times that of dy n, and as with constant statistics.
        const auto dw = backward.gradient(6), db = backward.gradient(7);
        for (const int planted : {1, 2, 3}) {
            auto wrong = dx;
            const auto at = elements(op.rows, op.width);
            for (std::size_t i = 0; i < at.size(); ++i) {
                const auto [row, column] = at[i];
                const std::int64_t c = channel_of(op, row, column);
                const double r = backward.rstds(0, c), scale = forward.operand(1)(0, c) * r;
                const double n = (forward.operand(0)(row, column) - backward.means(0, c)) * r;
                const auto channel = static_cast<std::size_t>(c);
                if (planted & 1) wrong[i].value += scale * db[channel].value / static_cast<double>(op.count());
                if (planted & 2) wrong[i].value += scale * n * dw[channel].value / static_cast<double>(op.count());
            }
            EXPECT_FALSE(is_gradient(forward, 0, wrong)) << planted;
        }
        // Planted: dw of x that is not centred.
        auto uncentred = dw;
        for (std::size_t c = 0; c < dw.size(); ++c)
            uncentred[c].value += db[c].value * backward.means(0, static_cast<std::int64_t>(c)) *
                                  backward.rstds(0, static_cast<std::int64_t>(c));
        EXPECT_FALSE(is_gradient(forward, 1, uncentred));
    }
}

TEST(ReferenceGradients, OfABatchNormAreAddedToWhatIsThere) {
    BatchNorm op = training(24, 9, 3, 4);
    const Differences forward(op);
    const Backward alone(op, forward);
    op.accumulates = true;
    const Matrix dw = Matrix::normal(DataType::fp64, 1, 3, 11), db = Matrix::normal(DataType::fp64, 1, 3, 12);
    const View views[] = {forward.operand(0).view(),
                          forward.dy().view(),
                          forward.operand(1).view(),
                          alone.means.view(),
                          alone.rstds.view(),
                          dw.view(),
                          db.view(),
                          {}};
    const auto added = [&](std::size_t output, const std::vector<Element>& at) {
        return reference::evaluate(Step::of(op, Direction::bwd), output, views, at);
    };
    const auto at = elements(24, 9);
    const auto dx = added(7, at), of_alone = alone.gradient(5);
    for (std::size_t i = 0; i < at.size(); ++i) EXPECT_EQ(dx[i].value, of_alone[i].value);
    for (std::size_t c = 0; c < 3; ++c) {
        const auto channel = static_cast<std::int64_t>(c);
        EXPECT_EQ(added(5, elements(1, 3))[c].value, dw(0, channel) + alone.gradient(6)[c].value);
        EXPECT_EQ(added(6, elements(1, 3))[c].value, db(0, channel) + alone.gradient(7)[c].value);
    }
}

TEST(ReferenceGradients, OfClippingMaskingAndMovingTimeAreThoseOfTheirForwards) {
    const Hardtanh clip{5, 7, -0.5, 0.75};
    Differences clipped(clip);
    const auto all = elements(5, 7);
    const View in[] = {clipped.operand(0).view(), {}};
    const Matrix y = values_of(reference::evaluate(Step::of(clip), 1, in, all), 5, 7);
    const auto of_clip = [&](const Matrix& of) {
        const View views[] = {of.view(), clipped.dy().view(), {}};
        return reference::evaluate(Step::of(clip, Direction::bwd), 2, views, all);
    };
    EXPECT_TRUE(is_gradient(clipped, 0, of_clip(y)));
    Matrix shifted = y;
    std::int64_t i = 0;
    shifted.fill([&] {
        const std::int64_t e = i++;
        return y(e / 7, e % 7) == 0.75 ? 0.74 : y(e / 7, e % 7);
    });
    EXPECT_FALSE(is_gradient(clipped, 0, of_clip(shifted))) << "planted: the upper end lets gradients pass";

    const TimeMask mask{3, 2, 5, 2};
    Differences masked(mask);
    const View of_mask[] = {masked.dy().view(), masked.operand(1).view(), {}};
    EXPECT_TRUE(
        is_gradient(masked, 0, reference::evaluate(Step::of(mask, Direction::bwd), 2, of_mask, elements(6, 5))));

    const ToSequence op{3, 4, 5};
    Differences moved(op);
    const View of_moved[] = {moved.dy().view(), {}};
    EXPECT_TRUE(is_gradient(moved, 0, reference::evaluate(Step::of(op, Direction::bwd), 1, of_moved, elements(12, 5))));
    std::vector<reference::Expected> as_it_lies;
    const View same_memory{moved.dy().data(), DataType::fp64, 12, 5, 5};
    for (const auto [row, column] : elements(12, 5)) as_it_lies.push_back({same_memory(row, column), 0, 0});
    EXPECT_FALSE(is_gradient(moved, 0, as_it_lies)) << "planted: nothing moves";
}

constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};
DataType at_least_fp32(DataType type) { return type == DataType::fp64 ? type : DataType::fp32; }

TEST(NativeBatchNorm, InTrainingHoldsAlsoFarFromZeroAndWhateverTheThreads) {
    for (const DataType type : types)
        for (const double of_x : {0.0, 5.0, 200.0})
            for (const BatchNorm& op : shapes) {
                SCOPED_TRACE(testing::Message() << name(type) << " " << op.text() << " around " << of_x);
                const Training data(op, type, of_x);
                const auto run = [&](bool in_place) {
                    const std::int64_t channels = op.channel_count();
                    std::vector<Matrix> made{data.running_mean, data.running_var,
                                             Matrix::poisoned(at_least_fp32(type), 1, channels),
                                             Matrix::poisoned(at_least_fp32(type), 1, channels),
                                             in_place ? data.x : Matrix::poisoned(type, op.rows, op.width)};
                    const Matrix& x = in_place ? made[4] : data.x;
                    test::Workspace workspace(cpu::batch_norm_workspace(type, op));
                    cpu::batch_norm_in_training(type, op, x.data(), data.weight.data(), data.bias.data(),
                                                made[0].data(), made[1].data(), made[2].data(), made[3].data(),
                                                made[4].data(), workspace.data());
                    return made;
                };
                const std::vector<Matrix> made = run(false);
                for (std::size_t i = 0; i < made.size(); ++i)
                    test::expect_agrees(made[i], elements(made[i].rows, made[i].columns),
                                        data.expected(running_mean + i), test::precision_of(type));
                const int threads = omp_get_max_threads();
                omp_set_num_threads(1);
                EXPECT_EQ(run(true), made);
                omp_set_num_threads(threads);
            }
}

TEST(NativeBatchNorm, GradientHoldsAlsoInPlaceAddedAndWhateverTheThreads) {
    for (const DataType type : types)
        for (BatchNorm op : shapes)
            for (const bool accumulates : {false, true}) {
                op.accumulates = accumulates;
                SCOPED_TRACE(testing::Message() << name(type) << " " << op.text());
                const Training data(op, type);
                const std::int64_t channels = op.channel_count();
                const Matrix dy = Matrix::normal(type, op.rows, op.width, 8, 1, 0.5);
                const Matrix means = values_of(data.expected(mean), 1, channels, at_least_fp32(type));
                const Matrix rstds = values_of(data.expected(rstd), 1, channels, at_least_fp32(type));
                const Matrix before = Matrix::normal(type, 1, channels, 9);
                const auto run = [&](bool in_place) {
                    const Matrix none = Matrix::poisoned(type, 1, channels);
                    std::vector<Matrix> made{in_place ? dy : Matrix::poisoned(type, op.rows, op.width),
                                             accumulates ? before : none, accumulates ? before : none};
                    test::Workspace workspace(cpu::batch_norm_workspace(type, op));
                    cpu::batch_norm_gradient(type, op, data.x.data(), in_place ? made[0].data() : dy.data(),
                                             data.weight.data(), means.data(), rstds.data(), made[0].data(),
                                             made[1].data(), made[2].data(), workspace.data());
                    return made;
                };
                const std::vector<Matrix> made = run(false);
                std::vector<View> views{data.x.view(), dy.view(), data.weight.view(), means.view(), rstds.view()};
                if (accumulates) views.insert(views.end(), 2, before.view());
                views.resize(8);
                const std::size_t places[] = {accumulates ? 7u : 5u, accumulates ? 5u : 6u, accumulates ? 6u : 7u};
                for (std::size_t i = 0; i < made.size(); ++i) {
                    const auto at = elements(made[i].rows, made[i].columns);
                    test::expect_agrees(made[i], at,
                                        reference::evaluate(Step::of(op, Direction::bwd), places[i], views, at),
                                        test::precision_of(type));
                }
                const int threads = omp_get_max_threads();
                omp_set_num_threads(1);
                EXPECT_EQ(run(true), made);
                omp_set_num_threads(threads);
            }
}

TEST(NativeSequence, GradientsOfClippingAndOfMovingTimeHold) {
    for (const DataType type : types) {
        const Hardtanh clip{3, 5000};
        Matrix y = Matrix::normal(type, 3, 5000, 1, 20, 10);
        cpu::hardtanh(type, clip, y.data(), y.data());
        Matrix dy = Matrix::normal(type, 3, 5000, 2);
        const View of_clip[] = {y.view(), dy.view(), {}};
        const auto at = elements(3, 5000);
        const auto expected = reference::evaluate(Step::of(clip, Direction::bwd), 2, of_clip, at);
        cpu::hardtanh_gradient(type, clip, y.data(), dy.data(), dy.data());
        test::expect_agrees(dy, at, expected, test::precision_of(type));
        for (const ToSequence& op : {ToSequence{1, 1, 1}, {3, 70, 45}, {2, 33, 64}}) {
            const Matrix of_out = Matrix::normal(type, op.steps * op.batch, op.features, 1);
            Matrix dx = Matrix::poisoned(type, op.batch * op.features, op.steps);
            cpu::to_sequence_gradient(type, op, of_out.data(), dx.data());
            const View of_moved[] = {of_out.view(), {}};
            const auto all = elements(dx.rows, dx.columns);
            test::expect_agrees(dx, all, reference::evaluate(Step::of(op, Direction::bwd), 1, of_moved, all),
                                test::precision_of(type));
        }
    }
}

}  // namespace
}  // namespace kbench
