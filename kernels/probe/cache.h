// Loads that stay on the chip: from L2, from L1 and from shared memory, repeatedly over the same bytes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/probe/memory.h"
#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

inline constexpr int cache_threads = 256;

/// Reads `data` of `bytes` (a multiple of memory_chunk_bytes) past L1, in 16-byte loads, `loads` (2, 4 or 8) of a
/// thread in flight. All blocks together cycle through the buffer, one chunk of l2_chunk_bytes(loads) per block and
/// step. `sums` is as in MemoryBuffers; `span` may be null.
void read_l2(const void* data, std::int64_t bytes, int loads, int blocks, int steps, std::uint32_t* sums, Span* span,
             cudaStream_t stream);
constexpr std::int64_t l2_chunk_bytes(int loads) { return std::int64_t{cache_threads} * 16 * loads; }

enum class NearMemory { l1, shared };

/// Loads of a thread in flight, each of another address. A block reads near_bytes(width) in every pass.
inline constexpr int near_loads = 4;
/// Bytes that a block reads per pass with loads of `width` (4, 8 or 16) bytes. All blocks read the same bytes.
constexpr std::int64_t near_bytes(int width) { return std::int64_t{cache_threads} * near_loads * width; }

/// Every block reads the first near_bytes(width) of `data` `passes` times through L1, or copies them to shared memory
/// once and reads them there. The threads of a warp read neighbouring addresses, so there are no bank conflicts.
void read_near(NearMemory memory, const void* data, int width, int blocks, int passes, std::uint32_t* sums, Span* span,
               cudaStream_t stream);

}  // namespace kbench::cuda::probe
