// Recurrent layers on a device against the reference: a kernel a step, and one for all steps.
#include "kernels/recurrent/recurrent.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "kernels/check.h"
#include "kernels/compute_capability.h"
#include "tests/kernels/device_matrix.h"
#include "tests/kernels/less_shared_memory.h"

namespace kbench::test {
namespace {

using cuda::RecurrentKernels;
using cuda::RecurrentProblem;
using reference::Element;
using reference::Expected;

constexpr Cell cells[] = {Cell::lstm, Cell::gru, Cell::rnn};

struct Direction {
    HostMatrix gates_x, weight, bias_ih, bias_hh;

    Direction(const RecurrentProblem& p, unsigned seed)
        : gates_x(HostMatrix::normal(storage_type(p.precision), p.shape.steps * p.shape.batch, width(p), seed)),
          weight(HostMatrix::normal(storage_type(p.precision), width(p), p.shape.hidden, seed + 1,
                                    1 / std::sqrt(3 * static_cast<double>(p.shape.hidden)))),
          bias_ih(HostMatrix::normal(storage_type(p.precision), 1, width(p), seed + 2, 0.3)),
          bias_hh(HostMatrix::normal(storage_type(p.precision), 1, width(p), seed + 3, 0.3)) {}
    static std::int64_t width(const RecurrentProblem& p) { return gates_of(p.cell) * p.shape.hidden; }
    std::vector<Expected> expected(const RecurrentProblem& p, bool reverse, const HostMatrix& lengths,
                                   const std::vector<Element>& at) const {
        return reference::recurrent(p.cell, p.shape, reverse, gates_x.view(), weight.view(), bias_ih.view(),
                                    bias_hh.view(), lengths.view(), at);
    }
};

struct DeviceDirection {
    DeviceMatrix gates_x, weight, bias_ih, bias_hh, out;

    /// Weights begin `offset` elements past an aligned address.
    DeviceDirection(const Direction& d, const RecurrentProblem& p, std::int64_t offset)
        : gates_x(d.gates_x),
          weight(d.weight, offset),
          bias_ih(d.bias_ih),
          bias_hh(d.bias_hh),
          out(DeviceMatrix::poisoned(d.weight.type, p.shape.steps * p.shape.batch, p.shape.hidden)) {}
    cuda::RecurrentDirection pointers() const {
        return {gates_x.data(), weight.data(), bias_ih.data(), bias_hh.data(), out.data()};
    }
};

/// A layer with its operands on the device.
class OnDevice {
  public:
    OnDevice(const RecurrentProblem& problem, const Direction& forward, const Direction& reverse,
             const HostMatrix& lengths, std::int64_t offset = 0)
        : problem_(problem),
          forward_(forward, problem, offset),
          reverse_(reverse, problem, offset),
          lengths_(lengths),
          workspace_(DeviceMatrix::poisoned(
              DataType::fp16, 1, static_cast<std::int64_t>(cuda::recurrent_workspace(problem) / sizeof(short)))) {}

    void launch(cudaStream_t stream) const {
        cuda::recurrent(problem_, forward_.pointers(), reverse_.pointers(),
                        static_cast<const std::int32_t*>(lengths_.data()), workspace_.data(), stream);
    }
    std::array<HostMatrix, 2> out() const {
        workspace_.download();  // for its guards
        return {forward_.out.download(), reverse_.out.download()};
    }
    /// What is there before a run; the workspace's bits are a number or NaN.
    void poison(int workspace) const {
        const std::size_t bytes = forward_.out.download().bytes.size();
        for (const DeviceDirection* d : {&forward_, &reverse_}) KBENCH_CUDA(cudaMemset(d->out.data(), 0xff, bytes));
        KBENCH_CUDA(cudaMemset(workspace_.data(), workspace, cuda::recurrent_workspace(problem_)));
        KBENCH_CUDA(cudaDeviceSynchronize());
    }
    std::array<HostMatrix, 2> run(int workspace = 0xff) const {
        poison(workspace);
        launch(nullptr);
        return out();
    }

  private:
    RecurrentProblem problem_;
    DeviceDirection forward_, reverse_;
    DeviceMatrix lengths_, workspace_;
};

/// The first is full, others end anywhere, some at once.
HostMatrix ragged(const RecurrentShape& s) {
    HostMatrix lengths(DataType::int32, s.batch, 1);
    const std::int64_t frames = s.steps * s.frames_per_step;
    for (std::int64_t n = 0; n < s.batch; ++n)
        lengths.set(n, 0, static_cast<double>(n == 0 ? frames : n == 1 ? 0 : n * 7919 % (frames + 1)));
    return lengths;
}

/// All elements of up to three sequences: the whole state of their layers.
std::vector<Element> elements_of_some(const RecurrentShape& s) {
    const std::set<std::int64_t> sequences{0, s.batch / 2, s.batch - 1};
    std::vector<Element> at;
    for (std::int64_t t = 0; t < s.steps; ++t)
        for (const std::int64_t n : sequences)
            for (std::int64_t unit = 0; unit < s.hidden; ++unit) at.push_back({t * s.batch + n, unit});
    return at;
}

using Parameters = std::tuple<Precision, Cell, RecurrentKernels>;

class RecurrentOnDevice : public testing::TestWithParam<Parameters> {
  protected:
    const Precision precision = std::get<0>(GetParam());
    const Cell cell = std::get<1>(GetParam());
    const RecurrentKernels kernels = std::get<2>(GetParam());

