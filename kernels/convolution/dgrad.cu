// dx of any shape: an implicit GEMM of channels and positions, summed over filters and taps, for all classes of rows
// and columns in one launch; and the choice of dx's kernel. A class, h = class + stride i, is a stride-1 convolution
// of dy with the taps that meet it in reverse order; none of its taps falls into a gap between positions.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/conv2d_gradient.h"
#include "kernels/convolution/dgrad_classes.h"
#include "kernels/convolution/dgrad_kernel.h"
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

    // The position for which this thread gathers elements.
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
    sums.add(0, depth, gather_channel, gather_position);  // nothing where no tap meets the class
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

const DgradKernel general{
    [](const Conv2d& op, Precision) {
        return "conv2d_dgrad_general<" + std::to_string(op.in_channels <= 32 ? 32 : 64) + ">";
    },
    [](const Conv2d&, Precision) { return true; },
    [](const Conv2d&, Precision) { return std::size_t{0}; },
    [](const Conv2d& op, Precision precision, const void* dy, const void* weight, void* dx, void*,
       cudaStream_t stream) { launch_with_core<Launch>(precision, op.in_channels, op, dy, weight, dx, stream); },
};

/// The first kernel that takes the problem.
const DgradKernel& kernel_for(const Conv2d& op, Precision precision) {
    for (const DgradKernel* kernel : {&dgrad_winograd, &dgrad_single_channel, &dgrad_by_forward})
        if (kernel->takes(op, precision)) return *kernel;
    return general;
}

}  // namespace

std::string conv2d_gradient_refusal(const Conv2d& op) {
    // A tile may extend past the last position or tap.
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 4096;
    const bool fits = op.batch * op.height * op.width < most && op.batch * op.out_height() * op.out_width() < most &&
                      op.out_channels * op.taps() < most && op.batch * op.in_channels * op.height < most &&
                      op.stride_h * op.stride_w < 65536 && op.in_channels < 65536 * 32 && op.out_channels < 65536 * 32;
    return fits ? "" : "its conv2d gradients count positions and taps in 32 bits";
}

std::string conv2d_dgrad_kernel_name(const Conv2d& op, Precision precision) {
    return kernel_for(op, precision).name(op, precision);
}

std::size_t conv2d_dgrad_workspace(const Conv2d& op, Precision precision) {
    return kernel_for(op, precision).workspace(op, precision);
}

double conv2d_dgrad_spared_flops(const Conv2d& op, Precision precision) {
    const auto flops = kernel_for(op, precision).flops;
    return flops == nullptr ? 0 : std::max(0.0, op.work(Direction::dgrad).flops - flops(op));
}

void conv2d_dgrad(Precision precision, const Conv2d& op, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                  void* workspace, cudaStream_t stream) {
    kernel_for(op, precision).launch(op, precision, dy, weight, dx, workspace, stream);
}

}  // namespace kbench::cuda
