// Stored elements as numbers that a kernel computes with, in the fewest instructions.
#pragma once

#include "kernels/types.cuh"

namespace kbench::cuda {

/// The elements in the type that they are computed in. Two bf16 take a shift and a mask, one each: a bf16 is the upper
/// half of an fp32. Taken out of the vector one by one, the upper ones take two.
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
