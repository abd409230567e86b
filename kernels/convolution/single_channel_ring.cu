// Convolutions of one channel with strides of 2 in tf32 and fp64, on tensor cores.
//
// As in single_channel.cu, x is read as it lies: the taps (2 j - 1, 2 j) of position q are the pair q + j of a row of x
// in shared memory, and 11 taps take 12 places (the first is multiplied by 0, so x must be finite). A product is 8
// places deep, and a lane has two of them: neighbours, so that one load brings both. Places may have any order if the
// weights have the same. Two filter rows are three products. The weights lie as the lanes hold them.
//
// A warp has its positions in two neighbouring output rows. Both read the same rows of x, the lower one with filter
// rows 2 less, which is the group of two before. In tf32, a product of 64 positions takes 32 accesses of shared memory
// for 32 mma.sync of 1.6 clocks, so shared memory is busy for 62 % of the time; in fp64 for 25 %.
//
// All rows of x and all weights of a block take 170 KB in tf32, and two blocks would not fit in an SM. So both stream
// through rings, two groups at a time.
#include "kernels/check.h"
#include "kernels/convolution/kernel.h"
#include "kernels/convolution/splits.h"
#include "kernels/convolution/store.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int kernel_w = 11, filters = 32, stride = 2;
constexpr int group_rows = stride, pairs_of_row = 6, depth = 8, group_products = group_rows * pairs_of_row * 2 / depth;
constexpr int group_weights = group_products * filters * depth;

/// Tuning parameters: warps per SM that registers are limited for, and groups that are copied at a time.
constexpr int sm_warps = 8, stage_groups = 2;
constexpr int stage_rows = stage_groups * group_rows, x_stages = 2, weight_stages = 3;

/// Tiles start at a multiple of 4 columns of x, for copies of 16 bytes: this many columns before the first tap of the
/// first position. The kernel takes only paddings for which this holds.
constexpr int columns_before = 3;

struct Shape {
    int height, width, out_height, out_width, kernel_h, pad_h, pad_w;
    bool vectors_in;
    explicit Shape(const Conv2d& op, const void* x, int per_chunk)
        : height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)),
          vectors_in(width % per_chunk == 0 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) {}
    __host__ __device__ int tiles(int positions) const { return (out_width + positions - 1) / positions; }
    __host__ __device__ int pairs() const { return (out_height + 1) / 2; }
    __host__ __device__ int groups() const { return (kernel_h + group_rows - 1) / group_rows; }
};

/// Shared memory in elements: rows of x, then weights. One access reads the last pairs of one row of x and the first
/// pairs of the next; the pitch puts them into different banks.
template <class T, int warps>
struct Layout {
    static constexpr int warp_positions = position_blocks<T> * 16, positions = warps * warp_positions;
    static constexpr int row = 2 * (positions + pairs_of_row), pitch = 2 * positions + (sizeof(T) == 8 ? 16 : 20);
    static constexpr int row_chunks = row / vector_width<T>;
    static constexpr int x_stage = stage_rows * pitch, weight_stage = stage_groups * group_weights;
    static constexpr int tiles = (x_stages * x_stage + weight_stages * weight_stage) * static_cast<int>(sizeof(T));
    static constexpr int bytes = tiles > warps* staging_bytes ? tiles : warps* staging_bytes;
    static_assert(row % vector_width<T> == 0 && row <= pitch);
};

template <class T>
struct Fragments {
    T x[position_blocks<T>][4], w[2][4][2];
};

/// One group of rows of x. `upper` and `lower` say which output rows it serves, with weights w[0] and w[1]. pairs:
/// where the lane's pair for each product lies in the group.
template <class T, bool upper, bool lower>
__device__ __forceinline__ void multiply(WarpSums<T> (&sums)[2], const T* x, const T* const (&w)[2],
                                         const int (&pairs)[group_products], int lane) {
    constexpr int per_chunk = vector_width<T>, chunks = 8 / per_chunk;
    const auto read = [&](Fragments<T>& f, int product) {
#pragma unroll
        for (int m = 0; m < position_blocks<T>; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const auto pair = Vector<T, 2>::load(x + pairs[product] + (m * 16 + e * 8) * 2);
                f.x[m][e] = pair.elements[0], f.x[m][e + 2] = pair.elements[1];
            }
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (row == 0 ? !upper : !lower) continue;
#pragma unroll
            for (int c = 0; c < chunks; ++c) {
                const auto chunk =
                    Vector<T, per_chunk>::load(w[row] + ((product * chunks + c) * 32 + lane) * per_chunk);
#pragma unroll
                for (int e = 0; e < per_chunk; ++e) {
                    const int i = c * per_chunk + e;
                    f.w[row][i / 2][i % 2] = chunk.elements[e];
                }
            }
        }
    };
    Fragments<T> fragments[2];
    read(fragments[0], 0);
