// The persistent LSTM: its index arithmetic on the host, its results against the reference on a device.
#include "kernels/recurrent/persistent/persistent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/recurrent/persistent/layout.h"
#include "kernels/recurrent/recurrent.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using cuda::PersistentDirection;
using cuda::PersistentExchange;
using cuda::PersistentLstm;
using cuda::PersistentVariant;
using reference::Element;

/// wgmma as PTX describes it, of a block's four warpgroups: A from registers that the kernel fills, B by descriptor
/// from h as the kernel lays it out, sums where the kernel reads them.
TEST(PersistentLstmLayout, IsWhatTheInstructionReadsAndWrites) {
    using namespace cuda::persistent;
    constexpr int k_steps = 4, hidden = warpgroups * k_steps * depth;
    for (const int columns : {8, 16, 32, 64}) {
        const auto w = [](int row, int k) { return (row * 7 + k * 3) % 11 - 5; };
        const auto h = [](int k, int n) { return (k * 5 + n * 13) % 7 - 3; };
        std::vector<int> memory(static_cast<std::size_t>(hidden * columns), 99);
        for (int k = 0; k < hidden; ++k)
            for (int n = 0; n < columns; ++n) memory.at(static_cast<std::size_t>(h_offset(k, n, columns))) = h(k, n);
        std::vector<int> sums(static_cast<std::size_t>(columns * sums_stride), 0);
        for (int warpgroup = 0; warpgroup < warpgroups; ++warpgroup)
            for (int step = 0; step < k_steps; ++step) {
                const int start = warpgroup * k_steps * depth * columns + step * 2 * leading_bytes(columns) / 2;
                int a[rows][depth];
                for (int warp = 0; warp < 4; ++warp)
                    for (int lane = 0; lane < 32; ++lane)
                        for (int index = 0; index < 4; ++index)
                            for (int element = 0; element < 2; ++element) {
                                // PTX: a0 a1 (g, 2 t), a2 a3 (g + 8, 2 t), a4 a5 (g, 2 t + 8), a6 a7 (g + 8, 2 t + 8).
                                const int i = 2 * index + element;
                                const int row = lane / 4 + (i / 2 % 2 == 1 ? 8 : 0);
                                const int column = lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0);
                                a[warp * 16 + row][column] =
                                    w(warp * 16 + fragment_row(lane, index),
                                      (warpgroup * k_steps + step) * depth + fragment_column(lane, index) + element);
                            }
                const auto b = [&](int k, int n) {
                    const int bytes = k / 8 * leading_bytes(columns) + n / 8 * stride_bytes + n % 8 * 16 + k % 8 * 2;
                    return memory.at(static_cast<std::size_t>(start + bytes / 2));
                };
                for (int warp = 0; warp < 4; ++warp)
                    for (int lane = 0; lane < 32; ++lane)
                        for (int i = 0; i < columns / 2; ++i) {
                            // PTX: d0 d1 (g, 2 t), d2 d3 (g + 8, 2 t), and so on for every 8 columns.
                            const int row = warp * 16 + lane / 4 + (i % 4 >= 2 ? 8 : 0);
                            const int n = i / 4 * 8 + lane % 4 * 2 + i % 2;
                            int sum = 0;
                            for (int k = 0; k < depth; ++k) sum += a[row][k] * b(k, n);
                            sums.at(static_cast<std::size_t>(
                                sum_offset(warp * 16 + sum_row(lane, i), sum_column(lane, i)))) += sum;
                        }
            }
        for (int row = 0; row < rows; ++row)
            for (int n = 0; n < columns; ++n) {
                int sum = 0;
                for (int k = 0; k < hidden; ++k) sum += w(row, k) * h(k, n);
                ASSERT_EQ(sums[static_cast<std::size_t>(sum_offset(row, n))], sum) << row << " " << n;
                ASSERT_EQ(row_of(unit_of(row), gate_of(row)), row);
            }
    }
}

