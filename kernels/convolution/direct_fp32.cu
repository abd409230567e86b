// Convolutions 11 taps wide in fp32, without tensor cores: chooses tiles and launches direct_fp32.cuh's kernel.
#include "kernels/check.h"
#include "kernels/convolution/aligned.h"
#include "kernels/convolution/direct_fp32.cuh"
#include "kernels/convolution/kernel.h"

namespace kbench::cuda::convolution {
namespace {

using namespace direct;

constexpr int kernel_w = 11;
/// The kernel takes paddings for which tiles that start this many columns early start at a multiple of 4.
constexpr int columns_before = 3;

Shape shape_of(const Conv2d& op, const Conv2dPointers& pointers) {
    const auto width = static_cast<int>(op.width), out_width = static_cast<int>(op.out_width());
    return {.channels = static_cast<int>(op.in_channels),
            .height = static_cast<int>(op.height),
            .width = width,
            .out_height = static_cast<int>(op.out_height()),
            .out_width = out_width,
            .kernel_h = static_cast<int>(op.kernel_h),
            .stride_h = static_cast<int>(op.stride_h),
            .pad_h = static_cast<int>(op.pad_h),
            .pad_w = static_cast<int>(op.pad_w),
            .vectors_in = width % 4 == 0 && reinterpret_cast<std::uintptr_t>(pointers.x) % 16 == 0,
            .vectors_out = out_width % 4 == 0 && reinterpret_cast<std::uintptr_t>(pointers.out) % 16 == 0};
}

/// Transposes [filters][taps] to [taps][filters].
__global__ void conv2d_filters_last(const float* __restrict__ weight, float* __restrict__ to, int taps) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < taps * filters) to[i] = weight[std::int64_t{i % filters} * taps + i / filters];
}

Blocks blocks_of(const Conv2d& op) { return direct::blocks_of(op, shape_of(op, {}).tiles()); }

struct Workspace {
    Grid grid;
    std::size_t weights, parts;
    explicit Workspace(const Conv2d& op)
        : grid(best_grid(op, blocks_of(op))),
          weights(aligned(static_cast<std::size_t>(op.taps() * filters) * sizeof(float))),
          parts(parts_bytes(op, blocks_of(op), grid)) {}
};

template <int stride_w>
void launch_stride(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                   cudaStream_t stream) {
    const Shape shape = shape_of(op, pointers);
    const Workspace space(op);
    auto* const weights = static_cast<float*>(pointers.workspace);
    float* const parts = weights + space.weights / sizeof(float);
    const int taps = static_cast<int>(op.taps());
    conv2d_filters_last<<<static_cast<unsigned>(divide_up(std::int64_t{taps} * filters, 256)), 256, 0, stream>>>(
        static_cast<const float*>(pointers.weight), weights, taps);
    KBENCH_CUDA_LAUNCHED("conv2d_filters_last");
    launch<kernel_w, columns_before, stride_w, false>(
        static_cast<const float*>(pointers.x), weights, static_cast<float*>(pointers.out), parts,
        op.batch * op.out_channels * op.out_height() * op.out_width(), shape, space.grid, epilogue, stream);
    if (space.grid.is_cut())
        combine_parts(op, DataType::fp32, space.grid, tuning.out_rows, parts, pointers.out, epilogue, stream);
}

/// Strides over 2 along the height would need more shared memory than some devices have.
bool takes(const Conv2d& op, Precision precision) {
    return precision == Precision::fp32 && op.out_channels == filters && op.kernel_w == kernel_w && op.stride_w <= 2 &&
           op.stride_h <= 2 && (op.pad_w + columns_before) % 4 == 0;
}

}  // namespace

const Kernel direct_fp32{
    [](const Conv2d& op, Precision) { return "conv2d_direct_fp32" + of_parts(Workspace(op).grid); },
    takes,
    [](const Conv2d& op, Precision) {
        const Workspace space(op);
        return space.weights + space.parts;
    },
    [](const Conv2d& op, Precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
       cudaStream_t stream) {
        if (op.stride_w == 1) return launch_stride<1>(op, pointers, epilogue, stream);
        launch_stride<2>(op, pointers, epilogue, stream);
    },
};

}  // namespace kbench::cuda::convolution
