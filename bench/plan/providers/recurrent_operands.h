// Operands of a recurrent layer, in their order, by direction.
#pragma once

#include "cpu/native/recurrent.h"
#include "kbench/step.h"
#include "models/ops/recurrent.h"

namespace kbench {

struct RecurrentOperands {
    cpu::RecurrentDirection forward, reverse;
    const std::int32_t* lengths;

    /// `saves`: in training.
    RecurrentOperands(Cell cell, bool saves, OperandCursor in) {
        using cpu::RecurrentDirection;
        for (const auto member : {&RecurrentDirection::gates_x, &RecurrentDirection::weight_hh,
                                  &RecurrentDirection::bias_ih, &RecurrentDirection::bias_hh}) {
            forward.*member = in.next();
            reverse.*member = in.next();
        }
        lengths = in.next<const std::int32_t>();
        for (const bool of_gates : {true, false}) {
            if (!saves || (of_gates ? saved_gates_of(cell) == 0 : cell != Cell::lstm)) continue;
            (of_gates ? forward.gates : forward.cells) = in.next();
            (of_gates ? reverse.gates : reverse.cells) = in.next();
        }
        forward.out = in.next();
        reverse.out = in.next();
    }
};

struct RecurrentGradientOperands {
    cpu::RecurrentGradientDirection forward{}, reverse{};
    const std::int32_t* lengths;

    RecurrentGradientOperands(Cell cell, OperandCursor in) {
        using cpu::RecurrentGradientDirection;
        const auto read = [&](auto RecurrentGradientDirection::*member) {
            forward.*member = in.next();
            reverse.*member = in.next();
        };
        read(&RecurrentGradientDirection::dout);
        read(&RecurrentGradientDirection::weight_hh);
        if (saved_gates_of(cell) > 0) read(&RecurrentGradientDirection::gates);
        read(cell == Cell::lstm ? &RecurrentGradientDirection::cells : &RecurrentGradientDirection::out);
        lengths = in.next<const std::int32_t>();
        read(&RecurrentGradientDirection::dgates_x);
    }
};

struct RecurrentWeightOperands {
    cpu::RecurrentWeightDirection forward{}, reverse{};

    RecurrentWeightOperands(Cell cell, OperandCursor in) {
        using cpu::RecurrentWeightDirection;
        const auto read = [&](auto RecurrentWeightDirection::*member) {
            forward.*member = in.next();
            reverse.*member = in.next();
        };
        read(&RecurrentWeightDirection::dgates_x);
        if (cell == Cell::gru) read(&RecurrentWeightDirection::gates);
        read(&RecurrentWeightDirection::out);
        for (const auto made : {&RecurrentWeightDirection::dweight_hh, &RecurrentWeightDirection::dbias_ih,
                                &RecurrentWeightDirection::dbias_hh})
            read(made);
    }
};

/// Why a row that leaves nothing for the backward does not take `op`, if it does not.
template <Cell cell>
std::string saves_nothing(const Recurrent<cell>& op) {
    return op.saves ? "leaves no gates for the backward" : "";
}

}  // namespace kbench