/// 32 banks of 4 bytes, a warp's writes one word a lane, its reads four.
TEST(PersistentLstmLayout, MeetsNoBankTwice) {
    using namespace cuda::persistent;
    for (int i = 0; i < 32; ++i) {
        std::set<int> banks;
        for (int lane = 0; lane < 32; ++lane) banks.insert(sum_offset(16 + sum_row(lane, i), sum_column(lane, i)) % 32);
        EXPECT_EQ(banks.size(), 32u);
    }
    for (int quarter = 0; quarter < 4; ++quarter) {  // 16 bytes a lane are read by a quarter of a warp at a time
        std::set<int> banks;
        for (int lane = 8 * quarter; lane < 8 * quarter + 8; ++lane)
            for (int word = 0; word < 4; ++word)
                banks.insert((sum_offset(row_of(lane % units, 0), lane / units) + word) % 32);
        EXPECT_EQ(banks.size(), 32u);
    }
}

TEST(PersistentLstm, TakesMoreSequencesInPartsOfAtMost64) {
    const auto name = [](std::int64_t batch, std::int64_t hidden) {
        return persistent_lstm_name(cuda::persistent_lstm_of(DataType::bf16, {5, batch, hidden}));
    };
    EXPECT_EQ(name(64, 1024), "persistent_lstm<bf16, K 1024, N 64, counted>");
    EXPECT_EQ(name(65, 1024), "persistent_lstm<bf16, K 1024, N 64, counted> in 2 parts");
    EXPECT_EQ(name(128, 512), "persistent_lstm<bf16, K 512, N 4 x 32, polled>");
    EXPECT_EQ(name(129, 512), "persistent_lstm<bf16, K 512, N 64, counted> in 3 parts");
    EXPECT_EQ(cuda::persistent_lstm_workspace(cuda::persistent_lstm_of(DataType::bf16, {5, 64, 1024})),
              cuda::persistent_lstm_workspace(cuda::persistent_lstm_of(DataType::bf16, {5, 1000, 1024})));
}

TEST(PersistentLstm, SaysWhyItDoesNotComputeALayer) {
    const auto reason = [](DataType type, const RecurrentShape& shape) {
        return persistent_lstm_unsupported(cuda::persistent_lstm_of(type, shape));
    };
    EXPECT_NE(reason(DataType::fp32, {5, 8, 1024}).find("fp32"), std::string::npos);
    EXPECT_NE(reason(DataType::fp16, {5, 8, 1025}).find("hidden 1025"), std::string::npos);
    EXPECT_NE(reason(DataType::fp16, {5, 8, 2048}).find("hidden 2048"), std::string::npos);
    const PersistentLstm polled{DataType::bf16, {5, 129, 1024}, PersistentExchange::polled};
    EXPECT_NE(persistent_lstm_unsupported(polled).find("batch 129"), std::string::npos);
    const PersistentLstm parts{DataType::fp16, {5, 65, 1024}, PersistentExchange::counted, PersistentVariant::clocks};
    EXPECT_NE(persistent_lstm_unsupported(parts).find("clocks are of up to 64"), std::string::npos);
    const PersistentLstm wide{DataType::fp16, {5, 8, 1024}, PersistentExchange::polled, PersistentVariant::plain, 12};
    EXPECT_NE(persistent_lstm_unsupported(wide).find("12 sequences"), std::string::npos);
    const PersistentLstm wider{DataType::fp16, {5, 8, 528}, PersistentExchange::polled, PersistentVariant::plain, 32};
    EXPECT_NE(persistent_lstm_unsupported(wider).find("32 sequences"), std::string::npos);
}

struct Direction {
    HostMatrix gates_x, weight, bias_ih, bias_hh;