    /// Shapes that the kernels do not take are left out; which ones resident kernels must take is a test of its own.
    void check(const RecurrentShape& shape, std::int64_t offset = 0) const {
        SCOPED_TRACE(testing::Message() << shape.steps << " steps, batch " << shape.batch << ", hidden " << shape.hidden
                                        << ", offset " << offset);
        const RecurrentProblem problem{cell, shape, precision, kernels};
        if (kernels == RecurrentKernels::resident && !recurrent_unsupported(problem).empty()) return;
        ASSERT_EQ(recurrent_unsupported(problem), "");
        const Direction forward(problem, 1), reverse(problem, 11);
        const HostMatrix lengths = ragged(shape);
        const OnDevice device(problem, forward, reverse, lengths, offset);
        const std::array<HostMatrix, 2> made = device.run();
        const std::vector<Element> at = elements_of_some(shape);
        expect_agrees(made[0], at, forward.expected(problem, false, lengths, at), precision);
        expect_agrees(made[1], at, reverse.expected(problem, true, lengths, at), precision);
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
        const std::array<HostMatrix, 2> again = device.run(0x33);
        for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(again[d].bytes == made[d].bytes) << "other bits in another run";
    }
};

TEST_P(RecurrentOnDevice, AgreesWithTheReferenceAtSmallAndOddSizes) {
    KBENCH_NEEDS_DEVICE();
    check({1, 1, 1});
    check({1, 3, 61});
    check({2, 1, 16});
    check({7, 3, 61, 2});
    check({5, 9, 61});
    check({6, 2, 8});
    check({9, 5, 100, 3});
    check({4, 17, 36});
    check({3, 2, 1100});
}

TEST_P(RecurrentOnDevice, AgreesWithTheReferenceAtAnyBatch) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t batch : {1, 7, 8, 9, 16, 17, 32, 33, 128}) {
        check({4, batch, 64});
        check({3, batch, 272});
    }
    for (const std::int64_t batch : {8, 29}) check({3, batch, 1024});
    check({3, 8, 512});
}

TEST_P(RecurrentOnDevice, AgreesWithTheReferenceAfterManySteps) {
    KBENCH_NEEDS_DEVICE();
    check({200, 3, 64});
    check({300, 12, 48, 2});
    check({61, 3, 61});
    check({40, 2, 512});
}

TEST_P(RecurrentOnDevice, AgreesWithTheReferenceOnAGpuOfLessSharedMemory) {
    KBENCH_NEEDS_DEVICE();
    const LessSharedMemory as_a_4090_has;
    for (const std::int64_t batch : {3, 12, 20}) {
        check({5, batch, 64});
        check({5, batch, 61});
        check({3, batch, 272}, 1);
    }
}

TEST_P(RecurrentOnDevice, WeightsMayBeginAnywhere) {
    KBENCH_NEEDS_DEVICE();
    if (kernels == RecurrentKernels::resident) GTEST_SKIP() << "resident kernels read whole pieces of 16 bytes";
    check({4, 3, 64}, 1);
    check({4, 11, 128}, 1);
}

double disagreement(const HostMatrix& made, const std::vector<Element>& at, const std::vector<Expected>& expected,
                    Precision precision) {
    int wrong = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
        wrong += !reference::agrees(made(at[i].row, at[i].column), expected[i], precision, made.type);
    return static_cast<double>(wrong) / static_cast<double>(at.size());
}

TEST_P(RecurrentOnDevice, BoundsTellOtherWeightsLengthsAndDirections) {
    KBENCH_NEEDS_DEVICE();
    const RecurrentProblem problem{cell, {20, 4, 64}, precision, kernels};
    if (const std::string reason = recurrent_unsupported(problem); !reason.empty()) GTEST_SKIP() << reason;
    const Direction forward(problem, 1), reverse(problem, 11);
    const HostMatrix lengths = ragged(problem.shape);
    const std::array<HostMatrix, 2> made = OnDevice(problem, forward, reverse, lengths).run();
    const std::vector<Element> at = elements_of(problem.shape.steps * problem.shape.batch, problem.shape.hidden);
    const auto wrong = [&](bool of_reverse, const Direction& of, bool as_reverse, const HostMatrix& of_lengths) {
        return disagreement(made[of_reverse], at, of.expected(problem, as_reverse, of_lengths, at), precision);
    };
    EXPECT_EQ(wrong(false, forward, false, lengths), 0.0);
    EXPECT_EQ(wrong(true, reverse, true, lengths), 0.0);
    EXPECT_GT(wrong(true, reverse, false, lengths), 0.1) << "the reverse direction runs forward";
    EXPECT_GT(wrong(false, reverse, false, lengths), 0.1) << "the other direction's operands";
    HostMatrix longer = lengths;
    for (std::int64_t n = 1; n < problem.shape.batch; ++n)
        longer.set(n, 0, std::min<double>(problem.shape.steps, lengths(n, 0) + 1));
    EXPECT_GT(wrong(false, forward, false, longer), 0.003) << "a step less";
    EXPECT_GT(wrong(true, reverse, true, longer), 0.01) << "begins a step late";
    Direction no_bias(problem, 1), one_weight(problem, 1);
    for (std::int64_t i = 0; i < Direction::width(problem); ++i) no_bias.bias_hh.set(0, i, 0);
    EXPECT_GT(wrong(false, no_bias, false, lengths), 0.1) << "no bias of h";
    one_weight.weight.set(0, 63, 4.0);
    EXPECT_GT(wrong(false, one_weight, false, lengths), 0.003) << "one weight of the last chunk";
}

