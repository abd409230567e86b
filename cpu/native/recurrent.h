// Recurrent layers on the CPU, step by step, for every stored type. Arithmetic, h and c between steps in fp32 (fp64 for
// fp64); shapes as in models/ops/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cpu {

/// What one direction reads and makes; `gates` and `cells`, where its cell has them, in training alone.
struct RecurrentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

/// What one direction's backward reads and makes: `gates` of cells that save them, `cells` of lstm, `out` of the
/// others.
struct RecurrentGradientDirection {
    const void *dout, *weight_hh, *gates, *cells, *out;
    void* dgates_x;
};

/// What one direction's weights' gradients are made of, and they; `gates` of gru alone.
struct RecurrentWeightDirection {
    const void *dgates_x, *gates, *out;
    void *dweight_hh, *dbias_ih, *dbias_hh;
};

/// Of one direction's weight_hh in the order that steps read it, in what arithmetic is done in.
std::size_t recurrent_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed);

std::size_t recurrent_workspace(DataType type, Cell cell, const RecurrentShape& shape);
/// Both directions, each weight_hh packed. The same bits on any number of threads.
void recurrent(DataType type, Cell cell, const RecurrentShape& shape, const RecurrentDirection& forward,
               const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace);

/// As above, of the backward: weight_hh in the order that its steps read it. db stays in fp32 between steps (fp64 for
/// fp64).
std::size_t recurrent_gradient_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_gradient_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed);
std::size_t recurrent_gradient_workspace(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_gradient(DataType type, Cell cell, const RecurrentShape& shape,
                        const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                        const std::int32_t* lengths, void* workspace);

/// Sums over all rows; added to what is there where it `accumulates`. The same bits on any number of threads, of which
/// there may be as many as when recurrent_weights_workspace was asked.
std::size_t recurrent_weights_workspace(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_weights_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                                const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse,
                                void* workspace);
/// dbias_ih and dbias_hh alone.
void recurrent_biases_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                               const RecurrentWeightDirection& direction);
/// db of a GRU [rows, 3 hidden]: da, but r da of n, and 0 wherever da is.
void gru_hidden_gradient(DataType type, const RecurrentShape& shape, const void* dgates_x, const void* gates, void* db);

}  // namespace kbench::cpu
