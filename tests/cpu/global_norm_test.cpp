// The norm of all gradients on CPUs against the reference, and what it is not finite for.
#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "cpu/native/global_norm.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::Matrix;

std::vector<Matrix> gradients_of(const GlobalNorm& op, DataType type) {
    std::vector<Matrix> gradients;
    for (const std::int64_t size : op.sizes)
        gradients.push_back(Matrix::normal(type, 1, size, static_cast<unsigned>(gradients.size()), 0.01));
    return gradients;
}

double norm_of(const GlobalNorm& op, std::vector<Matrix>& gradients) {
    std::vector<void*> pointers;
    for (Matrix& gradient : gradients) pointers.push_back(gradient.data());
    const DataType type = gradients[0].type;
    Matrix norm = Matrix::poisoned(type == DataType::fp64 ? type : DataType::fp32, 1, 1);
    global_norm(type, op, pointers, norm.data());
    return norm(0, 0);
}

reference::Expected expected_of(const GlobalNorm& op, const std::vector<Matrix>& gradients) {
    std::vector<reference::View> views;
    for (const Matrix& gradient : gradients) views.push_back(gradient.view());
    views.emplace_back();
    return reference::evaluate(Step::of(op), gradients.size(), views, elements(1, 1)).at(0);
}

TEST(GlobalNorm, IsTheLengthOfAllGradientsWhateverTheThreads) {
    for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
        SCOPED_TRACE(std::string(name(type)));
        const GlobalNorm op{{1, 63, 65, 5003, 300000}};
        std::vector<Matrix> gradients = gradients_of(op, type);
        const reference::Expected expected = expected_of(op, gradients);
        const double norm = norm_of(op, gradients);
        const DataType stored = type == DataType::fp64 ? type : DataType::fp32;
        EXPECT_TRUE(reference::agrees(norm, expected, test::precision_of(type), stored))
            << norm << ", expected " << expected.value;
        const int threads = omp_get_max_threads();
        omp_set_num_threads(1);
        EXPECT_EQ(norm_of(op, gradients), norm);
        omp_set_num_threads(threads);
        EXPECT_FALSE(reference::agrees(norm * norm, expected, test::precision_of(type), stored)) << "no root";
        gradients[3].fill([] { return 0.0; });
        EXPECT_FALSE(reference::agrees(norm_of(op, gradients), expected, test::precision_of(type), stored))
            << "a tensor left out";
    }
}

TEST(GlobalNorm, OfMillionsOfGradientsTheBoundTellsAFewThousandThatLack) {
    const GlobalNorm op{{20'000'000, 5000}};
    for (const DataType type : {DataType::bf16, DataType::fp32}) {
        std::vector<Matrix> gradients = gradients_of(op, type);
        const reference::Expected expected = expected_of(op, gradients);
        EXPECT_TRUE(reference::agrees(norm_of(op, gradients), expected, test::precision_of(type), DataType::fp32));
        gradients[1].fill([] { return 0.0; });
        EXPECT_FALSE(reference::agrees(norm_of(op, gradients), expected, test::precision_of(type), DataType::fp32));
    }
}

TEST(GlobalNorm, ReferenceIsThatOfThreeAndFour) {
    const GlobalNorm op{{2, 1}};
    std::vector<Matrix> gradients{Matrix(DataType::fp64, 1, 2), Matrix(DataType::fp64, 1, 1)};
    gradients[0].fill([] { return 2.0; });
    gradients[1].fill([] { return -1.0; });
    EXPECT_DOUBLE_EQ(expected_of(op, gradients).value, 3);
}

TEST(GlobalNorm, IsNotFiniteWhereAGradientIsNot) {
    const GlobalNorm op{{100, 5000}};
    for (const double value : {std::numeric_limits<double>::infinity(), std::nan("")})
        for (const DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
            std::vector<Matrix> gradients = gradients_of(op, type);
            std::int64_t i = 0;
            const Matrix before = gradients[1];
            gradients[1].fill([&] { return i++ == 4999 ? value : before(0, i - 1); });
            EXPECT_FALSE(std::isfinite(norm_of(op, gradients)));
            EXPECT_FALSE(std::isfinite(expected_of(op, gradients).value));
        }
}

}  // namespace
}  // namespace kbench::cpu
