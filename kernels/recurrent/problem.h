// A recurrent layer or its backward, and the operands of one direction. Device pointers; elements have the precision's
// storage_type.
#pragma once

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// What one direction reads and writes, in the shapes of Recurrent. In training, `gates` (for cells that save them) and
/// `cells` (for lstm) are written, too.
struct RecurrentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

/// What one direction's backward reads and writes. It needs `gates` for cells that save them, `cells` for lstm, `out`
/// for the others.
struct RecurrentGradientDirection {
    const void *dout, *weight_hh, *gates, *cells, *out;
    void* dgates_x;
};

/// A kernel per step; or one for all steps, whose resident blocks keep their weights and meet at a barrier after each
/// step. The latter is for layers whose weights fit into the device's SMs, and for few sequences.
enum class RecurrentKernels { steps, resident };

struct RecurrentProblem {
    Cell cell;
    RecurrentShape shape;
    Precision precision;
    RecurrentKernels kernels = RecurrentKernels::steps;
    int multiprocessors = 0;  ///< SMs that it may use; 0: all of the device
};

}  // namespace kbench::cuda
