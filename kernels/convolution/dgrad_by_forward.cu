// dx where each class of its rows (dgrad_classes.h) is a convolution of dy that a forward kernel (kernel.h) takes: it
// runs with reversed weights, and the rows of the classes are interleaved.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/aligned.h"
#include "kernels/convolution/conv2d.h"
#include "kernels/convolution/dgrad_classes.h"
#include "kernels/convolution/dgrad_kernel.h"
#include "kernels/types.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int threads_per_block = 256;

bool takes(const Conv2d& op, Precision precision) {
    if (!has_forwards(op)) return false;
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        if (conv2d_kernel_name(forward_of(op, index), precision).starts_with("conv2d_general")) return false;
    return true;
}

/// Sizes in the workspace for class `index`: its reversed weight and its result. What the kernel itself needs comes
/// first.
std::size_t weight_bytes(const Conv2d& op, std::size_t size, std::int64_t index) {
    return aligned(
        static_cast<std::size_t>(op.out_channels * op.in_channels * rows_class(op, index).taps * op.kernel_w) * size);
}
std::size_t made_bytes(const Conv2d& op, std::size_t size, std::int64_t index) {
    return aligned(static_cast<std::size_t>(op.batch * op.in_channels * rows_class(op, index).count * op.width) * size);
}
std::size_t kernel_bytes(const Conv2d& op, Precision precision) {
    std::size_t most = 0;
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        most = std::max(most, aligned(conv2d_workspace(forward_of(op, index), precision)));
    return most;
}

struct TurnShape {
    int channels, filters, kernel_h, kernel_w, stride_h;
};

/// turned[c, k, j, s] = weight[k, c, first + stride (taps - 1 - j), kernel_w - 1 - s] for a class of rows.
template <class T>
__global__ __launch_bounds__(threads_per_block) void conv2d_turn_weight(const T* __restrict__ weight,
                                                                        T* __restrict__ turned, TurnShape shape,
                                                                        Class of_h) {
    const int i = static_cast<int>(blockIdx.x) * threads_per_block + static_cast<int>(threadIdx.x);
    if (i >= shape.channels * shape.filters * of_h.taps * shape.kernel_w) return;
    const int s = i % shape.kernel_w, j = i / shape.kernel_w % of_h.taps;
    const int k = i / shape.kernel_w / of_h.taps % shape.filters, c = i / shape.kernel_w / of_h.taps / shape.filters;
    const int r = of_h.first_tap + shape.stride_h * (of_h.taps - 1 - j);
    turned[i] =
        weight[((std::int64_t{k} * shape.channels + c) * shape.kernel_h + r) * shape.kernel_w + shape.kernel_w - 1 - s];
}

template <class T>
struct Made {
    const T* of_class[4];
};

/// Row h of each plane of dx is row h / stride of the result of class h % stride. A block copies vectors of one row.
template <class T, int vector>
__global__ __launch_bounds__(threads_per_block) void conv2d_interleave_rows(Made<T> made, T* __restrict__ dx,
                                                                            int height, int width, int stride,
                                                                            unsigned row_blocks) {
    const unsigned row = blockIdx.x / row_blocks;
    const int column = static_cast<int>((blockIdx.x % row_blocks * threads_per_block + threadIdx.x) * vector);
    if (column >= width) return;
    const int h = static_cast<int>(row) % height, index = h % stride;
    const std::int64_t plane = row / static_cast<unsigned>(height);
    const int rows = (height - index + stride - 1) / stride;
    const T* from = made.of_class[0];
#pragma unroll
    for (int i = 1; i < 4; ++i)
        if (index == i) from = made.of_class[i];
    const auto values = Vector<T, vector>::load_once(from + (plane * rows + h / stride) * width + column);
    values.store(dx + std::int64_t{row} * width + column);
}

template <class T>
void launch(Precision precision, const Conv2d& op, const T* dy, const T* weight, T* dx, char* workspace,
            cudaStream_t stream) {
    Made<T> made{};
    char* next = workspace + kernel_bytes(op, precision);
    for (std::int64_t index = 0; index < op.stride_h; ++index) {
        const Conv2d forward = forward_of(op, index);
        T* const turned = reinterpret_cast<T*>(next);
        T* const out = reinterpret_cast<T*>(next += weight_bytes(op, sizeof(T), index));
        next += made_bytes(op, sizeof(T), index);
        const std::int64_t elements = forward.out_channels * forward.taps();
        conv2d_turn_weight<T>
            <<<static_cast<unsigned>(divide_up(elements, threads_per_block)), threads_per_block, 0, stream>>>(
                weight, turned,
                {static_cast<int>(op.in_channels), static_cast<int>(op.out_channels), static_cast<int>(op.kernel_h),
                 static_cast<int>(op.kernel_w), static_cast<int>(op.stride_h)},
                rows_class(op, index));
        KBENCH_CUDA_LAUNCHED("conv2d_turn_weight");
        const bool whole = op.stride_h == 1;
        conv2d_forward(precision, forward, {dy, turned, whole ? dx : out, workspace}, {}, stream);
        if (whole) return;
        made.of_class[index] = out;
    }
    dispatch_vector<vector_width<T>>(op.width, {dx, made.of_class[0]}, [&]<int vector>() {
        const auto row_blocks = static_cast<unsigned>(divide_up(op.width, threads_per_block * vector));
        conv2d_interleave_rows<T, vector><<<static_cast<unsigned>(op.batch * op.in_channels * op.height) * row_blocks,
                                            threads_per_block, 0, stream>>>(made, dx, static_cast<int>(op.height),
                                                                            static_cast<int>(op.width),
                                                                            static_cast<int>(op.stride_h), row_blocks);
    });
    KBENCH_CUDA_LAUNCHED("conv2d_interleave_rows");
}

std::size_t workspace(const Conv2d& op, Precision precision) {
    const std::size_t size = size_of(storage_type(precision));
    std::size_t bytes = kernel_bytes(op, precision);
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        bytes += weight_bytes(op, size, index) + made_bytes(op, size, index);
    return bytes;
}

}  // namespace

const DgradKernel dgrad_by_forward{
    [](const Conv2d& op, Precision precision) {
        return conv2d_kernel_name(forward_of(op, 0), precision) + " of " + std::to_string(op.stride_h) +
               (op.stride_h == 1 ? " class" : " classes") + " of rows";
    },
    takes,
    workspace,
    [](const Conv2d& op, Precision precision, const void* dy, const void* weight, void* dx, void* memory,
       cudaStream_t stream) {
        dispatch(storage_type(precision), [&]<typename T>() {
            launch<T>(precision, op, static_cast<const T*>(dy), static_cast<const T*>(weight), static_cast<T*>(dx),
                      static_cast<char*>(memory), stream);
        });
    },
};

}  // namespace kbench::cuda::convolution
