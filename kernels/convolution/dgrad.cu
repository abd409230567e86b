// dx: for each class of rows and columns, h = class + stride i, a convolution of dy at stride 1 with the taps that meet
// the class, turned around: no tap meets a gap between positions. Where each such convolution has kernels of its own
// (conv2d.h), those run, and their results are put together; else an implicit GEMM of channels and positions, summed
// over filters and taps, does all classes in one launch. A single channel would leave most of its tile empty, and has a
// kernel of its own at stride 2 along the width.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/conv2d.h"
#include "kernels/convolution/conv2d_gradient.h"
#include "kernels/convolution/dgrad_classes.h"
#include "kernels/convolution/dgrad_single_channel.h"
#include "kernels/convolution/dgrad_winograd.h"
#include "kernels/convolution/kernel.h"
#include "kernels/convolution/tiles.cuh"

namespace kbench::cuda {
namespace {

using namespace convolution;

struct Shape {
    int batch, channels, filters, height, width, out_height, out_width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
        pad_w;

    explicit Shape(const Conv2d& op)
        : batch(static_cast<int>(op.batch)),
          channels(static_cast<int>(op.in_channels)),
          filters(static_cast<int>(op.out_channels)),
          height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          kernel_w(static_cast<int>(op.kernel_w)),
          stride_h(static_cast<int>(op.stride_h)),
          stride_w(static_cast<int>(op.stride_w)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)) {}
};

template <class T, int rows, template <class, int, int> class Core>
__global__ __launch_bounds__(threads) void conv2d_dgrad_general(const T* __restrict__ dy, const T* __restrict__ weight,
                                                                T* __restrict__ dx, Shape shape) {
    using Sums = BlockSums<T, rows, Core>;
    using Chunk = typename Sums::Chunk;
    const int index = static_cast<int>(blockIdx.z);
    const Class of_h = Class::of(index / shape.stride_w, shape.height, shape.kernel_h, shape.stride_h, shape.pad_h);
    const Class of_w = Class::of(index % shape.stride_w, shape.width, shape.kernel_w, shape.stride_w, shape.pad_w);
    const int positions = shape.batch * of_h.count * of_w.count;
    const int first_position = static_cast<int>(blockIdx.x) * tile_columns;
    const int first_channel = static_cast<int>(blockIdx.y) * rows;
    if (first_position >= positions) return;
    const int taps = of_h.taps * of_w.taps, depth = shape.filters * taps;

    // The position that this thread gathers.
    const int position = first_position + static_cast<int>(threadIdx.x) % tile_columns;
    const bool exists = position < positions;
    const int p = position / of_w.count % of_h.count + of_h.offset, q = position % of_w.count + of_w.offset;
    const std::int64_t out_plane = std::int64_t{shape.out_height} * shape.out_width;
    const T* const image =
        dy + (exists ? std::int64_t{position / of_w.count / of_h.count} * shape.filters * out_plane : 0);

    const auto gather_channel = [&](int row, int at, Chunk& chunk) {
        const int channel = first_channel + row;
        int k = at / taps, r = at % taps / of_w.taps, s = at % taps % of_w.taps;
#pragma unroll
        for (int e = 0; e < Sums::per_chunk; ++e) {
            const bool inside = channel < shape.channels && at + e < depth;
            const std::int64_t line =
                (std::int64_t{k} * shape.channels + channel) * shape.kernel_h + of_h.first_tap + r * shape.stride_h;
            chunk.elements[e] = inside ? weight[line * shape.kernel_w + of_w.first_tap + s * shape.stride_w] : T(0.0f);
            if (++s == of_w.taps) {
                s = 0;
                if (++r == of_h.taps) r = 0, ++k;
            }
        }
    };
    const auto gather_position = [&](int at, Chunk& chunk) {
        int k = at / taps, r = at % taps / of_w.taps, s = at % taps % of_w.taps;
#pragma unroll
        for (int e = 0; e < Sums::per_chunk; ++e) {
            const int row = p - r, column = q - s;
            const bool inside = exists && at + e < depth && row >= 0 && row < shape.out_height && column >= 0 &&
                                column < shape.out_width;
            chunk.elements[e] = inside ? image[k * out_plane + std::int64_t{row} * shape.out_width + column] : T(0.0f);
            if (++s == of_w.taps) {
                s = 0;
                if (++r == of_h.taps) r = 0, ++k;
            }
        }
    };
    Sums sums;
    sums.add(0, depth, gather_channel, gather_position);  // nothing where the class meets no tap
    sums.for_each([&](int row, int behind, Arithmetic<T> sum) {
        const int channel = first_channel + row, at = first_position + behind;
        if (channel >= shape.channels || at >= positions) return;
        const int w = of_w.index + at % of_w.count * shape.stride_w;
        const int h = of_h.index + at / of_w.count % of_h.count * shape.stride_h;
        const std::int64_t plane = std::int64_t{at / of_w.count / of_h.count} * shape.channels + channel;
        dx[(plane * shape.height + h) * shape.width + w] = static_cast<T>(sum);
    });
}

struct Launch {
    template <class T, int rows, template <class, int, int> class Core>
    static void run(const Conv2d& op, const void* dy, const void* weight, void* dx, cudaStream_t stream) {
        const std::int64_t most = op.batch * divide_up(op.height, op.stride_h) * divide_up(op.width, op.stride_w);
        const dim3 grid(static_cast<unsigned>(divide_up(most, tile_columns)),
                        static_cast<unsigned>(divide_up(op.in_channels, rows)),
                        static_cast<unsigned>(op.stride_h * op.stride_w));
        conv2d_dgrad_general<T, rows, Core><<<grid, threads, 0, stream>>>(
            static_cast<const T*>(dy), static_cast<const T*>(weight), static_cast<T*>(dx), Shape(op));
        KBENCH_CUDA_LAUNCHED("conv2d_dgrad_general");
    }
};

/// Whether those convolutions have kernels of their own.
bool by_forward(const Conv2d& op, Precision precision) {
    if (!has_forwards(op)) return false;
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        if (conv2d_kernel_name(forward_of(op, index), precision).starts_with("conv2d_general")) return false;
    return true;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Of the workspace, for class `index`: its turned weight, what it makes, and, in front of all of them, what the kernel
/// needs itself.
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

/// turned[c, k, j, s] = weight[k, c, first + stride (taps - 1 - j), kernel_w - 1 - s] of a class of rows.
template <class T>
__global__ __launch_bounds__(threads) void conv2d_turn_weight(const T* __restrict__ weight, T* __restrict__ turned,
                                                              Shape shape, Class of_h) {
    const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
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

/// Row h of each plane of dx is row h / stride of what class h % stride has made. A block has vectors of one row.
template <class T, int vector>
__global__ __launch_bounds__(threads) void conv2d_interleave_rows(Made<T> made, T* __restrict__ dx, int height,
                                                                  int width, int stride, unsigned row_blocks) {
    const unsigned row = blockIdx.x / row_blocks;
    const int column = static_cast<int>((blockIdx.x % row_blocks * threads + threadIdx.x) * vector);
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
void dgrad_by_forward(Precision precision, const Conv2d& op, const T* dy, const T* weight, T* dx, char* workspace,
                      cudaStream_t stream) {
    Made<T> made{};
    char* next = workspace + kernel_bytes(op, precision);
    for (std::int64_t index = 0; index < op.stride_h; ++index) {
        const Conv2d forward = forward_of(op, index);
        T* const turned = reinterpret_cast<T*>(next);
        T* const out = reinterpret_cast<T*>(next += weight_bytes(op, sizeof(T), index));
        next += made_bytes(op, sizeof(T), index);
        const std::int64_t elements = forward.out_channels * forward.taps();
        conv2d_turn_weight<T><<<static_cast<unsigned>(divide_up(elements, threads)), threads, 0, stream>>>(
            weight, turned, Shape(op), rows_class(op, index));
        KBENCH_CUDA_LAUNCHED("conv2d_turn_weight");
        const bool whole = op.stride_h == 1;
        conv2d_forward(precision, forward, {dy, turned, whole ? dx : out, workspace}, {}, stream);
        if (whole) return;
        made.of_class[index] = out;
    }
    dispatch_vector<vector_width<T>>(op.width, {dx, made.of_class[0]}, [&]<int vector>() {
        const auto row_blocks = static_cast<unsigned>(divide_up(op.width, threads * vector));
        conv2d_interleave_rows<T, vector>
            <<<static_cast<unsigned>(op.batch * op.in_channels * op.height) * row_blocks, threads, 0, stream>>>(
                made, dx, static_cast<int>(op.height), static_cast<int>(op.width), static_cast<int>(op.stride_h),
                row_blocks);
    });
    KBENCH_CUDA_LAUNCHED("conv2d_interleave_rows");
}

}  // namespace

std::string conv2d_gradient_refusal(const Conv2d& op) {
    // A tile's end may lie past the last position or tap.
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 4096;
    const bool fits = op.batch * op.height * op.width < most && op.batch * op.out_height() * op.out_width() < most &&
                      op.out_channels * op.taps() < most && op.batch * op.in_channels * op.height < most &&
                      op.stride_h * op.stride_w < 65536 && op.in_channels < 65536 * 32 && op.out_channels < 65536 * 32;
    return fits ? "" : "its conv2d gradients count positions and taps in 32 bits";
}

std::string conv2d_dgrad_kernel_name(const Conv2d& op, Precision precision) {
    if (winograd_takes(op, precision)) return winograd_name(op);
    if (dgrad_single_channel_takes(op, precision)) return dgrad_single_channel_name;
    if (!by_forward(op, precision))
        return "conv2d_dgrad_general<" + std::to_string(op.in_channels <= 32 ? 32 : 64) + ">";
    return conv2d_kernel_name(forward_of(op, 0), precision) + " of " + std::to_string(op.stride_h) +
           (op.stride_h == 1 ? " class" : " classes") + " of rows";
}

std::size_t conv2d_dgrad_workspace(const Conv2d& op, Precision precision) {
    if (winograd_takes(op, precision)) return winograd_workspace(op);
    if (dgrad_single_channel_takes(op, precision)) return dgrad_single_channel_workspace(op, precision);
    if (!by_forward(op, precision)) return 0;
    const std::size_t size = size_of(storage_type(precision));
    std::size_t bytes = kernel_bytes(op, precision);
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        bytes += weight_bytes(op, size, index) + made_bytes(op, size, index);
    return bytes;
}

double conv2d_dgrad_spared_flops(const Conv2d& op, Precision precision) {
    return winograd_takes(op, precision) ? std::max(0.0, op.work(Direction::dgrad).flops - winograd_flops(op)) : 0;
}

void conv2d_dgrad(Precision precision, const Conv2d& op, const void* dy, const void* weight, void* dx, void* workspace,
                  cudaStream_t stream) {
    if (winograd_takes(op, precision))
        return winograd_dgrad(op, static_cast<const float*>(dy), static_cast<const float*>(weight),
                              static_cast<float*>(dx), workspace, stream);
    if (dgrad_single_channel_takes(op, precision))
        return dgrad_single_channel(precision, op, dy, weight, dx, workspace, stream);
    if (!by_forward(op, precision))
        return launch_with_core<Launch>(precision, op.in_channels, op, dy, weight, dx, stream);
    dispatch(storage_type(precision), [&]<typename T>() {
        dgrad_by_forward<T>(precision, op, static_cast<const T*>(dy), static_cast<const T*>(weight),
                            static_cast<T*>(dx), static_cast<char*>(workspace), stream);
    });
}

}  // namespace kbench::cuda
