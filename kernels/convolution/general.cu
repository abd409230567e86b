// A convolution of any shape: an implicit GEMM whose tile of x is gathered tap by tap.
//
// A block computes `rows` filters at 128 neighbouring output positions, of whatever images and rows. Shared memory
// holds a tile of taps for both. Rows are 64 bytes of taps at a pitch of 80 bytes, so that the same chunk of eight
// neighbouring rows lies in different banks. Neighbouring lanes gather neighbouring positions, whose elements of x are
// neighbours too. The next tile is gathered into registers while this one is multiplied.
#include "kernels/check.h"
#include "kernels/convolution/epilogue.cuh"
#include "kernels/convolution/kernel.h"
#include "kernels/convolution/tiles.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int positions = tile_columns;

struct Shape {
    std::int64_t positions;  ///< output positions of all images
    std::int64_t taps, image, plane;
    int in_height, in_width, out_channels, out_height, out_width, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;

    explicit Shape(const Conv2d& op)
        : positions(op.batch * op.out_height() * op.out_width()),
          taps(op.taps()),
          image(op.in_channels * op.height * op.width),
          plane(op.height * op.width),
          in_height(static_cast<int>(op.height)),
          in_width(static_cast<int>(op.width)),
          out_channels(static_cast<int>(op.out_channels)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          kernel_w(static_cast<int>(op.kernel_w)),
          stride_h(static_cast<int>(op.stride_h)),
          stride_w(static_cast<int>(op.stride_w)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)) {}
};

/// `rows` filters per block: every warp has 32 of them.
template <class T, int rows, template <class, int, int> class Core>
__global__ __launch_bounds__(threads) void conv2d_general(const T* __restrict__ x, const T* __restrict__ weight,
                                                          T* __restrict__ out, Shape shape, Epilogue<T> epilogue) {
    constexpr int per_chunk = 16 / static_cast<int>(sizeof(T)), depth = tile_chunks * per_chunk;
    constexpr int warp_rows = 32, row_warps = rows / warp_rows, column_warps = threads / 32 / row_warps;
    constexpr int warp_columns = positions / column_warps;
    constexpr int x_chunks = positions * tile_chunks / threads, w_chunks = (rows * tile_chunks + threads - 1) / threads;
    using Chunk = Vector<T, per_chunk>;
    __shared__ __align__(16) unsigned char x_tiles[2][positions * pitch_bytes];
    __shared__ __align__(16) unsigned char w_tiles[2][rows * pitch_bytes];

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const std::int64_t first_position = std::int64_t{blockIdx.x} * positions;
    const int first_filter = static_cast<int>(blockIdx.y) * rows;

    // The position for which this thread gathers elements.
    const std::int64_t position = first_position + thread % positions;
    const bool exists = position < shape.positions;
    const int q = static_cast<int>(position % shape.out_width);
    const int p = static_cast<int>(position / shape.out_width % shape.out_height);
    const std::int64_t n = position / shape.out_width / shape.out_height;
    const int h = p * shape.stride_h - shape.pad_h, w = q * shape.stride_w - shape.pad_w;
    const T* const image = x + (exists ? n * shape.image : 0);

    Chunk gathered[x_chunks], filters[w_chunks];
    const auto load = [&](std::int64_t first_tap) {
#pragma unroll
        for (int i = 0; i < x_chunks; ++i) {
            const std::int64_t tap = first_tap + (thread / positions + i * (threads / positions)) * per_chunk;
            const std::int64_t rest = tap % (shape.kernel_h * shape.kernel_w);
            std::int64_t c = tap / (shape.kernel_h * shape.kernel_w);
            int r = static_cast<int>(rest) / shape.kernel_w, s = static_cast<int>(rest) % shape.kernel_w;
#pragma unroll
            for (int e = 0; e < per_chunk; ++e) {
                const bool inside = exists && tap + e < shape.taps && h + r >= 0 && h + r < shape.in_height &&
                                    w + s >= 0 && w + s < shape.in_width;
                gathered[i].elements[e] =
                    inside ? image[c * shape.plane + std::int64_t{h + r} * shape.in_width + (w + s)] : T(0.0f);
                if (++s == shape.kernel_w) {
                    s = 0;
                    if (++r == shape.kernel_h) r = 0, ++c;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < w_chunks; ++i) {
            const int index = thread + i * threads, filter = first_filter + index / tile_chunks;
            const std::int64_t tap = first_tap + index % tile_chunks * per_chunk;
#pragma unroll
            for (int e = 0; e < per_chunk; ++e) {
                const bool inside = index < rows * tile_chunks && filter < shape.out_channels && tap + e < shape.taps;
                filters[i].elements[e] = inside ? weight[filter * shape.taps + tap + e] : T(0.0f);
            }
        }
    };
    const auto keep = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < x_chunks; ++i)
            gathered[i].store(reinterpret_cast<T*>(x_tiles[buffer] + thread % positions * pitch_bytes +
                                                   (thread / positions + i * (threads / positions)) * 16));
#pragma unroll
        for (int i = 0; i < w_chunks; ++i)
            if (const int index = thread + i * threads; index < rows * tile_chunks)
                filters[i].store(reinterpret_cast<T*>(w_tiles[buffer] + index / tile_chunks * pitch_bytes +
                                                      index % tile_chunks * 16));
    };

    Core<T, warp_rows, warp_columns> core;
    const int row = warp % row_warps * warp_rows, column = warp / row_warps * warp_columns;
    load(0);
    keep(0);
    __syncthreads();
    int buffer = 0;
    for (std::int64_t tap = 0; tap < shape.taps; tap += depth, buffer ^= 1) {
        const bool more = tap + depth < shape.taps;
        if (more) load(tap + depth);
        core.add(w_tiles[buffer] + row * pitch_bytes, x_tiles[buffer] + column * pitch_bytes, lane);
        if (more) keep(buffer ^ 1);  // all warps were done with it at the last barrier
        __syncthreads();
    }

    // 32-bit divisions from here on: there are three per element, and 64-bit ones take four times the instructions.
    const auto plane = static_cast<unsigned>(shape.out_height * shape.out_width);
    const std::int64_t first_image = first_position / plane;
    const auto in_plane = static_cast<unsigned>(first_position % plane);
#pragma unroll
    for (int i = 0; i < core.per_lane; ++i) {
        const int filter = first_filter + row + core.row_of(i, lane), behind = column + core.column_of(i, lane);
        if (filter >= shape.out_channels || first_position + behind >= shape.positions) continue;
        const unsigned rest = in_plane + static_cast<unsigned>(behind), at = rest % plane;
        const std::int64_t of_image = first_image + rest / plane;
        out[(of_image * shape.out_channels + filter) * plane + at] =
            static_cast<T>(epilogue(core.sums[i], epilogue.channel(filter), epilogue.ends(of_image, shape.out_width),
                                    static_cast<int>(at % static_cast<unsigned>(shape.out_width))));
    }
}

