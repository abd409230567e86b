// The kernels of the persistent LSTM as their launcher finds them. Internal to kernels/recurrent.
#pragma once

#include <cstdint>

#include "kernels/recurrent/persistent.h"

namespace kbench::cuda::persistent {

struct Arguments {
    PersistentDirection directions[2];
    const std::int32_t* lengths;
    std::int64_t frames_per_step;
    int steps, batch, hidden;
    int first_direction;      ///< of the grid's blocks
    unsigned char* h[2];      ///< of each direction, its slots
    std::uint32_t* counters;  ///< [2, warpgroups], counter_bytes apart
    std::uint64_t* clocks;
};

/// The kernel, as cudaLaunchKernel takes it; null where there is none. k_steps: instructions along a quarter of K, 4, 8
/// or 16; columns: sequences, 8, 16, 32 or 64.
const void* fp16_kernel(int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant);
const void* bf16_kernel(int k_steps, int columns, PersistentExchange exchange, PersistentVariant variant);

}  // namespace kbench::cuda::persistent
