// dx of convolutions of one channel at stride 2 along the width: a block has a tile of columns of some rows of dx,
// whatever their classes, holds their sums in registers, and walks down the rows of dy that meet them.
//
// Each element of dy is then multiplied with all taps of its row, and a row of dy in shared memory serves all rows of
// dx of the block. The taps of a few filters at a time lie there, too, packed by an earlier kernel as the cores read
// them. Copies of the next rows of dy overlap the arithmetic. A sum has the same order whatever the blocks.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/dgrad_classes.h"
#include "kernels/convolution/dgrad_kernel.h"
#include "kernels/convolution/dgrad_single_channel_cores.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/multiprocessors.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda::convolution {
namespace {

using namespace dgrad_single;

/// Up to this kernel height, the taps of a core's filters fit into shared memory.
constexpr std::int64_t most_kernel_h = 128;
constexpr int pack_threads = 256, advance = tile - halo;

template <class Core>
constexpr int element_bytes = static_cast<int>(sizeof(typename Core::T));
template <class Core>
constexpr int row_bytes = Core::row_elements* element_bytes<Core>;
template <class Core>
constexpr int stage_bytes = Core::filters* Core::pitch;

struct Shape {
    int height, width, out_height, out_width, filters, kernel_h, kernel_w, stride_h, pad_h, pad_w;
    int classes, units;         ///< units: groups of rows of dx
    int tiles, groups;          ///< blocks per row of dx, and blocks over its units
    int copy_bytes;             ///< width of a copy: a chunk of so many bytes is all inside or all outside a row of dy
    std::int64_t weight_bytes;  ///< size of the packed weights

    template <class Core>
    static Shape of(const Conv2d& op) {
        const auto last_pair = (op.width - 1 + op.pad_w) / 2;
        const auto classes = std::min(op.stride_h, op.height);
        return {static_cast<int>(op.height),
                static_cast<int>(op.width),
                static_cast<int>(op.out_height()),
                static_cast<int>(op.out_width()),
                static_cast<int>(op.out_channels),
                static_cast<int>(op.kernel_h),
                static_cast<int>(op.kernel_w),
                static_cast<int>(op.stride_h),
                static_cast<int>(op.pad_h),
                static_cast<int>(op.pad_w),
                static_cast<int>(classes),
                static_cast<int>(classes * divide_up(divide_up(op.height, op.stride_h), Core::rows)),
                static_cast<int>(last_pair < tile ? 1 : 1 + divide_up(last_pair - tile + 1, advance)),
                0,
                0,
                divide_up(op.out_channels, Core::depth) * op.kernel_h * row_bytes<Core>};
    }
};

/// Consecutive rows of dx of one class: row i is stride_h * (first + i) + of.index, and meets row top + i - t of dy
/// with row t of the class's taps.
struct Unit {
    Class of;
    int first, rows, top;

