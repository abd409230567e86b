// Operands of a recurrent layer, by name and direction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/plan/bind.h"
#include "kbench/step.h"
#include "models/ops/recurrent.h"

namespace kbench {

/// What a layer reads and writes; `Of` lists it for one direction.
template <class Of>
struct BothDirections {
    Of forward{}, reverse{};
    const std::int32_t* lengths = nullptr;
};

/// Where both directions have an operand.
struct SlotsOfBoth {
    Slot forward, reverse;

    /// A name that ends in "?" may be missing.
    SlotsOfBoth(const Step& step, Precision precision, std::string_view name)
        : forward(step, precision, name), reverse(step, precision, reverse_of(name)) {}
    /// Sets the member of both directions.
    template <class Operands, class Member>
    void set(Operands& operands, Member member, const Call& call) const {
        operands.forward.*member = forward.of(call);
        operands.reverse.*member = reverse.of(call);
    }

  private:
    static std::string reverse_of(std::string_view name) {
        const bool may_be_missing = name.ends_with('?');
        return std::string(name.substr(0, name.size() - (may_be_missing ? 1 : 0))) + "_reverse" +
               (may_be_missing ? "?" : "");
    }
};

/// A pass over the steps, forward or backward.
class RecurrentSlots {
  public:
    RecurrentSlots(const Step& step, Precision precision)
        : RecurrentSlots(step, precision, step.direction == Direction::bwd) {}

    bool is_weight(std::size_t index) const { return weight_hh_.forward.is(index) || weight_hh_.reverse.is(index); }

    /// What one direction has, as `Of` lists it: of a backward where that has `dgates_x`, else of a forward.
    template <class Of>
    BothDirections<Of> operands(const Call& call) const {
        BothDirections<Of> operands{{}, {}, static_cast<const std::int32_t*>(lengths_.of(call))};
        weight_hh_.set(operands, &Of::weight_hh, call);
        gates_.set(operands, &Of::gates, call);
        cells_.set(operands, &Of::cells, call);
        out_.set(operands, &Of::out, call);
        if constexpr (requires { &Of::dgates_x; }) {
            dout_.set(operands, &Of::dout, call);
            dgates_x_.set(operands, &Of::dgates_x, call);
        } else {
            gates_x_.set(operands, &Of::gates_x, call);
            bias_ih_.set(operands, &Of::bias_ih, call);
            bias_hh_.set(operands, &Of::bias_hh, call);
        }
        return operands;
    }

  private:
    /// Gates, cells and a backward's `out` are there for some cells, and in training.
    RecurrentSlots(const Step& step, Precision precision, bool is_backward)
        : weight_hh_(step, precision, "weight_hh"),
          gates_x_(step, precision, is_backward ? "gates_x?" : "gates_x"),
          bias_ih_(step, precision, is_backward ? "bias_ih?" : "bias_ih"),
          bias_hh_(step, precision, is_backward ? "bias_hh?" : "bias_hh"),
          gates_(step, precision, "gates?"),
          cells_(step, precision, "cells?"),
          out_(step, precision, is_backward ? "out?" : "out"),
          dout_(step, precision, is_backward ? "dout" : "dout?"),
          dgates_x_(step, precision, is_backward ? "dgates_x" : "dgates_x?"),
          lengths_(step, precision, "lengths") {}

    SlotsOfBoth weight_hh_, gates_x_, bias_ih_, bias_hh_, gates_, cells_, out_, dout_, dgates_x_;
    Slot lengths_;
};

class RecurrentWeightSlots {
  public:
    RecurrentWeightSlots(const Step& step, Precision precision)
        : dgates_x_(step, precision, "dgates_x"),
          gates_(step, precision, "gates?"),
          out_(step, precision, "out"),
          dweight_hh_(step, precision, "dweight_hh"),
          dbias_ih_(step, precision, "dbias_ih"),
          dbias_hh_(step, precision, "dbias_hh") {}

    template <class Of>
    BothDirections<Of> operands(const Call& call) const {
        BothDirections<Of> operands;
        dgates_x_.set(operands, &Of::dgates_x, call);
        gates_.set(operands, &Of::gates, call);
        out_.set(operands, &Of::out, call);
        dweight_hh_.set(operands, &Of::dweight_hh, call);
        dbias_ih_.set(operands, &Of::dbias_ih, call);
        dbias_hh_.set(operands, &Of::dbias_hh, call);
        return operands;
    }

  private:
    SlotsOfBoth dgates_x_, gates_, out_, dweight_hh_, dbias_ih_, dbias_hh_;
};

/// Why a row that leaves nothing for the backward does not take `op`, if it does not.
template <Cell cell>
std::string saves_nothing(const Recurrent<cell>& op) {
    return op.saves ? "leaves no gates for the backward" : "";
}

}  // namespace kbench
