// dw of convolutions of one channel at stride 2 along the width: a block has all taps of 32 filters (48 rows of them
// for higher kernels), holds their sums in registers, and walks down output rows in tiles of positions.
//
// So each element of dy is multiplied with all taps, and each element of x with all dy of the tile, from shared memory.
// A tile of an output row brings 32 rows of dy and only the rows of x that the output row before did not meet; these
// lie in a ring. Copies of the next tile overlap the arithmetic. Blocks leave their sums as their threads hold them; a
// second kernel adds up the parts in a fixed order and puts them in place. x must be finite: positions past a row's end
// are multiplied by 0.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/parts.cuh"
#include "kernels/convolution/wgrad_kernel.h"
#include "kernels/convolution/wgrad_single_channel_cores.cuh"
#include "kernels/cp_async.cuh"

namespace kbench::cuda::convolution {
namespace {

using namespace wgrad_single;

/// Two blocks for each of 132 SMs, on any device, so that all give the same bits.
constexpr std::int64_t blocks_wanted = 264;
constexpr int blocks_per_sm = 2, most_taps = 11;

template <class T>
constexpr int tile_positions = dy_words* per_word<T>;

struct Shape {
    int height, width, out_height, out_width, filters, kernel_h, kernel_w, stride_h, pad_h;
    int before;        ///< columns of x before a tile's first position, rounded to whole words
    int first_place;   ///< place of the first tap
    int rows, fresh;   ///< rows of x that an output row meets in a block; those that the row before did not meet
    int ring;          ///< rows of x in shared memory
    int tiles, units;  ///< tiles: per output row; units: tiles times output rows, over the batch
    int row_groups, groups, parts;

