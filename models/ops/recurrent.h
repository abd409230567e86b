// Recurrent layers of both directions (LSTM, GRU, plain RNN), after the product with their input.
#pragma once

#include <cmath>

#include "kbench/lengths.h"

namespace kbench {

enum class Cell { lstm, gru, rnn };
inline constexpr std::string_view cell_names[] = {"lstm", "gru", "rnn"};
/// Number of gates: blocks of `hidden` rows in a cell's weights. LSTM: i, f, g, o; GRU: r, z, n; plain RNN: one.
constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
/// Blocks of `hidden` columns that a training step saves of its gates, after sigmoid and tanh. LSTM: i, f, g, o;
/// GRU: r, z, n and the b of n; plain RNN: none, since h is enough.
constexpr std::int64_t saved_gates_of(Cell cell) { return cell == Cell::rnn ? 0 : 4; }

struct RecurrentShape {
    std::int64_t steps, batch, hidden;
    std::int64_t frames_per_step = 1;  ///< input frames per step, as lengths count frames
    bool operator==(const RecurrentShape&) const = default;
};

/// Both directions of a recurrent layer, with PyTorch's equations and gate order. For each gate,
/// a = gates_x[t] + bias_ih and b = weight_hh h[t - 1] + bias_hh; h and c are 0 before the first step:
///     lstm: i, f, o = sigmoid(a + b), g = tanh(a + b); c[t] = f c[t - 1] + i g, h[t] = o tanh(c[t])
///           (Hochreiter and Schmidhuber, 1997; Gers et al., 2000, with a forget gate and no peepholes)
///     gru:  r, z = sigmoid(a + b), n = tanh(a + r b); h[t] = (1 - z) n + z h[t - 1] (Cho et al., 2014)
///     rnn:  h[t] = tanh(a + b) (Elman, 1990)
/// Sequence n has steps_of(lengths[n], frames_per_step) steps; outputs after them are 0. The reverse direction begins
/// at the last of them, with t + 1 for t - 1. Rows are t * batch + n. X_reverse follows each operand X but lengths.
/// Below, T = steps * batch and G = gates * hidden.
/// fwd:   in: gates_x [T, G] (what the input adds to the gates, without bias), weight_hh [G, hidden], bias_ih [G],
///        bias_hh [G], lengths [batch, 1] int32; out: out [T, hidden], which is h. With `saves`, in training, before it
///        gates [T, saved_gates_of() * hidden] and, for lstm, cells [T, hidden], which is c; both may hold anything
///        after the end of a sequence.
/// bwd:   backpropagation through time (Werbos, 1990), from the last step to the first:
///        dh[t] = dout[t] + weight_hh^T db[t + 1], then through the cell. da is the gradient of gates_x; db, that of b,
///        equals da except for the n of gru, where it is r da.
///        in: dout [T, hidden], weight_hh, gates where the cell saves them, cells (lstm) or out (gru, rnn), lengths;
///        out: dgates_x [T, G], which is da, 0 after the end of a sequence.
/// wgrad: sums over t and n: dweight_hh = db[t]^T h[t - 1], dbias_ih = da[t], dbias_hh = db[t].
///        in: dgates_x, gates (gru only), out; out: dweight_hh [G, hidden], dbias_ih [G], dbias_hh [G].
///        `accumulates`: the sums are added in place to what these hold.
/// Shape letters: t steps, n batch, h hidden, f frames per step, s for `saves`, a for `accumulates`.
template <Cell of>
struct Recurrent {
    static constexpr Cell cell = of;
    static constexpr std::int64_t gates = gates_of(of);
    static constexpr std::string_view kind = cell_names[static_cast<int>(of)];
    static constexpr std::string_view what = of == Cell::lstm  ? "LSTM layer, both directions"
                                             : of == Cell::gru ? "GRU layer, both directions"
                                                               : "plain recurrent layer, both directions";
    static constexpr std::string_view example = "t500n8h1024[f2][s][a]";
    // GCC 13 treats an array without a bound in a class template as one of unknown bound.
    static constexpr Direction directions[3] = {Direction::fwd, Direction::bwd, Direction::wgrad};

