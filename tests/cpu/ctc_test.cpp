// Connectionist temporal classification: the reference against a list of all alignments and against differences, and
// the loops on CPUs against the reference.
#include "cpu/native/ctc.h"

#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using reference::Expected;
using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64};
DataType loss_type(DataType type) { return type == DataType::fp64 ? type : DataType::fp32; }

Matrix numbers(DataType type, std::int64_t rows, std::int64_t columns, std::vector<double> values) {
    Matrix matrix(type, rows, columns);
    std::size_t i = 0;
    const auto next = [&] { return i < values.size() ? values[i++] : 0.0; };
    if (type == DataType::int32)
        for (std::int64_t e = 0; e < rows * columns; ++e)
            reinterpret_cast<std::int32_t*>(matrix.data())[e] = static_cast<std::int32_t>(next());
    else
        matrix.fill(next);
    return matrix;
}
const std::int32_t* integers(const Matrix& matrix) { return static_cast<const std::int32_t*>(matrix.data()); }

/// All that the op reads.
struct Batch {
    Ctc op;
    Matrix logits, lengths, targets, target_lengths, scale;

    Batch(const Ctc& of, DataType type, std::vector<double> length, std::vector<double> labels,
          std::vector<double> label_counts, double deviation = 1, double loss_scale = 1)
        : op(of),
          logits(Matrix::normal(type, op.steps * op.batch, op.labels, 1, deviation)),
          lengths(numbers(DataType::int32, op.batch, 1, std::move(length))),
          targets(numbers(DataType::int32, op.batch, op.target, std::move(labels))),
          target_lengths(numbers(DataType::int32, op.batch, 1, std::move(label_counts))),
          scale(numbers(loss_type(type), 1, 1, {loss_scale})) {}
    /// Sequences and targets of many lengths, among the labels many equal neighbours.
    static Batch of_many_lengths(const Ctc& op, DataType type, double deviation = 1) {
        std::vector<double> length, labels, counts;
        std::mt19937 generator(5);
        for (std::int64_t n = 0; n < op.batch; ++n) {
            length.push_back(static_cast<double>(n % 3 == 0 ? op.steps * op.frames_per_step
                                                            : op.steps * op.frames_per_step * (n % 7 + 1) / 8));
            counts.push_back(static_cast<double>(n % 4 == 0 ? op.target : op.target * (n % 5) / 5));
            for (std::int64_t i = 0; i < op.target; ++i)
                labels.push_back(generator() % 3 == 0 && i > 0
                                     ? labels.back()
                                     : 1 + static_cast<double>(generator() % static_cast<unsigned>(op.labels - 1)));
        }
        return {op, type, length, labels, counts, deviation, 64};
    }

    std::vector<Expected> losses() const {
        const reference::View views[] = {logits.view(), lengths.view(), targets.view(), target_lengths.view(), {}};
        return reference::evaluate(Step::of(op), 4, views, elements(1, op.batch));
    }
    std::vector<Expected> gradient() const {
        const reference::View views[] = {logits.view(),         lengths.view(), targets.view(),
                                         target_lengths.view(), scale.view(),   {}};
        return reference::evaluate(Step::of(op, Direction::bwd), 0, views, elements(logits.rows, op.labels));
    }
    std::int64_t steps_of_sequence(std::int64_t n) const {
        return steps_of(integers(lengths)[n], op.frames_per_step, op.steps);
    }
    std::vector<std::int32_t> targets_of(std::int64_t n) const {
        const std::int32_t* first = integers(targets) + n * op.target;
        return {first, first + integers(target_lengths)[n]};
    }
    std::vector<double> probabilities(std::int64_t n, std::int64_t step) const {
        std::vector<double> p;
        double sum = 0;
        for (std::int64_t label = 0; label < op.labels; ++label)
            sum += p.emplace_back(std::exp(logits(step * op.batch + n, label)));
        for (double& of : p) of /= sum;
        return p;
    }
};

