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

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// How blocks learn that h of a step is complete.
enum class PersistentExchange {
    counted,  ///< by counters: h is written, then a counter is released; a block that sees it copies h in bulk
    polled,   ///< by h itself: a block reads it again until no word is the NaN that no h equals
};
inline constexpr std::string_view persistent_exchange_names[] = {"counted", "polled"};

/// The plain kernel; one that saves what a backward needs; and two kinds for the account of its time: with clocks, or
/// with a part left out, whose result is wrong.
enum class PersistentVariant { plain, saves, clocks, no_wait, no_product, no_cell, no_gates };
inline constexpr std::string_view persistent_variant_names[] = {"plain",      "saves",   "clocks",  "no_wait",
                                                                "no_product", "no_cell", "no_gates"};

/// The phases that PersistentVariant::clocks measures, in a block's first thread. Each ends when: h is there; h is in
/// shared memory (polled: part of `wait`); the product is done; those of all warpgroups are; h is stored; others may
/// know it (counted). They are per step, thus over all its tiles, of which the first thread has cells of only some.
enum class PersistentPhase { wait, load, product, sums, cell, publish };
inline constexpr std::string_view persistent_phase_names[] = {"wait for h",          "load h", "step GEMM",
                                                              "sum over warpgroups", "cell",   "publish h"};
inline constexpr int persistent_phases = 6;

struct PersistentLstm {
    DataType type;
    RecurrentShape shape;
    PersistentExchange exchange = PersistentExchange::counted;
    PersistentVariant variant = PersistentVariant::plain;
    /// Polled: sequences that take a step together while h of others is in flight: 8 or 16, or 32 up to hidden 512; 0:
    /// the fastest.
    int tile = 0;
    int multiprocessors = 0;  ///< SMs that it may use; 0: all of the device
};

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

/// What one direction reads and writes; every pointer is a multiple of 16 bytes. gates, cells: only if it saves.
struct PersistentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

/// `workspace` is aligned to 256 bytes and may hold anything. `clocks` [persistent_lstm_clock_blocks,
/// persistent_phases], for the variant that has them: cycles of each phase, summed over the steps, forward blocks
/// before reverse ones. Where `stream` belongs to a part of the device, that part's SMs count. Throws Unsupported and
/// UsageError.
void persistent_lstm(const PersistentLstm& layer, const PersistentDirection& forward,
                     const PersistentDirection& reverse, const std::int32_t* lengths, void* workspace,
                     cudaStream_t stream, std::uint64_t* clocks = nullptr);

}  // namespace kbench::cuda
