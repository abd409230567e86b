// The CPU's loops of recurrent layers in training against the reference: what the forward leaves, and gradients.
#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <string>

#include "cpu/native/recurrent.h"
#include "cpu/onednn/onednn.h"
#include "models/ops/list.h"
#include "tests/cpu/matrix.h"

namespace kbench {
namespace {

using test::elements;
using test::Matrix;
using Operands = std::vector<Matrix>;

constexpr Cell cells[] = {Cell::lstm, Cell::gru, Cell::rnn};
const std::vector<RecurrentShape> shapes{{1, 1, 1},  {7, 3, 5},    {20, 2, 33, 2}, {5, 9, 16},
                                         {3, 1, 70}, {130, 3, 24}, {4, 23, 40},    {3, 5, 100}};

/// One full, one empty, the others between.
std::vector<std::int32_t> ragged(const RecurrentShape& shape) {
    std::vector<std::int32_t> lengths;
    const auto frames = static_cast<std::int32_t>(shape.steps * shape.frames_per_step);
    for (std::int32_t n = 0; n < shape.batch; ++n)
        lengths.push_back(n == 0 ? frames : frames * (n - 1) / static_cast<std::int32_t>(shape.batch));
    return lengths;
}

/// The operands of one direction of an op, as it wants them: 0 behind the end of a sequence, and gates and cells NaN.
template <Cell cell>
struct Problem {
    Recurrent<cell> op;
    Direction direction;
    std::vector<std::int32_t> lengths;
    std::vector<OperandSpec> specs;
    Operands operands;

