// One LSTM layer, both directions, in a single kernel that keeps the recurrent weights in registers for all steps.
// fp16 and bf16; compute capability 9.0 only. Shapes as in models/ops/recurrent.h.
//
// A block has 16 units of one direction, that is 64 rows of weight_hh (four gates), in the registers of four warpgroups
// that share the 1024 columns. In each step every block reads all of h[t - 1], which the others have left in
// global memory (L2), and stores its 16 units of h[t] there.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/recurrent/persistent/layer.h"

namespace kbench::cuda {

/// The layer with the faster exchange. Polled, up to 128 sequences take their steps together; counted, up to 64, and
/// larger batches run in parts, one after another.
PersistentLstm persistent_lstm_of(DataType type, const RecurrentShape& shape);

/// Returns "" when the layer can be computed, also on the current device; else why not.
std::string persistent_lstm_unsupported(const PersistentLstm& layer);
std::string persistent_lstm_name(const PersistentLstm& layer);
std::size_t persistent_lstm_workspace(const PersistentLstm& layer);
/// Blocks of one launch: both directions, or one of them where the device cannot hold both at once.
int persistent_lstm_blocks(const PersistentLstm& layer);

/// Blocks that have clocks, of both directions, however many launches they take.
int persistent_lstm_clock_blocks(const PersistentLstm& layer);

/// `workspace` is aligned to 256 bytes and may hold anything. `clocks` [persistent_lstm_clock_blocks,
/// persistent_phases], for the variant that has them: cycles of each phase, summed over the steps, forward blocks
/// before reverse ones. Where `stream` belongs to a part of the device, that part's SMs count. Throws Unsupported and
/// UsageError.
void persistent_lstm(const PersistentLstm& layer, const PersistentDirection& forward,
                     const PersistentDirection& reverse, const std::int32_t* lengths, void* workspace,
                     cudaStream_t stream, std::uint64_t* clocks = nullptr);

}  // namespace kbench::cuda