/// What is left of an alignment: of equal neighbours one, and no blanks.
std::vector<std::int32_t> collapsed(const std::vector<std::int32_t>& alignment) {
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < alignment.size(); ++i)
        if (alignment[i] != 0 && (i == 0 || alignment[i] != alignment[i - 1])) labels.push_back(alignment[i]);
    return labels;
}

/// By a list of all labels ** steps strings: the probability of the targets, and of that with `label` at `step`.
struct Listed {
    double probability = 0;
    std::vector<double> with;  ///< [steps, labels]

    Listed(const Batch& batch, std::int64_t n) {
        const std::int64_t steps = batch.steps_of_sequence(n), labels = batch.op.labels;
        with.resize(static_cast<std::size_t>(batch.op.steps * labels));
        std::vector<std::vector<double>> p;
        std::int64_t strings = 1;
        for (std::int64_t t = 0; t < steps; ++t) {
            p.push_back(batch.probabilities(n, t));
            strings *= labels;
        }
        for (std::int64_t string = 0; string < strings; ++string) {
            std::vector<std::int32_t> alignment;
            double product = 1;
            for (std::int64_t t = 0, left = string; t < steps; ++t, left /= labels) {
                alignment.push_back(static_cast<std::int32_t>(left % labels));
                product *= p[static_cast<std::size_t>(t)][static_cast<std::size_t>(alignment.back())];
            }
            if (collapsed(alignment) != batch.targets_of(n)) continue;
            probability += product;
            for (std::int64_t t = 0; t < steps; ++t)
                with[static_cast<std::size_t>(t * labels + alignment[static_cast<std::size_t>(t)])] += product;
        }
    }
};

/// Sequences that are full, shorter, without a step; targets that are none, equal, different, too many, too many with
/// the blanks between equal ones.
Batch tiny() {
    return {{5, 8, 3, 3, 2},
            DataType::fp64,
            {10, 10, 7, 0, 0, 10, 6, 5},
            {1, 2, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 2, 2, 1, 1, 1},
            {3, 3, 2, 0, 1, 0, 3, 3},
            1.5,
            3};
}

TEST(CtcReference, IsTheSumOverAListOfAllAlignments) {
    const Batch batch = tiny();
    const auto losses = batch.losses(), gradient = batch.gradient();
    int infinite = 0;
    for (std::int64_t n = 0; n < batch.op.batch; ++n) {
        SCOPED_TRACE(n);
        const Listed listed(batch, n);
        const Expected& loss = losses[static_cast<std::size_t>(n)];
        infinite += listed.probability == 0;
        if (listed.probability == 0)
            EXPECT_EQ(loss.value, infinity);
        else
            EXPECT_NEAR(loss.value, -std::log(listed.probability), 1e-13);
        for (std::int64_t t = 0; t < batch.op.steps; ++t)
            for (std::int64_t label = 0; label < batch.op.labels; ++label) {
                const auto p = batch.probabilities(n, t)[static_cast<std::size_t>(label)];
                const bool zero = t >= batch.steps_of_sequence(n) || listed.probability == 0;
                const double expected =
                    zero ? 0
                         : 3.0 / 8 * (p - listed.with[static_cast<std::size_t>(t * 3 + label)] / listed.probability);
                const auto i = static_cast<std::size_t>((t * batch.op.batch + n) * 3 + label);
                EXPECT_NEAR(gradient[i].value, expected, 1e-14) << t << ", " << label;
            }
    }
    EXPECT_EQ(infinite, 3) << "of 1 target no step, of 3 equal ones 3 steps, twice";
}

