// Launchers of the activations and their backward. As in elementwise.h: device pointers; matrices row-major and dense;
// arithmetic in fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/activation.h"
#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/swiglu.h"

namespace kbench::cuda {

/// out = f(x + bias); bias may be null, and out may be x. x, out [rows, width], bias [width].
void bias_activation_forward(DataType type, Activation function, std::int64_t rows, std::int64_t width, In<"x"> x,
                             In<"bias?"> bias, Out<"out"> out, cudaStream_t stream);
/// dx = dy times the derivative of f at x, for `count` elements; dx may be dy or x.
void activation_backward(DataType type, Activation function, std::int64_t count, In<"x"> x, In<"dy"> dy, Out<"dx"> dx,
                         cudaStream_t stream);
/// out[r, c] = silu(gate_up[r, c]) * gate_up[r, width + c].
void swiglu_forward(DataType type, const SwiGlu& op, In<"gate_up"> gate_up, Out<"out"> out, cudaStream_t stream);

}  // namespace kbench::cuda
