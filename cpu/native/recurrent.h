// Recurrent layers on the CPU, step by step, for every stored type. Arithmetic, h and c between steps in fp32 (fp64 for
// fp64); shapes as in models/ops/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cpu {

/// What one direction reads and makes.
struct RecurrentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
};

/// Of one direction's weight_hh in the order that steps read it, in what arithmetic is done in.
std::size_t recurrent_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape);
void recurrent_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed);

std::size_t recurrent_workspace(DataType type, Cell cell, const RecurrentShape& shape);
/// Both directions, each weight_hh packed. The same bits on any number of threads.
void recurrent(DataType type, Cell cell, const RecurrentShape& shape, const RecurrentDirection& forward,
               const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace);

}  // namespace kbench::cpu