    Direction(DataType type, const RecurrentShape& s, unsigned seed)
        : gates_x(HostMatrix::normal(type, s.steps * s.batch, 4 * s.hidden, seed)),
          weight(HostMatrix::normal(type, 4 * s.hidden, s.hidden, seed + 1,
                                    1 / std::sqrt(3 * static_cast<double>(s.hidden)))),
          bias_ih(HostMatrix::normal(type, 1, 4 * s.hidden, seed + 2, 0.3)),
          bias_hh(HostMatrix::normal(type, 1, 4 * s.hidden, seed + 3, 0.3)) {}
    std::vector<reference::Expected> expected(const RecurrentShape& shape, bool reverse, const HostMatrix& lengths,
                                              const std::vector<Element>& at) const {
        return reference::recurrent(Cell::lstm, shape, reverse, gates_x.view(), weight.view(), bias_ih.view(),
                                    bias_hh.view(), lengths.view(), at);
    }
};

struct DeviceDirection {
    DeviceMatrix gates_x, weight, bias_ih, bias_hh, out, gates, cells;

    DeviceDirection(const Direction& d, const RecurrentShape& s)
        : gates_x(d.gates_x),
          weight(d.weight),
          bias_ih(d.bias_ih),
          bias_hh(d.bias_hh),
          out(DeviceMatrix::poisoned(d.weight.type, s.steps * s.batch, s.hidden)),
          gates(DeviceMatrix::poisoned(d.weight.type, s.steps * s.batch, 4 * s.hidden)),
          cells(DeviceMatrix::poisoned(d.weight.type, s.steps * s.batch, s.hidden)) {}
    PersistentDirection pointers() const {
        return {gates_x.data(), weight.data(), bias_ih.data(), bias_hh.data(), out.data(), gates.data(), cells.data()};
    }
};

/// A layer with its operands on the device.
class OnDevice {
  public:
    OnDevice(const PersistentLstm& layer, const Direction& forward, const Direction& reverse, const HostMatrix& lengths)
        : layer_(layer),
          forward_(forward, layer.shape),
          reverse_(reverse, layer.shape),
          lengths_(lengths),
          workspace_(DeviceMatrix::poisoned(DataType::fp16, 1,
                                            static_cast<std::int64_t>(cuda::persistent_lstm_workspace(layer) / 2))) {}

    void launch(cudaStream_t stream, std::uint64_t* clocks = nullptr) const {
        cuda::persistent_lstm(layer_, forward_.pointers(), reverse_.pointers(),
                              static_cast<const std::int32_t*>(lengths_.data()), workspace_.data(), stream, clocks);
    }
    std::array<HostMatrix, 2> out() const {
        workspace_.download();  // for its guards
        return {forward_.out.download(), reverse_.out.download()};
    }
    /// What has been saved: gates and cells of either direction.
    std::array<HostMatrix, 4> saved() const {
        return {forward_.gates.download(), forward_.cells.download(), reverse_.gates.download(),
                reverse_.cells.download()};
    }
    /// The same by kernels that launch each step, which have tests of their own.
    std::array<HostMatrix, 4> saved_step_by_step() const {
        const cuda::RecurrentProblem problem{Cell::lstm, layer_.shape, precision_of(layer_.type)};
        const auto workspace = DeviceMatrix::poisoned(
            DataType::fp16, 1, static_cast<std::int64_t>(cuda::recurrent_workspace(problem) / 2));
        const auto direction = [](const DeviceDirection& d) {
            const PersistentDirection p = d.pointers();
            return cuda::RecurrentDirection{p.gates_x, p.weight_hh, p.bias_ih, p.bias_hh, p.out, p.gates, p.cells};
        };
        cuda::recurrent(problem, direction(forward_), direction(reverse_),
                        static_cast<const std::int32_t*>(lengths_.data()), workspace.data(), nullptr);
        return saved();
    }
    void poison() const {
        const std::size_t bytes = forward_.out.download().bytes.size();
        for (const DeviceDirection* d : {&forward_, &reverse_}) KBENCH_CUDA(cudaMemset(d->out.data(), 0xff, bytes));
        KBENCH_CUDA(cudaMemset(workspace_.data(), 0x55, cuda::persistent_lstm_workspace(layer_)));
        KBENCH_CUDA(cudaDeviceSynchronize());
    }
    std::array<HostMatrix, 2> run() const {
        poison();
        launch(nullptr);
        return out();
    }