    Shape(const Conv2d& op, int positions, int per_word)
        : height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          filters(static_cast<int>(op.out_channels)),
          kernel_h(static_cast<int>(op.kernel_h)),
          kernel_w(static_cast<int>(op.kernel_w)),
          stride_h(static_cast<int>(op.stride_h)),
          pad_h(static_cast<int>(op.pad_h)),
          before(static_cast<int>(divide_up(op.pad_w, per_word)) * per_word),
          first_place(before - static_cast<int>(op.pad_w)),
          rows(std::min(block_rows, kernel_h)),
          fresh(std::min(stride_h, rows)),
          ring((rows + fresh + 7) / 8 * 8),  // whole eights, so that rows around its end lie in different banks, too
          tiles(static_cast<int>(divide_up(out_width, positions))),
          units(static_cast<int>(op.batch) * tiles * out_height),
          row_groups(static_cast<int>(divide_up(kernel_h, block_rows))),
          groups(row_groups * static_cast<int>(divide_up(filters, wgrad_single::filters))),
          parts(static_cast<int>(std::clamp<std::int64_t>(blocks_wanted / groups, 1, units))) {}
    template <class Core>
    static Shape of(const Conv2d& op) {
        return Shape(op, tile_positions<typename Core::T>, per_word<typename Core::T>);
    }
};

/// Two tiles of dy, then the ring.
template <class Core>
int smem_bytes(const Shape& shape) {
    return (2 * Core::dy_tile + shape.ring * Core::x_pitch) * 4;
}
template <class Core>
constexpr int block_threads = Core::warps * 32;
/// Number of sums per block.
template <class Core>
constexpr int block_sums = block_threads<Core>* Core::per_thread;

/// Copies one word of a row, from `column` on, with zeros outside the row. `whole`: no word straddles the row's end.
template <class T>
__device__ __forceinline__ void fetch_word(unsigned* to, const T* row, int column, int width, bool exists, bool whole) {
    if (whole) {
        const bool inside = exists && column >= 0 && column < width;
        cp_async_if<4>(to, row + (inside ? column : 0), inside);
        return;
    }
    Vector<T, per_word<T>> word;
#pragma unroll
    for (int e = 0; e < per_word<T>; ++e)
        word.elements[e] = exists && column + e >= 0 && column + e < width ? row[column + e] : T(0.0f);
    word.store(reinterpret_cast<T*>(to));
}

/// Writes sums [part][group][Core::per_thread][thread].
template <class Core>
__global__ __launch_bounds__(block_threads<Core>,
                             blocks_per_sm) void conv2d_wgrad_single_channel(const typename Core::T* __restrict__ x,
                                                                             const typename Core::T* __restrict__ dy,
                                                                             float* __restrict__ sums, Shape shape,
                                                                             bool whole_x, bool whole_dy) {
    using T = typename Core::T;
    constexpr int threads = block_threads<Core>;
    extern __shared__ __align__(16) unsigned smem[];
    unsigned* const x_ring = smem + 2 * Core::dy_tile;
    const int thread = static_cast<int>(threadIdx.x);
    const int part = static_cast<int>(blockIdx.x), group = static_cast<int>(blockIdx.y);
    const int first_r = group % shape.row_groups * block_rows,
              first_filter = group / shape.row_groups * wgrad_single::filters;

    /// Fetches the rows of x that output row p meets, from the `from`-th on.
    const auto fetch_x = [&](int n, int first, int p, int from, const Rows& rows) {
        for (int i = thread; i < (shape.rows - from) * Core::x_words; i += threads) {
            const int row = from + i / Core::x_words;
            const XWord word = Core::x_word(i % Core::x_words);
            const int h = p * shape.stride_h - shape.pad_h + first_r + row;
            const bool exists = h >= 0 && h < shape.height;
            fetch_word(x_ring + rows.slot(row) * Core::x_pitch + word.place,
                       x + (std::int64_t{n} * shape.height + (exists ? h : 0)) * shape.width,
                       2 * first - shape.before + word.word * per_word<T>, shape.width, exists, whole_x);
        }
    };
    const auto fetch_dy = [&](int n, int first, int p, unsigned* to) {
        for (int i = thread; i < wgrad_single::filters * dy_words; i += threads) {
            const DyWord word = Core::dy_word(i);
            const bool exists = first_filter + word.filter < shape.filters;
            const std::int64_t plane = std::int64_t{n} * shape.filters + (exists ? first_filter + word.filter : 0);
            fetch_word(to + word.place, dy + (plane * shape.out_height + p) * shape.out_width,
                       first + word.word * per_word<T>, shape.out_width, exists, whole_dy);
        }
    };

    Core core(thread / 32, thread % 32);
    const auto end = static_cast<int>(std::int64_t{shape.units} * (part + 1) / shape.parts);
    auto unit = static_cast<int>(std::int64_t{shape.units} * part / shape.parts);
    while (unit < end) {  // output rows from p on, at one tile's columns
        const int of_columns = unit / shape.out_height, n = of_columns / shape.tiles;
        const int first = of_columns % shape.tiles * tile_positions<T>;
        const int words = min(Core::end, (shape.out_width - first + per_word<T> - 1) / per_word<T>);
        int p = unit % shape.out_height;
        const int end_p = min(shape.out_height, p + end - unit);
        unit += end_p - p;
        Rows rows{shape.rows, shape.ring, 0};
        unsigned *now = smem, *next = smem + Core::dy_tile;
        __syncthreads();  // all warps are done with the tile column before
        fetch_x(n, first, p, 0, rows);
        fetch_dy(n, first, p, now);
        for (; p < end_p; ++p) {
            cp_async_wait_all();
            __syncthreads();  // the tile has arrived, and all warps are done with what is overwritten next
            core.begin(rows);
            rows.base = (rows.base + shape.fresh) % shape.ring;
            if (p + 1 < end_p) {
                fetch_x(n, first, p + 1, shape.rows - shape.fresh, rows);
                fetch_dy(n, first, p + 1, next);
            }
#pragma unroll 1
            for (int at = 0; at < words; at += Core::step) core.add(now, x_ring, at);
            unsigned* const used = now;
            now = next, next = used;
        }
    }
    float* const to = sums + (std::int64_t{part} * shape.groups + group) * block_sums<Core>;
#pragma unroll
    for (int i = 0; i < Core::per_thread; ++i) to[i * threads + thread] = core.sums[i];
}

/// dw[k, 0, r, s] = its old value if `accumulates`, plus the sum over parts.
template <class Core>
__global__ __launch_bounds__(add_threads) void conv2d_wgrad_add_single_channel(const float* __restrict__ sums,
                                                                               Shape shape, bool accumulates,
                                                                               typename Core::T* __restrict__ dw) {
    using T = typename Core::T;
    constexpr int threads = block_threads<Core>;
    const auto i = static_cast<int>(blockIdx.x * add_elements + threadIdx.x % add_elements),
               group = static_cast<int>(blockIdx.y);
    const Place place = Core::place(i % threads, i / threads);
    const int k = group / shape.row_groups * wgrad_single::filters + place.filter,
              r = group % shape.row_groups * block_rows + place.row, s = place.tap - shape.first_place;
    const bool exists = k < shape.filters && r < shape.kernel_h && s >= 0 && s < shape.kernel_w;
    float sum = sum_of_parts(sums, shape.parts, std::int64_t{shape.groups} * block_sums<Core>,
                             std::int64_t{group} * block_sums<Core> + i, exists);
    if (!exists || threadIdx.x >= add_elements) return;
    T* const to = dw + (std::int64_t{k} * shape.kernel_h + r) * shape.kernel_w + s;
    if (accumulates) sum += static_cast<float>(*to);
    *to = static_cast<T>(sum);
}

template <class Core>
void launch(const Conv2d& op, const void* x, const void* dy, void* dw, void* workspace, cudaStream_t stream) {
    using T = typename Core::T;
    static_assert(block_sums<Core> % add_elements == 0);
    const Shape shape = Shape::of<Core>(op);
    const auto whole = [](const void* rows, int width) {
        return width % per_word<T> == 0 && reinterpret_cast<std::uintptr_t>(rows) % 4 == 0;
    };
    const auto groups = static_cast<unsigned>(shape.groups);
    auto* const sums = static_cast<float*>(workspace);
    constexpr auto kernel = conv2d_wgrad_single_channel<Core>;
    const int smem = smem_bytes<Core>(shape);
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    kernel<<<dim3(static_cast<unsigned>(shape.parts), groups), block_threads<Core>, smem, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), sums, shape, whole(x, shape.width),
        whole(dy, shape.out_width));
    KBENCH_CUDA_LAUNCHED("conv2d_wgrad_single_channel");
    conv2d_wgrad_add_single_channel<Core><<<dim3(block_sums<Core> / add_elements, groups), add_threads, 0, stream>>>(
        sums, shape, op.accumulates, static_cast<T*>(dw));
    KBENCH_CUDA_LAUNCHED("conv2d_wgrad_add_single_channel");
}

