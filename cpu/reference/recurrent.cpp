// Reference of the recurrent layers: one direction's steps, one after another, with the error that they carry along.
//
// A rounding in step t reaches all later steps through h and c. Each step is linearised, and errors of different sums
// and units are taken to be independent, as everywhere in error_bound: their variances add, and a product with W passes
// on sum of W^2 times the variance of h. A bound from magnitudes would grow without end, because W has rows with sums
// of |W| far above 1. Variances shrink where the layer itself forgets, and then the bound of step 500 equals
// that of step 20.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cpu/reference/rounded.h"
#include "cpu/vector.h"

namespace kbench::reference {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// The sum in front of a nonlinear function. A sum of `count` random terms strays from 0 about as far as the root of
/// the sum of their squares, or its value; each addition rounds the sum so far.
Rounded sum_of(double x, double bias_ih, const Product& product, double bias_hh, std::int64_t count) {
    const double value = x + bias_ih + product.value + bias_hh, root = std::sqrt(product.squares);
    const double additions = std::sqrt(static_cast<double>(count)) + 4.0;
    const double others = std::abs(x) + std::abs(bias_ih) + std::abs(bias_hh);
    const double rounded = additions * (root + std::abs(product.value)) + 4.0 * others + std::abs(value);
    return {value, product.error + errors(rounded, root)};  // inner: h is rounded for the product
}

Rounded sigmoid(const Rounded& x) {
    const double s = sigmoid(x.value);
    return {s, s * (1.0 - s) * x.error + errors(function_roundings, of_sigmoid)};
}
/// One sequence in one direction.
struct Lane {
    std::int64_t sequence, steps;
    std::int64_t needed;  ///< steps after which no element is asked for
    std::vector<Rounded> h, c;
    std::vector<std::array<Rounded, 4>> gates;
    /// h with its squares and variances, unit after unit, as the products read them.
    std::vector<double> value, squares, carried, inner;

    Lane(std::int64_t n, std::int64_t step_count, std::int64_t last, std::int64_t hidden)
        : sequence(n), steps(step_count), needed(last) {
        const auto size = static_cast<std::size_t>(hidden);
        h.resize(size);
        c.resize(size);
        gates.resize(size);
        for (std::vector<double>* list : {&value, &squares, &carried, &inner}) list->resize(size);
    }
    void publish(std::size_t unit) {
        value[unit] = h[unit].value;
        squares[unit] = square(h[unit].value);
        carried[unit] = h[unit].error.carried;
        inner[unit] = h[unit].error.inner;
    }
};

/// Computes one unit's next h and c, and its gates as Recurrent saves them; `x`, `products` and biases are by gate.
void advance(Cell cell, const double* x, const Product* products, const double* bias_ih, const double* bias_hh,
             std::int64_t hidden, Rounded& h, Rounded& c, std::array<Rounded, 4>& gates) {
    const auto sum = [&](int gate) { return sum_of(x[gate], bias_ih[gate], products[gate], bias_hh[gate], hidden); };
    switch (cell) {
        case Cell::lstm: {
            const Rounded i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = tanh(sum(2)), o = sigmoid(sum(3));
            const Rounded kept = product(f, c), added = product(i, g);
            const double value = kept.value + added.value;
            // c may be kept in 16 bits.
            c = {value, kept.error + added.error + errors(std::abs(value), std::abs(value))};
            h = product(o, tanh(c));
            gates = {i, f, g, o};
            return;
        }
        case Cell::gru: {
            const Rounded r = sigmoid(sum(0)), z = sigmoid(sum(1));
            const Rounded recurrent = sum_of(0, 0, products[2], bias_hh[2], hidden), scaled = product(r, recurrent);
            const double before = h.value, others = std::abs(x[2]) + std::abs(bias_ih[2]) + std::abs(scaled.value);
            const Rounded n = tanh({x[2] + bias_ih[2] + scaled.value, scaled.error + errors(2.0 * others, 0)});
            const double rounded = 2.0 * (std::abs((1 - z.value) * n.value) + std::abs(z.value * before));
            h = {(1 - z.value) * n.value + z.value * before,
                 (1 - z.value) * n.error + (before - n.value) * z.error + z.value * h.error +
                     errors(rounded, std::abs(z.value * before))};  // the old h may be read as it was stored
            gates = {r, z, n, recurrent};
            return;
        }
        case Cell::rnn: h = tanh(sum(0)); return;
    }
}

}  // namespace

