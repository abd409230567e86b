// Launchers of the backward of recurrent layers, both directions at once. Device pointers; elements of the precision's
// storage_type, shapes as in models/ops/recurrent.h. Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kernels/recurrent/recurrent.h"

namespace kbench::cuda {

/// What one direction's backward reads and makes. `gates` of cells that save them, `cells` of lstm, `out` of the
/// others.
struct RecurrentGradientDirection {
    const void *dout, *weight_hh, *gates, *cells, *out;
    void* dgates_x;
};

/// With the kernels that are faster, of those that take the shape on the current device, or on so many of its SMs.
RecurrentProblem recurrent_gradient_problem(Cell cell, const RecurrentShape& shape, Precision precision,
                                            int multiprocessors = 0);
/// Empty where the kernels take the shape, resident ones on the current device; else why not, in a few words.
std::string recurrent_gradient_unsupported(const RecurrentProblem& problem);
std::string recurrent_gradient_name(const RecurrentProblem& problem);
/// Bytes that a call needs besides; they may hold anything, and begin at a multiple of 16.
std::size_t recurrent_gradient_workspace(const RecurrentProblem& problem);
/// db between steps is rounded as dgates_x is, what passes through the cell is carried in fp32 (fp64 in fp64). The same
/// bits on every run. Throws Unsupported.
void recurrent_gradient(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                        const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                        cudaStream_t stream);

/// db of a GRU [rows, 3 hidden] from da and its saved gates [rows, 4 hidden]: da, but r da of n. It is 0 wherever da
/// is, whatever the gates hold there: behind the end of a sequence that may be NaN.
void gru_hidden_gradient(DataType type, const void* dgates_x, const void* gates, void* db, std::int64_t rows,
                         std::int64_t hidden, cudaStream_t stream);

}  // namespace kbench::cuda
