// The backward of recurrent layers on a device, and what their forward leaves for it, against backpropagation through
// time in fp64 on the host.
#include "kernels/recurrent/gradient.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>

#include "kernels/check.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/weight_gradient.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/less_shared_memory.h"

namespace kbench::test {
namespace {

using cuda::RecurrentKernels;
using cuda::RecurrentProblem;

constexpr Cell cells[] = {Cell::lstm, Cell::gru, Cell::rnn};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The first is full, others end anywhere, some at once.
HostMatrix ragged(const RecurrentShape& s) {
    HostMatrix lengths(DataType::int32, s.batch, 1);
    const std::int64_t frames = s.steps * s.frames_per_step;
    for (std::int64_t n = 0; n < s.batch; ++n)
        lengths.set(n, 0, static_cast<double>(n == 0 ? frames : n == 1 ? 0 : n * 7919 % (frames + 1)));
    return lengths;
}

/// What one direction reads, and its forward and backward.
struct Direction {
    RecurrentProblem problem;
    bool reverse;
    DataType type = storage_type(problem.precision);
    std::int64_t steps = problem.shape.steps, batch = problem.shape.batch, hidden = problem.shape.hidden;
    std::int64_t gates = gates_of(problem.cell), saved = saved_gates_of(problem.cell), rows = steps * batch;
    double deviation = 1 / std::sqrt(3 * static_cast<double>(hidden));
    HostMatrix gates_x = HostMatrix::normal(type, rows, gates* hidden, reverse ? 11 : 1);
    HostMatrix weight = HostMatrix::normal(type, gates* hidden, hidden, reverse ? 12 : 2, deviation);
    HostMatrix bias_ih = HostMatrix::normal(type, 1, gates* hidden, reverse ? 13 : 3, 0.3);
    HostMatrix bias_hh = HostMatrix::normal(type, 1, gates* hidden, reverse ? 14 : 4, 0.3);
    HostMatrix dout = HostMatrix::normal(type, rows, hidden, reverse ? 15 : 5);
    // What the forward makes, and the backward reads; NaN behind the end of a sequence, but for `out`.
    HostMatrix left{type, rows, std::max<std::int64_t>(1, saved) * hidden}, cell_states{type, rows, hidden},
        out{type, rows, hidden};
    // In fp64: da is what the backward makes; db of a GRU is another.
    HostMatrix da{DataType::fp64, rows, gates*hidden}, db{DataType::fp64, rows, gates*hidden};
    HostMatrix dweight{DataType::fp64, gates*hidden, hidden}, dbias_ih{DataType::fp64, 1, gates*hidden},
        dbias_hh{DataType::fp64, 1, gates*hidden};

    Direction(const RecurrentProblem& of, bool is_reverse, const HostMatrix& lengths)
        : problem(of), reverse(is_reverse) {
        for (HostMatrix* matrix : {&left, &cell_states})
            for (std::int64_t row = 0; row < rows; ++row)
                for (std::int64_t i = 0; i < matrix->columns; ++i) matrix->set(row, i, std::nan(""));
        run(lengths);
    }

    void run(const HostMatrix& lengths) {
        for (std::int64_t n = 0; n < batch; ++n) {
            const std::int64_t ends =
                steps_of(static_cast<std::int64_t>(lengths(n, 0)), problem.shape.frames_per_step, steps);
            forward(n, ends);
            backward(n, ends);
        }
        add_up();
    }

  private:
    std::int64_t row_of(std::int64_t n, std::int64_t s, std::int64_t ends) const {
        return (reverse ? ends - 1 - s : s) * batch + n;
    }

