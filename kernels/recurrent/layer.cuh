// A recurrent layer as its kernels see it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recurrent/recurrent.h"
#include "kernels/types.cuh"

namespace kbench::cuda::recurrent_layer {

/// Units of a block: as many as a product of the tensor cores has rows, so that each gate is one product.
inline constexpr int block_units = 16;
/// Sequences of a product of the tensor cores.
inline constexpr int tile_sequences = 8;

template <class T>
struct DirectionOf {
    const T *gates_x, *weight_hh, *bias_ih, *bias_hh;
    T* out;
    T* h[2];           ///< [batch, h_stride]: what step s reads stands in h[s % 2]
    Arithmetic<T>* c;  ///< [batch, hidden]
};

template <class T>
struct Layer {
    DirectionOf<T> directions[2];
    const std::int32_t* lengths;
    std::int64_t frames_per_step;
    int steps, batch, hidden;
    int h_stride;  ///< hidden, rounded up to 16 bytes
};

/// Elements from one sequence's h to the next one's: whole pieces of 16 bytes.
inline std::int64_t h_stride_of(DataType type, std::int64_t hidden) {
    const auto width = static_cast<std::int64_t>(16 / size_of(type));
    return divide_up(hidden, width) * width;
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
                               c + i * shape.batch * shape.hidden};
    }
    return layer;
}

}  // namespace kbench::cuda::recurrent_layer
