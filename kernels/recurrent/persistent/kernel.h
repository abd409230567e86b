// The kernels of the persistent LSTM as their launcher finds them. Internal to kernels/recurrent.
#pragma once

#include <cstdint>

#include "kernels/recurrent/persistent/layer.h"

namespace kbench::cuda::persistent {

struct Arguments {
    PersistentDirection directions[2];
    const std::int32_t* lengths;
    std::int64_t frames_per_step;
    int steps, batch, hidden;
    int row_batch;            ///< counted: sequences per time step in memory, of which this launch takes `batch`
    int tiles;                ///< polled: tiles of sequences
    int first_direction;      ///< direction of the grid's first blocks
    unsigned char* h[2];      ///< slots of h, by direction
    std::uint32_t* counters;  ///< [2, warpgroups], counter_bytes apart
    std::uint64_t* clocks;
};

/// The kernel as cudaLaunchKernel takes it; null where there is none. k_steps: instructions along a quarter of K (4, 8
/// or 16). columns: sequences per product; counted: 8, 16, 32 or 64; polled: 8, 16 or, for k_steps below 16,
/// 32.
const void* counted_fp16_kernel(int k_steps, int columns, PersistentVariant variant);
const void* counted_bf16_kernel(int k_steps, int columns, PersistentVariant variant);
const void* polled_fp16_kernel(int k_steps, int columns, PersistentVariant variant);
const void* polled_bf16_kernel(int k_steps, int columns, PersistentVariant variant);

}  // namespace kbench::cuda::persistent