  private:
    PersistentLstm layer_;
    DeviceDirection forward_, reverse_;
    DeviceMatrix lengths_, workspace_;
};

/// Lengths of sequences: the first is full, others end anywhere, some at once.
HostMatrix ragged(const RecurrentShape& s) {
    HostMatrix lengths(DataType::int32, s.batch, 1);
    for (std::int64_t n = 0; n < s.batch; ++n)
        lengths.set(
            n, 0,
            static_cast<double>(n == 0 ? s.steps * s.frames_per_step : (n * 7919) % (s.steps * s.frames_per_step + 1)));
    return lengths;
}

/// All elements of three sequences.
std::vector<Element> elements_of_some(const RecurrentShape& s) {
    const std::set<std::int64_t> sequences{0, s.batch / 2, s.batch - 1};
    std::vector<Element> at;
    for (std::int64_t t = 0; t < s.steps; ++t)
        for (const std::int64_t n : sequences)
            for (std::int64_t unit = 0; unit < s.hidden; ++unit) at.push_back({t * s.batch + n, unit});
    return at;
}

/// An exchange, and how many sequences take a step together where that can be chosen.
struct Way {
    PersistentExchange exchange;
    int tile;
};

std::string instance_name(const testing::TestParamInfo<std::tuple<DataType, Way>>& instance) {
    const auto& [type, way] = instance.param;
    return fmt::format("{}_{}_{}", name(type), cuda::persistent_exchange_names[static_cast<int>(way.exchange)],
                       way.tile);
}

class PersistentLstmOnDevice : public testing::TestWithParam<std::tuple<DataType, Way>> {
  protected:
    const DataType type = std::get<0>(GetParam());
    const Way way = std::get<1>(GetParam());

    PersistentLstm layer_of(const RecurrentShape& shape) const {
        const int tile = way.tile == 32 && shape.hidden > 512 ? 0 : way.tile;
        return {.type = type, .shape = shape, .exchange = way.exchange, .tile = tile};
    }
    void check(const RecurrentShape& shape) const {
        SCOPED_TRACE(testing::Message() << shape.steps << " steps, batch " << shape.batch << ", hidden "
                                        << shape.hidden);
        const PersistentLstm layer = layer_of(shape);
        if (way.exchange == PersistentExchange::polled && shape.batch > 128) return;
        const std::string reason = persistent_lstm_unsupported(layer);
        ASSERT_EQ(reason, "");
        const Direction forward(type, shape, 1), reverse(type, shape, 11);
        const HostMatrix lengths = ragged(shape);
        const OnDevice device(layer, forward, reverse, lengths);
        const std::array<HostMatrix, 2> made = device.run();
        const std::vector<Element> at = elements_of_some(shape);
        expect_agrees(made[0], at, forward.expected(shape, false, lengths, at), precision_of(type));
        expect_agrees(made[1], at, reverse.expected(shape, true, lengths, at), precision_of(type));
        for (const HostMatrix& out : made)
            for (std::int64_t row = 0; row < out.rows; ++row) {
                const std::int64_t steps = steps_of(static_cast<std::int64_t>(lengths(row % shape.batch, 0)),
                                                    shape.frames_per_step, shape.steps);
                for (std::int64_t unit = 0; unit < shape.hidden; ++unit) {
                    const double h = out(row, unit);
                    ASSERT_TRUE(row / shape.batch < steps ? std::abs(h) <= 1 : h == 0)
                        << "row " << row << ", unit " << unit << ": " << h;
                }
            }
        const std::array<HostMatrix, 2> again = device.run();
        for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(again[d].bytes == made[d].bytes) << "other bits in another run";
    }
};