template <class T, int rows, template <class, int, int> class Core>
void launch_rows(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                 cudaStream_t stream) {
    const Shape shape(op);
    const dim3 grid(static_cast<unsigned>(divide_up(shape.positions, positions)),
                    static_cast<unsigned>(divide_up(op.out_channels, rows)));
    conv2d_general<T, rows, Core>
        <<<grid, threads, 0, stream>>>(static_cast<const T*>(pointers.x), static_cast<const T*>(pointers.weight),
                                       static_cast<T*>(pointers.out), shape, Epilogue<T>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_general");
}

/// Filters per block. With 32 filters or fewer, half of a block of 64 would be wasted.
int rows_for(const Conv2d& op) { return op.out_channels <= 32 ? 32 : 64; }

template <class T, template <class, int, int> class Core>
void launch_core(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                 cudaStream_t stream) {
    if (rows_for(op) == 32) return launch_rows<T, 32, Core>(op, pointers, epilogue, stream);
    launch_rows<T, 64, Core>(op, pointers, epilogue, stream);
}

void launch(const Conv2d& op, Precision precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
            cudaStream_t stream) {
    switch (precision) {
        case Precision::fp16: return launch_core<__half, Mma16>(op, pointers, epilogue, stream);
        case Precision::bf16: return launch_core<__nv_bfloat16, Mma16>(op, pointers, epilogue, stream);
        case Precision::tf32: return launch_core<float, Mma8>(op, pointers, epilogue, stream);
        case Precision::fp32: return launch_core<float, Plain>(op, pointers, epilogue, stream);
        case Precision::fp64: return launch_core<double, Mma8>(op, pointers, epilogue, stream);
    }
}

}  // namespace

const Kernel general{
    [](const Conv2d& op, Precision) { return "conv2d_general<" + std::to_string(rows_for(op)) + ">"; },
    [](const Conv2d&, Precision) { return true; },
    [](const Conv2d&, Precision) { return std::size_t{0}; },
    launch,
};

}  // namespace kbench::cuda::convolution