TEST(CtcReference, ItsGradientIsThatOfItsLosses) {
    Batch batch = Batch::of_many_lengths({9, 5, 4, 4, 2}, DataType::fp64);
    const auto gradient = batch.gradient();
    const auto loss_with = [&](std::size_t i, double change) {
        double& logit = reinterpret_cast<double*>(batch.logits.data())[i];
        const double before = std::exchange(logit, logit + change);
        double sum = 0;
        for (const Expected& loss : batch.losses())
            if (loss.value != infinity) sum += 64.0 / 5 * loss.value;
        logit = before;
        return sum;
    };
    for (std::size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(gradient[i].value, (loss_with(i, 1e-5) - loss_with(i, -1e-5)) / 2e-5, 1e-7) << i;
}

/// Forward variables as plain probabilities, with what people forget.
struct Planted {
    bool ends_in_blank = true, skips = true, between_equal = false;

    double loss(const Batch& batch, std::int64_t n) const {
        const auto targets = batch.targets_of(n);
        std::vector<std::int32_t> labels{0};
        for (const std::int32_t target : targets) labels.insert(labels.end(), {target, 0});
        std::vector<double> alpha(labels.size());
        for (std::int64_t t = 0; t < batch.steps_of_sequence(n); ++t) {
            const auto p = batch.probabilities(n, t);
            std::vector<double> next(labels.size());
            for (std::size_t s = 0; s < labels.size(); ++s) {
                double sum = t == 0 ? (s < 2 ? 1.0 : 0.0) : alpha[s] + (s > 0 ? alpha[s - 1] : 0.0);
                const bool may = s >= 2 && labels[s] != 0 && (labels[s] != labels[s - 2] || between_equal);
                if (t > 0 && may && skips) sum += alpha[s - 2];
                next[s] = sum * p[static_cast<std::size_t>(labels[s])];
            }
            alpha = next;
        }
        const std::size_t last = alpha.size() - 1;
        return -std::log((ends_in_blank ? alpha[last] : 0.0) + (last > 0 ? alpha[last - 1] : 0.0));
    }
    /// The derivative of sequence n's loss by one of its logits.
    double derivative(Batch batch, std::int64_t n, std::int64_t row, std::int64_t label) const {
        double& logit = reinterpret_cast<double*>(batch.logits.data())[row * batch.op.labels + label];
        logit += 1e-5;
        const double above = loss(batch, n);
        logit -= 2e-5;
        return (above - loss(batch, n)) / 2e-5;
    }
};

TEST(CtcReference, ItsBoundRejectsAForgottenBlankAndAWrongSkip) {
    const Batch batch{{30, 1, 29, 9}, DataType::fp64, {30}, {3, 5, 5, 7, 1, 2, 9, 9, 4}, {9}};
    const Expected loss = batch.losses()[0];
    const auto gradient = batch.gradient();
    // As stored in 16 bits, and losses in fp32.
    const auto wrong_elements = [&](const Planted& planted) {
        int wrong = 0;
        for (std::int64_t row = 0; row < 30; ++row)
            for (const std::int64_t label : {0, 3, 5, 4}) {
                const auto& e = gradient[static_cast<std::size_t>(row * 29 + label)];
                wrong +=
                    !reference::agrees(planted.derivative(batch, 0, row, label), e, Precision::bf16, DataType::bf16);
            }
        return wrong;
    };
    const auto is_wrong = [&](const Planted& planted) {
        return !reference::agrees(planted.loss(batch, 0), loss, Precision::bf16, DataType::fp32);
    };
    EXPECT_FALSE(is_wrong({}));
    EXPECT_EQ(wrong_elements({}), 0);
    for (const Planted planted :
         {Planted{.ends_in_blank = false}, Planted{.skips = false}, Planted{.between_equal = true}}) {
        SCOPED_TRACE(testing::Message() << planted.ends_in_blank << planted.skips << planted.between_equal);
        EXPECT_TRUE(is_wrong(planted));
        EXPECT_GT(wrong_elements(planted), 10);
    }
    Expected scaled = gradient[0];
    EXPECT_FALSE(reference::agrees(scaled.value * 1.02, scaled, Precision::bf16, DataType::bf16)) << "a wrong scale";
}

struct Made {
    Matrix losses, gradient, losses_of_forward;
    bool operator==(const Made&) const = default;
};

/// Rows of the batch's logits with `padding` behind each.
Made run(const Batch& batch, DataType type, std::int64_t padding = 0) {
    const Ctc& op = batch.op;
    const std::int64_t stride = op.labels + padding, rows = op.steps * op.batch;
    Matrix losses = Matrix::poisoned(loss_type(type), 1, op.batch), forward = losses, logits(type, rows, stride);
    std::int64_t i = 0;
    logits.fill([&] {
        const std::int64_t row = i / stride, column = i++ % stride;
        return column < op.labels ? batch.logits(row, column) : 7.0;
    });
    test::Workspace workspace(ctc_workspace(type, op)), with_alpha(ctc_gradient_workspace(type, op));
    ctc(type, op, stride, logits.data(), integers(batch.lengths), integers(batch.targets),
        integers(batch.target_lengths), forward.data(), workspace.data());
    ctc_gradient(type, op, stride, logits.data(), integers(batch.lengths), integers(batch.targets),
                 integers(batch.target_lengths), batch.scale.data(), losses.data(), with_alpha.data());
    return {losses, logits, forward};
}

void check(const Batch& batch, DataType type, std::int64_t padding = 0) {
    SCOPED_TRACE(testing::Message() << name(type) << " " << batch.op.text() << " padding " << padding);
    const Made made = run(batch, type, padding);
    EXPECT_EQ(made.losses, made.losses_of_forward);
    expect_agrees(made.losses, elements(1, batch.op.batch), batch.losses(), precision_of(type));
    expect_agrees(made.gradient, elements(batch.logits.rows, batch.op.labels), batch.gradient(), precision_of(type));
    for (std::int64_t row = 0; row < made.gradient.rows; ++row)
        for (std::int64_t column = batch.op.labels; column < made.gradient.columns; ++column)
            ASSERT_EQ(made.gradient(row, column), 0) << row << ", " << column;
}

TEST(Ctc, AgreesWithTheReferenceInEveryTypeWhateverThePadding) {
    const Ctc ops[] = {{1, 3, 2, 1},      {5, 8, 3, 3, 2},  {40, 9, 29, 15, 2}, {40, 9, 29, 1},
                       {64, 7, 5, 31, 3}, {33, 4, 300, 12}, {300, 3, 29, 90}};
    for (const DataType type : types)
        for (const Ctc& op : ops)
            for (const double deviation : {1.0, 8.0})
                check(Batch::of_many_lengths(op, type, deviation), type, op.steps % 3);
}

TEST(Ctc, AgreesWithTheReferenceWhereNothingIsToBeAligned) {
    Batch batch = tiny();
    check(batch, DataType::fp64, 2);
}

TEST(Ctc, TheBitsDoNotHangOnTheNumberOfThreads) {
    const Batch batch = Batch::of_many_lengths({50, 9, 29, 20}, DataType::bf16);
    const Made all = run(batch, DataType::bf16);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    EXPECT_EQ(run(batch, DataType::bf16), all);
    omp_set_num_threads(threads);
}

TEST(Ctc, MaskedLogitsHaveNoShareAndAnImpossibleTargetIsInfinite) {
    Batch batch{{6, 2, 4, 2}, DataType::fp32, {6, 6}, {1, 2, 1, 3}, {2, 2}};
    for (std::int64_t row = 0; row < 12; ++row)
        reinterpret_cast<float*>(batch.logits.data())[row * 4 + 3] = -static_cast<float>(infinity);
    const Made made = run(batch, DataType::fp32);
    EXPECT_TRUE(std::isfinite(made.losses(0, 0)));
    EXPECT_EQ(made.losses(0, 1), infinity);
    for (std::int64_t row = 0; row < 12; ++row) {
        EXPECT_EQ(made.gradient(row, 3), 0);
        EXPECT_EQ(made.gradient(row, 0) == 0, row % 2 == 1) << row;
    }
    check(batch, DataType::fp32);
}

TEST(Ctc, NansShow) {
    Batch batch{{6, 2, 4, 2}, DataType::fp32, {6, 6}, {1, 2, 1, 3}, {2, 2}};
    reinterpret_cast<float*>(batch.logits.data())[4 * 4] = std::numeric_limits<float>::quiet_NaN();
    const Made made = run(batch, DataType::fp32);
    EXPECT_TRUE(std::isnan(made.losses(0, 0)));
    EXPECT_TRUE(std::isnan(made.gradient(0, 0)));
    EXPECT_TRUE(std::isfinite(made.losses(0, 1)));
}

}  // namespace
}  // namespace kbench::cpu
