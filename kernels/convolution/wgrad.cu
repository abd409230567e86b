// dw and db. Where no special kernel (wgrad_kernel.h) makes dw, it is an implicit GEMM: rows are filters, columns are
// taps, and the sum runs over output positions.
//
// There are few filters and taps but many positions (32 x 7392 and 656000 for 10 s of speech at batch 32). So blocks
// share the positions of a tile of dw or of db, each leaves partial sums in fp32, and a second kernel adds these up in
// a fixed order.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/aligned.h"
#include "kernels/convolution/conv2d_gradient.h"
#include "kernels/convolution/parts.cuh"
#include "kernels/convolution/tiles.cuh"
#include "kernels/convolution/wgrad_kernel.h"

namespace kbench::cuda {
namespace {

using namespace convolution;

/// About 8 blocks for each of 132 SMs, on any device, so that all give the same bits.
constexpr std::int64_t blocks_wanted = 1056, most_parts = 512;
/// Fewest positions per part, a multiple of every tile's depth: a smaller part is not worth storing its sums.
constexpr std::int64_t least_depth = 512;

struct Parts {
    std::int64_t count, depth;  ///< depth: positions of each part but the last
};

Parts cut(std::int64_t tiles, std::int64_t positions) {
    const std::int64_t most = std::clamp<std::int64_t>(positions / least_depth, 1, most_parts);
    const std::int64_t count = std::clamp<std::int64_t>(divide_up(blocks_wanted, tiles), 1, most);
    const std::int64_t depth = divide_up(divide_up(positions, count), least_depth) * least_depth;
    return {divide_up(positions, depth), depth};
}

std::int64_t positions_of(const Conv2d& op) { return op.batch * op.out_height() * op.out_width(); }
int rows_for(const Conv2d& op) { return op.out_channels <= 32 ? 32 : 64; }
Parts parts_of(const Conv2d& op) {
    return cut(divide_up(op.out_channels, rows_for(op)) * divide_up(op.taps(), tile_columns), positions_of(op));
}
/// The parts of db: blocks share the positions of one filter.
Parts bias_parts_of(const Conv2d& op) { return cut(op.out_channels, positions_of(op)); }

struct Shape {
    std::int64_t image, plane;  ///< elements of x
    int positions, part_depth, taps, filters, in_height, in_width, out_height, out_width, kernel_h, kernel_w, stride_h,
        stride_w, pad_h, pad_w;
};

template <class T, int rows, template <class, int, int> class Core>
__global__ __launch_bounds__(threads) void conv2d_wgrad_general(const T* __restrict__ x, const T* __restrict__ dy,
                                                                Arithmetic<T>* __restrict__ parts, Shape shape) {
    using Sums = BlockSums<T, rows, Core>;
    using Chunk = typename Sums::Chunk;
    const int first_tap = static_cast<int>(blockIdx.x) * tile_columns,
              first_filter = static_cast<int>(blockIdx.y) * rows;
    const int begin = static_cast<int>(blockIdx.z) * shape.part_depth;
    const int end = shape.positions - begin > shape.part_depth ? begin + shape.part_depth : shape.positions;
    const auto out_plane = static_cast<unsigned>(shape.out_height * shape.out_width);

    // The tap for which this thread gathers elements. Neighbouring taps meet neighbouring elements of x.
    const int tap = first_tap + static_cast<int>(threadIdx.x) % tile_columns;
    const bool exists = tap < shape.taps;
    const int c = tap / (shape.kernel_h * shape.kernel_w), of_channel = tap % (shape.kernel_h * shape.kernel_w);
    const int h = of_channel / shape.kernel_w - shape.pad_h, w = of_channel % shape.kernel_w - shape.pad_w;
    const T* const channel = x + (exists ? c * shape.plane : 0);

    const auto gather_filter = [&](int row, int at, Chunk& chunk) {
        const int filter = first_filter + row;
        auto in_plane = static_cast<unsigned>(at) % out_plane;
        const std::int64_t image = static_cast<unsigned>(at) / out_plane;
        const T* from = dy + (image * shape.filters + filter) * out_plane;
#pragma unroll
        for (int e = 0; e < Sums::per_chunk; ++e) {
            chunk.elements[e] = filter < shape.filters && at + e < end ? from[in_plane] : T(0.0f);
            if (++in_plane == out_plane) in_plane = 0, from += std::int64_t{shape.filters} * out_plane;
        }
    };
    const auto gather_tap = [&](int at, Chunk& chunk) {
        const std::int64_t image = static_cast<unsigned>(at) / out_plane;
        const auto in_plane = static_cast<int>(static_cast<unsigned>(at) % out_plane);
        int p = in_plane / shape.out_width, q = in_plane % shape.out_width;
        const T* from = channel + image * shape.image;
#pragma unroll
        for (int e = 0; e < Sums::per_chunk; ++e) {
            const int row = p * shape.stride_h + h, column = q * shape.stride_w + w;
            const bool inside =
                exists && at + e < end && row >= 0 && row < shape.in_height && column >= 0 && column < shape.in_width;
            chunk.elements[e] = inside ? from[std::int64_t{row} * shape.in_width + column] : T(0.0f);
            if (++q == shape.out_width) {
                q = 0;
                if (++p == shape.out_height) p = 0, from += shape.image;
            }
        }
    };
    Sums sums;
    sums.add(begin, end, gather_filter, gather_tap);
    Arithmetic<T>* const part = parts + std::int64_t{blockIdx.z} * shape.filters * shape.taps;
    sums.for_each([&](int row, int column, Arithmetic<T> sum) {
        const int filter = first_filter + row, at = first_tap + column;
        if (filter < shape.filters && at < shape.taps) part[std::int64_t{filter} * shape.taps + at] = sum;
    });
}

/// parts[part, filter] = sum of dy over positions [part part_depth, (part + 1) part_depth) of that filter, numbered
/// through all images.
template <class T, int vector>
__global__ __launch_bounds__(threads) void conv2d_bias_parts(const T* __restrict__ dy,
                                                             Arithmetic<T>* __restrict__ parts, int plane,
                                                             int positions, int part_depth) {
    using A = Arithmetic<T>;
    const int begin = static_cast<int>(blockIdx.y) * part_depth;
    const int end = positions - begin > part_depth ? begin + part_depth : positions;
    A sum = 0;
    for (int image = begin / plane; std::int64_t{image} * plane < end; ++image) {
        const int first = image * plane, stop = min(end - first, plane);
        const T* const from = dy + (std::int64_t{image} * gridDim.x + blockIdx.x) * plane;
#pragma unroll 4
        for (int i = max(begin - first, 0) + static_cast<int>(threadIdx.x) * vector; i < stop; i += threads * vector) {
            const auto some = Vector<T, vector>::load(from + i);
#pragma unroll
            for (int e = 0; e < vector; ++e) sum += static_cast<A>(some.elements[e]);
        }
    }
    __shared__ A sums[threads];
    sums[threadIdx.x] = sum;
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) parts[std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = sums[0];
}

/// out[i] = its old value if `accumulates`, plus the sum over parts [count][elements].
template <class T>
__global__ __launch_bounds__(add_threads) void conv2d_add_parts(const Arithmetic<T>* __restrict__ parts, int count,
                                                                std::int64_t elements, bool accumulates, T* out) {
    const std::int64_t i = std::int64_t{blockIdx.x} * add_elements + threadIdx.x % add_elements;
    Arithmetic<T> sum = sum_of_parts(parts, count, elements, i, i < elements);
    if (i >= elements || threadIdx.x >= add_elements) return;
    if (accumulates) sum += static_cast<Arithmetic<T>>(out[i]);
    out[i] = static_cast<T>(sum);
}

template <class T>
void add_parts(const Arithmetic<T>* parts, std::int64_t count, std::int64_t elements, bool accumulates, void* out,
               cudaStream_t stream) {
    conv2d_add_parts<T><<<static_cast<unsigned>(divide_up(elements, add_elements)), add_threads, 0, stream>>>(
        parts, static_cast<int>(count), elements, accumulates, static_cast<T*>(out));
    KBENCH_CUDA_LAUNCHED("conv2d_add_parts");
}

struct Launch {
    template <class T, int rows, template <class, int, int> class Core>
    static void run(const Conv2d& op, const void* x, const void* dy, void* dw, void* workspace, cudaStream_t stream) {
        using A = Arithmetic<T>;
        const Parts parts = parts_of(op);
        const auto number = [](std::int64_t size) { return static_cast<int>(size); };
        const Shape shape{op.in_channels * op.height * op.width,
                          op.height * op.width,
                          number(positions_of(op)),
                          number(parts.depth),
                          number(op.taps()),
                          number(op.out_channels),
                          number(op.height),
                          number(op.width),
                          number(op.out_height()),
                          number(op.out_width()),
                          number(op.kernel_h),
                          number(op.kernel_w),
                          number(op.stride_h),
                          number(op.stride_w),
                          number(op.pad_h),
                          number(op.pad_w)};
        const dim3 grid(static_cast<unsigned>(divide_up(op.taps(), tile_columns)),
                        static_cast<unsigned>(divide_up(op.out_channels, rows)), static_cast<unsigned>(parts.count));
        A* const sums = static_cast<A*>(workspace);
        const std::int64_t elements = op.out_channels * op.taps();
        conv2d_wgrad_general<T, rows, Core>
            <<<grid, threads, 0, stream>>>(static_cast<const T*>(x), static_cast<const T*>(dy), sums, shape);
        KBENCH_CUDA_LAUNCHED("conv2d_wgrad_general");
        add_parts<T>(sums, parts.count, elements, op.accumulates, dw, stream);
    }
};

template <class T>
void bias_gradient(const Conv2d& op, const T* dy, void* db, void* workspace, cudaStream_t stream) {
    auto* const sums = static_cast<Arithmetic<T>*>(workspace);
    const Parts parts = bias_parts_of(op);
    const dim3 grid(static_cast<unsigned>(op.out_channels), static_cast<unsigned>(parts.count));
    const auto plane = static_cast<int>(op.out_height() * op.out_width());
    dispatch_vector<4>(plane, {dy}, [&]<int vector>() {
        conv2d_bias_parts<T, vector><<<grid, threads, 0, stream>>>(dy, sums, plane, static_cast<int>(positions_of(op)),
                                                                   static_cast<int>(parts.depth));
    });
    KBENCH_CUDA_LAUNCHED("conv2d_bias_parts");
    add_parts<T>(sums, parts.count, op.out_channels, op.accumulates, db, stream);
}

std::size_t sum_bytes(Precision precision) { return precision == Precision::fp64 ? sizeof(double) : sizeof(float); }

const WgradKernel general{
    [](const Conv2d& op, Precision) {
        return "conv2d_wgrad_general<" + std::to_string(rows_for(op)) + "> in " + std::to_string(parts_of(op).count) +
               " parts";
    },
    [](const Conv2d&, Precision) { return true; },
    [](const Conv2d& op, Precision precision) {
        return static_cast<std::size_t>(parts_of(op).count * op.out_channels * op.taps()) * sum_bytes(precision);
    },
    [](const Conv2d& op, Precision precision, const void* x, const void* dy, void* dw, void* workspace,
       cudaStream_t stream) { launch_with_core<Launch>(precision, op.out_channels, op, x, dy, dw, workspace, stream); },
};

/// The first kernel that takes the problem.
const WgradKernel& kernel_for(const Conv2d& op, Precision precision) {
    for (const WgradKernel* kernel : {&wgrad_rows, &wgrad_single_channel})
        if (kernel->takes(op, precision)) return *kernel;
    return general;
}

/// Bytes of the workspace that dw needs; the parts of db follow.
std::size_t weight_workspace(const Conv2d& op, Precision precision) {
    return aligned(kernel_for(op, precision).workspace(op, precision));
}

}  // namespace

std::string conv2d_wgrad_kernel_name(const Conv2d& op, Precision precision) {
    return kernel_for(op, precision).name(op, precision);
}

std::size_t conv2d_wgrad_workspace(const Conv2d& op, Precision precision) {
    return weight_workspace(op, precision) +
           static_cast<std::size_t>(bias_parts_of(op).count * op.out_channels) * sum_bytes(precision);
}

void conv2d_wgrad(Precision precision, const Conv2d& op, In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db,
                  void* workspace, cudaStream_t stream) {
    kernel_for(op, precision).launch(op, precision, x, dy, dw, workspace, stream);
    if (db == nullptr) return;
    char* const behind = static_cast<char*>(workspace) + weight_workspace(op, precision);
    dispatch(storage_type(precision),
             [&]<typename T>() { bias_gradient<T>(op, static_cast<const T*>(dy), db, behind, stream); });
}

}  // namespace kbench::cuda