    void forward(std::int64_t n, std::int64_t ends) {
        std::vector<double> h(hidden), c(hidden);
        for (std::int64_t s = 0; s < ends; ++s) {
            const std::int64_t row = row_of(n, s, ends);
            const std::vector<double> before = h;
            for (std::int64_t u = 0; u < hidden; ++u) {
                double a[4] = {}, b[4] = {};
                for (std::int64_t g = 0; g < gates; ++g) {
                    a[g] = gates_x(row, g * hidden + u) + bias_ih(0, g * hidden + u);
                    b[g] = bias_hh(0, g * hidden + u);
                    for (std::int64_t k = 0; k < hidden; ++k) b[g] += weight(g * hidden + u, k) * before[k];
                }
                double keep[4] = {};
                if (problem.cell == Cell::lstm) {
                    for (int g = 0; g < 4; ++g) keep[g] = g == 2 ? std::tanh(a[g] + b[g]) : sigmoid(a[g] + b[g]);
                    c[u] = keep[1] * c[u] + keep[0] * keep[2];
                    h[u] = keep[3] * std::tanh(c[u]);
                    cell_states.set(row, u, c[u]);
                } else if (problem.cell == Cell::gru) {
                    keep[0] = sigmoid(a[0] + b[0]), keep[1] = sigmoid(a[1] + b[1]), keep[3] = b[2];
                    keep[2] = std::tanh(a[2] + keep[0] * b[2]);
                    h[u] = (1 - keep[1]) * keep[2] + keep[1] * before[u];
                } else {
                    h[u] = std::tanh(a[0] + b[0]);
                }
                for (std::int64_t g = 0; g < saved; ++g) left.set(row, g * hidden + u, keep[g]);
                out.set(row, u, h[u]);
            }
        }
    }

    /// From what the forward has left as it is stored.
    void backward(std::int64_t n, std::int64_t ends) {
        std::vector<double> carry(hidden), from_behind(hidden);
        for (std::int64_t s = ends - 1; s >= 0; --s) {
            const std::int64_t row = row_of(n, s, ends), earlier = s > 0 ? row_of(n, s - 1, ends) : -1;
            for (std::int64_t u = 0; u < hidden; ++u) {
                const auto v = [&](int g) { return left(row, g * hidden + u); };
                double dh = dout(row, u) + from_behind[u], d[4] = {}, d_hidden[4] = {};
                if (problem.cell == Cell::lstm) {
                    const double tc = std::tanh(cell_states(row, u)), c = earlier < 0 ? 0 : cell_states(earlier, u);
                    const double dc = carry[u] + dh * v(3) * (1 - tc * tc);
                    d[0] = dc * v(2) * v(0) * (1 - v(0));
                    d[1] = dc * c * v(1) * (1 - v(1));
                    d[2] = dc * v(0) * (1 - v(2) * v(2));
                    d[3] = dh * tc * v(3) * (1 - v(3));
                    carry[u] = dc * v(1);
                    std::copy_n(d, 4, d_hidden);
                } else if (problem.cell == Cell::gru) {
                    dh += carry[u];
                    const double h = earlier < 0 ? 0 : out(earlier, u), r = v(0), z = v(1);
                    d[2] = dh * (1 - z) * (1 - v(2) * v(2));
                    d[1] = dh * (h - v(2)) * z * (1 - z);
                    d[0] = d[2] * v(3) * r * (1 - r);
                    carry[u] = dh * z;
                    d_hidden[0] = d[0], d_hidden[1] = d[1], d_hidden[2] = d[2] * r;
                } else {
                    d_hidden[0] = d[0] = dh * (1 - out(row, u) * out(row, u));
                }
                for (std::int64_t g = 0; g < gates; ++g) {
                    da.set(row, g * hidden + u, d[g]);
                    db.set(row, g * hidden + u, d_hidden[g]);
                }
            }
            std::fill(from_behind.begin(), from_behind.end(), 0.0);
            for (std::int64_t g = 0; g < gates * hidden; ++g)
                for (std::int64_t k = 0; k < hidden; ++k) from_behind[k] += weight(g, k) * db(row, g);
        }
    }

