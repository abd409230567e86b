// Convolutions of cuDNN and their gradients: every plan that its heuristics propose, timed, and the fastest made ready.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/plan/providers/cuda/cudnn_problem.h"
#include "kbench/provider.h"

struct cudnnContext;

namespace kbench::cudnn {

/// A convolution reads and writes NCHW: what its plan converts to other layouts within the call, and needs room for.
constexpr std::int64_t convolution_workspace_bytes = std::int64_t{1} << 30;

/// Empty where cuDNN computes it rightly, otherwise why it is not asked to.
std::string convolution_refusal(const ConvolutionProblem& problem);

/// An engine of cuDNN's with its knobs.
struct ConvolutionPlan {
    /// As cuDNN calls it, "ConvFwd_eng31_k2=13_k3=2"; ", cudnnAddTensor" or ", cudnnConvolutionBackwardBias" behind it
    /// where the bias or its gradient is a call of its own.
    std::string name;
    std::int64_t workspace_bytes = 0;
    double median_us = 0;  ///< with the bias and warm operands; plans far slower than the best are launched only once
    std::string why_not;   ///< it cannot be chosen; empty where it can
};

/// All plans, on random operands: first those that can be chosen, the fastest first. A plan whose output is further
/// from that of an exact one (no tensor cores in fp32 and tf32, neither Winograd nor FFT) than rounding explains
/// cannot. In fp32 none may use tf32. `one_order`: nor add in an order that changes from run to run. Throws Unsupported
/// where convolution_refusal has a reason.
std::vector<ConvolutionPlan> time_convolution(const ConvolutionProblem& problem,
                                              const std::shared_ptr<cudnnContext>& handle, bool one_order = false);

/// By the plan of that name, or by the first that cuDNN proposes where the name is empty: nothing is timed. Throws
/// Unsupported where cuDNN has none.
std::unique_ptr<Computation> make_convolution(const ConvolutionProblem& problem,
                                              const std::shared_ptr<cudnnContext>& handle, const std::string& plan,
                                              bool one_order);

}  // namespace kbench::cudnn
