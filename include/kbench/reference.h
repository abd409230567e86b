// What kbench asks the fp64 reference of an op kind, and what it answers; kernel.h registers a user's reference.
//
//     std::vector<kbench::reference::Expected> expected(const SwiGlu& op, kbench::reference::Question question) {
//         const kbench::reference::View gate_up = question.next();
//         std::vector<kbench::reference::Expected> values;
//         for (const auto [row, column] : question.elements) {
//             const double gate = gate_up(row, column), up = gate_up(row, op.width + column);
//             const double value = gate / (1 + std::exp(-gate)) * up;
//             values.push_back({value, std::abs(value) * (5 + std::abs(gate)), 2});  // value, magnitude, terms
//         }
//         return values;
//     }
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kbench/step.h"

namespace kbench::reference {

/// A row-major matrix of any stored type, read as fp64. `stride` is the distance between rows in elements.
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

/// What the element should be, and what bounds the error of any floating-point way to compute it.
struct Expected {
    double value;
    /// The value's sum with every term replaced by its absolute value: for gemm, sum of |x w| + |bias| + ...; for
    /// attention, sum of p |v|; after a nonlinear function f, the magnitude of its argument times a bound on |f'|.
    double magnitude;
    /// Number of terms in the longest sum.
    std::int64_t terms;
    /// How far the value moves when many places each round by one unit, independently: the root of the sum of squares
    /// of their single effects. `carried` counts rounded sums whose error passes through a nonlinear function (scores
    /// through softmax). `inner` counts factors made inside the op and rounded to the multiplier's format (softmax's p
    /// before p v, tanh by a hardware instruction). `inputs` counts products of the op's inputs, which are exact unless
    /// the multiplier's format is narrower than the stored one (tf32).
    double carried = 0, inner = 0, inputs = 0;
};

/// Work of the reference for one element; whether elements of a row within so many columns share it; and how many such
/// groups to check so that some matter (more where most elements are zero).
struct ElementCost {
    double multiply_adds = 1;
    std::int64_t group = 1;
    std::int64_t least_groups = 1;
};

/// A question: what should these `elements` (sorted by row) of the step's operand number `output` be? Views of operands
/// come in the operands' order, empty for those that the step does not have.
class Question {
  public:
    Question(const Step& of, std::size_t operand, std::span<const View> views, std::span<const Element> at)
        : step(of), output(operand), elements(at), views_(views) {}

    View next() { return views_[index_++]; }
    View next_if(bool present) { return present ? next() : View{}; }
    /// Whether the next operand is the one asked for.
    bool asks_for_next() const { return output == index_; }

    const Step& step;
    const std::size_t output;
    const std::span<const Element> elements;

  private:
    std::span<const View> views_;  ///< parallel to operands(step): what each held before the step ran
    std::size_t index_ = 0;
};

}  // namespace kbench::reference
