// The operands of one direction of a recurrent layer on the CPU; shapes as in models/ops/recurrent.h.
#pragma once

namespace kbench::cpu {

/// What one direction reads and writes; `gates` and `cells`, where its cell has them, only in training.
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

/// What the gradients of one direction's weights are computed from, and the gradients; only gru has `gates`.
struct RecurrentWeightDirection {
    const void *dgates_x, *gates, *out;
    void *dweight_hh, *dbias_ih, *dbias_hh;
};

}  // namespace kbench::cpu
