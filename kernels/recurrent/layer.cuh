// A recurrent layer as its kernels see it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/recurrent/problem.h"
#include "kernels/types.cuh"

namespace kbench::cuda::recurrent_layer {

/// Units per block: a tensor core product has as many rows, so that each gate is one product.
inline constexpr int block_units = 16;
/// Sequences per tensor core product.
inline constexpr int tile_sequences = 8;
/// Warps per block: they share k in chunks of 64 bytes.
inline constexpr int block_warps = 8, block_threads = 32 * block_warps, chunk_bytes = 64;
/// Chunks of a warp whose weights fit into a resident block, and the shared memory that it may take on sm_90.
inline constexpr int resident_chunks = 8, resident_smem_bytes = 227 * 1024;

/// Resident kernels count, per direction, how often blocks have stored h: blocks times steps. Each counter has a line
/// of its own.
inline constexpr int counter_distance = 32;
inline constexpr std::size_t counters_bytes = 2 * counter_distance * sizeof(unsigned);

/// Returns "" where all resident blocks of a layer fit on the current device, or on that many of its SMs; else why not.
std::string no_resident_place(std::int64_t hidden, int multiprocessors);
/// Launches a resident kernel of a layer of `hidden` units. Throws Unsupported where its blocks do not all fit on the
/// SMs of `stream` at once.
void launch_resident_blocks(const void* kernel, std::int64_t hidden, void** arguments, int shared_bytes,
                            cudaStream_t stream);
std::string over_limit(const char* what, std::int64_t value, std::int64_t limit);

template <class T>
struct DirectionOf {
    const T *gates_x, *weight_hh, *bias_ih, *bias_hh;
    T* out;
    T* h[2];           ///< [batch, h_stride]; step s reads h[s % 2]
    Arithmetic<T>* c;  ///< [batch, hidden]
    T *gates, *cells;  ///< null where no backward follows
};

template <class T>
struct Layer {
    DirectionOf<T> directions[2];
    const std::int32_t* lengths;
    std::int64_t frames_per_step;
    int steps, batch, hidden;
    int h_stride;  ///< hidden, rounded up to 16 bytes
};

/// Elements from one sequence's h to the next one's: whole chunks of 16 bytes.
inline std::int64_t h_stride_of(DataType type, std::int64_t hidden) {
    const auto width = static_cast<std::int64_t>(16 / size_of(type));
    return divide_up(hidden, width) * width;
}

/// Bytes of h and c in the workspace; the counters follow them.
inline std::size_t state_bytes(const RecurrentProblem& problem) {
    const DataType type = storage_type(problem.precision);
    const RecurrentShape& shape = problem.shape;
    const auto h = static_cast<std::size_t>(4 * shape.batch * h_stride_of(type, shape.hidden));
    const auto c = static_cast<std::size_t>(2 * shape.batch * shape.hidden);
    return h * size_of(type) + c * std::max(size_of(type), sizeof(float));
}

template <class T>
Layer<T> layer_of(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
                  const std::int32_t* lengths, void* workspace) {
    const RecurrentShape& shape = problem.shape;
    const std::int64_t stride = h_stride_of(storage_type(problem.precision), shape.hidden);
    Layer<T> layer{{},
                   lengths,
                   shape.frames_per_step,
                   static_cast<int>(shape.steps),
                   static_cast<int>(shape.batch),
                   static_cast<int>(shape.hidden),
                   static_cast<int>(stride)};
    T* const h = static_cast<T*>(workspace);
    auto* const c = reinterpret_cast<Arithmetic<T>*>(h + 4 * shape.batch * stride);
    for (int i = 0; i < 2; ++i) {
        const RecurrentDirection& from = i == 0 ? forward : reverse;
        T* const own_h = h + 2 * i * shape.batch * stride;
        layer.directions[i] = {static_cast<const T*>(from.gates_x), static_cast<const T*>(from.weight_hh),
                               static_cast<const T*>(from.bias_ih), static_cast<const T*>(from.bias_hh),
                               static_cast<T*>(from.out),           {own_h, own_h + shape.batch * stride},
                               c + i * shape.batch * shape.hidden,  static_cast<T*>(from.gates),
                               static_cast<T*>(from.cells)};
    }
    return layer;
}

}  // namespace kbench::cuda::recurrent_layer
