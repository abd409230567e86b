// Gradients without a formula: central differences of the fp64 reference's forward.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "kbench/step.h"
#include "tests/cpu/matrix.h"

namespace kbench::test {

/// A forward step in fp64 on random operands, and a loss: the sum of its last operand, what it makes, times random
/// numbers `dy`.
class Differences {
  public:
    explicit Differences(const Op& op, unsigned seed = 1) : step_(Step::of(op)) {
        for (const OperandSpec& spec : op.operands(Direction::fwd)) {
            operands_.push_back(Matrix::normal(DataType::fp64, spec.rows, spec.columns,
                                               seed + static_cast<unsigned>(operands_.size())));
            if (spec.contents.kind == Contents::Kind::below) {  // tokens
                std::mt19937 generator(seed);
                const std::int64_t numbers = spec.contents.bound - spec.contents.first;
                operands_.back().fill([&] {
                    const auto below = static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(numbers));
                    return static_cast<double>(spec.contents.first + below);
                });
            }
        }
        dy_ = Matrix::normal(DataType::fp64, out().rows, out().columns, seed + 100);
        at_ = elements(out().rows, out().columns);
    }

    const Matrix& operand(std::size_t i) const { return operands_.at(i); }
    const Matrix& dy() const { return dy_; }
    void set_dy(Matrix dy) { dy_ = std::move(dy); }

    /// d loss / d operand i at `element`, within about 1e-9 of its size where the third derivative is not large.
    double derivative(std::size_t i, reference::Element element) {
        const double h = 1e-5;
        return (loss_with(i, element, h) - loss_with(i, element, -h)) / (2 * h);
    }

  private:
    const Matrix& out() const { return operands_.back(); }

    double loss_with(std::size_t i, reference::Element element, double change) {
        double& value =
            reinterpret_cast<double*>(operands_[i].bytes.data())[element.row * operands_[i].columns + element.column];
        const double before = value;
        value += change;
        std::vector<reference::View> views;
        for (const Matrix& operand : operands_) views.push_back(operand.view());
        double loss = 0;
        const auto expected = reference::evaluate(step_, operands_.size() - 1, views, at_);
        for (std::size_t e = 0; e < at_.size(); ++e) loss += expected[e].value * dy_(at_[e].row, at_[e].column);
        value = before;
        return loss;
    }

    Step step_;
    std::vector<Matrix> operands_;
    Matrix dy_{DataType::fp64, 1, 1};
    std::vector<reference::Element> at_;
};

/// Whether `gradient` is what differences give for operand `i`, at every element.
inline testing::AssertionResult is_gradient(Differences& differences, std::size_t i,
                                            const std::vector<reference::Expected>& gradient) {
    const Matrix& of = differences.operand(i);
    const auto all = elements(of.rows, of.columns);
    if (all.size() != gradient.size()) return testing::AssertionFailure() << gradient.size() << " elements";
    for (std::size_t e = 0; e < all.size(); ++e) {
        const double derivative = differences.derivative(i, all[e]);
        if (std::abs(derivative - gradient[e].value) > 1e-7 * (1 + gradient[e].magnitude))
            return testing::AssertionFailure() << "row " << all[e].row << ", column " << all[e].column << ": "
                                               << gradient[e].value << ", and by differences " << derivative;
    }
    return testing::AssertionSuccess();
}

}  // namespace kbench::test
