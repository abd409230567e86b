// Recurrent layers of both directions: LSTM, GRU and plain RNN, behind the product with their input.
#pragma once

#include <cmath>

#include "kbench/lengths.h"

namespace kbench {

enum class Cell { lstm, gru, rnn };
inline constexpr std::string_view cell_names[] = {"lstm", "gru", "rnn"};
/// Blocks of `hidden` rows in a cell's weights: i, f, g, o; r, z, n; one.
constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }

struct RecurrentShape {
    std::int64_t steps, batch, hidden;
    std::int64_t frames_per_step = 1;  ///< of the frames that lengths count
    bool operator==(const RecurrentShape&) const = default;
};

/// Both directions of a recurrent layer, in PyTorch's equations and order of gates. a = gates_x[t] + bias_ih and
/// b = weight_hh h[t - 1] + bias_hh, of each gate, with h and c 0 before the first step:
///     lstm: i, f, o = sigmoid(a + b), g = tanh(a + b); c[t] = f c[t - 1] + i g, h[t] = o tanh(c[t])
///           (Hochreiter and Schmidhuber, 1997; Gers et al., 2000, with a forget gate and no peepholes)
///     gru:  r, z = sigmoid(a + b), n = tanh(a + r b); h[t] = (1 - z) n + z h[t - 1] (Cho et al., 2014)
///     rnn:  h[t] = tanh(a + b) (Elman, 1990)
/// Sequence n has steps_of(lengths[n], frames_per_step) steps; outputs behind them are 0. The reverse direction begins
/// with its last one and has t + 1 for t - 1.
/// in: gates_x, gates_x_reverse [steps * batch, gates * hidden], what the input adds to the gates, without bias;
/// weight_hh, weight_hh_reverse [gates * hidden, hidden]; bias_ih, bias_ih_reverse, bias_hh, bias_hh_reverse
/// [gates * hidden]; lengths [batch, 1] int32. out: out, out_reverse [steps * batch, hidden]: h. Rows are
/// t * batch + n.
template <Cell of>
struct Recurrent {
    static constexpr Cell cell = of;
    static constexpr std::int64_t gates = gates_of(of);
    static constexpr std::string_view kind = cell_names[static_cast<int>(of)];
    static constexpr std::string_view what = of == Cell::lstm  ? "LSTM layer, both directions"
                                             : of == Cell::gru ? "GRU layer, both directions"
                                                               : "plain recurrent layer, both directions";
    static constexpr std::string_view example = "t500n8h1024[f2]";
    static constexpr Direction directions[] = {Direction::fwd};

    RecurrentShape shape;
    bool operator==(const Recurrent&) const = default;

    static Recurrent parse(ShapeText& text) {
        return {{text.size('t'), text.size('n'), text.size('h'), text.size_or('f', 1)}};
    }
    std::string text() const {
        std::string text = shape_text({{'t', shape.steps}, {'n', shape.batch}, {'h', shape.hidden}});
        if (shape.frames_per_step != 1) text += shape_text({{'f', shape.frames_per_step}});
        return text;
    }
    /// Weights and biases as large as PyTorch's at first, which are uniform in +-1 / sqrt(hidden).
    std::vector<OperandSpec> operands(Direction) const {
        const std::int64_t rows = shape.steps * shape.batch, width = gates * shape.hidden;
        const Contents initial = Contents::normal(1 / std::sqrt(3 * static_cast<double>(shape.hidden)));
        const auto matrix = [&](std::string_view name) {
            OperandSpec spec = input(name, width, shape.hidden);
            spec.use = OperandUse::weight;
            spec.contents = initial;
            return spec;
        };
        const auto bias = [&](std::string_view name) {
            OperandSpec spec = weight(name, width);
            spec.contents = initial;
            return spec;
        };
        return {input("gates_x", rows, width),
                input("gates_x_reverse", rows, width),
                matrix("weight_hh"),
                matrix("weight_hh_reverse"),
                bias("bias_ih"),
                bias("bias_ih_reverse"),
                bias("bias_hh"),
                bias("bias_hh_reverse"),
                lengths_operand(shape.batch, shape.steps * shape.frames_per_step),
                output("out", rows, shape.hidden),
                output("out_reverse", rows, shape.hidden)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// h[t] needs h[t - 1]; both directions go at the same time. Of a batch with a sequence of all `steps`.
    std::int64_t dependent_steps() const { return shape.steps; }
    /// Of sequences of all `steps`. A direction's step: the product, 2 gates hidden for each unit; three additions for
    /// each gate; a sigmoid is an exponential, an addition and a quotient. Besides, lstm: two tanh, c in three, h in
    /// one; gru: r b, a tanh, h in four; rnn: a tanh.
    Work work(Direction) const {
        const double units =
            2 * static_cast<double>(shape.steps) * static_cast<double>(shape.batch) * static_cast<double>(shape.hidden);
        const double product = units * 2 * static_cast<double>(gates) * static_cast<double>(shape.hidden);
        const double sigmoids = of == Cell::lstm ? 3 : of == Cell::gru ? 2 : 0, rest = of == Cell::rnn ? 1 : 6;
        return {product + units * (3 * static_cast<double>(gates) + 3 * sigmoids + rest), product};
    }
};

using Lstm = Recurrent<Cell::lstm>;
using Gru = Recurrent<Cell::gru>;
using Rnn = Recurrent<Cell::rnn>;

}  // namespace kbench
