// Recurrent layers: the reference against a loop written by hand, its bound against roundings and planted errors, and
// the CPU's loops against the reference.
#include "cpu/native/recurrent.h"

#include <gmock/gmock.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cpu/native/bf16_panels.h"
#include "cpu/native/half.h"
#include "cpu/onednn/onednn.h"
#include "cpu/threads.h"
#include "tests/cpu/matrix.h"
#include "tests/cpu/reference_data.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;
using test::Matrix;

constexpr Cell cells[] = {Cell::lstm, Cell::gru, Cell::rnn};

enum class Fault {
    none,
    no_forget_gate,    ///< c = c + i g; in a GRU h = n + h
    swapped_gates,     ///< the first two: f, i; z, r
    no_bias,           ///< h has none
    mask_a_step_late,  ///< a sequence goes on for a step
    mask_a_step_early,
    begins_at_padded_end,  ///< the reverse direction, h being 0 before
    keeps_direction,       ///< the reverse direction runs forward
    no_reset,              ///< a GRU's r taken for 1
};

/// Operands of one direction of a layer.
struct Layer {
    Cell cell;
    RecurrentShape shape;
    Matrix gates_x, weight, bias_ih, bias_hh;
    std::vector<std::int32_t> lengths;

    Layer(Cell of, const RecurrentShape& s, DataType type, unsigned seed, std::vector<std::int32_t> of_sequences)
        : cell(of),
          shape(s),
          gates_x(Matrix::normal(type, s.steps * s.batch, gates_of(of) * s.hidden, seed)),
          weight(Matrix::normal(type, gates_of(of) * s.hidden, s.hidden, seed + 1, initial(s))),
          bias_ih(Matrix::normal(type, 1, gates_of(of) * s.hidden, seed + 2, 0.3)),
          bias_hh(Matrix::normal(type, 1, gates_of(of) * s.hidden, seed + 3, 0.3)),
          lengths(std::move(of_sequences)) {}

    static double initial(const RecurrentShape& s) { return 1 / std::sqrt(3 * static_cast<double>(s.hidden)); }
    View lengths_view() const {
        return {lengths.data(), DataType::int32, static_cast<std::int64_t>(lengths.size()), 1, 1};
    }
    std::vector<Element> all() const { return test::elements(shape.steps * shape.batch, shape.hidden); }
    std::vector<Expected> expected(bool reverse, std::span<const Element> at) const {
        return reference::recurrent(cell, shape, reverse, gates_x.view(), weight.view(), bias_ih.view(), bias_hh.view(),
                                    lengths_view(), at);
    }
};

/// Every length is as long as there are steps.
std::vector<std::int32_t> full(const RecurrentShape& shape) {
    return std::vector<std::int32_t>(static_cast<std::size_t>(shape.batch),
                                     static_cast<std::int32_t>(shape.steps * shape.frames_per_step));
}
/// One full, one empty, the others between.
std::vector<std::int32_t> ragged(const RecurrentShape& shape) {
    std::vector<std::int32_t> lengths = full(shape);
    for (std::size_t n = 1; n < lengths.size(); ++n)
        lengths[n] = static_cast<std::int32_t>(
            static_cast<std::size_t>(lengths[0]) * (n - 1) * 3 / (lengths.size() * 3) + (n > 1 ? 1 : 0));
    return lengths;
}

