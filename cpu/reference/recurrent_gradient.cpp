// Reference of the recurrent layers' backward: through one direction's steps from the last to the first, with the error
// that they carry along, as in recurrent.cpp. The weights' gradients are sums of products.
#include <algorithm>
#include <array>

#include "cpu/reference/rounded.h"
#include "cpu/vector.h"

namespace kbench::reference {
namespace {

/// x times a factor that is computed from stored numbers with `roundings` of its own, in units of 1.
Rounded times(double factor, const Rounded& x, double roundings = 0) {
    const double value = factor * x.value;
    return {value, factor * x.error + errors(2.0 * std::abs(value) + roundings * std::abs(x.value), 0)};
}
/// s (1 - s) and 1 - t^2 may be computed from squares, which are rounded like numbers near 1.
Rounded times_sigmoid_slope(double s, const Rounded& x) { return times(s * (1.0 - s), x, std::abs(s)); }
Rounded times_tanh_slope(double t, const Rounded& x) { return times(1.0 - square(t), x, 1.0); }
Rounded sum(const Rounded& a, const Rounded& b) {
    const double value = a.value + b.value;
    return {value, a.error + b.error + errors(std::abs(value), 0)};
}

/// What is stored of a unit's step: its gates, c or h, and c or h of the step before.
struct Saved {
    std::array<double, 4> gates{};
    double state = 0, before = 0;
};

/// One unit's step backward, given the whole `dh`: da and db by gate, and `passed`, which goes to the step before
/// besides the product with W: dc of an LSTM, dh of a GRU.
void retreat(Cell cell, const Saved& saved, const Rounded& dh, Rounded& passed, std::array<Rounded, 4>& da,
             std::array<Rounded, 4>& db) {
    switch (cell) {
        case Cell::lstm: {
            const auto [i, f, g, o] = saved.gates;
            const Rounded tanh_c = tanh({saved.state, {}});
            const Rounded slope = {1.0 - square(tanh_c.value), 2.0 * tanh_c.value * tanh_c.error + errors(1.0, 0)};
            const Rounded dc = sum(passed, product(times(o, dh), slope));
            da = {times_sigmoid_slope(i, times(g, dc)), times_sigmoid_slope(f, times(saved.before, dc)),
                  times_tanh_slope(g, times(i, dc)), times_sigmoid_slope(o, product(dh, tanh_c))};
            db = da;
            passed = times(f, dc);
            passed.error = passed.error + errors(0, std::abs(passed.value));  // it may be kept in 16 bits
            return;
        }
        case Cell::gru: {
            const auto [r, z, n, b] = saved.gates;
            const Rounded dn = times_tanh_slope(n, times(1.0 - z, dh, 1.0));
            da = {times_sigmoid_slope(r, times(b, dn)),
                  times_sigmoid_slope(z, times(saved.before - n, dh, std::abs(saved.before - n))), dn};
            db = {da[0], da[1], times(r, dn)};
            passed = times(z, dh);
            passed.error = passed.error + errors(0, std::abs(passed.value));
            return;
        }
        case Cell::rnn:
            da = {times_tanh_slope(saved.state, dh)};
            db = da;
            return;
    }
}

struct Operands {
    View dout, weight_hh, gates, states, lengths;
};

/// One sequence in one direction: the later step's db, unit by unit for each gate, as the products read it.
struct Lane {
    std::int64_t sequence, steps;
    std::int64_t first;  ///< the direction's earliest step of which an element is asked for
    std::vector<Rounded> passed;
    std::vector<std::array<Rounded, 4>> da, db;
    std::vector<double> value, squares, carried, inner;
    std::vector<std::vector<std::size_t>> asked;  ///< elements by step
};

std::vector<Expected> backward(Cell cell, const RecurrentShape& shape, bool reverse, const Operands& in,
                               std::span<const Element> elements) {
    const std::int64_t hidden = shape.hidden, width = gates_of(cell) * hidden;
    std::vector<Expected> expected(elements.size(), Expected{0, 0, 0});
    std::vector<Lane> lanes;
    std::int64_t longest = 0;
    for (std::int64_t n = 0; n < shape.batch; ++n) {
        const std::int64_t steps =
            steps_of(static_cast<std::int64_t>(in.lengths(n, 0)), shape.frames_per_step, shape.steps);
        Lane lane{n, steps, steps, {}, {}, {}, {}, {}, {}, {}, {}};
        lane.asked.resize(static_cast<std::size_t>(steps));
        for (std::size_t e = 0; e < elements.size(); ++e) {
            const std::int64_t t = elements[e].row / shape.batch;
            if (elements[e].row % shape.batch != n || t >= steps) continue;
            const std::int64_t step = reverse ? steps - 1 - t : t;
            lane.asked[static_cast<std::size_t>(step)].push_back(e);
            lane.first = std::min(lane.first, step);
        }
        if (lane.first == steps) continue;
        longest = std::max(longest, steps);
        lane.passed.resize(static_cast<std::size_t>(hidden));
        lane.da.resize(static_cast<std::size_t>(hidden));
        lane.db.resize(static_cast<std::size_t>(hidden));
        for (auto* list : {&lane.value, &lane.squares, &lane.carried, &lane.inner})
            list->resize(static_cast<std::size_t>(width));
        lanes.push_back(std::move(lane));
    }
    if (lanes.empty()) return expected;

    std::vector<double> transposed(static_cast<std::size_t>(hidden * width)), row(static_cast<std::size_t>(hidden));
    for (std::int64_t k = 0; k < width; ++k) {
        read_row(in.weight_hh, k, 0, hidden, row.data());
        for (std::int64_t unit = 0; unit < hidden; ++unit)
            transposed[static_cast<std::size_t>(unit * width + k)] = row[static_cast<std::size_t>(unit)];
    }
    for (std::int64_t step = longest - 1; step >= 0; --step) {
#pragma omp parallel for schedule(static)
        for (std::int64_t unit = 0; unit < hidden; ++unit)
            for (Lane& lane : lanes) {
                if (step >= lane.steps || step < lane.first) continue;
                const std::int64_t t = reverse ? lane.steps - 1 - step : step;
                const std::int64_t at = t * shape.batch + lane.sequence;
                const std::int64_t before = at + (reverse ? shape.batch : -shape.batch);
                Product product;
                cpu::vectorised([&] {
                    product = multiply(width, transposed.data() + unit * width, lane.value.data(), lane.squares.data(),
                                       lane.carried.data(), lane.inner.data());
                });
                const auto u = static_cast<std::size_t>(unit);
                const Rounded passed = cell == Cell::gru ? lane.passed[u] : Rounded{};
                const double dout = in.dout(at, unit), value = dout + product.value + passed.value;
                const double root = std::sqrt(product.squares);
                const double additions = std::sqrt(static_cast<double>(width)) + 4.0;
                const double rounded = additions * (root + std::abs(product.value)) +
                                       2.0 * (std::abs(dout) + std::abs(passed.value)) + std::abs(value);
                // inner: db is rounded for the product
                const Rounded dh{value, product.error + passed.error + errors(rounded, root)};
                Saved saved;
                for (std::int64_t g = 0; g < saved_gates_of(cell); ++g)
                    saved.gates[static_cast<std::size_t>(g)] = in.gates(at, g * hidden + unit);
                saved.state = in.states(at, unit);
                saved.before = step > 0 ? in.states(before, unit) : 0.0;
                retreat(cell, saved, dh, lane.passed[u], lane.da[u], lane.db[u]);
            }
        for (Lane& lane : lanes) {
            if (step >= lane.steps || step < lane.first) continue;
            for (std::int64_t k = 0; k < width; ++k) {
                const auto i = static_cast<std::size_t>(k);
                const Rounded& db = lane.db[static_cast<std::size_t>(k % hidden)][static_cast<std::size_t>(k / hidden)];
                lane.value[i] = db.value;
                lane.squares[i] = square(db.value);
                lane.carried[i] = db.error.carried;
                lane.inner[i] = db.error.inner;
            }
            for (const std::size_t e : lane.asked[static_cast<std::size_t>(step)])
                expected[e] = expected_of(lane.da[static_cast<std::size_t>(elements[e].column % hidden)]
                                                 [static_cast<std::size_t>(elements[e].column / hidden)]);
        }
    }
    return expected;
}

/// An element's sum over all rows: of db, times h of the step before if `states` is given.
Expected summed(Cell cell, const RecurrentShape& shape, bool reverse, View dgates, View gates, bool of_b, View states,
                std::int64_t row, std::int64_t column) {
    const std::int64_t rows = shape.steps * shape.batch;
    const bool scaled = of_b && cell == Cell::gru && row >= 2 * shape.hidden;
    double value = 0, magnitude = 0, squares = 0;
    for (std::int64_t at = 0; at < rows; ++at) {
        const double da = dgates(at, row);
        if (da == 0) continue;  // after the end of a sequence gates are anything
        double term = scaled ? gates(at, row - 2 * shape.hidden) * da : da;
        if (states) {
            const std::int64_t before = at + (reverse ? shape.batch : -shape.batch);
            if (before < 0 || before >= rows) continue;
            term *= states(before, column);
        }
        value += term;
        magnitude += std::abs(term);
        squares += square(term);
    }
    Expected expected{value, magnitude, rows + (scaled ? 1 : 0)};
    expected.inputs = std::sqrt(squares);
    if (scaled) expected.inner = expected.inputs;  // r da is rounded for the product
    return expected;
}

}  // namespace

std::vector<Expected> recurrent_gradient(Cell cell, const RecurrentShape& shape, Question q) {
    Operands forward, reverse;
    for (View Operands::*const operand : {&Operands::dout, &Operands::weight_hh, &Operands::gates, &Operands::states}) {
        if (operand == &Operands::gates && saved_gates_of(cell) == 0) continue;
        forward.*operand = q.next();
        reverse.*operand = q.next();
    }
    forward.lengths = reverse.lengths = q.next();
    return q.asks_for_next() ? backward(cell, shape, false, forward, q.elements)
                             : backward(cell, shape, true, reverse, q.elements);
}

std::vector<Expected> recurrent_weight_gradient(Cell cell, const RecurrentShape& shape, bool accumulates, Question q) {
    const bool has_gates = cell == Cell::gru;
    const View dgates[] = {q.next(), q.next()};
    const View gates[] = {q.next_if(has_gates), q.next_if(has_gates)};
    const View out[] = {q.next(), q.next()};
    for (int output = 0;; ++output) {  // weights, bias_ih, bias_hh, each forward and reverse
        const bool asked = q.asks_for_next();
        const View before = q.next();
        if (!asked) continue;
        const bool reverse = output % 2 == 1, of_weights = output < 2, of_b = output / 2 != 1;
        std::vector<Expected> sums(q.elements.size());
        const auto count = static_cast<std::int64_t>(sums.size());
#pragma omp parallel for schedule(static)
        for (std::int64_t e = 0; e < count; ++e) {
            const Element at = q.elements[static_cast<std::size_t>(e)];
            sums[static_cast<std::size_t>(e)] =
                summed(cell, shape, reverse, dgates[reverse], gates[reverse], of_b, of_weights ? out[reverse] : View{},
                       of_weights ? at.row : at.column, at.column);
        }
        if (!accumulates) return sums;
        return of_weights ? products_added_to(before, q.elements, std::move(sums))
                          : added_to(before, q.elements, std::move(sums));
    }
}

}  // namespace kbench::reference
