// One LSTM layer of both directions in a single kernel, which keeps the recurrent weights in registers for all steps.
// fp16 and bf16; compute capability 9.0 only. Shapes as in models/ops/recurrent.h.
//
// A block has 16 units of one direction: the 64 rows of weight_hh of their four gates, in the registers of four
// warpgroups that share out the 1024 columns. In each step every block reads all of h[t - 1], which the others have
// left in global memory (L2), and leaves its 16 units of h[t] there.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cuda {

/// How blocks learn that h of a step is there.
enum class PersistentExchange {
    counted,  ///< by counters: h is written, then a counter is released; who has seen it copies h in bulk
    polled,   ///< by h itself: it is read again and again until no word of it is the NaN that no h is
};
inline constexpr std::string_view persistent_exchange_names[] = {"counted", "polled"};

/// The kernel as it is, or with what a backward needs saved; or for the account of its time: with clocks in it, or with
/// a part left out, which makes the result a wrong one.
enum class PersistentVariant { plain, saves, clocks, no_wait, no_product, no_cell, no_gates };
inline constexpr std::string_view persistent_variant_names[] = {"plain",      "saves",   "clocks",  "no_wait",
                                                                "no_product", "no_cell", "no_gates"};

/// What PersistentVariant::clocks tells apart, of the first thread of a block: until h is there, until it is in shared
/// memory (polled: in `wait`), until the product is done, until those of all warpgroups are, until h is stored, until
/// others may know it (counted). Of a step, thus of all its tiles: the first thread has cells of some of them only.
enum class PersistentPhase { wait, load, product, sums, cell, publish };
inline constexpr std::string_view persistent_phase_names[] = {"wait for h",          "load h", "step GEMM",
                                                              "sum over warpgroups", "cell",   "publish h"};
inline constexpr int persistent_phases = 6;

struct PersistentLstm {
    DataType type;
    RecurrentShape shape;
    PersistentExchange exchange = PersistentExchange::counted;
    PersistentVariant variant = PersistentVariant::plain;
    /// Polled: sequences that take a step together while h of others is on its way: 8 or 16, 32 up to hidden 512; 0:
    /// what is faster.
    int tile = 0;
    int multiprocessors = 0;  ///< that it may use; 0: all of the device
};

/// The layer with the exchange that is faster. Polled, up to 128 sequences take their steps together; counted, up to
/// 64, and more in parts, one behind the other.
PersistentLstm persistent_lstm_of(DataType type, const RecurrentShape& shape);

/// Empty when the layer can be computed, on the current device too; else why not.
std::string persistent_lstm_unsupported(const PersistentLstm& layer);
std::string persistent_lstm_name(const PersistentLstm& layer);
std::size_t persistent_lstm_workspace(const PersistentLstm& layer);
/// Blocks of one launch: both directions, or one after the other where the device has no place for both.
int persistent_lstm_blocks(const PersistentLstm& layer);

/// Blocks that have clocks: of both directions, however many launches they take.
int persistent_lstm_clock_blocks(const PersistentLstm& layer);

/// What one direction reads and makes; every pointer a multiple of 16 bytes. gates, cells: of the variant that saves.
struct PersistentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

/// `workspace`: a multiple of 256 bytes, its content is of no matter. `clocks` [persistent_lstm_clock_blocks,
/// persistent_phases], of the variant that has them: cycles of each phase, added up over the steps, forward blocks
/// before reverse ones. Where `stream` is of a part of the device, that part's SMs count, too. Throws Unsupported and
/// UsageError.
void persistent_lstm(const PersistentLstm& layer, const PersistentDirection& forward,
                     const PersistentDirection& reverse, const std::int32_t* lengths, void* workspace,
                     cudaStream_t stream, std::uint64_t* clocks = nullptr);

}  // namespace kbench::cuda
