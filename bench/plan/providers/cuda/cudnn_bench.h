// A convolution's operands on a device, and what a right plan makes of them: where plans are checked and timed.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/providers/cuda/cudnn_problem.h"
#include "kbench/provider.h"

namespace kbench::cudnn {

/// Products that an output is the sum of, at the most.
std::int64_t terms(const Conv2d& op, Direction direction);

/// The largest difference that rounding explains between two right outputs on the bench's operands: sums of `terms`
/// products of size 1 / sqrt(terms) and a bias near 1, rounded twice at the most. As rounding_allowance of GEMMs.
double allowance(const ConvolutionProblem& problem);

class Bench {
  public:
    explicit Bench(const ConvolutionProblem& problem);

    /// Also warms up: the first run loads kernels. Throws DeviceError where the plan cannot run.
    void run(const Computation& computation);
    /// Its outputs are what others must agree with.
    void expect(const Computation& computation);
    /// Compares the last run's outputs with the expected ones; infinity where one is not finite.
    double largest_difference();
    /// Called for what has run: its workspace is there.
    std::unique_ptr<DeviceGraph> record(const Computation& computation, int launches);
    double time_us(const std::function<void()>& launch);
    double time_once_us(const Computation& computation);

  private:
    struct Output {
        std::size_t operand;
        DeviceBuffer expected;
    };
    void enqueue(const Computation& computation) { computation.run({pointers_, workspace_.data(), device_->stream()}); }

    std::vector<Operand> operands_;
    std::unique_ptr<Device> device_;
    std::vector<DeviceBuffer> buffers_;
    std::vector<void*> pointers_;
    std::vector<Output> outputs_;
    DeviceBuffer difference_, workspace_;
    std::unique_ptr<DeviceEvent> before_, after_;
};

}  // namespace kbench::cudnn