TEST_P(RecurrentOnDevice, CanBeCapturedInAGraphAndReplayed) {
    KBENCH_NEEDS_DEVICE();
    const RecurrentProblem problem{cell, {30, 5, 128}, precision, kernels};
    if (const std::string reason = recurrent_unsupported(problem); !reason.empty()) GTEST_SKIP() << reason;
    const Direction forward(problem, 1), reverse(problem, 11);
    const OnDevice device(problem, forward, reverse, ragged(problem.shape));
    const std::array<HostMatrix, 2> once = device.run();
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    device.launch(stream);
    device.launch(stream);  // as two layers in a row
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int replay = 0; replay < 5; ++replay) {
        device.poison(0xff);
        for (int i = 0; i < 10; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        const std::array<HostMatrix, 2> made = device.out();
        for (std::size_t d = 0; d < 2; ++d) EXPECT_TRUE(made[d].bytes == once[d].bytes);
    }
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

std::string instance_name(const testing::TestParamInfo<Parameters>& instance) {
    const auto [precision, cell, kernels] = instance.param;
    return fmt::format("{}_{}_{}", name(precision), cell_names[static_cast<int>(cell)],
                       kernels == RecurrentKernels::steps ? "steps" : "resident");
}
INSTANTIATE_TEST_SUITE_P(Steps, RecurrentOnDevice,
                         testing::Combine(testing::ValuesIn(all_precisions), testing::ValuesIn(cells),
                                          testing::Values(RecurrentKernels::steps)),
                         instance_name);
INSTANTIATE_TEST_SUITE_P(Resident, RecurrentOnDevice,
                         testing::Combine(testing::ValuesIn(all_precisions), testing::ValuesIn(cells),
                                          testing::Values(RecurrentKernels::resident)),
                         instance_name);

TEST(Recurrent, ResidentKernelsTakeWhatFitsIntoAnH200) {
    KBENCH_NEEDS_DEVICE();
    cudaDeviceProp device;
    KBENCH_CUDA(cudaGetDeviceProperties(&device, 0));
    if (cuda::compute_capability().major != 9 || device.multiProcessorCount < 128)
        GTEST_SKIP() << "the device is another one";
    const auto reason = [](const RecurrentShape& shape, Precision precision) {
        return recurrent_unsupported(RecurrentProblem{Cell::lstm, shape, precision, RecurrentKernels::resident});
    };
    EXPECT_EQ(reason({500, 32, 1024}, Precision::fp16), "");
    EXPECT_EQ(reason({500, 32, 1024}, Precision::tf32), "");
    EXPECT_EQ(reason({500, 8, 1024}, Precision::fp32), "");
    EXPECT_EQ(reason({500, 8, 512}, Precision::fp64), "");
    EXPECT_NE(reason({500, 33, 1024}, Precision::tf32).find("batch 33"), std::string::npos);
    EXPECT_NE(reason({500, 9, 1024}, Precision::fp32).find("batch 9"), std::string::npos);
    EXPECT_NE(reason({500, 8, 1028}, Precision::fp32).find("hidden 1028"), std::string::npos);
    EXPECT_NE(reason({500, 8, 61}, Precision::fp32).find("16 bytes"), std::string::npos);
    EXPECT_NE(reason({500, 8, 1024}, Precision::fp64).find("hidden 1024"), std::string::npos);
    EXPECT_NE(reason({500, 8, 2048}, Precision::fp16).find("blocks 256"), std::string::npos);
}

TEST(Recurrent, SaysWhichShapesItDoesNotTake) {
    const auto reason = [](const RecurrentShape& shape) {
        return cuda::recurrent_unsupported({Cell::lstm, shape, Precision::fp16});
    };
    EXPECT_EQ(reason({500, 128, 2048}), "");
    EXPECT_NE(reason({1 << 20, 1 << 12, 8}).find("steps"), std::string::npos);
    EXPECT_NE(reason({1, 600000, 8}).find("batch 600000"), std::string::npos);
    EXPECT_NE(reason({1, 1, 1 << 21}).find("hidden 2097152"), std::string::npos);
}

}  // namespace
}  // namespace kbench::test
