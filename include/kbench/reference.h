// What the fp64 reference of an op kind is asked and answers; kernel.h registers that of a kind from outside kbench.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kbench/step.h"

namespace kbench::reference {

/// A row-major matrix of any stored type, read as fp64. `stride` is the distance of rows in elements.
struct View {
    const void* data = nullptr;
    DataType type = DataType::fp64;
    std::int64_t rows = 0, columns = 0, stride = 0;
    double operator()(std::int64_t row, std::int64_t column) const;
    explicit operator bool() const { return data != nullptr; }
};

/// An element of a step's output.
struct Element {
    std::int64_t row, column;
    auto operator<=>(const Element&) const = default;
};

/// What the element should be, and what is needed to bound the error of any floating-point way to compute it.
struct Expected {
    double value;
    /// The value's sum with every term replaced by its absolute value: for gemm, sum of |x w| + |bias| + ...; for
    /// attention, sum of p |v|; after a nonlinear function f, the magnitude of its argument times a bound on |f'|.
    double magnitude;
    /// Terms of the longest sum.
    std::int64_t terms;
    /// How far a rounding of one unit in each of many places moves the value, roundings being independent: the root of
    /// the sum of squares of their single effects. `carried`: rounded sums whose error passes through a nonlinear
    /// function (scores through softmax); `inner`: factors made inside the op and rounded to the multiplier's format
    /// (softmax's p before p v, tanh by a hardware instruction); `inputs`: products of the op's inputs, which are exact
    /// unless the multiplier's format is narrower than the stored one (tf32).
    double carried = 0, inner = 0, inputs = 0;
};

/// Work of the reference for one element, whether elements of a row share it within so many columns, and how many such
/// groups must be looked at so that some are of those that matter: more where most are zeros.
struct ElementCost {
    double multiply_adds = 1;
    std::int64_t group = 1;
    std::int64_t least_groups = 1;
};

/// A question: what should `elements`, sorted by row, of the step's operand number `output` be? Views of operands are
/// handed out in their order, empty ones for those that the step does not have.
class Question {
  public:
    Question(const Step& of, std::size_t operand, std::span<const View> views, std::span<const Element> at)
        : step(of), output(operand), elements(at), views_(views) {}

    View next() { return views_[index_++]; }
    View next_if(bool present) { return present ? next() : View{}; }
    /// Whether the operand asked for is the one that comes next.
    bool asks_for_next() const { return output == index_; }

    const Step& step;
    const std::size_t output;
    const std::span<const Element> elements;

  private:
    std::span<const View> views_;  ///< parallel to operands(step): what each holds before the step runs
    std::size_t index_ = 0;
};

}  // namespace kbench::reference