/// The layer's equations as one would write them, arithmetic in C, with h and c rounded by `store`.
template <class C>
std::vector<double> by_hand(
    const Layer& layer, bool reverse, Fault fault = Fault::none,
    const std::function<C(C)>& store = [](C x) { return x; }) {
    const auto [steps, batch, hidden, frames_per_step] = layer.shape;
    const auto sigmoid = [](C x) { return C(1) / (C(1) + std::exp(-x)); };
    std::vector<double> out(static_cast<std::size_t>(steps * batch * hidden), 0.0);
    std::vector<C> weight;
    for (const Element& e : test::elements(layer.weight.rows, layer.weight.columns))
        weight.push_back(static_cast<C>(layer.weight(e.row, e.column)));
    for (std::int64_t n = 0; n < batch; ++n) {
        std::int64_t count = (layer.lengths[static_cast<std::size_t>(n)] + frames_per_step - 1) / frames_per_step;
        if (fault == Fault::mask_a_step_late) count = std::min(steps, count + 1);
        if (fault == Fault::mask_a_step_early) count = std::max<std::int64_t>(0, count - 1);
        std::vector<C> h(static_cast<std::size_t>(hidden), C(0)), c = h;
        const std::int64_t first = fault == Fault::begins_at_padded_end && reverse ? steps - 1 : count - 1;
        const bool backwards = reverse && fault != Fault::keeps_direction;
        for (std::int64_t step = 0; step < (backwards ? first + 1 : count); ++step) {
            const std::int64_t t = backwards ? first - step : step, row = t * batch + n;
            std::vector<C> next = h;
            for (std::int64_t unit = 0; unit < hidden; ++unit) {
                std::vector<C> a, b;
                for (std::int64_t g = 0; g < gates_of(layer.cell); ++g) {
                    const std::int64_t k = g * hidden + unit;
                    a.push_back(static_cast<C>(layer.gates_x(row, k)) + static_cast<C>(layer.bias_ih(0, k)));
                    C sum = fault == Fault::no_bias ? C(0) : static_cast<C>(layer.bias_hh(0, k));
                    for (std::int64_t j = 0; j < hidden; ++j)
                        sum += weight[static_cast<std::size_t>(k * hidden + j)] * h[static_cast<std::size_t>(j)];
                    b.push_back(sum);
                }
                if (fault == Fault::swapped_gates && layer.cell != Cell::rnn) {
                    std::swap(a[0], a[1]);
                    std::swap(b[0], b[1]);
                }
                const auto u = static_cast<std::size_t>(unit);
                if (layer.cell == Cell::lstm) {
                    const C f = fault == Fault::no_forget_gate ? C(1) : sigmoid(a[1] + b[1]);
                    c[u] = store(f * c[u] + sigmoid(a[0] + b[0]) * std::tanh(a[2] + b[2]));
                    next[u] = store(sigmoid(a[3] + b[3]) * std::tanh(c[u]));
                } else if (layer.cell == Cell::gru) {
                    const C r = fault == Fault::no_reset ? C(1) : sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]);
                    const C candidate = std::tanh(a[2] + r * b[2]);
                    next[u] =
                        store(fault == Fault::no_forget_gate ? candidate + h[u] : (C(1) - z) * candidate + z * h[u]);
                } else {
                    next[u] = store(std::tanh(a[0] + b[0]));
                }
                out[static_cast<std::size_t>(row * hidden + unit)] = static_cast<double>(next[u]);
            }
            h = next;
        }
        // Behind the end all but the fault itself agree on zeros.
        if (fault == Fault::begins_at_padded_end && reverse)
            for (std::int64_t t = count; t < steps; ++t)
                std::fill_n(out.begin() + (t * batch + n) * hidden, hidden, 0.0);
    }
    return out;
}

double disagreement(const Layer& layer, bool reverse, const std::vector<double>& computed, Precision precision,
                    DataType stored) {
    const std::vector<Element> at = layer.all();
    return reference::disagreement(
        at, layer.expected(reverse, at),
        [&](Element e) { return computed[static_cast<std::size_t>(e.row * layer.shape.hidden + e.column)]; }, precision,
        stored);
}

TEST(RecurrentReference, IsTheLoopWrittenByHandInBothDirectionsAtAnyLengths) {
    for (const Cell cell : cells)
        for (const RecurrentShape& shape : {RecurrentShape{1, 1, 1}, {6, 5, 3}, {9, 2, 7, 2}, {40, 3, 4, 3}})
            for (const bool reverse : {false, true}) {
                const Layer layer(cell, shape, DataType::fp64, 1, ragged(shape));
                const std::vector<Element> at = layer.all();
                const std::vector<Expected> expected = layer.expected(reverse, at);
                const std::vector<double> right = by_hand<double>(layer, reverse);
                for (std::size_t i = 0; i < at.size(); ++i)
                    ASSERT_NEAR(expected[i].value, right[i], 1e-14)
                        << cell_names[static_cast<int>(cell)] << " " << reverse << " row " << at[i].row;
            }
}

TEST(RecurrentReference, AnswersElementsAskedForAloneAsItDoesAll) {
    const RecurrentShape shape{11, 4, 6};
    const Layer layer(Cell::gru, shape, DataType::fp64, 3, ragged(shape));
    const std::vector<Element> all = layer.all();
    for (const bool reverse : {false, true}) {
        const std::vector<Expected> expected = layer.expected(reverse, all);
        for (std::size_t i = 0; i < all.size(); i += 17)
            EXPECT_EQ(layer.expected(reverse, std::span(all).subspan(i, 1))[0].value, expected[i].value);
    }
}

