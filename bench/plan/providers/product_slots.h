// The operands of a matrix product, in the order in which a library multiplies them.
#pragma once

#include <string>
#include <utility>

#include "bench/plan/bind.h"
#include "models/ops/gemm.h"

namespace kbench {

/// Where the factors and the result of Gemm::product stand among a step's operands, in each direction.
struct ProductSlots {
    Slot left, right, out;

    ProductSlots(const Gemm& op, const Step& step, Precision precision)
        : left(step, precision, step.direction == Direction::dgrad ? "dy" : "x"),
          right(step, precision, step.direction == Direction::wgrad ? "dy" : "w"),
          out(step, precision,
              step.direction == Direction::dgrad   ? "dx"
              : step.direction == Direction::wgrad ? "dw"
                                                   : "out") {
        if (op.product(step.direction).left_is_second) std::swap(left, right);
    }
};

/// A computation of `multiply(left, right, out, workspace)`.
template <class Multiply>
std::unique_ptr<Computation> product_computation(std::string implementation, std::size_t workspace_bytes,
                                                 const Gemm& op, const Step& step, Precision precision,
                                                 Multiply multiply) {
    const auto run = [slots = ProductSlots(op, step, precision), multiply = std::move(multiply)](const Call& call) {
        multiply(slots.left.of(call), slots.right.of(call), slots.out.of(call), call.workspace);
    };
    return make_computation(std::move(implementation), run, 1, workspace_bytes);
}

}  // namespace kbench