std::vector<Expected> recurrent(Cell cell, const RecurrentShape& shape, bool reverse, View gates_x, View weight_hh,
                                View bias_ih, View bias_hh, View lengths, std::span<const Element> elements,
                                RecurrentOutput of) {
    const std::int64_t hidden = shape.hidden, gates = gates_of(cell);
    // After the end of a sequence h is 0, and saved values are anything.
    Expected behind{0, 0, 0};
    if (of != RecurrentOutput::h) behind.carried = std::numeric_limits<double>::infinity();
    std::vector<Expected> expected(elements.size(), behind);
    // For each sequence that is asked for, the elements by the step that makes them.
    std::vector<Lane> lanes;
    std::vector<std::vector<std::size_t>> asked;  // by lane * steps + step of the direction
    for (std::int64_t n = 0; n < shape.batch; ++n) {
        const std::int64_t steps =
            steps_of(static_cast<std::int64_t>(lengths(n, 0)), shape.frames_per_step, shape.steps);
        std::vector<std::vector<std::size_t>> of_steps(static_cast<std::size_t>(shape.steps));
        std::int64_t needed = 0;
        for (std::size_t e = 0; e < elements.size(); ++e) {
            const std::int64_t t = elements[e].row / shape.batch;
            if (elements[e].row % shape.batch != n || t >= steps) continue;
            const std::int64_t step = reverse ? steps - 1 - t : t;
            of_steps[static_cast<std::size_t>(step)].push_back(e);
            needed = std::max(needed, step + 1);
        }
        if (needed == 0) continue;
        lanes.emplace_back(n, steps, needed, hidden);
        std::ranges::move(of_steps, std::back_inserter(asked));
    }

    std::vector<double> biases_ih(static_cast<std::size_t>(gates * hidden)), biases_hh = biases_ih;
    read_row(bias_ih, 0, 0, gates * hidden, biases_ih.data());
    read_row(bias_hh, 0, 0, gates * hidden, biases_hh.data());
    std::int64_t steps = 0;
    for (const Lane& lane : lanes) steps = std::max(steps, lane.needed);
    for (std::int64_t step = 0; step < steps; ++step) {
#pragma omp parallel for schedule(static)
        for (std::int64_t unit = 0; unit < hidden; ++unit) {
            std::vector<double> w(static_cast<std::size_t>(gates * hidden));
            for (std::int64_t g = 0; g < gates; ++g)
                read_row(weight_hh, g * hidden + unit, 0, hidden, w.data() + g * hidden);
            for (Lane& lane : lanes) {
                if (step >= lane.needed) continue;
                const std::int64_t t = reverse ? lane.steps - 1 - step : step;
                std::array<Product, 4> products;
                std::array<double, 4> x{}, ih{}, hh{};
                for (std::int64_t g = 0; g < gates; ++g) {
                    const auto i = static_cast<std::size_t>(g);
                    cpu::vectorised([&, row = w.data() + g * hidden] {
                        products[i] = multiply(hidden, row, lane.value.data(), lane.squares.data(), lane.carried.data(),
                                               lane.inner.data());
                    });
                    x[i] = gates_x(t * shape.batch + lane.sequence, g * hidden + unit);
                    ih[i] = biases_ih[static_cast<std::size_t>(g * hidden + unit)];
                    hh[i] = biases_hh[static_cast<std::size_t>(g * hidden + unit)];
                }
                const auto u = static_cast<std::size_t>(unit);
                advance(cell, x.data(), products.data(), ih.data(), hh.data(), hidden, lane.h[u], lane.c[u],
                        lane.gates[u]);
            }
        }
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            Lane& lane = lanes[l];
            if (step >= lane.needed) continue;
            for (std::size_t unit = 0; unit < static_cast<std::size_t>(hidden); ++unit) lane.publish(unit);
            for (const std::size_t e :
                 asked[l * static_cast<std::size_t>(shape.steps) + static_cast<std::size_t>(step)]) {
                const auto unit = static_cast<std::size_t>(elements[e].column % hidden);
                const auto gate = static_cast<std::size_t>(elements[e].column / hidden);
                expected[e] = expected_of(of == RecurrentOutput::gates   ? lane.gates[unit][gate]
                                          : of == RecurrentOutput::cells ? lane.c[unit]
                                                                         : lane.h[unit]);
            }
        }
    }
    return expected;
}

namespace {

template <Cell cell>
std::vector<Expected> answer(const Recurrent<cell>& op, Question q) {
    if (q.step.direction == Direction::bwd) return recurrent_gradient(cell, op.shape, q);
    if (q.step.direction == Direction::wgrad) return recurrent_weight_gradient(cell, op.shape, op.accumulates, q);
    const View x = q.next(), x_reverse = q.next(), weight = q.next(), weight_reverse = q.next();
    const View bias_ih = q.next(), bias_ih_reverse = q.next(), bias_hh = q.next(), bias_hh_reverse = q.next();
    const View lengths = q.next();
    const auto of = [&](RecurrentOutput output, bool reverse) {
        return reverse ? recurrent(cell, op.shape, true, x_reverse, weight_reverse, bias_ih_reverse, bias_hh_reverse,
                                   lengths, q.elements, output)
                       : recurrent(cell, op.shape, false, x, weight, bias_ih, bias_hh, lengths, q.elements, output);
    };
    const bool gates = op.saves && saved_gates_of(cell) > 0, cells = op.saves && cell == Cell::lstm;
    for (const auto& [present, output] : {std::pair(gates, RecurrentOutput::gates), {cells, RecurrentOutput::cells}}) {
        if (!present) continue;
        for (const bool reverse : {false, true}) {
            if (q.asks_for_next()) return of(output, reverse);
            q.next();
        }
    }
    return of(RecurrentOutput::h, !q.asks_for_next());
}

/// All units of a row are computed at once; each needs the products with the weights of its gates, and their errors.
ElementCost cost_of(Cell cell, const RecurrentShape& shape, Direction direction) {
    constexpr double with_errors = 5;
    if (direction == Direction::bwd)
        return {with_errors * static_cast<double>(shape.hidden), gates_of(cell) * shape.hidden};
    if (direction == Direction::wgrad) return {static_cast<double>(shape.steps) * static_cast<double>(shape.batch)};
    return {with_errors * static_cast<double>(gates_of(cell)) * static_cast<double>(shape.hidden), shape.hidden};
}

}  // namespace

std::vector<Expected> expected(const Lstm& op, Question q) { return answer(op, q); }
ElementCost cost(const Lstm& op, Direction direction) { return cost_of(Lstm::cell, op.shape, direction); }
std::vector<Expected> expected(const Gru& op, Question q) { return answer(op, q); }
ElementCost cost(const Gru& op, Direction direction) { return cost_of(Gru::cell, op.shape, direction); }
std::vector<Expected> expected(const Rnn& op, Question q) { return answer(op, q); }
ElementCost cost(const Rnn& op, Direction direction) { return cost_of(Rnn::cell, op.shape, direction); }

}  // namespace kbench::reference
