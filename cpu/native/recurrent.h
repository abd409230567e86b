// Recurrent layers on the CPU, step by step, for every stored type. Arithmetic, and h and c between steps, are fp32
// (fp64 for fp64); shapes as in models/ops/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/recurrent_operands.h"
#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cpu {

/// Bytes of one direction's weight_hh in the computing type, in the order in which steps read it.
std::size_t recurrent_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed);

std::size_t recurrent_workspace(DataType type, Cell cell, const RecurrentShape& shape);
/// Runs both directions with packed weights. Results do not depend on the number of threads.
void recurrent(DataType type, Cell cell, const RecurrentShape& shape, const RecurrentDirection& forward,
               const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace);

/// The same for the backward: weight_hh in the order in which its steps read it. Between steps db is fp32 (fp64 for
/// fp64).
std::size_t recurrent_gradient_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_gradient_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed);
std::size_t recurrent_gradient_workspace(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_gradient(DataType type, Cell cell, const RecurrentShape& shape,
                        const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                        const std::int32_t* lengths, void* workspace);

/// Sums over all rows, added to the gradients where it `accumulates`. Results do not depend on the number of threads,
/// of which there may be at most as many as when recurrent_weights_workspace was called.
std::size_t recurrent_weights_workspace(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_weights_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                                const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse,
                                void* workspace);
/// Computes dbias_ih and dbias_hh alone.
void recurrent_biases_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                               const RecurrentWeightDirection& direction);
/// A GRU's db [rows, 3 hidden]: equal to da, but r da for n, and 0 wherever da is.
void gru_hidden_gradient(DataType type, const RecurrentShape& shape, const void* dgates_x, const void* gates, void* db);

}  // namespace kbench::cpu