TEST(RecurrentReference, ItsBoundHoldsWhateverTheRoundingsAndHowManySteps) {
    for (const Cell cell : cells)
        for (const RecurrentShape& shape : {RecurrentShape{500, 1, 1}, {500, 1, 2}, {500, 2, 3}, {300, 2, 32}})
            for (unsigned seed = 10; seed < 16; ++seed) {
                SCOPED_TRACE(std::string(cell_names[static_cast<int>(cell)]) + " hidden " +
                             std::to_string(shape.hidden) + " seed " + std::to_string(seed));
                const Layer wide(cell, shape, DataType::fp32, seed, ragged(shape));
                EXPECT_EQ(disagreement(wide, seed % 2, by_hand<float>(wide, seed % 2), Precision::fp32, DataType::fp32),
                          0.0);
                const Layer half(cell, shape, DataType::fp16, seed, ragged(shape));
                const auto to_half = [](float x) { return static_cast<float>(reference::to_fp16(x)); };
                EXPECT_EQ(disagreement(half, seed % 2, by_hand<float>(half, seed % 2, Fault::none, to_half),
                                       Precision::fp16, DataType::fp16),
                          0.0);
                const Layer brain(cell, shape, DataType::bf16, seed, ragged(shape));
                const auto to_brain = [](float x) { return static_cast<float>(reference::to_bf16(x)); };
                EXPECT_EQ(disagreement(brain, seed % 2, by_hand<float>(brain, seed % 2, Fault::none, to_brain),
                                       Precision::bf16, DataType::bf16),
                          0.0);
            }
}

TEST(RecurrentReference, ItsBoundDoesNotGrowWithTheSteps) {
    for (const Cell cell : cells) {
        const RecurrentShape shape{500, 1, 64};
        const Layer layer(cell, shape, DataType::fp32, 5, full(shape));
        const std::vector<Element> at = layer.all();
        const std::vector<Expected> expected = layer.expected(false, at);
        const auto mean_bound = [&](std::int64_t first, std::int64_t last, Precision precision, DataType stored) {
            double sum = 0;
            for (std::int64_t i = first * shape.hidden; i < last * shape.hidden; ++i)
                sum += reference::error_bound(expected[static_cast<std::size_t>(i)], precision, stored);
            return sum / static_cast<double>((last - first) * shape.hidden);
        };
        EXPECT_LT(mean_bound(480, 500, Precision::fp32, DataType::fp32),
                  2 * mean_bound(20, 40, Precision::fp32, DataType::fp32));
        // Outputs are about 0.3.
        EXPECT_LT(mean_bound(480, 500, Precision::fp32, DataType::fp32), 3e-5) << "fp32";
        EXPECT_LT(mean_bound(480, 500, Precision::fp16, DataType::fp16), 1e-2) << "fp16";
        EXPECT_LT(mean_bound(480, 500, Precision::bf16, DataType::bf16), 8e-2) << "bf16";
    }
}

TEST(RecurrentReference, PlantedErrorsAreFound) {
    const RecurrentShape shape{30, 4, 24};
    struct Planted {
        Fault fault;
        const char* what;
        bool of_reverse;
        std::vector<Cell> in;
        double at_least;  ///< for every element
    };
    const Planted planted[] = {
        {Fault::no_forget_gate, "no forget gate", false, {Cell::lstm, Cell::gru}, 0.3},
        {Fault::swapped_gates, "swapped gates", false, {Cell::lstm, Cell::gru}, 0.3},
        {Fault::no_bias, "no bias of h", false, {Cell::lstm, Cell::gru, Cell::rnn}, 0.3},
        {Fault::no_reset, "no reset gate", false, {Cell::gru}, 0.3},
        {Fault::mask_a_step_late, "a step too many", false, {Cell::lstm, Cell::gru, Cell::rnn}, 0.01},
        {Fault::mask_a_step_early, "a step too few", false, {Cell::lstm, Cell::gru, Cell::rnn}, 0.01},
        {Fault::begins_at_padded_end, "from the padded end", true, {Cell::lstm, Cell::gru, Cell::rnn}, 0.02},
        {Fault::keeps_direction, "forward twice", true, {Cell::lstm, Cell::gru, Cell::rnn}, 0.3},
    };
    for (const Planted& p : planted)
        for (const Cell cell : p.in)
            for (const auto& [precision, type] : {std::pair(Precision::fp32, DataType::fp32),
                                                  {Precision::fp16, DataType::fp16},
                                                  {Precision::bf16, DataType::bf16}}) {
                SCOPED_TRACE(std::string(cell_names[static_cast<int>(cell)]) + ", " + p.what);
                const Layer layer(cell, shape, type, 21, ragged(shape));
                const double share =
                    precision == Precision::fp32 ? 1.0 : 0.5;  // where the bound is wider, fewer stand out
                EXPECT_GT(
                    disagreement(layer, p.of_reverse, by_hand<double>(layer, p.of_reverse, p.fault), precision, type),
                    share * p.at_least);
                EXPECT_EQ(disagreement(layer, p.of_reverse, by_hand<double>(layer, p.of_reverse), precision, type),
                          0.0);
            }
}

