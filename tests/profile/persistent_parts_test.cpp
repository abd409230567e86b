// Recurrent layers on parts of a GPU, made for all of it: the persistent LSTM runs one direction behind the other or is
// refused, as resident kernels are. Blocks without a place would be waited for without end.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/device/multiprocessors.h"
#include "bench/plan/providers/cuda/persistent_account.h"
#include "kbench/error.h"
#include "kernels/multiprocessors.h"
#include "kernels/recurrent/gradient.h"
#include "kernels/recurrent/persistent/persistent.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/spin.h"

namespace kbench {
namespace {

using cuda::PersistentDirection;
using cuda::PersistentLstm;

constexpr RecurrentShape shape{20, 8, 1024};
constexpr int blocks_of_direction = 64;

/// Operands of both directions in fp16, whose bits are any below those of 0.25, and results.
class Layer {
  public:
    explicit Layer(Device& device)
        : device_(device),
          gates_x_(filled(rows * 4 * hidden)),
          weight_(filled(4 * hidden * hidden)),
          bias_(filled(4 * hidden)),
          lengths_(device, 4 * batch),
          out_(device, 2 * out_bytes),
          workspace_(device, persistent_lstm_workspace(layer)) {
        const std::vector<std::int32_t> full(batch, static_cast<std::int32_t>(shape.steps));
        device.upload(lengths_.data(), full.data(), 4 * batch);
    }
    void launch(void* stream) const {
        persistent_lstm(layer, forward(), reverse(), lengths(), workspace_.data(), static_cast<cudaStream_t>(stream));
    }
    std::optional<StepAccount> account(void* stream) const {
        return account_of_persistent_lstm(layer, forward(), reverse(), lengths(), workspace_.data(),
                                          static_cast<cudaStream_t>(stream));
    }
    /// What `run` leaves of a layer that had no result before.
    template <class Run>
    std::vector<std::byte> out_of(Device& on, Run run) const {
        on.fill(out_.data(), 0xff, out_.bytes());
        on.synchronize();
        run();
        std::vector<std::byte> host(out_.bytes());
        on.download(host.data(), out_.data(), host.size());
        return host;
    }

    PersistentLstm layer{.type = DataType::fp16, .shape = shape, .exchange = cuda::PersistentExchange::polled};

  private:
    static constexpr std::size_t rows = shape.steps * shape.batch, hidden = shape.hidden, batch = shape.batch;
    static constexpr std::size_t out_bytes = rows * hidden * 2;

    PersistentDirection forward() const {
        return {gates_x_.data(), weight_.data(), bias_.data(), bias_.data(), out_.data()};
    }
    PersistentDirection reverse() const {
        PersistentDirection direction = forward();
        direction.out = out_.data() + out_bytes;
        return direction;
    }
    const std::int32_t* lengths() const { return reinterpret_cast<const std::int32_t*>(lengths_.data()); }

    DeviceBuffer filled(std::size_t elements) const {
        std::vector<std::uint16_t> host(elements);
        std::uint32_t state = 1;
        for (std::uint16_t& bits : host) {
            state = state * 1664525 + 1013904223;
            bits = static_cast<std::uint16_t>((state >> 16) % 0x3400 | (state >> 31) << 15);
        }
        DeviceBuffer memory(device_, 2 * elements);
        device_.upload(memory.data(), host.data(), 2 * elements);
        return memory;
    }

