// Recurrent layers in training: what the forward leaves behind, and gradients, which are those of the forward.
#include <array>
#include <functional>

#include "models/ops/list.h"
#include "tests/cpu/matrix.h"

namespace kbench {
namespace {

using reference::Expected;
using test::elements;
using test::Matrix;
using Operands = std::vector<Matrix>;

std::vector<Expected> evaluated(const Op& op, Direction direction, const Operands& operands, std::size_t output) {
    std::vector<reference::View> views;
    for (const Matrix& operand : operands) views.push_back(operand.view());
    return reference::evaluate(Step::of(op, direction), output, views,
                               elements(operands[output].rows, operands[output].columns));
}
Matrix values(const Matrix& like, const std::vector<Expected>& expected) {
    Matrix matrix(DataType::fp64, like.rows, like.columns);
    std::size_t next = 0;
    matrix.fill([&] { return expected[next++].value; });
    return matrix;
}

/// A layer of one cell in fp64: sequences of all steps, of two thirds, of one step and of none.
template <Cell cell>
struct Layer {
    static constexpr RecurrentShape shape{5, 4, 3, 2};
    static constexpr Recurrent<cell> training{shape, true}, plain{shape};
    static constexpr std::size_t saved = (saved_gates_of(cell) > 0 ? 2 : 0) + (cell == Cell::lstm ? 2 : 0);
    Operands in;  ///< the forward's
    std::array<Matrix, 2> dout, out;
    Operands kept;               ///< gates, cells
    Operands backward, weights;  ///< operands of bwd and wgrad
    std::array<std::vector<Expected>, 2> dgates;