    __device__ Unit(const Shape& shape, int unit, int most_rows)
        : of(Class::of(unit % shape.classes, shape.height, shape.kernel_h, shape.stride_h, shape.pad_h)),
          first(unit / shape.classes * most_rows),
          rows(unit < shape.units ? max(0, min(most_rows, of.count - first)) : 0),
          top(of.offset + first) {}
    /// The first row of dy that meets these rows; `end` is one past the last.
    __device__ int begin() const { return max(0, top - of.taps + 1); }
    __device__ int end(int out_height) const { return rows > 0 && of.taps > 0 ? min(out_height, top + rows) : 0; }
};

/// Packs the taps in the order of Core::weight: [filters / depth][kernel_h][row_elements], zeros where there is none.
template <class Core>
__global__ __launch_bounds__(pack_threads) void conv2d_pack_single_channel(const typename Core::T* __restrict__ weight,
                                                                           typename Core::T* __restrict__ packed,
                                                                           Shape shape) {
    const std::int64_t i = std::int64_t{blockIdx.x} * pack_threads + threadIdx.x;
    if (i >= shape.weight_bytes / element_bytes<Core>) return;
    const WeightPlace place = Core::weight(static_cast<int>(i % Core::row_elements));
    const std::int64_t line = i / Core::row_elements;
    const std::int64_t k = line / shape.kernel_h * Core::depth + place.filter, r = line % shape.kernel_h;
    const bool exists = k < shape.filters && place.tap < shape.kernel_w;
    packed[i] = exists ? weight[(k * shape.kernel_h + r) * shape.kernel_w + place.tap] : typename Core::T(0.0f);
}

/// Starts to copy `rows` rows of a tile of dy, which are `plane` elements apart. `existing` rows with `columns` columns
/// exist; the rest becomes zero. A warp copies whole rows.
template <class Core, int bytes>
__device__ __forceinline__ void fetch_rows(unsigned char* to, const typename Core::T* from, std::int64_t plane,
                                           int rows, int existing, int columns, int warp, int lane) {
    constexpr int elements = bytes / element_bytes<Core>;
#pragma unroll 1
    for (int row = warp; row < rows; row += static_cast<int>(blockDim.x / 32)) {
        const typename Core::T* const of_row = from + row * plane;
#pragma unroll 2
        for (int i = 0; i < tile / elements / 32; ++i) {
            const int column = (i * 32 + lane) * elements;
            const bool inside = row < existing && column < columns;
            unsigned char* const at = to + row * Core::pitch + Core::place_of(column);
            if constexpr (bytes >= 4) {
                cp_async_if<bytes>(at, of_row + column, inside);
            } else {
                *reinterpret_cast<typename Core::T*>(at) = inside ? of_row[column] : typename Core::T(0.0f);
            }
        }
    }
}

template <class Core>
__global__ __launch_bounds__(Core::most_units* Core::warps * 32, Core::blocks_per_sm) void conv2d_dgrad_single_channel(
    const typename Core::T* __restrict__ dy, const unsigned char* __restrict__ weights,
    typename Core::T* __restrict__ dx, Shape shape) {
    using T = typename Core::T;
    extern __shared__ __align__(128) unsigned char smem[];
    unsigned char* const of_weights = smem + Core::stages * stage_bytes<Core>;
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int warp = __shfl_sync(~0u, thread / 32, 0), lane = thread % 32;  // the compiler sees a warp-uniform index
    const int units = threads / (Core::warps * 32), of_block = warp / Core::warps;
    const auto block = static_cast<int>(blockIdx.x);
    const int tile_index = block % shape.tiles, group = block / shape.tiles % shape.groups,
              n = block / shape.tiles / shape.groups;
    const int first_column = tile_index * advance;  // in dy

    const Unit unit(shape, group * units + of_block, Core::rows);
    int begin = shape.out_height, end = 0;  // rows of dy that any unit of the block meets
    for (int i = 0; i < units; ++i) {
        const Unit other(shape, group * units + i, Core::rows);
        if (other.end(shape.out_height) == 0) continue;
        begin = min(begin, other.begin());
        end = max(end, other.end(shape.out_height));
    }

    const std::int64_t plane = std::int64_t{shape.out_height} * shape.out_width;
    const T* const image = dy + std::int64_t{n} * shape.filters * plane + first_column;
    const auto fetch = [&](int first_filter, int rows, int p) {
        if (p >= end) return;
        unsigned char* const to = smem + (p - begin) % Core::stages * stage_bytes<Core>;
        const T* const from = image + first_filter * plane + std::int64_t{p} * shape.out_width;
        const int existing = shape.filters - first_filter, columns = shape.out_width - first_column;
        switch (shape.copy_bytes) {
            case 16: fetch_rows<Core, 16>(to, from, plane, rows, existing, columns, warp, lane); break;
            case 8: fetch_rows<Core, 8>(to, from, plane, rows, existing, columns, warp, lane); break;
            case 4: fetch_rows<Core, 4>(to, from, plane, rows, existing, columns, warp, lane); break;
            default: fetch_rows<Core, element_bytes<Core>>(to, from, plane, rows, existing, columns, warp, lane);
        }
    };

    Core core(warp % Core::warps, lane);
    if constexpr (Core::place_of(0) > 0)
        for (int i = thread; i < Core::stages * Core::filters * halo; i += threads)
            reinterpret_cast<float*>(smem + i / halo * Core::pitch)[i % halo] = 0.0f;
    const int block_bytes = shape.kernel_h * row_bytes<Core>;  // the taps of `depth` filters
    for (int first_filter = 0; first_filter < shape.filters && begin < end; first_filter += Core::filters) {
        const int blocks = min(Core::filters, shape.filters - first_filter + Core::depth - 1) / Core::depth;
        __syncthreads();  // all warps are done with the filters before
        const unsigned char* const from = weights + std::int64_t{first_filter / Core::depth} * block_bytes;
        for (int i = thread * 16; i < blocks * block_bytes; i += threads * 16) cp_async_16(of_weights + i, from + i);
#pragma unroll
        for (int i = 0; i < Core::stages - 1; ++i) {
            fetch(first_filter, blocks * Core::depth, begin + i);
            cp_async_commit();
        }
#pragma unroll 1
        for (int p = begin; p < end; ++p) {
            cp_async_wait<Core::stages - 2>();
            __syncthreads();  // the row has arrived, and all warps are done with the one to be overwritten
            fetch(first_filter, blocks * Core::depth, p + Core::stages - 1);
            cp_async_commit();
            int at[Core::rows];
#pragma unroll
            for (int i = 0; i < Core::rows; ++i) {
                const int t = unit.top + i - p;
                at[i] = i < unit.rows && t >= 0 && t < unit.of.taps
                            ? (unit.of.first_tap + t * shape.stride_h) * row_bytes<Core>
                            : -1;
            }
            const unsigned char* const row = smem + (p - begin) % Core::stages * stage_bytes<Core>;
            if (*std::min_element(at, at + Core::rows) >= 0)
                core.template add<true>(row, of_weights, at, blocks, block_bytes);
            else
                core.template add<false>(row, of_weights, at, blocks, block_bytes);
        }
    }

    const int first_w = 2 * first_column - shape.pad_w;
    core.finish(smem, of_block, shape.kernel_w, [&](int i, int column, float sum) {
        const int w = first_w + column;
        if (i >= unit.rows || w < 0 || w >= shape.width || (tile_index > 0 && column < 2 * halo)) return;
        const std::int64_t h = std::int64_t{unit.first + i} * shape.stride_h + unit.of.index;
        dx[(std::int64_t{n} * shape.height + h) * shape.width + w] = static_cast<T>(sum);
    });
}

/// Units per block: many share what is copied, few leave no SM idle. A block's time is its units, plus about one more
/// for work that it does once.
template <class Core>
int units_of(const Conv2d& op, const Shape& shape, int multiprocessors) {
    int best = Core::most_units;
    double least = 0;
    for (int units = Core::most_units; units >= Core::least_units; units /= 2) {
        const std::int64_t blocks = op.batch * shape.tiles * divide_up(shape.units, units);
        const double time = static_cast<double>(divide_up(blocks, multiprocessors)) * (units + 1);
        if (units < Core::most_units && time >= least) continue;
        best = units, least = time;
    }
    return best;
}

/// The stages of dy, then the taps of as many filters as a core takes at a time.
template <class Core>
int smem_bytes(const Conv2d& op) {
    const std::int64_t filters =
        std::min<std::int64_t>(Core::filters, divide_up(op.out_channels, Core::depth) * Core::depth);
    return static_cast<int>(Core::stages * stage_bytes<Core> + filters / Core::depth * op.kernel_h * row_bytes<Core>);
}

template <class Core>
void launch(const Conv2d& op, const void* dy, const void* weight, void* dx, void* workspace, cudaStream_t stream) {
    using T = typename Core::T;
    Shape shape = Shape::of<Core>(op);
    const int units = units_of<Core>(op, shape, multiprocessors_of(stream));
    shape.groups = static_cast<int>(divide_up(shape.units, units));
    shape.copy_bytes = 16;
    while (reinterpret_cast<std::uintptr_t>(dy) % static_cast<unsigned>(shape.copy_bytes) != 0 ||
           op.out_width() * element_bytes<Core> % shape.copy_bytes != 0)
        shape.copy_bytes /= 2;

    const auto pack_blocks = static_cast<unsigned>(divide_up(shape.weight_bytes / element_bytes<Core>, pack_threads));
    conv2d_pack_single_channel<Core>
        <<<pack_blocks, pack_threads, 0, stream>>>(static_cast<const T*>(weight), static_cast<T*>(workspace), shape);
    KBENCH_CUDA_LAUNCHED("conv2d_pack_single_channel");

    constexpr auto kernel = conv2d_dgrad_single_channel<Core>;
    const int smem = smem_bytes<Core>(op);
    static_assert(Core::most_units * Core::finish_bytes <= Core::stages * stage_bytes<Core>);
    allow_shared_memory(kernel, smem);
    const auto blocks = static_cast<unsigned>(op.batch * shape.tiles * shape.groups);
    kernel<<<blocks, static_cast<unsigned>(units * Core::warps * 32), static_cast<std::size_t>(smem), stream>>>(
        static_cast<const T*>(dy), static_cast<const unsigned char*>(workspace), static_cast<T*>(dx), shape);
    KBENCH_CUDA_LAUNCHED("conv2d_dgrad_single_channel");
}

}  // namespace

const DgradKernel dgrad_single_channel{
    [](const Conv2d&, Precision) { return std::string("conv2d_dgrad_single_channel"); },
    [](const Conv2d& op, Precision precision) {
        return precision != Precision::fp64 && op.in_channels == 1 && op.stride_w == 2 && op.kernel_w <= most_taps &&
               op.kernel_h <= most_kernel_h &&
               with_core(precision, [&]<class Core>() { return smem_bytes<Core>(op); }) <= shared_bytes_of_block();
    },
    [](const Conv2d& op, Precision precision) {
        return with_core(precision,
                         [&]<class Core>() { return static_cast<std::size_t>(Shape::of<Core>(op).weight_bytes); });
    },
    [](const Conv2d& op, Precision precision, const void* dy, const void* weight, void* dx, void* workspace,
       cudaStream_t stream) {
        with_core(precision, [&]<class Core>() { launch<Core>(op, dy, weight, dx, workspace, stream); });
    },
};

}  // namespace kbench::cuda::convolution
