// A layer norm for the GPU: one warp a row, four rows a block. Registered below as provider `mine`.
#include <cuda_fp16.h>

#include <kbench/kernel.h>
#include <kbench/ops/layernorm.h>

#include <stdexcept>

namespace {

constexpr int warp = 32, rows_per_block = 4;

__device__ float sum_over_warp(float value) {
    for (int distance = warp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
    return value;
}

/// x, out: [rows, width]; weight, bias: [width]. Sums are fp32 whatever T is. The second and third loop find the row in
/// L1.
template <class T>
__global__ void my_layer_norm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                              T* __restrict__ out, std::int64_t rows, int width, float epsilon) {
    const std::int64_t row = std::int64_t{blockIdx.x} * rows_per_block + threadIdx.y;
    if (row >= rows) return;  // the whole warp at once
    const T* in = x + row * width;
    const int lane = threadIdx.x;
    float sum = 0;
    for (int column = lane; column < width; column += warp) sum += static_cast<float>(in[column]);
    const float mean = sum_over_warp(sum) / width;
    float squares = 0;
    for (int column = lane; column < width; column += warp) {
        const float deviation = static_cast<float>(in[column]) - mean;
        squares += deviation * deviation;
    }
    const float rstd = rsqrtf(sum_over_warp(squares) / width + epsilon);
    for (int column = lane; column < width; column += warp)
        out[row * width + column] =
            static_cast<T>((static_cast<float>(in[column]) - mean) * rstd * static_cast<float>(weight[column]) +
                           static_cast<float>(bias[column]));
}

template <class T>
void launch(const kbench::LayerNorm& norm, kbench::OperandCursor operands, void* stream) {
    const T* x = operands.next<const T>();
    const T* weight = operands.next<const T>();
    const T* bias = operands.next<const T>();
    T* out = operands.next<T>();
    const auto blocks = static_cast<unsigned>((norm.rows + rows_per_block - 1) / rows_per_block);
    my_layer_norm<<<blocks, dim3(warp, rows_per_block), 0, static_cast<cudaStream_t>(stream)>>>(
        x, weight, bias, out, norm.rows, static_cast<int>(norm.width), static_cast<float>(norm.epsilon));
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorString(error));
}

const bool registered = kbench::register_kernel<kbench::LayerNorm>({
    .name = "mine",
    .backend = kbench::BackendKind::cuda,
    .what = "layer norm and GEGLU, plain CUDA",
    .precisions = {kbench::Precision::fp16, kbench::Precision::fp32},
    .run =
        [](const kbench::LayerNorm& norm, const kbench::KernelCall& call) {
            if (call.precision == kbench::Precision::fp16)
                launch<__half>(norm, call.operands, call.stream);
            else
                launch<float>(norm, call.operands, call.stream);
        },
});

}  // namespace
