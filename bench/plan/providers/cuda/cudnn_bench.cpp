#include "bench/plan/providers/cuda/cudnn_bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/gemm/operands.h"

namespace kbench::cudnn {

std::int64_t terms(const Conv2d& op, Direction direction) {
    const auto taps_in = [](std::int64_t kernel, std::int64_t stride) { return (kernel + stride - 1) / stride; };
    switch (direction) {
        case Direction::dgrad:
            return op.out_channels * taps_in(op.kernel_h, op.stride_h) * taps_in(op.kernel_w, op.stride_w);
        case Direction::wgrad: return op.batch * op.out_height() * op.out_width();
        default: return op.taps();
    }
}

double allowance(const ConvolutionProblem& problem) {
    const Precision precision = problem.precision;
    const auto count = static_cast<double>(terms(problem.op, problem.direction));
    const double largest_output = 8, magnitude = std::sqrt(count);
    const double multiply = precision == Precision::tf32 ? 2 * unit_roundoff(precision) : 0;
    return 4 * (2 * unit_roundoff(storage_type(precision)) * largest_output + multiply +
                (1 + std::sqrt(count)) * accumulator_roundoff(precision) * magnitude);
}

Bench::Bench(const ConvolutionProblem& problem)
    : operands_(operands(Step::of(problem.op, problem.direction), problem.precision)),
      device_(make_cuda_device()),
      difference_(*device_, sizeof(double)),
      before_(device_->make_event()),
      after_(device_->make_event()) {
    const double small = 1 / std::sqrt(static_cast<double>(terms(problem.op, problem.direction)));
    const std::string_view of_small = problem.direction == Direction::wgrad ? "dy" : "weight";
    std::uint64_t seed = 0;
    for (const Operand& operand : operands_) {
        buffers_.emplace_back(*device_, static_cast<std::size_t>(operand.bytes()));
        pointers_.push_back(buffers_.back().data());
        if (operand.use == OperandUse::output)
            outputs_.push_back({pointers_.size() - 1, DeviceBuffer(*device_, buffers_.back().bytes())});
        cuda::fill_normal(operand.type, pointers_.back(), operand.rows * operand.columns,
                          operand.name == of_small ? small : 1, ++seed, static_cast<cudaStream_t>(device_->stream()));
    }
    device_->synchronize();
}

void Bench::run(const Computation& computation) {
    if (computation.workspace_bytes() > workspace_.bytes()) {
        workspace_ = DeviceBuffer();
        workspace_ = DeviceBuffer(*device_, computation.workspace_bytes());
    }
    for (const Output& output : outputs_)
        device_->fill(pointers_[output.operand], 0xff, buffers_[output.operand].bytes());  // NaN in every type
    enqueue(computation);
    device_->synchronize();
}

void Bench::expect(const Computation& computation) {
    run(computation);
    for (Output& output : outputs_) {
        std::swap(output.expected, buffers_[output.operand]);
        pointers_[output.operand] = buffers_[output.operand].data();
    }
}

double Bench::largest_difference() {
    double largest = 0;
    for (const Output& output : outputs_) {
        const Operand& operand = operands_[output.operand];
        double found = 0;
        cuda::largest_difference(operand.type, pointers_[output.operand], output.expected.data(), operand.rows,
                                 operand.columns, operand.stride, reinterpret_cast<double*>(difference_.data()),
                                 static_cast<cudaStream_t>(device_->stream()));
        device_->download(&found, difference_.data(), sizeof found);
        largest = std::max(largest, found);
    }
    return largest;
}

std::unique_ptr<DeviceGraph> Bench::record(const Computation& computation, int launches) {
    return device_->capture([&, launches] {
        for (int i = 0; i < launches; ++i) enqueue(computation);
    });
}

double Bench::time_us(const std::function<void()>& launch) {
    before_->record();
    launch();
    after_->record();
    device_->synchronize();
    return 1e3 * after_->ms_since(*before_);
}

double Bench::time_once_us(const Computation& computation) {
    return time_us([&] { enqueue(computation); });
}

}  // namespace kbench::cudnn