    Device& device_;
    DeviceBuffer gates_x_, weight_, bias_, lengths_, out_, workspace_;
};

TEST(PersistentLstmOnParts, RunsWhereADirectionFitsAndIsRefusedElsewhere) {
    if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
    if (const std::string reason = persistent_lstm_unsupported(PersistentLstm{DataType::fp16, shape}); !reason.empty())
        GTEST_SKIP() << reason;
    const std::unique_ptr<Device> all = make_cuda_device();
    std::vector<int> counts;
    try {
        counts = counts_at_shares(possible_multiprocessors(*all));
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    const Layer layer(*all);
    const std::vector<std::byte> expected = layer.out_of(*all, [&] { layer.launch(all->stream()); });
    for (const int count : counts) {
        SCOPED_TRACE(count);
        const std::unique_ptr<Device> part = make_cuda_device(count);
        void* const stream = part->stream();
        EXPECT_EQ(cuda::multiprocessors_of(static_cast<cudaStream_t>(stream)), count);
        PersistentLstm planned = layer.layer;
        planned.multiprocessors = count;
        EXPECT_EQ(persistent_lstm_unsupported(planned).empty(), count >= blocks_of_direction);
        if (count < blocks_of_direction) {
            EXPECT_THROW(layer.launch(stream), Unsupported);
            continue;
        }
        EXPECT_EQ(persistent_lstm_blocks(planned), count < 2 * blocks_of_direction ? 64 : 128);
        EXPECT_TRUE(layer.out_of(*part, [&] { layer.launch(stream); }) == expected);
        const std::unique_ptr<DeviceGraph> graph = part->capture([&] { layer.launch(stream); });
        EXPECT_TRUE(layer.out_of(*part, [&] { graph->launch(); }) == expected);
    }
}

/// Cycles of an SM over a step's time are its clock, within what no thread of a block sees of a step.
TEST(PersistentLstmAccount, SaysWhereAStepsCyclesGoAndLeavesWhatThePlainKernelDoes) {
    if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
    if (const std::string reason = persistent_lstm_unsupported(PersistentLstm{DataType::fp16, shape}); !reason.empty())
        GTEST_SKIP() << reason;
    const std::unique_ptr<Device> all = make_cuda_device();
    Layer layer(*all);
    const std::vector<std::byte> expected = layer.out_of(*all, [&] { layer.launch(all->stream()); });
    std::optional<StepAccount> account;
    EXPECT_TRUE(layer.out_of(*all, [&] { account = layer.account(all->stream()); }) == expected);
    ASSERT_TRUE(account);
    EXPECT_EQ(account->blocks, 2 * blocks_of_direction);
    ASSERT_EQ(account->phases.size(), static_cast<std::size_t>(cuda::persistent_phases));
    double cycles = 0;
    for (const StepPhase& phase : account->phases) {
        EXPECT_LE(phase.least_cycles, phase.median_cycles) << phase.name;
        EXPECT_LE(phase.median_cycles, phase.most_cycles) << phase.name;
        cycles += phase.median_cycles;
    }
    // `us` also has what a launch takes before its first step, which of 20 steps is a part.
    const double steps_us = account->us * shape.steps - account->start_us;
    EXPECT_GT(cycles * shape.steps / steps_us, 500) << "MHz";
    EXPECT_LT(cycles * shape.steps / steps_us, 2500) << "MHz";
    layer.layer.exchange = cuda::PersistentExchange::counted;
    layer.layer.type = DataType::bf16;
    EXPECT_FALSE(layer.account(all->stream())) << "of 8 sequences in bf16 there is no such kernel with clocks";
}

/// A part of about half of the GPU; null where it cannot be divided.
std::unique_ptr<Device> half_of(const Device& all) {
    try {
        return make_cuda_device(counts_at_shares(possible_multiprocessors(all)).at(2));
    } catch (const DeviceError&) {
        return nullptr;
    }
}

TEST(ResidentLayersOnParts, AreRefusedAndNotChosenWhereNotAllBlocksHaveAPlace) {
    if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
    const std::unique_ptr<Device> all = make_cuda_device();
    const std::unique_ptr<Device> part = half_of(*all);
    if (!part) GTEST_SKIP() << "this GPU cannot be divided";
    for (const auto& problem_of : {cuda::recurrent_problem, cuda::recurrent_gradient_problem}) {
        const cuda::RecurrentProblem problem = problem_of(Cell::lstm, shape, Precision::fp32, 0);
        if (problem.kernels != cuda::RecurrentKernels::resident) GTEST_SKIP() << "it is not resident on this GPU";
        const cuda::RecurrentProblem of_part = problem_of(Cell::lstm, shape, Precision::fp32, part->multiprocessors());
        EXPECT_EQ(of_part.kernels, cuda::RecurrentKernels::steps);
    }
    // Nothing runs: the refusal comes before a byte is read.
    const auto stream = static_cast<cudaStream_t>(part->stream());
    const DeviceBuffer memory(*all, std::size_t{64} << 20);
    const cuda::RecurrentDirection d{memory.data(), memory.data(), memory.data(), memory.data(), memory.data()};
    const auto* const lengths = reinterpret_cast<const std::int32_t*>(memory.data());
    const cuda::RecurrentProblem problem = cuda::recurrent_problem(Cell::lstm, shape, Precision::fp32);
    EXPECT_THROW(cuda::recurrent(problem, d, d, lengths, memory.data(), stream), Unsupported);
    all->synchronize();
}

/// What was put on it uses memory of others: a plan's, which the next measurement writes.
TEST(DevicePart, WaitsForItsWorkBeforeItGoes) {
    if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
    const std::unique_ptr<Device> all = make_cuda_device();
    std::unique_ptr<Device> part = half_of(*all);
    if (!part) GTEST_SKIP() << "this GPU cannot be divided";
    const auto stream = static_cast<cudaStream_t>(part->stream());
    cuda::spin(1000, part->multiprocessors(), stream);  // loads the kernel
    part->synchronize();
    constexpr std::int64_t cycles = 400'000'000;  // a fifth of a second
    cuda::spin(cycles, part->multiprocessors(), stream);
    ASSERT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    part.reset();
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess) << "the part's stream is kept for the next part of that size";
}

}  // namespace
}  // namespace kbench
