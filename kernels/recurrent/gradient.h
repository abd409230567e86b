// Launchers of the backward of recurrent layers, both directions at once. Device pointers; elements have the
// precision's storage_type, shapes as in models/ops/recurrent.h. Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kernels/recurrent/problem.h"

namespace kbench::cuda {

/// The problem with the fastest kernels that take the shape on the current device, or on that many of its SMs.
RecurrentProblem recurrent_gradient_problem(Cell cell, const RecurrentShape& shape, Precision precision,
                                            int multiprocessors = 0);
/// Returns "" where the kernels take the shape (resident ones: on the current device), else why not in a few words.
std::string recurrent_gradient_unsupported(const RecurrentProblem& problem);
std::string recurrent_gradient_name(const RecurrentProblem& problem);
/// Bytes of a call's workspace, which may hold anything and is aligned to 16 bytes.
std::size_t recurrent_gradient_workspace(const RecurrentProblem& problem);
/// Between steps, db is rounded as dgates_x is, and what passes through the cell is carried in fp32 (fp64 in fp64).
/// Results have the same bits in every run. Throws Unsupported.
void recurrent_gradient(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                        const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                        cudaStream_t stream);

/// A GRU's db [rows, 3 hidden] from da and its saved gates [rows, 4 hidden]: equal to da, but r da for n. It is 0
/// wherever da is, whatever the gates hold: after the end of a sequence they may be NaN.
void gru_hidden_gradient(DataType type, const void* dgates_x, const void* gates, void* db, std::int64_t rows,
                         std::int64_t hidden, cudaStream_t stream);

}  // namespace kbench::cuda
