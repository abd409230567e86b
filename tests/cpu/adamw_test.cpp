// AdamW on CPUs: three steps against the formula written out, the reference against the loops, and steps that are
// skipped.
#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "cpu/native/adamw.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double lr = 0.01, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;

Matrix schedule_of(DataType type, int t, double multiplier, double max_norm) {
    const double numbers[] = {
        lr, beta1, beta2, epsilon, weight_decay, 1 - std::pow(beta1, t), 1 - std::pow(beta2, t), multiplier, max_norm};
    Matrix schedule(type, 1, 9);
    schedule.fill([&, i = 0]() mutable { return numbers[i++]; });
    return schedule;
}

/// Operands of an op in `type`: state near 0, v not below it.
std::vector<Matrix> operands_of(const AdamW& op, DataType type, double multiplier = 0.5, double norm = 3,
                                double max_norm = 1) {
    const DataType wide = type == DataType::fp64 ? type : DataType::fp32, state = op.master ? wide : type;
    std::vector<Matrix> made{schedule_of(wide, 3, multiplier, max_norm)};
    if (op.clips) {
        made.emplace_back(wide, 1, 1);
        made.back().fill([&] { return norm; });
    }
    unsigned seed = 1;
    for (const std::int64_t size : op.sizes) {
        made.push_back(Matrix::normal(type, 1, size, seed++));
        made.push_back(Matrix::normal(type, 1, size, seed++));
        made.push_back(Matrix::normal(state, 1, size, seed++, 0.1));
        const Matrix roots = Matrix::normal(state, 1, size, seed++, 0.1);
        made.push_back(roots);
        made.back().fill([&, i = std::int64_t{0}]() mutable {
            const double x = roots(0, i++);
            return x * x;
        });
        if (op.master) made.push_back(Matrix::normal(wide, 1, size, seed++));
    }
    return made;
}

std::vector<void*> pointers_to(std::vector<Matrix>& operands) {
    std::vector<void*> pointers;
    for (Matrix& operand : operands) pointers.push_back(operand.data());
    return pointers;
}

std::vector<reference::Expected> expected(const AdamW& op, const std::vector<Matrix>& operands, std::size_t output) {
    std::vector<reference::View> views;
    for (const Matrix& operand : operands) views.push_back(operand.view());
    return reference::evaluate(Step::of(op), output, views, elements(1, operands[output].columns));
}

bool is_written(const AdamW& op, std::size_t operand) {
    return operand >= op.first_operand() && (operand - op.first_operand()) % op.operands_each() != 1;
}

TEST(AdamW, ThreeStepsAreThoseOfTheFormula) {
    // As torch.optim.AdamW documents it, in the order in which it is written there.
    const AdamW op{{3, 5}};
    std::vector<Matrix> operands = operands_of(op, DataType::fp64);
    std::vector<double> theta, m, v;
    for (std::size_t tensor = 0; tensor < 2; ++tensor)
        for (std::int64_t i = 0; i < op.sizes[tensor]; ++i) {
            theta.push_back(operands[1 + 4 * tensor](0, i));
            m.push_back(0);
            v.push_back(0);
        }
    for (std::size_t operand : {3, 4, 7, 8}) operands[operand].fill([] { return 0.0; });
    for (int t = 1; t <= 3; ++t) {
        operands[0] = schedule_of(DataType::fp64, t, 0.25, 0);
        for (std::size_t tensor = 0; tensor < 2; ++tensor)
            operands[2 + 4 * tensor] = Matrix::normal(DataType::fp64, 1, op.sizes[tensor],
                                                      static_cast<unsigned>(10 * t) + static_cast<unsigned>(tensor));
        std::vector<std::vector<reference::Expected>> of_reference;
        for (std::size_t operand = 0; operand < operands.size(); ++operand)
            of_reference.push_back(is_written(op, operand) ? expected(op, operands, operand)
                                                           : std::vector<reference::Expected>{});
        adamw(DataType::fp64, op, pointers_to(operands));
        std::size_t n = 0;
        for (std::size_t tensor = 0; tensor < 2; ++tensor)
            for (std::int64_t i = 0; i < op.sizes[tensor]; ++i, ++n) {
                const double g = operands[2 + 4 * tensor](0, i) / 4;
                theta[n] -= lr * weight_decay * theta[n];
                m[n] = beta1 * m[n] + (1 - beta1) * g;
                v[n] = beta2 * v[n] + (1 - beta2) * g * g;
                const double m_hat = m[n] / (1 - std::pow(beta1, t)), v_hat = v[n] / (1 - std::pow(beta2, t));
                theta[n] -= lr * m_hat / (std::sqrt(v_hat) + epsilon);
                const double expected_of[] = {theta[n], 0, m[n], v[n]};
                for (const std::size_t which : {0, 2, 3}) {
                    const std::size_t operand = 1 + 4 * tensor + which;
                    EXPECT_NEAR(operands[operand](0, i), expected_of[which], 1e-14) << t << " " << which << " " << i;
                    EXPECT_NEAR(of_reference[operand][static_cast<std::size_t>(i)].value, expected_of[which], 1e-14);
                }
            }
    }
}