const std::vector<RecurrentShape> run_shapes{{1, 1, 1},   {7, 3, 5},    {20, 2, 33, 2}, {5, 9, 16},
                                             {3, 1, 100}, {200, 2, 24}, {4, 8, 70},     {4, 23, 40}};

cpu::RecurrentDirection direction_of(const Layer& layer, const void* weight, Matrix& out) {
    return {layer.gates_x.data(), weight, layer.bias_ih.data(), layer.bias_hh.data(), out.data()};
}

class NativeRecurrent : public testing::TestWithParam<std::tuple<DataType, Cell>> {};

TEST_P(NativeRecurrent, AgreesWithTheReferenceInBothDirectionsWhateverTheThreads) {
    const auto [type, cell] = GetParam();
    for (const RecurrentShape& shape : run_shapes) {
        SCOPED_TRACE(std::to_string(shape.steps) + " steps, hidden " + std::to_string(shape.hidden));
        const Layer forward(cell, shape, type, 1, ragged(shape)), reverse(cell, shape, type, 11, ragged(shape));
        const auto run = [&] {
            std::vector<Matrix> made(2, Matrix::poisoned(type, shape.steps * shape.batch, shape.hidden));
            test::Workspace packed(cpu::recurrent_packed_bytes(type, cell, shape));
            test::Workspace packed_reverse(cpu::recurrent_packed_bytes(type, cell, shape));
            test::Workspace workspace(cpu::recurrent_workspace(type, cell, shape));
            cpu::recurrent_pack(type, cell, shape, forward.weight.data(), packed.data());
            cpu::recurrent_pack(type, cell, shape, reverse.weight.data(), packed_reverse.data());
            cpu::recurrent(type, cell, shape, direction_of(forward, packed.data(), made[0]),
                           direction_of(reverse, packed_reverse.data(), made[1]), forward.lengths.data(),
                           workspace.data());
            return made;
        };
        const std::vector<Matrix> made = run();
        const std::vector<Element> at = forward.all();
        test::expect_agrees(made[0], at, forward.expected(false, at), test::precision_of(type));
        test::expect_agrees(made[1], at, reverse.expected(true, at), test::precision_of(type));
        const int threads = omp_get_max_threads();
        // Both directions at once, one behind the other, and more threads than pieces.
        for (const int others : {1, 2, 3, 4, 9}) {
            omp_set_num_threads(others);
            EXPECT_EQ(run(), made) << others << " threads";
        }
        omp_set_num_threads(threads);
    }
}
INSTANTIATE_TEST_SUITE_P(Types, NativeRecurrent,
                         testing::Combine(testing::Values(DataType::fp16, DataType::bf16, DataType::fp32,
                                                          DataType::fp64),
                                          testing::ValuesIn(cells)));

class OneDnnRecurrent : public testing::TestWithParam<std::tuple<Precision, Cell>> {
  protected:
    void SetUp() override {
        if (const std::string reason = cpu::onednn_unsupported(precision); !reason.empty()) GTEST_SKIP() << reason;
    }
    ~OneDnnRecurrent() override { omp_set_num_threads(threads); }

    std::vector<Matrix> run(const cpu::RecurrentLayer& step, const Layer& forward, const Layer& reverse) const {
        std::vector<Matrix> made(
            2, Matrix::poisoned(type, forward.shape.steps * forward.shape.batch, forward.shape.hidden));
        test::Workspace packed(step.packed_bytes()), packed_reverse(step.packed_bytes());
        test::Workspace workspace(step.workspace_bytes());
        step.pack(forward.weight.data(), packed.data());
        step.pack(reverse.weight.data(), packed_reverse.data());
        step.run(direction_of(forward, packed.data(), made[0]), direction_of(reverse, packed_reverse.data(), made[1]),
                 forward.lengths.data(), workspace.data());
        return made;
    }

