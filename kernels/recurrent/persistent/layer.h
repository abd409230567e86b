// A persistent LSTM layer as its launcher and its kernels see it.
#pragma once

#include <string_view>

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

/// What one direction reads and writes; every pointer is a multiple of 16 bytes. gates, cells: only if it saves.
struct PersistentDirection {
    const void *gates_x, *weight_hh, *bias_ih, *bias_hh;
    void* out;
    void *gates = nullptr, *cells = nullptr;
};

}  // namespace kbench::cuda