TEST(AdamW, AgreesWithTheReferenceInEveryTypeWhateverTheThreads) {
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64})
        for (const bool master : {false, true})
            for (const bool clips : {false, true}) {
                SCOPED_TRACE(testing::Message() << name(type) << " master " << master << " clips " << clips);
                const AdamW op{{1, 100, 5003, 8192}, master, clips};
                const std::vector<Matrix> before = operands_of(op, type);
                std::vector<Matrix> after = before, by_one = before;
                adamw(type, op, pointers_to(after));
                for (std::size_t i = 0; i < after.size(); ++i) {
                    SCOPED_TRACE(i);
                    if (is_written(op, i))
                        expect_agrees(after[i], elements(1, after[i].columns), expected(op, before, i),
                                      precision_of(type));
                    else
                        EXPECT_EQ(after[i], before[i]);
                }
                const int threads = omp_get_max_threads();
                omp_set_num_threads(1);
                adamw(type, op, pointers_to(by_one));
                omp_set_num_threads(threads);
                EXPECT_EQ(by_one, after);
            }
}

TEST(AdamW, AStepOfGradientsThatAreNotFiniteIsSkipped) {
    for (const bool master : {false, true}) {
        for (const double multiplier : {0.0, infinity, -infinity, std::nan("")}) {
            const AdamW op{{100}, master};
            const std::vector<Matrix> before = operands_of(op, DataType::bf16, multiplier);
            std::vector<Matrix> after = before;
            adamw(DataType::bf16, op, pointers_to(after));
            for (std::size_t i = 1; i < after.size(); ++i) EXPECT_EQ(after[i], before[i]) << multiplier;
            EXPECT_EQ(expected(op, before, 1)[7].value, before[1](0, 7));
        }
        for (const double norm : {infinity, std::nan("")})
            for (const double max_norm : {0.0, 1.0}) {
                const AdamW op{{100}, master, true};
                const std::vector<Matrix> before = operands_of(op, DataType::bf16, 0.5, norm, max_norm);
                std::vector<Matrix> after = before;
                adamw(DataType::bf16, op, pointers_to(after));
                for (std::size_t i = 2; i < after.size(); ++i) EXPECT_EQ(after[i], before[i]) << norm;
                EXPECT_EQ(expected(op, before, 2)[7].value, before[2](0, 7));
            }
    }
}

TEST(AdamW, OnlyLongGradientsAreClipped) {
    const AdamW clipped{{10}, false, true}, plain{{10}};
    const auto m_of = [](const AdamW& op, double multiplier, double norm, double max_norm) {
        std::vector<Matrix> operands = operands_of(op, DataType::fp64, multiplier, norm, max_norm);
        adamw(DataType::fp64, op, pointers_to(operands));
        return operands[op.first_operand() + 2](0, 3);
    };
    EXPECT_EQ(m_of(clipped, 0.5, 3, 0), m_of(plain, 0.5, 3, 0)) << "no max_norm";
    EXPECT_EQ(m_of(clipped, 0.5, 3, 2), m_of(plain, 0.5, 3, 0)) << "unscaled the norm is 1.5";
    EXPECT_NEAR(m_of(clipped, 0.5, 3, 0.75), m_of(plain, 0.25, 3, 0), 1e-6);
    EXPECT_NE(m_of(clipped, 0.5, 3, 0.75), m_of(plain, 0.5, 3, 0));
}

TEST(AdamW, TheBoundRejectsAForgottenTerm) {
    const AdamW op{{100}};
    const std::vector<Matrix> operands = operands_of(op, DataType::fp32);
    const Matrix &weight = operands[1], &gradient = operands[2], &v = operands[4];
    const auto weights = expected(op, operands, 1), ms = expected(op, operands, 3), vs = expected(op, operands, 4);
    const auto agrees = [](double value, const reference::Expected& e) {
        return reference::agrees(value, e, Precision::fp32, DataType::fp32);
    };
    for (std::size_t i = 0; i < 100; ++i) {
        const auto c = static_cast<std::int64_t>(i);
        EXPECT_TRUE(agrees(weights[i].value, weights[i]));
        EXPECT_FALSE(agrees(weights[i].value + lr * weight_decay * weight(0, c), weights[i])) << "no decay";
        const double update = weight(0, c) * (1 - lr * weight_decay) - weights[i].value;
        EXPECT_FALSE(agrees(weights[i].value + update * (1 - (1 - std::pow(beta1, 3))), weights[i])) << "no correction";
        EXPECT_FALSE(agrees(ms[i].value + (1 - beta1) * 0.5 * gradient(0, c), ms[i])) << "no multiplier";
        EXPECT_FALSE(agrees(vs[i].value + 0.05 * 0.25 * gradient(0, c) * gradient(0, c), vs[i])) << "the same";
        EXPECT_FALSE(agrees(v(0, c), vs[i])) << "v as it was";
    }
}

}  // namespace
}  // namespace kbench::cpu
