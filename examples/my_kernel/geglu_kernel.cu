// The same gate on the GPU: four elements a thread, one thread after another along a row.
#include <cuda_fp16.h>

#include "geglu.h"

namespace {

/// gate_up: [rows, 2 * width]; out: [rows, width]. Arithmetic in fp32 whatever T is.
template <class T>
__global__ void geglu(const T* __restrict__ gate_up, T* __restrict__ out, std::int64_t width) {
    const std::int64_t row = blockIdx.y;
    const T* gate = gate_up + row * 2 * width;
    const T* up = gate + width;
    for (std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; column < width;
         column += std::int64_t{gridDim.x} * blockDim.x) {
        const float x = static_cast<float>(gate[column]), gelu = 0.5f * x * (1 + erff(0.70710678f * x));
        out[row * width + column] = static_cast<T>(gelu * static_cast<float>(up[column]));
    }
}

template <class T>
void launch(const GeGlu& op, const kbench::KernelCall& call) {
    constexpr int threads = 256, columns_a_thread = 4;
    kbench::OperandCursor operands = call.operands;
    const T* gate_up = operands.next<const T>();
    T* out = operands.next<T>();
    const auto blocks =
        static_cast<unsigned>((op.width + threads * columns_a_thread - 1) / (threads * columns_a_thread));
    geglu<<<dim3(blocks, static_cast<unsigned>(op.rows)), threads, 0, static_cast<cudaStream_t>(call.stream)>>>(
        gate_up, out, op.width);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorString(error));
}

const bool registered = kbench::register_kernel<GeGlu>({
    .name = "mine",
    .backend = kbench::BackendKind::cuda,
    .what = "layer norm and GEGLU, plain CUDA",
    .precisions = {kbench::Precision::fp16, kbench::Precision::fp32},
    .run =
        [](const GeGlu& op, const kbench::KernelCall& call) {
            if (call.precision == kbench::Precision::fp16)
                launch<__half>(op, call);
            else
                launch<float>(op, call);
        },
    .unsupported = [](const GeGlu& op, const kbench::Step&, kbench::Precision) -> std::string {
        return op.rows <= 65535 ? "" : "its grid has at most 65535 rows";
    },
});

}  // namespace
