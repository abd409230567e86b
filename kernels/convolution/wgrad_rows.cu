// dw of convolutions of many channels: a warp has one tap s of the kernel's width. Over positions q of output rows it
// sums dy[k, q] x[c, q + s] for 32 filters k, a group of channels c and a few filter rows r.
//
// A first kernel lays x and dy out as layout.cuh says. Positions are rows of 64 bytes in shared memory, so a tap is an
// offset of whole rows: all warps read the same tile, the warp of tap s starting s rows further on.
// dy's fragments are read once for all filter rows. A block keeps all its sums in registers and walks over a part of
// the output rows; the parts are added up in a fixed order.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/aligned.h"
#include "kernels/convolution/wgrad_cores.cuh"
#include "kernels/convolution/wgrad_kernel.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda::convolution {
namespace {

using namespace wgrad;

constexpr int kernel_width = 11, threads = kernel_width * 32;
constexpr int x_rows = depth + kernel_width - 1, x_bytes = x_rows * row_bytes;
/// Filter rows per block, in 16 bits and otherwise: as many as registers allow.
constexpr int few_rows = 3, many_rows = 7;

struct Shape {
    int batch, groups, filter_groups, height, width, out_height, out_width, kernel_h, stride_h, pad_h, pad_w, parts;

    Shape(const Conv2d& op, int group_size, int part_count)
        : batch(static_cast<int>(op.batch)),
          groups(static_cast<int>(op.in_channels) / group_size),
          filter_groups(static_cast<int>(op.out_channels) / group_size),
          height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          stride_h(static_cast<int>(op.stride_h)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)),
          parts(part_count) {}
};

/// Stages in order: output rows, and the positions of each. Rows that no filter row of the block meets are skipped.
struct Walk {
    int row, end, n, p, first, h;  ///< first: position; h: row of x that the first filter row meets
    unsigned meets;                ///< bit j: filter row j of the block meets row h + j of x

    __device__ Walk(const Shape& shape, int begin, int behind, int first_r, int rows)
        : row(begin - 1), end(behind), n(row / shape.out_height), p(row % shape.out_height), first(0) {
        next_row(shape, first_r, rows);
    }
    __device__ bool done() const { return row >= end; }
    __device__ void advance(const Shape& shape, int first_r, int rows) {
        first += depth;
        if (first >= shape.out_width) next_row(shape, first_r, rows);
    }

  private:
    __device__ void next_row(const Shape& shape, int first_r, int rows) {
        first = 0;
        for (++row; row < end; ++row) {
            if (++p == shape.out_height) p = 0, ++n;
            h = p * shape.stride_h - shape.pad_h + first_r;
            meets = 0;
            for (int j = 0; j < rows; ++j)
                meets |= (first_r + j < shape.kernel_h && h + j >= 0 && h + j < shape.height ? 1u : 0u) << j;
            if (meets != 0) return;
        }
    }
};

template <class Core>
constexpr int stage_bytes = Core::rows* x_bytes + dy_tiles<Core>* dy_bytes;

