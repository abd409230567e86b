// Launcher of recurrent layers, both directions at once. Device pointers; elements have the precision's storage_type.
// Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kernels/recurrent/problem.h"

namespace kbench::cuda {

/// The problem with the fastest kernels that take the shape on the current device, or on that many of its SMs.
RecurrentProblem recurrent_problem(Cell cell, const RecurrentShape& shape, Precision precision,
                                   int multiprocessors = 0);
/// Returns "" where the kernels take the shape (resident ones: on the current device), else why not in a few words.
std::string recurrent_unsupported(const RecurrentProblem& problem);
std::string recurrent_kernel_name(const RecurrentProblem& problem);
/// Bytes of a call's workspace, which may hold anything and is aligned to 16 bytes.
std::size_t recurrent_workspace(const RecurrentProblem& problem);
/// Between steps, h is as `out` stores it and c is fp32 (fp64 in fp64). Results have the same bits in every run.
/// Resident kernels need weights aligned to 16 bytes. Throws UsageError; and Unsupported, also where `stream` belongs
/// to a part of the device that cannot hold all resident blocks at once.
void recurrent(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
               const std::int32_t* lengths, void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