    RecurrentShape shape;
    bool saves = false, accumulates = false;
    bool operator==(const Recurrent&) const = default;

    static Recurrent parse(ShapeText& text) {
        return {{text.size('t'), text.size('n'), text.size('h'), text.size_or('f', 1)}, text.flag('s'), text.flag('a')};
    }
    std::string text() const {
        std::string text = shape_text({{'t', shape.steps}, {'n', shape.batch}, {'h', shape.hidden}});
        if (shape.frames_per_step != 1) text += shape_text({{'f', shape.frames_per_step}});
        return text + (saves ? "s" : "") + (accumulates ? "a" : "");
    }
    /// Weights and biases are as large as PyTorch's initial ones, which are uniform within 1 / sqrt(hidden).
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd) return backward();
        if (direction == Direction::wgrad) return weight_gradients();
        const std::int64_t rows = shape.steps * shape.batch, width = gates * shape.hidden;
        const Contents initial = Contents::normal(1 / std::sqrt(3 * static_cast<double>(shape.hidden)));
        const auto bias = [&](std::string_view name) {
            OperandSpec spec = weight(name, width);
            spec.contents = initial;
            return spec;
        };
        std::vector<OperandSpec> specs{input("gates_x", rows, width),
                                       input("gates_x_reverse", rows, width),
                                       matrix("weight_hh"),
                                       matrix("weight_hh_reverse"),
                                       bias("bias_ih"),
                                       bias("bias_ih_reverse"),
                                       bias("bias_hh"),
                                       bias("bias_hh_reverse"),
                                       lengths_operand(shape.batch, shape.steps * shape.frames_per_step)};
        if (saves) add_saved(specs, OperandUse::output);
        add_both(specs, "out", "out_reverse", rows, shape.hidden, OperandUse::output);
        return specs;
    }
    static Gradients gradients() {
        GradientRule backward{Direction::bwd, {"dout", "dout_reverse", "weight_hh", "weight_hh_reverse"}};
        GradientRule weights{Direction::wgrad, {"dgates_x", "dgates_x_reverse"}};
        const auto add = [](GradientRule& rule, std::initializer_list<std::string_view> names) {
            rule.operands.insert(rule.operands.end(), names);
        };
        if (saved_gates_of(of) > 0) add(backward, {"gates", "gates_reverse"});
        add(backward, of == Cell::lstm ? std::initializer_list<std::string_view>{"cells", "cells_reverse"}
                                       : std::initializer_list<std::string_view>{"out", "out_reverse"});
        add(backward, {"lengths", "dgates_x", "dgates_x_reverse"});
        if (of == Cell::gru) add(weights, {"gates", "gates_reverse"});
        add(weights, {"out", "out_reverse", "dweight_hh", "dweight_hh_reverse", "dbias_ih", "dbias_ih_reverse",
                      "dbias_hh", "dbias_hh_reverse"});
        return {{backward, weights}};
    }
    Recurrent in_training() const { return {shape, true, accumulates}; }
    Recurrent accumulating() const { return {shape, saves, true}; }
    Grown<Recurrent> grown(Direction, Scale factor) const {
        Recurrent op = *this;
        op.shape.steps *= factor;
        return {op, "time_steps"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// h[t] needs h[t - 1]; both directions run at the same time. For a batch whose longest sequence has all `steps`.
    std::int64_t time_steps() const { return shape.steps; }
    /// For sequences of all `steps`. A direction's step: the product, 2 gates hidden for each unit; three additions for
    /// each gate; a sigmoid is an exponential, an addition and a quotient. Besides, lstm: two tanh, c in three, h in
    /// one; gru: r b, a tanh, h in four; rnn: a tanh.
    /// Backward, a direction's step: dh's product and its addition to dout. lstm: tanh c, dc in five, its four gates in
    /// three each, two more for tanh's derivatives, dc for the step before in one; gru: dn, dz, dr in three each, three
    /// more for derivatives, r dn, dh for the step before in two; rnn: dh (1 - h h) in three.
    /// Weight gradients: the product and two additions for each gate; for gru also r dn.
    Work work(Direction direction) const {
        const double units =
            2 * static_cast<double>(shape.steps) * static_cast<double>(shape.batch) * static_cast<double>(shape.hidden);
        const double product = units * 2 * static_cast<double>(gates) * static_cast<double>(shape.hidden);
        if (direction == Direction::bwd) {
            const double cell_flops = of == Cell::lstm ? 21 : of == Cell::gru ? 15 : 3;
            return {product + units * (1 + cell_flops), product};
        }
        if (direction == Direction::wgrad)
            return {product + units * (2 * static_cast<double>(gates) + (of == Cell::gru ? 1 : 0)), product};
        const double sigmoids = of == Cell::lstm ? 3 : of == Cell::gru ? 2 : 0, rest = of == Cell::rnn ? 1 : 6;
        return {product + units * (3 * static_cast<double>(gates) + 3 * sigmoids + rest), product};
    }

  private:
    OperandSpec matrix(std::string_view name) const {
        OperandSpec spec = input(name, gates * shape.hidden, shape.hidden);
        spec.use = OperandUse::weight;
        spec.contents = Contents::normal(1 / std::sqrt(3 * static_cast<double>(shape.hidden)));
        return spec;
    }
    static void add_both(std::vector<OperandSpec>& specs, std::string_view forward, std::string_view reverse,
                         std::int64_t rows, std::int64_t columns, OperandUse use, const Contents& contents = {}) {
        for (const std::string_view name : {forward, reverse})
            specs.push_back({.name = name, .use = use, .rows = rows, .columns = columns, .contents = contents});
    }
    /// Gates hold numbers between 0 and 1, as sigmoids give.
    void add_gates(std::vector<OperandSpec>& specs, OperandUse use) const {
        if (saved_gates_of(of) > 0)
            add_both(specs, "gates", "gates_reverse", shape.steps * shape.batch, saved_gates_of(of) * shape.hidden, use,
                     Contents::normal(0.1, 0.5));
    }
    void add_saved(std::vector<OperandSpec>& specs, OperandUse use) const {
        add_gates(specs, use);
        if (of == Cell::lstm) add_both(specs, "cells", "cells_reverse", shape.steps * shape.batch, shape.hidden, use);
    }
    std::vector<OperandSpec> backward() const {
        const std::int64_t rows = shape.steps * shape.batch;
        std::vector<OperandSpec> specs;
        add_both(specs, "dout", "dout_reverse", rows, shape.hidden, OperandUse::input);
        specs.push_back(matrix("weight_hh"));
        specs.push_back(matrix("weight_hh_reverse"));
        add_saved(specs, OperandUse::input);
        if (of != Cell::lstm)
            add_both(specs, "out", "out_reverse", rows, shape.hidden, OperandUse::input, Contents::normal(0.3));
        specs.push_back(lengths_operand(shape.batch, shape.steps * shape.frames_per_step));
        add_both(specs, "dgates_x", "dgates_x_reverse", rows, gates * shape.hidden, OperandUse::output);
        return specs;
    }
    std::vector<OperandSpec> weight_gradients() const {
        const std::int64_t rows = shape.steps * shape.batch, width = gates * shape.hidden;
        const OperandUse use = accumulates ? OperandUse::in_place : OperandUse::output;
        std::vector<OperandSpec> specs;
        add_both(specs, "dgates_x", "dgates_x_reverse", rows, width, OperandUse::input,
                 Contents::normal(1 / std::sqrt(static_cast<double>(rows))));
        if (of == Cell::gru) add_gates(specs, OperandUse::input);
        add_both(specs, "out", "out_reverse", rows, shape.hidden, OperandUse::input);
        add_both(specs, "dweight_hh", "dweight_hh_reverse", width, shape.hidden, use);
        add_both(specs, "dbias_ih", "dbias_ih_reverse", 1, width, use);
        add_both(specs, "dbias_hh", "dbias_hh_reverse", 1, width, use);
        return specs;
    }
};

using Lstm = Recurrent<Cell::lstm>;
using Gru = Recurrent<Cell::gru>;
using Rnn = Recurrent<Cell::rnn>;

}  // namespace kbench
