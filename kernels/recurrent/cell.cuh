// The equations of recurrent cells for one unit and one step, in the computing type.
#pragma once

#include <cuda_runtime.h>

#include "models/ops/recurrent.h"

namespace kbench::cuda::recurrent_layer {

// Through e^x: tanh(x) = 2 sigmoid(2 x) - 1 has the absolute error of the sigmoid, near 0 too, which the reference
// allows. __expf's relative error grows with |x|, but the sigmoid's slope falls faster.
__device__ inline float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ inline float tanh_of(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }
__device__ inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
__device__ inline double tanh_of(double x) { return tanh(x); }

/// The unit's next h, as in Recurrent. `a`: for each gate the sum of input and biases. A GRU's n is different: its
/// bias_hh is `bias_n`, which r scales, and is not in a[2]. `products` are those with h. Only LSTMs use `c`, only GRUs
/// `h` of the step before. `left`: the gates to save, in the order of saved_gates_of.
template <Cell cell, class S, int gates, int saved>
__device__ S next_h(const S (&a)[gates], S bias_n, const S (&products)[gates], S h, S& c, S (&left)[saved]) {
    if constexpr (cell == Cell::lstm) {
        const S i = sigmoid(a[0] + products[0]), f = sigmoid(a[1] + products[1]);
        const S g = tanh_of(a[2] + products[2]), o = sigmoid(a[3] + products[3]);
        c = f * c + i * g;
        left[0] = i, left[1] = f, left[2] = g, left[3] = o;
        return o * tanh_of(c);
    } else if constexpr (cell == Cell::gru) {
        const S r = sigmoid(a[0] + products[0]), z = sigmoid(a[1] + products[1]);
        const S b = products[2] + bias_n, n = tanh_of(a[2] + r * b);
        left[0] = r, left[1] = z, left[2] = n, left[3] = b;
        return (S(1) - z) * n + z * h;
    } else {
        return tanh_of(a[0] + products[0]);
    }
}

}  // namespace kbench::cuda::recurrent_layer