#define KBENCH_NEEDS_PERSISTENT_LSTM()                                                                               \
    KBENCH_NEEDS_DEVICE();                                                                                           \
    if (const std::string reason = cuda::persistent_lstm_unsupported({DataType::fp16, {1, 1, 16}}); !reason.empty()) \
    GTEST_SKIP() << reason

TEST_P(PersistentLstmOnDevice, AgreesWithTheReferenceAfterOneStep) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    for (const std::int64_t hidden : {256, 512, 1024})
        for (const std::int64_t batch : {1, 3, 8, 32, 64, 128}) check({1, batch, hidden});
}

TEST_P(PersistentLstmOnDevice, AgreesWithTheReferenceAfterTwoSteps) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    for (const std::int64_t hidden : {256, 512, 1024})
        for (const std::int64_t batch : {1, 3, 8, 13, 32, 64, 128}) check({2, batch, hidden});
}

TEST_P(PersistentLstmOnDevice, AgreesWithTheReferenceAfterManySteps) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    for (const std::int64_t hidden : {256, 512, 1024})
        for (const std::int64_t batch : {1, 8, 20, 32, 100, 193}) check({61, batch, hidden});
}

TEST_P(PersistentLstmOnDevice, TakesAnyMultipleOfABlocksUnits) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    for (const std::int64_t hidden : {16, 48, 80, 272, 528, 1008}) {
        check({21, 5, hidden, 3});
        check({21, 39, hidden, 3});
    }
}

/// A rotation of weight_hh's columns by a core matrix, which a wrong layout of h would be, must not pass.
TEST_P(PersistentLstmOnDevice, AWrongLayoutWouldBeSeen) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    const RecurrentShape shape{8, 16, 1024};
    const Direction forward(type, shape, 1);
    Direction rotated = forward;
    for (std::int64_t row = 0; row < 4 * shape.hidden; ++row)
        for (std::int64_t k = 0; k < shape.hidden; ++k)
            rotated.weight.set(row, k, forward.weight(row, (k + 8) % shape.hidden));
    HostMatrix lengths(DataType::int32, shape.batch, 1);
    for (std::int64_t n = 0; n < shape.batch; ++n) lengths.set(n, 0, static_cast<double>(shape.steps));
    const HostMatrix made = OnDevice(layer_of(shape), forward, forward, lengths).run()[0];
    std::vector<Element> at = elements_of_some(shape);
    std::erase_if(at, [&](const Element& e) { return e.row / shape.batch == 0; });  // h is 0 before the first step
    const auto wrong = rotated.expected(shape, false, lengths, at);
    std::size_t seen = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
        seen += !reference::agrees(made(at[i].row, at[i].column), wrong[i], precision_of(type), type);
    EXPECT_GT(2 * seen, at.size());
}

TEST_P(PersistentLstmOnDevice, IsTheSameFromAGraphHoweverOftenItIsLaunched) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    for (const std::int64_t batch : {4, 20, 32, 64}) {
        const RecurrentShape shape{100, batch, 1024};
        const OnDevice device(layer_of(shape), Direction(type, shape, 1), Direction(type, shape, 11), ragged(shape));
        const std::array<HostMatrix, 2> made = device.run();
        cudaStream_t stream = nullptr;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        KBENCH_CUDA(cudaStreamCreate(&stream));
        KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        device.launch(stream);
        device.launch(stream);  // behind itself, as layers of a model are behind each other
        KBENCH_CUDA(cudaStreamEndCapture(stream, &graph));
        KBENCH_CUDA(cudaGraphInstantiate(&executable, graph, 0));
        for (int launch = 0; launch < 20; ++launch) {
            device.poison();
            KBENCH_CUDA(cudaGraphLaunch(executable, stream));
            KBENCH_CUDA(cudaStreamSynchronize(stream));
            const std::array<HostMatrix, 2> again = device.out();
            for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(again[d].bytes == made[d].bytes) << "launch " << launch;
        }
        KBENCH_CUDA(cudaGraphExecDestroy(executable));
        KBENCH_CUDA(cudaGraphDestroy(graph));
        KBENCH_CUDA(cudaStreamDestroy(stream));
    }
}