    Layer() : dout{random(20, 3, 50), random(20, 3, 51)}, out{dout} {
        unsigned seed = 1;
        for (const OperandSpec& spec : training.operands(Direction::fwd))
            in.push_back(random(spec.rows, spec.columns, seed++));
        std::array<double, 4> lengths{10, 6, 1, 0};
        std::size_t next = 0;
        in[8].fill([&] { return lengths[next++]; });
        for (std::size_t o = 9; o < in.size(); ++o) {
            Matrix made = values(in[o], evaluated(training, Direction::fwd, in, o));
            if (o < 9 + saved)
                kept.push_back(made);
            else
                out[o - 9 - saved] = made;
        }
        backward = {dout[0], dout[1], in[2], in[3]};
        backward.insert(backward.end(), kept.begin(), kept.end());
        if (cell != Cell::lstm) backward.insert(backward.end(), out.begin(), out.end());
        backward.insert(backward.end(), {in[8], in[0], in[0]});
        weights = {in[0], in[0]};
        for (std::size_t d = 0; d < 2; ++d) {
            dgates[d] = evaluated(training, Direction::bwd, backward, backward.size() - 2 + d);
            weights[d] = values(in[0], dgates[d]);
        }
        if (cell == Cell::gru) weights.insert(weights.end(), kept.begin(), kept.end());
        weights.insert(weights.end(), {out[0], out[1], in[2], in[3], in[4], in[5], in[6], in[7]});
    }
    static Matrix random(std::int64_t rows, std::int64_t columns, unsigned seed) {
        return Matrix::normal(DataType::fp64, rows, columns, seed);
    }
    double loss() const {
        const Operands operands = [&] {
            Operands list(in.begin(), in.begin() + 9);
            list.insert(list.end(), out.begin(), out.end());
            return list;
        }();
        double loss = 0;
        for (std::size_t d = 0; d < 2; ++d) {
            const Matrix made = values(out[d], evaluated(plain, Direction::fwd, operands, 9 + d));
            for (const auto& e : elements(made.rows, made.columns))
                loss += made(e.row, e.column) * dout[d](e.row, e.column);
        }
        return loss;
    }
    /// By central differences.
    bool is_gradient(std::size_t operand, const Matrix& gradient) {
        auto* const data = reinterpret_cast<double*>(in[operand].data());
        for (const auto& e : elements(gradient.rows, gradient.columns)) {
            double& x = data[e.row * gradient.columns + e.column];
            const double before = x, h = 1e-5;
            x = before + h;
            const double above = loss();
            x = before - h;
            const double below = loss();
            x = before;
            const double difference = (above - below) / (2 * h);
            if (std::abs(difference - gradient(e.row, e.column)) > 1e-7 * (1 + std::abs(difference))) return false;
        }
        return true;
    }
    Matrix weight_gradient(const Operands& operands, std::size_t output) const {
        const std::size_t at = operands.size() - 6 + output;
        return values(operands[at], evaluated(plain, Direction::wgrad, operands, at));
    }
};

template <class T>
class RecurrentGradient : public testing::Test {};
template <Cell cell>
using Of = std::integral_constant<Cell, cell>;
using Cells = testing::Types<Of<Cell::lstm>, Of<Cell::gru>, Of<Cell::rnn>>;
TYPED_TEST_SUITE(RecurrentGradient, Cells);

TYPED_TEST(RecurrentGradient, OfTheReferenceIsThatOfItsForward) {
    Layer<TypeParam::value> layer;
    for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(layer.is_gradient(d, layer.weights[d])) << "gates_x " << d;
    for (std::size_t o = 0; o < 6; ++o)
        EXPECT_TRUE(layer.is_gradient(2 + o, layer.weight_gradient(layer.weights, o))) << "weights " << o;
}

TYPED_TEST(RecurrentGradient, AddsToWhatIsThere) {
    Layer<TypeParam::value> layer;
    Recurrent<TypeParam::value> adds = layer.plain.accumulating();
    for (std::size_t o = 0; o < 6; ++o) {
        const std::size_t at = layer.weights.size() - 6 + o;
        const Matrix sums = layer.weight_gradient(layer.weights, o);
        const auto added = evaluated(adds, Direction::wgrad, layer.weights, at);
        std::size_t next = 0;
        for (const auto& e : elements(sums.rows, sums.columns))
            EXPECT_NEAR(added[next++].value, sums(e.row, e.column) + layer.weights[at](e.row, e.column), 1e-12);
    }
}

/// How many elements of the gradients in front of the end are off by more than bf16 may be.
template <Cell cell>
std::size_t wrong(const Layer<cell>& layer, const Operands& backward) {
    std::size_t count = 0;
    for (std::size_t d = 0; d < 2; ++d) {
        const auto found = evaluated(layer.training, Direction::bwd, backward, backward.size() - 2 + d);
        for (std::size_t e = 0; e < found.size(); ++e)
            count += !reference::agrees(found[e].value, layer.dgates[d][e], Precision::bf16, DataType::bf16);
    }
    return count;
}

TEST(RecurrentGradientPlanted, CellsOfAnotherStepAreFoundInBf16) {
    Layer<Cell::lstm> layer;
    Operands planted = layer.backward;
    for (const std::size_t at : {6, 7})
        std::rotate(planted[at].bytes.begin(), planted[at].bytes.begin() + 4 * 3 * 8, planted[at].bytes.end());
    EXPECT_EQ(wrong(layer, layer.backward), 0u);
    EXPECT_GT(wrong(layer, planted), 20u);
}

TEST(RecurrentGradientPlanted, AGateWithoutItsProductIsFoundInBf16) {
    Layer<Cell::lstm> layer;
    Operands planted = layer.backward;
    for (const std::size_t at : {2, 3})  // gate g's rows of weight_hh: its gradient does not reach the step before
        std::fill_n(planted[at].bytes.begin() + 2 * 3 * 3 * 8, 3 * 3 * 8, std::byte{});
    EXPECT_GT(wrong(layer, planted), 20u);
}

TEST(RecurrentGradientPlanted, AGruWithoutRInItsProductsGradientIsFound) {
    Layer<Cell::gru> layer;
    Operands planted = layer.weights;
    for (const std::size_t at : {2, 3}) planted[at].fill([] { return 1.0; });
    for (const std::size_t o : {0, 1, 4, 5}) {
        EXPECT_FALSE(layer.is_gradient(2 + o, layer.weight_gradient(planted, o))) << o;
        const std::size_t at = planted.size() - 6 + o;
        const auto right = evaluated(layer.plain, Direction::wgrad, layer.weights, at);
        const auto without = evaluated(layer.plain, Direction::wgrad, planted, at);
        std::size_t found = 0;
        for (std::size_t e = 0; e < right.size(); ++e)
            found += !reference::agrees(without[e].value, right[e], Precision::bf16, DataType::bf16);
        EXPECT_GT(found, right.size() / 6) << o;
    }
}

}  // namespace
}  // namespace kbench
