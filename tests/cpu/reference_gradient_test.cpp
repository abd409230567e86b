// The reference's gradients are those of its forward.
#include "models/ops/list.h"
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
