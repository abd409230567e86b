// Converts stored elements to the type that a kernel computes with, in the fewest instructions.
#pragma once

#include "kernels/types.cuh"

namespace kbench::cuda {

/// The elements in the computing type. A bf16 is the upper half of an fp32, so two of them take a shift and a mask;
/// extracted from the vector one by one, the upper ones would take two instructions.
template <typename T, int N>
__device__ inline void widen(const Vector<T, N>& stored, Arithmetic<T> (&values)[N]) {
    if constexpr (std::is_same_v<T, __nv_bfloat16> && N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            unsigned pair;
            memcpy(&pair, stored.elements + i, sizeof pair);
            values[i] = __uint_as_float(pair << 16);
            values[i + 1] = __uint_as_float(pair & 0xffff0000u);
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) values[i] = static_cast<Arithmetic<T>>(stored.elements[i]);
    }
}

}  // namespace kbench::cuda