    Precision precision = std::get<0>(GetParam());
    Cell cell = std::get<1>(GetParam());
    DataType type = storage_type(precision);
    int threads = omp_get_max_threads();
};

// Made for 1, 2, 3 and 8 threads: a block of all units, and several of them with a shorter last one.
TEST_P(OneDnnRecurrent, AgreesWithTheReferenceInBothDirectionsHoweverManyThreadsItIsMadeFor) {
    std::vector<RecurrentShape> all = run_shapes;
    all.insert(all.end(), {{4, 2, 150}, {6, 1, 129}, {9, 3, 67}, {5, 4, 96}});
    for (const RecurrentShape& shape : all) {
        const Layer forward(cell, shape, type, 1, ragged(shape)), reverse(cell, shape, type, 11, ragged(shape));
        const std::vector<Element> at = forward.all();
        const std::vector<Expected> expected = forward.expected(false, at), backwards = reverse.expected(true, at);
        for (const int made_for : {1, 2, 3, 8}) {
            SCOPED_TRACE(std::to_string(shape.steps) + " steps, hidden " + std::to_string(shape.hidden) +
                         ", made for " + std::to_string(made_for) + " threads");
            omp_set_num_threads(made_for);
            const cpu::RecurrentLayer step(cell, shape, precision);
            omp_set_num_threads(threads);
            const std::vector<Matrix> made = run(step, forward, reverse);
            test::expect_agrees(made[0], at, expected, precision);
            test::expect_agrees(made[1], at, backwards, precision);
            omp_set_num_threads(1);
            EXPECT_EQ(run(step, forward, reverse), made);
            omp_set_num_threads(threads);
        }
    }
}

TEST_P(OneDnnRecurrent, SequencesEndWhereTheirLengthsSay) {
    const RecurrentShape shape{12, 3, 20, 2};
    Layer forward(cell, shape, type, 1, {24, 7, 0}), reverse(cell, shape, type, 11, {24, 7, 0});
    const std::vector<Matrix> made = run(cpu::RecurrentLayer(cell, shape, precision), forward, reverse);
    forward.lengths = reverse.lengths = {24, 9, 0};
    const std::vector<Matrix> longer = run(cpu::RecurrentLayer(cell, shape, precision), forward, reverse);
    for (std::int64_t t = 0; t < shape.steps; ++t)
        for (std::int64_t unit = 0; unit < shape.hidden; ++unit) {
            const std::int64_t row = t * shape.batch;
            EXPECT_EQ(longer[0](row, unit), made[0](row, unit));
            if (t < 4) {
                EXPECT_EQ(longer[0](row + 1, unit), made[0](row + 1, unit)) << "its steps before the end are the same";
            } else {
                EXPECT_EQ(made[0](row + 1, unit), 0) << t;
            }
            EXPECT_EQ(longer[0](row + 1, unit) == 0, t > 4) << t;
            EXPECT_EQ(made[1](row + 2, unit), 0) << "an empty one";
        }
    EXPECT_NE(longer[1](1, 0), made[1](1, 0)) << "the reverse direction begins at the end";
}
TEST_P(OneDnnRecurrent, ProductsOfAFewSequencesInBf16AreOurOwnWhereTheCpuHasTheInstructions) {
    for (const Direction direction : {Direction::fwd, Direction::bwd}) {
        const auto implementation = [&](std::int64_t batch) {
            return cpu::RecurrentLayer(cell, {4, batch, 40}, precision, direction).implementation();
        };
        const bool own = precision == Precision::bf16 && cpu::has_bf16_instructions();
        EXPECT_EQ(implementation(1) == "avx512_bf16 panels, step by step", own) << implementation(1);
        const bool has_tiles = std::ranges::count(cpu::cpu_info().isa, "amx_bf16") > 0;
        EXPECT_EQ(implementation(2) == "avx512_bf16 panels, step by step", own && !has_tiles) << implementation(2);
        EXPECT_THAT(implementation(cpu::Bf16Panels::most_rows + 1), testing::Not(testing::HasSubstr("panels")));
    }
}
INSTANTIATE_TEST_SUITE_P(Precisions, OneDnnRecurrent,
                         testing::Combine(testing::Values(Precision::fp32, Precision::bf16, Precision::fp16),
                                          testing::ValuesIn(cells)),
                         [](const auto& test) {
                             return std::string(name(std::get<0>(test.param))) + "_" +
                                    std::string(cell_names[static_cast<int>(std::get<1>(test.param))]);
                         });

}  // namespace
}  // namespace kbench