/// Limited by the grid's second dimension, which counts groups.
bool takes(const Conv2d& op, Precision precision) {
    return precision != Precision::fp64 && op.in_channels == 1 && op.stride_w == 2 && op.kernel_w <= most_taps &&
           divide_up(op.kernel_h, block_rows) * divide_up(op.out_channels, wgrad_single::filters) < 65536;
}

}  // namespace

const WgradKernel wgrad_single_channel{
    [](const Conv2d& op, Precision precision) {
        return with_core(precision, [&]<class Core>() {
            return "conv2d_wgrad_single_channel in " + std::to_string(Shape::of<Core>(op).parts) + " parts";
        });
    },
    takes,
    [](const Conv2d& op, Precision precision) {
        return with_core(precision, [&]<class Core>() {
            const Shape shape = Shape::of<Core>(op);
            return static_cast<std::size_t>(shape.parts) * static_cast<std::size_t>(shape.groups) * block_sums<Core> *
                   sizeof(float);
        });
    },
    [](const Conv2d& op, Precision precision, const void* x, const void* dy, void* dw, void* workspace,
       cudaStream_t stream) {
        with_core(precision, [&]<class Core>() { launch<Core>(op, x, dy, dw, workspace, stream); });
    },
};

}  // namespace kbench::cuda::convolution
