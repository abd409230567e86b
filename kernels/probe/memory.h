// Streams through device memory: read, write, copy and triad of buffers, in 16-byte accesses.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

/// What passes through memory. read: b; write: a; copy: a = b; triad: a = b + triad_factor c in fp32.
enum class Traffic { read, write, copy, triad };
inline constexpr float triad_factor = 0.5f;

/// Cache hints of accesses: none; loads need no place in L1; that, and stores are not used again.
enum class Hint { none, no_allocate, streaming };
inline constexpr const char* hint_names[] = {"no hint", "L1::no_allocate", "L1::no_allocate and .cs"};

/// How a stream is divided among blocks and threads.
struct MemoryVariant {
    int loads = 4;          ///< 16-byte accesses of a thread in flight: 1, 2, 4 or 8
    int blocks_per_sm = 8;  ///< blocks that stride through the buffer; 0: one block per chunk
    Hint hint = Hint::none;
};

/// Buffer sizes are multiples of this many bytes.
inline constexpr std::int64_t memory_chunk_bytes = 256 * 8 * 16;

/// Words of MemoryBuffers::sums. Their total grows, modulo 2^32, by the sum of all words that were read.
inline constexpr unsigned memory_sums = 1024;

/// Device memory, 16-byte aligned. Buffers that a stream does not use may be null.
struct MemoryBuffers {
    void* a = nullptr;
    const void* b = nullptr;
    const void* c = nullptr;
    std::int64_t bytes = 0;         ///< bytes of each of a, b and c
    std::uint32_t* sums = nullptr;  ///< [memory_sums]; only read needs it
};

/// Runs one pass of `traffic`. A write leaves buffer_word(seed, ...) (values.h) in a. `span` may be null.
void stream_memory(Traffic traffic, const MemoryVariant& variant, const MemoryBuffers& buffers, std::uint32_t seed,
                   int multiprocessors, Span* span, cudaStream_t stream);

/// Bytes that a pass reads and writes.
constexpr double memory_bytes(Traffic traffic, std::int64_t buffer_bytes) {
    constexpr int streams[] = {1, 1, 2, 3};
    return static_cast<double>(buffer_bytes) * streams[static_cast<int>(traffic)];
}

}  // namespace kbench::cuda::probe
