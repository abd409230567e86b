// Operands of a recurrent layer, in their order, by direction.
#pragma once

#include "cpu/native/recurrent.h"
#include "kbench/step.h"
#include "models/ops/recurrent.h"

namespace kbench {

struct RecurrentOperands {
    cpu::RecurrentDirection forward, reverse;
    const std::int32_t* lengths;

    explicit RecurrentOperands(OperandCursor in) {
        using cpu::RecurrentDirection;
        for (const auto member : {&RecurrentDirection::gates_x, &RecurrentDirection::weight_hh,
                                  &RecurrentDirection::bias_ih, &RecurrentDirection::bias_hh}) {
            forward.*member = in.next();
            reverse.*member = in.next();
        }
        lengths = in.next<const std::int32_t>();
        forward.out = in.next();
        reverse.out = in.next();
    }
};

/// Why a row that leaves nothing for the backward does not take `op`, if it does not.
template <Cell cell>
std::string saves_nothing(const Recurrent<cell>& op) {
    return op.saves ? "leaves no gates for the backward" : "";
}

}  // namespace kbench