#pragma unroll
    for (int product = 0; product < group_products; ++product) {
        if (product + 1 < group_products) read(fragments[(product + 1) % 2], product + 1);
        Fragments<T>& f = fragments[product % 2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (row == 0 ? !upper : !lower) continue;
#pragma unroll
            for (int m = 0; m < position_blocks<T>; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    T(&c)[4] = sums[row][m][n];
                    mma_16x8x8(c[0], c[1], c[2], c[3], f.x[m], f.w[row][n][0], f.w[row][n][1]);
                }
        }
    }
}

/// weights: [groups][products][8 elements per lane].
template <class T, int warps>
__global__ __launch_bounds__(warps * 32,
                             sm_warps / warps) void conv2d_single_channel_ring(const T* __restrict__ x,
                                                                               const T* __restrict__ weights,
                                                                               T* __restrict__ out, Shape shape,
                                                                               Grid grid, Epilogue<T> epilogue) {
    using L = Layout<T, warps>;
    constexpr int threads = warps * 32, per_chunk = vector_width<T>;
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ typename Epilogue<T>::Channel channels[filters];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int groups = shape.groups(), tiles = shape.tiles(L::positions);
    T* const x_tiles = reinterpret_cast<T*>(smem);
    T* const w_tiles = x_tiles + x_stages * L::x_stage;

    const Grid::Block block = grid.block(static_cast<int>(blockIdx.x));
    const int n = block.of_row / tiles, first_column = block.of_row % tiles * L::positions;
    const int p = block.row * 2, h0 = p * stride - shape.pad_h;
    const bool has_lower = p + 1 < shape.out_height;
    const auto ends = epilogue.ends(n, shape.out_width);
    if (thread < filters) channels[thread] = epilogue.channel(thread);

    // Groups of rows of x that have any row of the image; the last one only serves the lower output row. Where the
    // last mask makes zeros, nothing needs to be summed.
    const int first_group = max(0, -h0) / group_rows;
    const int rows = min((groups + has_lower) * group_rows, shape.height - h0);
    const int end_group = first_column < ends.masks[2] ? (rows + group_rows - 1) / group_rows : 0;
    const int first_stage = first_group / stage_groups, end_stage = (end_group + stage_groups - 1) / stage_groups;

    const auto fetch_weights = [&](int stage) {
        const int first = stage * stage_groups, count = min(stage_groups, groups - first) * group_weights;
        T* const to = w_tiles + stage % weight_stages * L::weight_stage;
        for (int i = thread; i < count / per_chunk; i += threads)
            cp_async_16(to + i * per_chunk, weights + first * group_weights + i * per_chunk);
    };
    const auto fetch = [&](int stage) {
        for (int i = thread; i < stage_rows * L::row_chunks; i += threads) {
            const int row = i / L::row_chunks, chunk = i % L::row_chunks, h = h0 + stage * stage_rows + row;
            const int column = first_column * stride - shape.pad_w - columns_before + chunk * per_chunk;
            T* const to = x_tiles + stage % x_stages * L::x_stage + row * L::pitch + chunk * per_chunk;
            const bool row_inside = h >= 0 && h < shape.height;
            const T* const from = x + (std::int64_t{n} * shape.height + (row_inside ? h : 0)) * shape.width;
            if (shape.vectors_in) {
                const bool inside = row_inside && column >= 0 && column < shape.width;
                cp_async_if<16>(to, from + (inside ? column : 0), inside);
            } else {
                Vector<T, per_chunk> loaded;
#pragma unroll
                for (int e = 0; e < per_chunk; ++e) {
                    const bool inside = row_inside && column + e >= 0 && column + e < shape.width;
                    loaded.elements[e] = inside ? from[column + e] : T{0};
                }
                loaded.store(to);
            }
        }
        fetch_weights(stage);
        cp_async_commit();
    };
    const auto weights_of = [&](int group) {
        return w_tiles + group / stage_groups % weight_stages * L::weight_stage + group % stage_groups * group_weights;
    };

    int pairs[group_products];
#pragma unroll
    for (int product = 0; product < group_products; ++product) {
        const int of_taps = product * (depth / 2) + lane % 4, position = warp * L::warp_positions + lane / 4;
        pairs[product] =
            of_taps / pairs_of_row * L::pitch + (of_taps % pairs_of_row + position) * 2 + columns_before - 1;
    }
    WarpSums<T> sums[2] = {};
    const bool in_use = first_column + warp * L::warp_positions < min(shape.out_width, ends.masks[2]);
    if (first_stage < end_stage) {
        if (first_stage > 0) fetch_weights(first_stage - 1);
        fetch(first_stage);
    }
    for (int stage = first_stage; stage < end_stage; ++stage) {
        cp_async_wait<0>();
        __syncthreads();  // this stage's tiles have arrived, and all warps are done with those to be overwritten
        if (stage + 1 < end_stage) fetch(stage + 1);
        if (!in_use) continue;
        const int begin = max(first_group, stage * stage_groups), end = min(end_group, (stage + 1) * stage_groups);
#pragma unroll 1
        for (int group = begin; group < end; ++group) {
            const T* const tile =
                x_tiles + stage % x_stages * L::x_stage + group % stage_groups * group_rows * L::pitch;
            const T* const w[2] = {weights_of(group), weights_of(max(group - 1, 0))};
            const bool upper = group < groups, lower = has_lower && group > 0;
            if (upper && lower)
                multiply<T, true, true>(sums, tile, w, pairs, lane);
            else if (upper)
                multiply<T, true, false>(sums, tile, w, pairs, lane);
            else
                multiply<T, false, true>(sums, tile, w, pairs, lane);
        }
    }
    __syncthreads();  // from here the tiles' memory stages the output; `channels` is written

    const std::int64_t plane = std::int64_t{shape.out_height} * shape.out_width;
    const bool vectors = shape.out_width % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        if (row == 1 && !has_lower) break;
        store_sums(sums[row], smem + warp * staging_bytes,
                   out + std::int64_t{n} * filters * plane + std::int64_t{p + row} * shape.out_width, plane,
                   first_column + warp * L::warp_positions, shape.out_width, vectors, lane,
                   [&](T sum, int filter, int column) { return epilogue(sum, channels[filter], ends, column); });
    }
}