/// x and dy are laid out. Writes sums [part][r][s][filter][channel].
template <class Core>
__global__ __launch_bounds__(threads, 1) void conv2d_wgrad_rows(const unsigned char* __restrict__ x,
                                                                const unsigned char* __restrict__ dy,
                                                                Arithmetic<typename Core::T>* __restrict__ sums,
                                                                Shape shape) {
    using T = typename Core::T;
    using A = Arithmetic<T>;
    extern __shared__ __align__(128) unsigned char smem[];
    const int thread = static_cast<int>(threadIdx.x), s = thread / 32, lane = thread % 32;
    const int first_r = static_cast<int>(blockIdx.x) * Core::rows, part = static_cast<int>(blockIdx.z);
    const int of_channels = static_cast<int>(blockIdx.y) % shape.groups,
              of_filters = static_cast<int>(blockIdx.y) / shape.groups;
    const std::int64_t rows = std::int64_t{shape.batch} * shape.out_height;
    const auto begin = static_cast<int>(rows * part / shape.parts),
               end = static_cast<int>(rows * (part + 1) / shape.parts);

    const auto fetch = [&](const Walk& walk, int stage) {
        unsigned char* const to = smem + stage * stage_bytes<Core>;
        for (int i = thread; i < Core::rows * x_rows * row_chunks; i += threads) {
            const int j = i / (x_rows * row_chunks), at = i / row_chunks % x_rows, chunk = i % row_chunks;
            if ((walk.meets >> j & 1) == 0) continue;
            const int column = walk.first - shape.pad_w + at;
            const bool inside = column >= 0 && column < shape.width;
            const std::int64_t row = (std::int64_t{walk.n} * shape.groups + of_channels) * shape.height + walk.h + j;
            cp_async_if<16>(to + j * x_bytes + swizzled(at, chunk),
                            x + (row * shape.width + (inside ? column : 0)) * row_bytes + chunk * 16, inside);
        }
        const std::int64_t row =
            (std::int64_t{walk.n} * shape.filter_groups + of_filters * dy_tiles<Core>)*shape.out_height + walk.p;
        fetch_dy<Core, threads>(to + Core::rows * x_bytes, dy, row, shape.out_height, walk.first, shape.out_width);
    };

    Core core(s, lane);
    Walk ahead(shape, begin, end, first_r, Core::rows), now = ahead;
    for (int stage = 0; stage < Core::stages - 1; ++stage) {
        if (!ahead.done()) {
            fetch(ahead, stage);
            ahead.advance(shape, first_r, Core::rows);
        }
        cp_async_commit();
    }
    for (int index = 0; !now.done(); ++index, now.advance(shape, first_r, Core::rows)) {
        cp_async_wait<Core::stages - 2>();
        __syncthreads();  // this stage has arrived, and all warps are done with the one to be overwritten
        if (!ahead.done()) {
            fetch(ahead, (index + Core::stages - 1) % Core::stages);
            ahead.advance(shape, first_r, Core::rows);
        }
        cp_async_commit();
        const unsigned char* const from = smem + index % Core::stages * stage_bytes<Core>;
#pragma unroll Core::unroll
        for (int at = 0; at < depth; at += Core::step) {
            core.read_dy(from + Core::rows * x_bytes, at);
#pragma unroll
            for (int j = 0; j < Core::rows; ++j)
                if (now.meets >> j & 1) core.add(j, from + j * x_bytes, at);
        }
    }

    const std::int64_t channels = std::int64_t{shape.groups} * group<T>,
                       all_filters = std::int64_t{shape.filter_groups} * group<T>;
    core.for_each_pair(lane, [&](int row, int filter, int channel, const A* pair) {
        const int r = first_r + row;
        if (r >= shape.kernel_h) return;
        const std::int64_t tap = (std::int64_t{part} * shape.kernel_h + r) * kernel_width + s;
        A* const to =
            sums + (tap * all_filters + of_filters * filters + filter) * channels + of_channels * group<T> + channel;
        Vector<A, 2> two;
        two.elements[0] = pair[0], two.elements[1] = pair[1];
        two.store_whole(to);
    });
}

/// The first blocks lay out x, the others dy.
template <class T, int vector>
__global__ __launch_bounds__(layout_threads) void conv2d_wgrad_layout(const T* __restrict__ x, const T* __restrict__ dy,
                                                                      T* __restrict__ x_out, T* __restrict__ dy_out,
                                                                      Shape shape, unsigned x_blocks) {
    if (blockIdx.x < x_blocks)
        lay_out_positions<T, vector>(x, x_out, shape.height, shape.width, blockIdx.x);
    else
        lay_out_positions<T, vector>(dy, dy_out, shape.out_height, shape.out_width, blockIdx.x - x_blocks);
}

/// dw[k, c, r, s] = its old value if `accumulates`, plus the sum over parts in a fixed order.
template <class T>
__global__ __launch_bounds__(256) void conv2d_wgrad_add_rows(const Arithmetic<T>* __restrict__ sums, int parts,
                                                             int all_filters, int channels, int kernel_h,
                                                             bool accumulates, T* __restrict__ dw) {
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x),
              elements = all_filters * channels * kernel_h * kernel_width;
    if (i >= elements) return;
    Arithmetic<T> sum = 0;
#pragma unroll 8
    for (int part = 0; part < parts; ++part) sum += sums[std::int64_t{part} * elements + i];
    const int c = i % channels, k = i / channels % all_filters, tap = i / channels / all_filters;
    T* const to = dw + (std::int64_t{k} * channels + c) * kernel_h * kernel_width + tap;
    if (accumulates) sum += static_cast<Arithmetic<T>>(*to);
    *to = static_cast<T>(sum);
}

template <class Core>
dim3 grid_of(const Conv2d& op) {
    const std::int64_t across = divide_up(op.kernel_h, Core::rows),
                       down = op.in_channels / group<typename Core::T> * (op.out_channels / filters);
    // One block for each of 132 SMs, on any device, so that all give the same bits.
    const std::int64_t parts =
        std::clamp<std::int64_t>(132 / (across * down), 1, std::min<std::int64_t>(65535, op.batch * op.out_height()));
    return dim3(static_cast<unsigned>(across), static_cast<unsigned>(down), static_cast<unsigned>(parts));
}