    Problem(const Recurrent<cell>& of, Direction d, DataType type)
        : op(of), direction(d), lengths(ragged(of.shape)), specs(of.operands(d)) {
        unsigned seed = 1;
        for (const OperandSpec& spec : specs) {
            const bool is_output = spec.use == OperandUse::output, is_bias = spec.name.starts_with("bias");
            const bool is_gates = spec.name.starts_with("gates") && d != Direction::fwd;
            const double deviation = spec.name.starts_with("weight") ? 1 / std::sqrt(3.0 * double(of.shape.hidden))
                                     : is_bias || is_gates           ? 0.2
                                                                     : 1.0;
            operands.push_back(
                is_output ? Matrix::poisoned(type, spec.rows, spec.columns)
                          : Matrix::normal(type, spec.rows, spec.columns, seed++, deviation, is_gates ? 0.5 : 0.0));
            if (spec.name == "lengths") {
                operands.back() = Matrix(DataType::fp64, spec.rows, 1);
                std::size_t n = 0;
                operands.back().fill([&] { return lengths[n++]; });
            } else if (d != Direction::fwd && !is_output && spec.rows == of.shape.steps * of.shape.batch) {
                cut(operands.back(), spec.name.starts_with("gates") || spec.name.starts_with("cells"));
            }
        }
    }
    void cut(Matrix& matrix, bool to_nan) const {
        const Matrix all = matrix;
        std::int64_t at = 0;
        matrix.fill([&] {
            const std::int64_t row = at / all.columns, column = at % all.columns;
            ++at;
            const std::int64_t n = row % op.shape.batch;
            const bool runs = row / op.shape.batch <
                              steps_of(lengths[static_cast<std::size_t>(n)], op.shape.frames_per_step, op.shape.steps);
            return runs ? all(row, column) : to_nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
        });
    }
    std::vector<void*> pointers() {
        std::vector<void*> list;
        for (std::size_t i = 0; i < operands.size(); ++i)
            list.push_back(specs[i].name == "lengths" ? static_cast<void*>(lengths.data()) : operands[i].data());
        return list;
    }
    /// Outputs of `made` against the reference of this problem, whose own are as they were before.
    void expect_made(const Operands& made, Precision precision) const {
        std::vector<reference::View> views;
        for (const Matrix& operand : operands) views.push_back(operand.view());
        const Step step = Step::of(op, direction);
        for (std::size_t o = 0; o < specs.size(); ++o) {
            if (specs[o].use != OperandUse::output && specs[o].use != OperandUse::in_place) continue;
            SCOPED_TRACE(std::string(specs[o].name));
            const auto at = elements(made[o].rows, made[o].columns);
            test::expect_agrees(made[o], at, reference::evaluate(step, o, views, at), precision);
        }
    }
};

template <Cell cell>
cpu::RecurrentDirection forward_of(const std::vector<void*>& p, bool reverse, bool saves, const void* packed) {
    const std::size_t d = reverse ? 1 : 0;
    cpu::RecurrentDirection direction{p[d], packed, p[4 + d], p[6 + d], p[p.size() - 2 + d]};
    if (saves && cell != Cell::rnn) direction.gates = p[9 + d];
    if (saves && cell == Cell::lstm) direction.cells = p[11 + d];
    return direction;
}
template <Cell cell>
cpu::RecurrentGradientDirection backward_of(const std::vector<void*>& p, bool reverse, const void* packed) {
    const std::size_t d = reverse ? 1 : 0, states = cell == Cell::rnn ? 4 : 6;
    return {p[d], packed, cell == Cell::rnn ? nullptr : p[4 + d], p[states + d], p[states + d], p[states + 3 + d]};
}
template <Cell cell>
cpu::RecurrentWeightDirection weights_of(const std::vector<void*>& p, bool reverse) {
    const std::size_t d = reverse ? 1 : 0, out = cell == Cell::gru ? 4 : 2;
    return {p[d], cell == Cell::gru ? p[2 + d] : nullptr, p[out + d], p[out + 2 + d], p[out + 4 + d], p[out + 6 + d]};
}

template <Cell cell>
Operands run(Problem<cell> problem, DataType type) {
    const RecurrentShape& shape = problem.op.shape;
    const auto p = problem.pointers();
    if (problem.direction == Direction::wgrad) {
        test::Workspace workspace(cpu::recurrent_weights_workspace(type, cell, shape));
        cpu::recurrent_weights_gradient(type, cell, shape, problem.op.accumulates, weights_of<cell>(p, false),
                                        weights_of<cell>(p, true), workspace.data());
        return problem.operands;
    }
    const bool backward = problem.direction == Direction::bwd;
    const std::size_t bytes =
        (backward ? cpu::recurrent_gradient_packed_bytes : cpu::recurrent_packed_bytes)(type, cell, shape);
    test::Workspace packed(bytes), packed_reverse(bytes);
    const auto pack = backward ? cpu::recurrent_gradient_pack : cpu::recurrent_pack;
    pack(type, cell, shape, p[2], packed.data());
    pack(type, cell, shape, p[3], packed_reverse.data());
    test::Workspace workspace(
        (backward ? cpu::recurrent_gradient_workspace : cpu::recurrent_workspace)(type, cell, shape));
    if (backward)
        cpu::recurrent_gradient(type, cell, shape, backward_of<cell>(p, false, packed.data()),
                                backward_of<cell>(p, true, packed_reverse.data()), problem.lengths.data(),
                                workspace.data());
    else
        cpu::recurrent(type, cell, shape, forward_of<cell>(p, false, problem.op.saves, packed.data()),
                       forward_of<cell>(p, true, problem.op.saves, packed_reverse.data()), problem.lengths.data(),
                       workspace.data());
    return problem.operands;
}

class RecurrentTraining : public testing::TestWithParam<std::tuple<DataType, Cell>> {
  protected:
    ~RecurrentTraining() override { omp_set_num_threads(threads); }
    /// Against the reference, and the same bits whatever the threads.
    template <Cell cell>
    void agrees(const Recurrent<cell>& op, Direction direction) const {
        SCOPED_TRACE(op.text());
        const DataType type = std::get<0>(GetParam());
        const Problem<cell> problem(op, direction, type);
        const Operands made = run(problem, type);
        problem.expect_made(made, test::precision_of(type));
        for (const int others : {1, 3, 4}) {
            omp_set_num_threads(others);
            EXPECT_EQ(run(problem, type), made) << others << " threads";
        }
        omp_set_num_threads(threads);
    }
    template <class Check>
    void with_cell(const Check& check) const {
        switch (std::get<1>(GetParam())) {
            case Cell::lstm: return check(Lstm{});
            case Cell::gru: return check(Gru{});
            case Cell::rnn: return check(Rnn{});
        }
    }
    int threads = omp_get_max_threads();
};

TEST_P(RecurrentTraining, TheForwardLeavesItsGatesAndCells) {
    with_cell([&]<Cell cell>(Recurrent<cell>) {
        for (const RecurrentShape& shape : shapes) agrees(Recurrent<cell>{shape, true}, Direction::fwd);
    });
}

TEST_P(RecurrentTraining, TheBackwardIsTheReferences) {
    with_cell([&]<Cell cell>(Recurrent<cell>) {
        for (const RecurrentShape& shape : shapes) agrees(Recurrent<cell>{shape, true}, Direction::bwd);
    });
}

TEST_P(RecurrentTraining, WeightsGradientsAreTheReferences) {
    with_cell([&]<Cell cell>(Recurrent<cell>) {
        for (const RecurrentShape& shape : shapes)
            for (const bool accumulates : {false, true})
                agrees(Recurrent<cell>{shape, true, accumulates}, Direction::wgrad);
    });
}

TEST_P(RecurrentTraining, WeightsGradientsOfSeveralChunksAndPanelsAreTheReferences) {
    with_cell([&]<Cell cell>(Recurrent<cell>) {
        agrees(Recurrent<cell>{{150, 4, 130}, true, false}, Direction::wgrad);
    });
}

template <Cell cell>
Operands run_by_onednn(Problem<cell> problem, Precision precision) {
    const RecurrentShape& shape = problem.op.shape;
    const auto p = problem.pointers();
    if (problem.direction == Direction::wgrad) {
        const cpu::RecurrentWeights weights(cell, shape, precision, problem.op.accumulates);
        test::Workspace workspace(weights.workspace_bytes());
        weights.run(weights_of<cell>(p, false), weights_of<cell>(p, true), workspace.data());
        return problem.operands;
    }
    const cpu::RecurrentLayer layer(cell, shape, precision, problem.direction);
    test::Workspace packed(layer.packed_bytes()), packed_reverse(layer.packed_bytes());
    test::Workspace packing(layer.packing_bytes()), workspace(layer.workspace_bytes());
    layer.pack(p[2], packed.data(), packing.data());
    layer.pack(p[3], packed_reverse.data(), packing.data());
    if (problem.direction == Direction::bwd)
        layer.run_back(backward_of<cell>(p, false, packed.data()), backward_of<cell>(p, true, packed_reverse.data()),
                       problem.lengths.data(), workspace.data());
    else
        layer.run(forward_of<cell>(p, false, problem.op.saves, packed.data()),
                  forward_of<cell>(p, true, problem.op.saves, packed_reverse.data()), problem.lengths.data(),
                  workspace.data());
    return problem.operands;
}

class OneDnnRecurrentTraining : public testing::TestWithParam<std::tuple<Precision, Cell>> {
  protected:
    void SetUp() override {
        if (const std::string reason = cpu::onednn_unsupported(precision); !reason.empty()) GTEST_SKIP() << reason;
    }
    ~OneDnnRecurrentTraining() override { omp_set_num_threads(threads); }
    template <Cell cell>
    void agrees(const Recurrent<cell>& op, Direction direction) const {
        SCOPED_TRACE(op.text());
        const Problem<cell> problem(op, direction, storage_type(precision));
        for (const int made_for : {1, 3, threads}) {
            omp_set_num_threads(made_for);
            problem.expect_made(run_by_onednn(problem, precision), precision);
        }
        EXPECT_EQ(run_by_onednn(problem, precision), run_by_onednn(problem, precision));
    }
    template <Cell cell>
    void all_agree() const {
        std::vector<RecurrentShape> all = shapes;
        all.insert(all.end(), {{4, 2, 150}, {6, 1, 129}, {9, 3, 67}, {5, 4, 96}});
        for (const RecurrentShape& shape : all) {
            agrees(Recurrent<cell>{shape, true}, Direction::fwd);
            agrees(Recurrent<cell>{shape, true}, Direction::bwd);
            agrees(Recurrent<cell>{shape, true}, Direction::wgrad);
            agrees(Recurrent<cell>{shape, true, true}, Direction::wgrad);
        }
    }
    Precision precision = std::get<0>(GetParam());
    int threads = omp_get_max_threads();
};

TEST_P(OneDnnRecurrentTraining, AllDirectionsAreTheReferences) {
    switch (std::get<1>(GetParam())) {
        case Cell::lstm: return all_agree<Cell::lstm>();
        case Cell::gru: return all_agree<Cell::gru>();
        case Cell::rnn: return all_agree<Cell::rnn>();
    }
}
INSTANTIATE_TEST_SUITE_P(Precisions, OneDnnRecurrentTraining,
                         testing::Combine(testing::Values(Precision::fp32, Precision::bf16, Precision::fp16),
                                          testing::ValuesIn(cells)),
                         [](const auto& test) {
                             return std::string(name(std::get<0>(test.param))) + "_" +
                                    std::string(cell_names[static_cast<int>(std::get<1>(test.param))]);
                         });

INSTANTIATE_TEST_SUITE_P(Types, RecurrentTraining,
                         testing::Combine(testing::Values(DataType::fp16, DataType::bf16, DataType::fp32,
                                                          DataType::fp64),
                                          testing::ValuesIn(cells)),
                         [](const auto& test) {
                             return std::string(name(std::get<0>(test.param))) + "_" +
                                    std::string(cell_names[static_cast<int>(std::get<1>(test.param))]);
                         });

}  // namespace
}  // namespace kbench
