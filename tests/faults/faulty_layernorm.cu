// The same for the GPU: a kernel that writes where nothing is, or ends itself.
#include <cuda_runtime.h>

#include "kbench/kernel.h"
#include "models/ops/layernorm.h"
#include "tests/faults/fault.h"

namespace kbench::faults {
namespace {

enum class Way : int { right, address, trap };

/// One thread a row: it need not be fast.
__global__ void layer_norm(const float* x, const float* weight, const float* bias, float* out, std::int64_t rows,
                           int width, double epsilon, Way way) {
    if (way == Way::trap) __trap();
    if (way == Way::address) out = reinterpret_cast<float*>(16);
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* in = x + row * width;
    double sum = 0, squares = 0;
    for (int i = 0; i < width; ++i) sum += in[i];
    const double mean = sum / width;
    for (int i = 0; i < width; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const double rstd = rsqrt(squares / width + epsilon);
    for (int i = 0; i < width; ++i)
        out[row * width + i] = static_cast<float>((in[i] - mean) * rstd * weight[i] + bias[i]);
}

void run(const LayerNorm& norm, const KernelCall& call) {
    const Way way = is_due(norm.rows, "address") ? Way::address : is_due(norm.rows, "trap") ? Way::trap : Way::right;
    OperandCursor operands = call.operands;
    const auto* x = operands.next<const float>();
    const auto* weight = operands.next<const float>();
    const auto* bias = operands.next<const float>();
    auto* out = operands.next<float>();
    layer_norm<<<static_cast<unsigned>((norm.rows + 31) / 32), 32, 0, static_cast<cudaStream_t>(call.stream)>>>(
        x, weight, bias, out, norm.rows, static_cast<int>(norm.width), norm.epsilon, way);
}

const bool registered = register_kernel<LayerNorm>({
    .name = "faulty",
    .backend = BackendKind::cuda,
    .what = "layer norm that fails on request",
    .precisions = {Precision::fp32},
    .run = run,
});

}  // namespace
}  // namespace kbench::faults