/// x and dy as laid out, then the sums of the parts.
template <class Core>
struct Workspace {
    using T = typename Core::T;
    std::size_t x, dy, sums;
    explicit Workspace(const Conv2d& op)
        : x(aligned(static_cast<std::size_t>(op.batch * op.in_channels * op.height * op.width) * sizeof(T))),
          dy(aligned(static_cast<std::size_t>(op.batch * op.out_channels * op.out_height() * op.out_width()) *
                     sizeof(T))),
          sums(grid_of<Core>(op).z * static_cast<std::size_t>(op.out_channels * op.taps()) * sizeof(Arithmetic<T>)) {}
};

template <class Core>
void launch(const Conv2d& op, const void* x, const void* dy, void* dw, void* workspace, cudaStream_t stream) {
    using T = typename Core::T;
    const dim3 grid = grid_of<Core>(op);
    const Shape shape(op, group<T>, static_cast<int>(grid.z));
    const Workspace<Core> space(op);
    auto* const laid_x = static_cast<unsigned char*>(workspace);
    unsigned char* const laid_dy = laid_x + space.x;
    auto* const sums = reinterpret_cast<Arithmetic<T>*>(laid_dy + space.dy);

    const auto x_blocks = static_cast<unsigned>(layout_blocks(op.batch * shape.groups * op.height, op.width));
    const auto dy_blocks =
        static_cast<unsigned>(layout_blocks(op.batch * shape.filter_groups * op.out_height(), op.out_width()));
    const bool vectors = op.width % 4 == 0 && op.out_width() % 4 == 0 &&
                         reinterpret_cast<std::uintptr_t>(x) % 16 == 0 &&
                         reinterpret_cast<std::uintptr_t>(dy) % 16 == 0;
    (vectors ? conv2d_wgrad_layout<T, 4>
             : conv2d_wgrad_layout<T, 1>)<<<x_blocks + dy_blocks, layout_threads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(dy), reinterpret_cast<T*>(laid_x),
        reinterpret_cast<T*>(laid_dy), shape, x_blocks);
    KBENCH_CUDA_LAUNCHED("conv2d_wgrad_layout");

    constexpr int smem = Core::stages * stage_bytes<Core>;
    allow_shared_memory(conv2d_wgrad_rows<Core>, smem);
    conv2d_wgrad_rows<Core><<<grid, threads, smem, stream>>>(laid_x, laid_dy, sums, shape);
    KBENCH_CUDA_LAUNCHED("conv2d_wgrad_rows");
    conv2d_wgrad_add_rows<T><<<static_cast<unsigned>(divide_up(op.out_channels * op.taps(), 256)), 256, 0, stream>>>(
        sums, shape.parts, static_cast<int>(op.out_channels), static_cast<int>(op.in_channels), shape.kernel_h,
        op.accumulates, static_cast<T*>(dw));
    KBENCH_CUDA_LAUNCHED("conv2d_wgrad_add_rows");
}

bool takes(const Conv2d& op, Precision precision) {
    const int smem =
        with_core<few_rows, many_rows>(precision, [&]<class Core>() { return Core::stages * stage_bytes<Core>; });
    const auto channels = static_cast<std::int64_t>(row_bytes / size_of(storage_type(precision)));
    return op.in_channels % channels == 0 && op.out_channels % filters == 0 && op.kernel_w == kernel_width &&
           op.stride_w == 1 && smem <= shared_bytes_of_block() &&
           op.in_channels / channels * (op.out_channels / filters) < 65536 &&
           op.batch * op.in_channels * op.height * divide_up(op.width, layout_positions) < (std::int64_t{1} << 30) &&
           op.batch * op.out_channels * op.out_height() * divide_up(op.out_width(), layout_positions) <
               (std::int64_t{1} << 30);
}

}  // namespace

const WgradKernel wgrad_rows{
    [](const Conv2d& op, Precision precision) {
        return with_core<few_rows, many_rows>(precision, [&]<class Core>() {
            return "conv2d_wgrad_rows<" + std::to_string(Core::rows) + "> in " + std::to_string(grid_of<Core>(op).z) +
                   " parts";
        });
    },
    takes,
    [](const Conv2d& op, Precision precision) {
        return with_core<few_rows, many_rows>(precision, [&]<class Core>() {
            const Workspace<Core> space(op);
            return space.x + space.dy + space.sums;
        });
    },
    [](const Conv2d& op, Precision precision, const void* x, const void* dy, void* dw, void* workspace,
       cudaStream_t stream) {
        with_core<few_rows, many_rows>(precision,
                                       [&]<class Core>() { launch<Core>(op, x, dy, dw, workspace, stream); });
    },
};

}  // namespace kbench::cuda::convolution
