// Finds the fastest of several ways to run one GEMM by measuring them. Knows no cuBLASLt beyond its algorithm type.
// Internal to kernels/gemm/.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "kernels/gemm/algorithm.h"
#include "kernels/gemm/problem.h"

namespace kbench::cuda {

/// Runs the problem with one candidate; returns whether it could be launched.
using LaunchGemm = std::function<bool(const GemmAlgorithm&, const GemmPointers&, void* workspace, cudaStream_t stream)>;

/// `problem` as it is to be measured. Where x, out and aux take more than 1 GiB, as only a model's largest batches do,
/// it has fewer rows, a multiple of 1024. The device may have no room for a second output then, and the fastest for
/// that many tiles is the fastest for more.
GemmProblem problem_to_measure(GemmProblem problem);

/// The candidate with the smallest median time, with `median_us` and `candidates` filled in. Weights are cold, operands
/// random. Candidates that cannot be launched, or whose output differs from the first one's by more than rounding, drop
/// out. Throws Unsupported when none is left. Allocates device memory and frees all of it. `stream`: where they are
/// measured, which may belong to a part of the device's SMs; null: a stream of its own, on all of them.
GemmAlgorithm fastest(const GemmProblem& problem, const std::vector<GemmAlgorithm>& candidates,
                      std::size_t workspace_bytes, const LaunchGemm& launch, cudaStream_t stream = nullptr);

/// The first candidate that computes something finite on `stream`, however long it takes. Throws Unsupported when none
/// does.
GemmAlgorithm first_to_start(const GemmProblem& problem, const std::vector<GemmAlgorithm>& candidates,
                             std::size_t workspace_bytes, const LaunchGemm& launch, cudaStream_t stream);

}  // namespace kbench::cuda