    /// Gradients of weights, of da in fp64.
    void add_up() {
        std::vector<double> sums(static_cast<std::size_t>(gates * hidden * hidden));
        std::vector<double> sums_ih(static_cast<std::size_t>(gates * hidden)), sums_hh = sums_ih;
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t earlier = reverse ? row + batch : row - batch;
            for (std::int64_t g = 0; g < gates * hidden; ++g) {
                sums_ih[g] += da(row, g);
                sums_hh[g] += db(row, g);
                if (earlier < 0 || earlier >= rows || db(row, g) == 0) continue;
                for (std::int64_t k = 0; k < hidden; ++k) sums[g * hidden + k] += db(row, g) * out(earlier, k);
            }
        }
        for (std::int64_t g = 0; g < gates * hidden; ++g) {
            dbias_ih.set(0, g, sums_ih[g]);
            dbias_hh.set(0, g, sums_hh[g]);
            for (std::int64_t k = 0; k < hidden; ++k) dweight.set(g, k, sums[g * hidden + k]);
        }
    }
};

/// sum of dout h, behind a changed input.
double loss(Direction layer, HostMatrix Direction::*what, std::int64_t row, std::int64_t column, double change,
            const HostMatrix& lengths) {
    (layer.*what).set(row, column, (layer.*what)(row, column) + change);
    layer.run(lengths);
    double sum = 0;
    for (std::int64_t r = 0; r < layer.rows; ++r)
        for (std::int64_t u = 0; u < layer.hidden; ++u) sum += layer.dout(r, u) * layer.out(r, u);
    return sum;
}

TEST(RecurrentGradient, OfTheHostIsTheSlopeOfItsForward) {
    for (const Cell cell : cells)
        for (const bool reverse : {false, true}) {
            const RecurrentProblem problem{cell, {5, 4, 3}, Precision::fp64};
            const HostMatrix lengths = ragged(problem.shape);
            const Direction layer(problem, reverse, lengths);
            const auto check = [&](HostMatrix Direction::*what, const HostMatrix& gradient) {
                constexpr double change = 1e-5;
                for (std::int64_t row = 0; row < gradient.rows; ++row)
                    for (std::int64_t i = 0; i < gradient.columns; ++i) {
                        const double slope =
                            (loss(layer, what, row, i, change, lengths) - loss(layer, what, row, i, -change, lengths)) /
                            (2 * change);
                        ASSERT_NEAR(gradient(row, i), slope, 1e-7) << "row " << row << ", column " << i;
                    }
            };
            check(&Direction::gates_x, layer.da);
            check(&Direction::weight, layer.dweight);
            check(&Direction::bias_ih, layer.dbias_ih);
            check(&Direction::bias_hh, layer.dbias_hh);
        }
}

/// Rounding of the stored type, or of the multiplier's, in parts of the largest value; sums of some thousand terms and
/// some steps are in the factor.
double tolerance(Precision precision) {
    switch (precision) {
        case Precision::fp64: return 1e-13;
        case Precision::fp32: return 2e-5;
        case Precision::tf32: return 4e-3;
        case Precision::fp16: return 1e-2;
        default: return 6e-2;
    }
}

/// The largest difference in parts of the largest value that is expected. Where that is NaN anything may stand.
double distance(const HostMatrix& made, const HostMatrix& expected) {
    double largest = 0, difference = 0;
    for (std::int64_t row = 0; row < expected.rows; ++row)
        for (std::int64_t i = 0; i < expected.columns; ++i) {
            const double value = expected(row, i);
            if (std::isnan(value)) continue;
            largest = std::max(largest, std::abs(value));
            const double own = std::abs(made(row, i) - value);
            difference = std::isnan(own) ? std::numeric_limits<double>::infinity() : std::max(difference, own);
        }
    return largest == 0 ? difference : difference / largest;
}

class RecurrentGradientOnDevice : public testing::TestWithParam<std::tuple<Precision, Cell>> {
  protected:
    const Precision precision = std::get<0>(GetParam());
    const Cell cell = std::get<1>(GetParam());
};

struct Both {
    Direction forward, reverse;
    HostMatrix lengths;
    explicit Both(const RecurrentProblem& p)
        : forward(p, false, ragged(p.shape)), reverse(p, true, ragged(p.shape)), lengths(ragged(p.shape)) {}
    const Direction& operator[](int i) const { return i == 0 ? forward : reverse; }
};

DeviceMatrix bytes_of(std::size_t bytes) {
    return DeviceMatrix::poisoned(DataType::fp16, 1, static_cast<std::int64_t>((bytes + 1) / 2 + 1));
}

/// dgates_x of both directions. Operands begin `offset` elements past an aligned address.
std::array<HostMatrix, 2> backward(const RecurrentProblem& p, const Both& both, std::int64_t offset = 0,
                                   int workspace_bits = 0xff) {
    std::vector<DeviceMatrix> held;
    const auto on_device = [&](const HostMatrix& matrix) { return held.emplace_back(matrix, offset).data(); };
    std::vector<DeviceMatrix> results;
    std::array<cuda::RecurrentGradientDirection, 2> directions;
    for (int i = 0; i < 2; ++i) {
        const Direction& d = both[i];
        const void *dout = on_device(d.dout), *weight = on_device(d.weight);
        const void* gates = d.saved > 0 ? on_device(d.left) : nullptr;
        const void* states = p.cell == Cell::lstm ? on_device(d.cell_states) : nullptr;
        const void* out = p.cell == Cell::lstm ? nullptr : on_device(d.out);
        void* made = results.emplace_back(DeviceMatrix::poisoned(d.type, d.rows, d.gates * d.hidden, 0, offset)).data();
        directions[i] = {dout, weight, gates, states, out, made};
    }
    const DeviceMatrix lengths(both.lengths);
    const std::size_t bytes = cuda::recurrent_gradient_workspace(p);
    const DeviceMatrix workspace = bytes_of(bytes);
    KBENCH_CUDA(cudaMemset(workspace.data(), workspace_bits, bytes));
    cuda::recurrent_gradient(p, directions[0], directions[1], static_cast<const std::int32_t*>(lengths.data()),
                             workspace.data(), nullptr);
    KBENCH_CUDA(cudaDeviceSynchronize());
    workspace.download();  // for its guards
    return {results[0].download(), results[1].download()};
}

TEST_P(RecurrentGradientOnDevice, AgreesWithBackpropagationThroughTime) {
    KBENCH_NEEDS_DEVICE();
    for (const RecurrentShape& shape : {RecurrentShape{1, 1, 1},
                                        {1, 3, 61},
                                        {2, 1, 16},
                                        {7, 3, 61, 2},
                                        {5, 9, 61},
                                        {9, 5, 100, 3},
                                        {4, 17, 36},
                                        {4, 33, 64},
                                        {12, 8, 272},
                                        {6, 20, 128},
                                        {60, 3, 64},
                                        {3, 2, 1100},
                                        {3, 8, 1024},
                                        {3, 29, 512}})
        for (const RecurrentKernels kernels : {RecurrentKernels::steps, RecurrentKernels::resident}) {
            const RecurrentProblem problem{cell, shape, precision, kernels};
            if (kernels == RecurrentKernels::resident && !recurrent_gradient_unsupported(problem).empty()) continue;
            SCOPED_TRACE(testing::Message() << shape.steps << " steps, batch " << shape.batch << ", hidden "
                                            << shape.hidden << ", resident " << static_cast<int>(kernels));
            ASSERT_EQ(recurrent_gradient_unsupported(problem), "");
            const Both both(problem);
            const std::array<HostMatrix, 2> made = backward(problem, both);
            EXPECT_LT(distance(made[0], both.forward.da), tolerance(precision)) << "forward";
            EXPECT_LT(distance(made[1], both.reverse.da), tolerance(precision)) << "reverse";
            const std::array<HostMatrix, 2> again = backward(problem, both, 0, 0x33);
            for (std::size_t d = 0; d < 2; ++d)
                EXPECT_TRUE(again[d].bytes == made[d].bytes) << "other bits in another run";
        }
}

TEST_P(RecurrentGradientOnDevice, AgreesWithBackpropagationOnAGpuOfLessSharedMemory) {
    KBENCH_NEEDS_DEVICE();
    const LessSharedMemory as_a_4090_has;
    for (const std::int64_t batch : {3, 12, 20}) {
        SCOPED_TRACE(testing::Message() << "batch " << batch);
        const RecurrentProblem problem{cell, {5, batch, 64}, precision};
        const Both both(problem);
        const std::array<HostMatrix, 2> made = backward(problem, both);
        EXPECT_LT(distance(made[0], both.forward.da), tolerance(precision)) << "forward";
        EXPECT_LT(distance(made[1], both.reverse.da), tolerance(precision)) << "reverse";
    }
}

TEST_P(RecurrentGradientOnDevice, OperandsMayBeginAnywhere) {
    KBENCH_NEEDS_DEVICE();
    const RecurrentProblem problem{cell, {5, 11, 64}, precision};
    const Both both(problem);
    const std::array<HostMatrix, 2> made = backward(problem, both, 1);
    EXPECT_LT(distance(made[0], both.forward.da), tolerance(precision));
    EXPECT_LT(distance(made[1], both.reverse.da), tolerance(precision));
}

TEST_P(RecurrentGradientOnDevice, TellsOtherWeightsLengthsAndDirections) {
    KBENCH_NEEDS_DEVICE();
    const RecurrentProblem problem{cell, {20, 4, 64}, precision};
    const Both both(problem);
    const std::array<HostMatrix, 2> made = backward(problem, both);
    EXPECT_GT(distance(made[0], both.reverse.da), 10 * tolerance(precision)) << "the other direction's operands";
    EXPECT_GT(distance(made[1], Direction(problem, false, both.lengths).da), 10 * tolerance(precision));
    HostMatrix longer = both.lengths;
    for (std::int64_t n = 1; n < 4; ++n) longer.set(n, 0, std::min(20.0, longer(n, 0) + 1));
    EXPECT_GT(distance(made[0], Direction(problem, false, longer).da), 2 * tolerance(precision)) << "a step less";
}

TEST_P(RecurrentGradientOnDevice, ForwardLeavesWhatTheBackwardReads) {
    KBENCH_NEEDS_DEVICE();
    for (const RecurrentShape& shape : {RecurrentShape{7, 3, 61, 2}, {5, 9, 64}, {4, 20, 272}, {3, 8, 1024}})
        for (const RecurrentKernels kernels : {RecurrentKernels::steps, RecurrentKernels::resident}) {
            const RecurrentProblem problem{cell, shape, precision, kernels};
            if (kernels == RecurrentKernels::resident && !recurrent_unsupported(problem).empty()) continue;
            SCOPED_TRACE(testing::Message() << shape.steps << " steps, batch " << shape.batch << ", hidden "
                                            << shape.hidden << ", resident " << static_cast<int>(kernels));
            const Both both(problem);
            std::vector<DeviceMatrix> held;
            std::array<cuda::RecurrentDirection, 2> directions;
            std::vector<DeviceMatrix> outs, gates, states;
            for (int i = 0; i < 2; ++i) {
                const Direction& d = both[i];
                const auto on_device = [&](const HostMatrix& matrix) { return held.emplace_back(matrix).data(); };
                const auto result = [&](std::vector<DeviceMatrix>& to, std::int64_t columns) {
                    return to.emplace_back(DeviceMatrix::poisoned(d.type, d.rows, columns)).data();
                };
                directions[i].gates_x = on_device(d.gates_x);
                directions[i].weight_hh = on_device(d.weight);
                directions[i].bias_ih = on_device(d.bias_ih);
                directions[i].bias_hh = on_device(d.bias_hh);
                directions[i].out = result(outs, d.hidden);
                if (d.saved > 0) directions[i].gates = result(gates, d.saved * d.hidden);
                if (cell == Cell::lstm) directions[i].cells = result(states, d.hidden);
            }
            const DeviceMatrix lengths(both.lengths), workspace = bytes_of(cuda::recurrent_workspace(problem));
            cuda::recurrent(problem, directions[0], directions[1], static_cast<const std::int32_t*>(lengths.data()),
                            workspace.data(), nullptr);
            for (std::size_t i = 0; i < 2; ++i) {
                const Direction& d = both[static_cast<int>(i)];
                EXPECT_LT(distance(outs[i].download(), d.out), tolerance(precision)) << "h, direction " << i;
                if (d.saved > 0) {
                    EXPECT_LT(distance(gates[i].download(), d.left), tolerance(precision)) << "gates, direction " << i;
                }
                if (cell == Cell::lstm) {
                    EXPECT_LT(distance(states[i].download(), d.cell_states), tolerance(precision)) << "direction " << i;
                }
            }
        }
}

/// A matrix of fp64 as it is stored.
HostMatrix stored(const HostMatrix& exact, DataType type) {
    HostMatrix rounded(type, exact.rows, exact.columns);
    for (std::int64_t row = 0; row < exact.rows; ++row)
        for (std::int64_t i = 0; i < exact.columns; ++i) rounded.set(row, i, exact(row, i));
    return rounded;
}

TEST_P(RecurrentGradientOnDevice, AddsUpGradientsOfWeights) {
    KBENCH_NEEDS_DEVICE();
    constexpr std::size_t limit = std::size_t{64} << 20;
    for (const RecurrentShape& shape : {RecurrentShape{1, 3, 16}, {7, 3, 64, 2}, {5, 9, 61}, {20, 8, 128}})
        for (const bool accumulates : {false, true}) {
            SCOPED_TRACE(testing::Message() << shape.steps << " steps, batch " << shape.batch << ", hidden "
                                            << shape.hidden << ", accumulates " << accumulates);
            const RecurrentProblem problem{cell, shape, precision};
            const Both both(problem);
            const cuda::GemmProblem product = cuda::recurrent_weight_problem(cell, shape, precision);
            std::optional<cuda::LtGemm> gemm;
            if (product.k > 0) gemm.emplace(product, limit);
            const cuda::RecurrentWeightGradient gradient(cell, shape, precision, accumulates, std::move(gemm));
            std::vector<DeviceMatrix> held, weights, ih, hh;
            std::array<cuda::RecurrentWeightDirection, 2> directions;
            for (int i = 0; i < 2; ++i) {
                const Direction& d = both[i];
                const auto result = [&](std::vector<DeviceMatrix>& to, const HostMatrix& like) {
                    HostMatrix before(d.type, like.rows, like.columns);
                    for (std::int64_t row = 0; row < like.rows; ++row)
                        for (std::int64_t column = 0; column < like.columns; ++column)
                            before.set(row, column, accumulates ? 1 : std::nan(""));
                    return to.emplace_back(before).data();
                };
                directions[i].dgates_x = held.emplace_back(stored(d.da, d.type)).data();
                directions[i].gates = cell == Cell::gru ? held.emplace_back(d.left).data() : nullptr;
                directions[i].out = held.emplace_back(d.out).data();
                directions[i].dweight_hh = result(weights, d.dweight);
                directions[i].dbias_ih = result(ih, d.dbias_ih);
                directions[i].dbias_hh = result(hh, d.dbias_hh);
            }
            const DeviceMatrix workspace = bytes_of(gradient.workspace_bytes());
            gradient.run(directions[0], directions[1], workspace.data(), nullptr);
            KBENCH_CUDA(cudaDeviceSynchronize());
            workspace.download();  // for its guards
            for (std::size_t i = 0; i < 2; ++i) {
                const Direction& d = both[static_cast<int>(i)];
                const auto expected = [&](const HostMatrix& sums) {
                    HostMatrix all = sums;
                    for (std::int64_t row = 0; row < all.rows; ++row)
                        for (std::int64_t column = 0; column < all.columns; ++column)
                            all.set(row, column, sums(row, column) + (accumulates ? 1 : 0));
                    return all;
                };
                EXPECT_LT(distance(weights[i].download(), expected(d.dweight)), tolerance(precision)) << i;
                EXPECT_LT(distance(ih[i].download(), expected(d.dbias_ih)), tolerance(precision)) << i;
                EXPECT_LT(distance(hh[i].download(), expected(d.dbias_hh)), tolerance(precision)) << i;
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Cells, RecurrentGradientOnDevice,
                         testing::Combine(testing::ValuesIn(all_precisions), testing::ValuesIn(cells)),
                         [](const auto& instance) {
                             return fmt::format("{}_{}", name(std::get<0>(instance.param)),
                                                cell_names[static_cast<int>(std::get<1>(instance.param))]);
                         });

}  // namespace
}  // namespace kbench::test
