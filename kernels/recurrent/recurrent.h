// Launcher of recurrent layers, both directions at once. Device pointers; elements of the precision's storage_type.
// Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// What one direction reads and makes, in the shapes of Recurrent. In training `gates` of cells that save them, and
/// `cells` of lstm, are written, too.
struct RecurrentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

/// A kernel a step, or one for all steps, whose blocks keep their weights and meet behind each step: for layers whose
/// weights fit into the device's SMs, and few sequences.
enum class RecurrentKernels { steps, resident };

struct RecurrentProblem {
    Cell cell;
    RecurrentShape shape;
    Precision precision;
    RecurrentKernels kernels = RecurrentKernels::steps;
    int multiprocessors = 0;  ///< that it may use; 0: all of the device
};

/// With the kernels that are faster, of those that take the shape on the current device, or on so many of its SMs.
RecurrentProblem recurrent_problem(Cell cell, const RecurrentShape& shape, Precision precision,
                                   int multiprocessors = 0);
/// Empty where the kernels take the shape, resident ones on the current device; else why not, in a few words.
std::string recurrent_unsupported(const RecurrentProblem& problem);
std::string recurrent_kernel_name(const RecurrentProblem& problem);
/// Bytes that a call needs besides; they may hold anything, and begin at a multiple of 16.
std::size_t recurrent_workspace(const RecurrentProblem& problem);
/// h between steps is as `out` stores it, c in fp32 (fp64 in fp64). The same bits on every run. Resident kernels need
/// weights that begin at a multiple of 16 bytes. Throws UsageError, and Unsupported also where `stream` is of a part of
/// the device that has no place for all of them at once.
void recurrent(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
               const std::int32_t* lengths, void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