TEST_P(PersistentLstmOnDevice, SavesWhatTheBackwardNeedsAndMakesTheSame) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    const double tolerance = type == DataType::fp16 ? 8e-3 : 6e-2;  // h is rounded in each of the steps
    const RecurrentShape shapes[] = {{30, 3, 1024}, {30, 20, 1024},  {30, 32, 1024, 2},
                                     {25, 60, 512}, {20, 13, 80, 3}, {9, 130, 1024, 2}};
    for (const RecurrentShape& shape : shapes) {
        if (way.exchange == PersistentExchange::polled && shape.batch > 128) continue;
        SCOPED_TRACE(testing::Message() << "batch " << shape.batch << ", hidden " << shape.hidden);
        const Direction forward(type, shape, 1), reverse(type, shape, 11);
        const HostMatrix lengths = ragged(shape);
        PersistentLstm layer = layer_of(shape);
        const std::array<HostMatrix, 2> made = OnDevice(layer, forward, reverse, lengths).run();
        layer.variant = PersistentVariant::saves;
        const OnDevice device(layer, forward, reverse, lengths);
        const std::array<HostMatrix, 2> out = device.run();
        for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(out[d].bytes == made[d].bytes) << "other bits of h";
        const std::array<HostMatrix, 4> saved = device.saved(), expected = device.saved_step_by_step();
        for (std::size_t i = 0; i < 4; ++i) {
            std::size_t away = 0, ended = 0;
            double largest = 0;
            for (std::int64_t row = 0; row < saved[i].rows; ++row) {
                const std::int64_t steps = steps_of(static_cast<std::int64_t>(lengths(row % shape.batch, 0)),
                                                    shape.frames_per_step, shape.steps);
                for (std::int64_t column = 0; column < saved[i].columns; ++column) {
                    const double value = saved[i](row, column);
                    largest = std::max(largest, std::abs(value));
                    away += !(std::abs(value - expected[i](row, column)) <= tolerance);
                    ended += row / shape.batch >= steps && value != 0;
                }
            }
            EXPECT_EQ(away, 0u) << "matrix " << i << " of gates, cells, gates, cells";
            EXPECT_EQ(ended, 0u) << "behind an end, of matrix " << i;
            EXPECT_GT(largest, 0.5) << "something has been saved";
        }
    }
}

TEST_P(PersistentLstmOnDevice, TakesOneDirectionBehindTheOtherWhereBothHaveNoPlace) {
    KBENCH_NEEDS_PERSISTENT_LSTM();
    const RecurrentShape shape{30, 20, 1024};
    const Direction forward(type, shape, 1), reverse(type, shape, 11);
    const HostMatrix lengths = ragged(shape);
    PersistentLstm layer = layer_of(shape);
    const std::array<HostMatrix, 2> made = OnDevice(layer, forward, reverse, lengths).run();
    layer.multiprocessors = 64;
    ASSERT_EQ(persistent_lstm_blocks(layer), 64);
    const std::array<HostMatrix, 2> apart = OnDevice(layer, forward, reverse, lengths).run();
    for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(apart[d].bytes == made[d].bytes);
    layer.multiprocessors = 63;
    EXPECT_NE(persistent_lstm_unsupported(layer).find("64 blocks must run at once, 63 can"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    All, PersistentLstmOnDevice,
    testing::Combine(testing::Values(DataType::fp16, DataType::bf16),
                     testing::Values(Way{PersistentExchange::counted, 0}, Way{PersistentExchange::polled, 8},
                                     Way{PersistentExchange::polled, 16}, Way{PersistentExchange::polled, 32})),
    instance_name);

}  // namespace
}  // namespace kbench::test