/// [filters][kernel_h][kernel_w] -> [groups][products][chunks of 16 bytes][lane][elements of a chunk]: taps in pairs
/// after one empty place. Element i of a lane's 8 in a product belongs to filter i / 2 * 8 + lane / 4.
template <class T>
__global__ void conv2d_taps_of_lanes(const T* __restrict__ weight, T* __restrict__ to, int kernel_h, int count) {
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= count) return;
    constexpr int per_chunk = vector_width<T>, chunks = 8 / per_chunk;
    const int lane = at / per_chunk % 32, product = at / (32 * depth);
    const int i = at / (32 * per_chunk) % chunks * per_chunk + at % per_chunk;
    const int k = i / 2 * 8 + lane / 4;
    const int place = product % group_products * depth + lane % 4 * 2 + i % 2, row = place / (2 * pairs_of_row);
    const int r = product / group_products * group_rows + row, s = place % (2 * pairs_of_row) - 1;
    to[at] = s >= 0 && r < kernel_h ? weight[(k * kernel_h + r) * kernel_w + s] : T{0};
}

/// Blocks of four warps, or of two where blocks of four would leave SMs idle.
template <class T>
int warps_for(const Conv2d& op) {
    const Shape shape(op, nullptr, 1);
    return op.batch * shape.tiles(Layout<T, 4>::positions) * shape.pairs() < 132 * sm_warps / 4 ? 2 : 4;
}

template <class T, int warps>
void launch_warps(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                  cudaStream_t stream) {
    using L = Layout<T, warps>;
    const Shape shape(op, pointers.x, vector_width<T>);
    auto* const weights = static_cast<T*>(pointers.workspace);
    const int count = shape.groups() * group_weights;
    conv2d_taps_of_lanes<T><<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, stream>>>(
        static_cast<const T*>(pointers.weight), weights, shape.kernel_h, count);
    KBENCH_CUDA_LAUNCHED("conv2d_taps_of_lanes");
    constexpr auto kernel = conv2d_single_channel_ring<T, warps>;
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, L::bytes));
    const Grid grid = whole_grid(shape.pairs(), op.batch * shape.tiles(L::positions));
    kernel<<<grid.blocks(), warps * 32, L::bytes, stream>>>(
        static_cast<const T*>(pointers.x), weights, static_cast<T*>(pointers.out), shape, grid, Epilogue<T>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_single_channel_ring");
}

template <class T>
void launch_type(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                 cudaStream_t stream) {
    if (warps_for<T>(op) == 2) return launch_warps<T, 2>(op, pointers, epilogue, stream);
    launch_warps<T, 4>(op, pointers, epilogue, stream);
}

bool takes(const Conv2d& op, Precision precision) {
    return (precision == Precision::tf32 || precision == Precision::fp64) && op.in_channels == 1 &&
           op.out_channels == filters && op.kernel_w == kernel_w && op.stride_h == stride && op.stride_w == stride &&
           (op.pad_w + columns_before) % 4 == 0;
}

}  // namespace

const Kernel single_channel_ring{
    [](const Conv2d& op, Precision precision) {
        const int warps = precision == Precision::tf32 ? warps_for<float>(op) : warps_for<double>(op);
        return "conv2d_single_channel_ring<" + std::to_string(warps) + ">";
    },
    takes,
    [](const Conv2d& op, Precision precision) {
        const std::size_t element = precision == Precision::tf32 ? sizeof(float) : sizeof(double);
        return static_cast<std::size_t>(Shape(op, nullptr, 1).groups()) * group_weights * element;
    },
    [](const Conv2d& op, Precision precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
       cudaStream_t stream) {
        if (precision == Precision::tf32) return launch_type<float>(op, pointers, epilogue, stream);
        launch_type<double>(op, pointers, epilogue, stream);
    },
};

}  // namespace kbench::cuda::convolution
