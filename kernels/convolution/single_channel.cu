// Convolutions of one channel with strides of 2 in 16 bits, on tensor cores.
//
// With one channel the sum runs over taps alone, and x is read as it lies: the taps (2 j - 1, 2 j) of position q are
// word q + j of a row of x in shared memory. So a fragment of 16 positions is four words per lane, without bank
// conflicts. 11 taps take 12 places (the first is multiplied by 0, so x must be finite); four filter rows take 48,
// which is three products deep. Only a stride of 2 makes neighbouring positions
// neighbouring words.
//
// A warp has 64 positions of output rows p and p + 2. Both read the same rows of x, the lower one with filter rows 4
// less, which is the group of four before. As in channels_last.cu a fragment of x then serves two products.
#include "kernels/check.h"
#include "kernels/convolution/kernel.h"
#include "kernels/convolution/splits.h"
#include "kernels/convolution/store.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int kernel_w = 11, filters = 32, stride = 2, warp_positions = 64;
constexpr int group_rows = 4, pairs_of_row = 6, depth = 16, group_products = group_rows * pairs_of_row * 2 / depth;
constexpr int product_bytes = filters * depth * 2, group_bytes = group_products * product_bytes;

/// Tuning parameters: blocks of four warps per SM that registers are limited for, and the phases in which tiles arrive,
/// so that the first is multiplied while the others are still being copied.
constexpr int blocks_per_sm = 2, phases = 3;

/// Tiles start at a multiple of 8 columns of x, for copies of 16 bytes: this many columns before the first tap of the
/// first position. The kernel takes only paddings for which this holds.
constexpr int columns_before = 3;

struct Shape {
    int height, width, out_height, out_width, kernel_h, pad_h, pad_w;
    bool vectors_in;
    explicit Shape(const Conv2d& op, const void* x)
        : height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)),
          vectors_in(width % 8 == 0 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) {}
    __host__ __device__ int tiles(int positions) const { return (out_width + positions - 1) / positions; }
    /// Number of pairs of output rows p and p + 2. In the last rows of an image some rows have no partner.
    __host__ __device__ int pairs() const { return out_height / 4 * 2 + (out_height % 4 < 2 ? out_height % 4 : 2); }
    __host__ __device__ int groups() const { return (kernel_h + group_rows - 1) / group_rows; }
};

/// Pitch of a row of x in words: 16 over a multiple of 32, so that the same words of neighbouring rows lie in different
/// halves of the banks.
template <int warps>
inline constexpr int pitch = warps* warp_positions + 16;

/// x for the groups of both output rows, then the weights; at least what storing the output needs.
template <int warps>
int smem_bytes(const Shape& shape) {
    const int tiles = (shape.groups() + 1) * group_rows * pitch<warps> * 4 + shape.groups() * group_bytes;
    return tiles > warps * staging_bytes ? tiles : warps * staging_bytes;
}

struct Fragments {
    unsigned x[4][4], w[2][4][2];
};

/// One group of four rows of x. `upper` and `lower` say which output rows it serves, with weights w[0] and w[1].
/// words: where the lane's words for the lower and upper half of each product lie in the group.
template <class T, int warps, bool upper, bool lower>
__device__ __forceinline__ void multiply(WarpSums<T> (&sums)[2], const unsigned* x, const unsigned char* const (&w)[2],
                                         const int (&words)[group_products][2], int lane) {
    const auto read = [&](Fragments& f, int product) {
#pragma unroll
        for (int m = 0; m < 4; ++m)
#pragma unroll
            for (int e = 0; e < 4; ++e) f.x[m][e] = x[words[product][e / 2] + m * 16 + e % 2 * 8];
        const int filter = lane / 16 * 8 + lane % 8, chunk = lane / 8 % 2;
        const int of_w = product * product_bytes + filter * 32 + ((chunk ^ (filter >> 2 & 1)) << 4);
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (row == 0 ? !upper : !lower) continue;
#pragma unroll
            for (int n = 0; n < 4; n += 2) {
                unsigned both[4];
                ldmatrix_x4(both, w[row] + of_w + n * 8 * 32);
#pragma unroll
                for (int j = 0; j < 4; ++j) f.w[row][n + j / 2][j % 2] = both[j];
            }
        }
    };
    Fragments fragments[2];
    read(fragments[0], 0);
#pragma unroll
    for (int product = 0; product < group_products; ++product) {
        if (product + 1 < group_products) read(fragments[(product + 1) % 2], product + 1);
        Fragments& f = fragments[product % 2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (row == 0 ? !upper : !lower) continue;
#pragma unroll
            for (int m = 0; m < 4; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    float(&c)[4] = sums[row][m][n];
                    Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], f.x[m], f.w[row][n][0], f.w[row][n][1]);
                }
        }
    }
}

/// weights: [groups][products][filters][16].
template <class T, int warps>
__global__ __launch_bounds__(warps * 32, blocks_per_sm * 4 / warps) void conv2d_single_channel(
    const T* __restrict__ x, const unsigned char* __restrict__ weights, T* __restrict__ out, Shape shape, Grid grid,
    Epilogue<T> epilogue) {
    constexpr int threads = warps * 32, positions = warps * warp_positions, row_chunks = warps * 16 + 2;
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ typename Epilogue<T>::Channel channels[filters];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int groups = shape.groups(), tiles = shape.tiles(positions);
    unsigned* const x_tile = reinterpret_cast<unsigned*>(smem);
    unsigned char* const w_tile = smem + (groups + 1) * group_rows * pitch<warps> * 4;

    const Grid::Block block = grid.block(static_cast<int>(blockIdx.x));
    const int n = block.of_row / tiles, first_column = block.of_row % tiles * positions;
    const int p = block.row / 2 * 4 + block.row % 2, h0 = p * stride - shape.pad_h;
    const bool has_lower = p + 2 < shape.out_height;
    const auto ends = epilogue.ends(n, shape.out_width);
    if (thread < filters) channels[thread] = epilogue.channel(thread);

    // Groups of rows of x that have any row of the image; the last one only serves the lower output row. Where the
    // last mask makes zeros, nothing needs to be summed.
    const int first_group = max(0, -h0) / group_rows;
    const int rows = min((groups + has_lower) * group_rows, shape.height - h0);
    const int end_group = first_column < ends.masks[2] ? (rows + group_rows - 1) / group_rows : 0;
    const int phase_groups = max(1, (end_group - first_group + phases - 1) / phases);

    const auto fetch = [&](int group) {
        for (int i = thread; i < group_rows * row_chunks; i += threads) {
            const int row = i / row_chunks, chunk = i % row_chunks, h = h0 + group * group_rows + row;
            const int column = first_column * stride - shape.pad_w - columns_before + chunk * 8;
            unsigned* const to = x_tile + (group * group_rows + row) * pitch<warps> + chunk * 4;
            const bool row_inside = h >= 0 && h < shape.height;
            const T* const from = x + (std::int64_t{n} * shape.height + (row_inside ? h : 0)) * shape.width;
            if (shape.vectors_in) {
                const bool inside = row_inside && column >= 0 && column < shape.width;
                cp_async_if<16>(to, from + (inside ? column : 0), inside);
            } else {
                Vector<T, 8> loaded;
#pragma unroll
                for (int e = 0; e < 8; ++e) {
                    const bool inside = row_inside && column + e >= 0 && column + e < shape.width;
                    loaded.elements[e] = inside ? from[column + e] : T(0.0f);
                }
                loaded.store(reinterpret_cast<T*>(to));
            }
        }
    };
    const auto fetch_weights = [&](int group) {
        for (int i = thread; i < group_bytes / 16; i += threads) {
            const int filter = i / 2, chunk = i % 2;
            cp_async_16(w_tile + group * group_bytes + filter * 32 + ((chunk ^ (filter >> 2 & 1)) << 4),
                        weights + group * group_bytes + i * 16);
        }
    };
#pragma unroll
    for (int phase = 0; phase < phases; ++phase) {
        const int begin = first_group + phase * phase_groups, end = min(end_group, begin + phase_groups);
        if (phase == 0 && first_group > 0 && begin < end) fetch_weights(first_group - 1);
        for (int group = begin; group < end; ++group) {
            fetch(group);
            if (group < groups) fetch_weights(group);
        }
        cp_async_commit();
    }

    int words[group_products][2];
#pragma unroll
    for (int product = 0; product < group_products; ++product)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int pair_of_taps = product * 8 + half * 4 + lane % 4;
            words[product][half] = pair_of_taps / pairs_of_row * pitch<warps> + pair_of_taps % pairs_of_row +
                                   (columns_before - 1) / 2 + lane / 4 + warp * warp_positions;
        }
    WarpSums<T> sums[2] = {};
    const bool in_use = first_column + warp * warp_positions < min(shape.out_width, ends.masks[2]);
    const auto sum_up = [&](int phase) {
        __syncthreads();
        const int begin = first_group + phase * phase_groups, end = min(end_group, begin + phase_groups);
        if (!in_use) return;
#pragma unroll 1
        for (int group = begin; group < end; ++group) {
            const unsigned* const tile = x_tile + group * group_rows * pitch<warps>;
            const unsigned char* const w[2] = {w_tile + group * group_bytes, w_tile + (group - 1) * group_bytes};
            const bool upper = group < groups, lower = has_lower && group > 0;
            if (upper && lower)
                multiply<T, warps, true, true>(sums, tile, w, words, lane);
            else if (upper)
                multiply<T, warps, true, false>(sums, tile, w, words, lane);
            else
                multiply<T, warps, false, true>(sums, tile, w, words, lane);
        }
    };
    static_assert(phases == 3);
    cp_async_wait<2>();
    sum_up(0);
    cp_async_wait<1>();
    sum_up(1);
    cp_async_wait<0>();
    sum_up(2);
    __syncthreads();  // from here the tiles' memory stages the output

    const std::int64_t plane = std::int64_t{shape.out_height} * shape.out_width;
    const bool vectors = shape.out_width % 4 == 0 && reinterpret_cast<std::uintptr_t>(out) % 16 == 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        if (row == 1 && !has_lower) break;
        store_sums(sums[row], smem + warp * staging_bytes,
                   out + std::int64_t{n} * filters * plane + std::int64_t{p + row * 2} * shape.out_width, plane,
                   first_column + warp * warp_positions, shape.out_width, vectors, lane,
                   [&](float sum, int filter, int column) { return epilogue(sum, channels[filter], ends, column); });
    }
}

/// [filters][kernel_h][kernel_w] -> [groups][products][filters][16]: taps in pairs after one empty place.
template <class T>
__global__ void conv2d_pairs_of_taps(const T* __restrict__ weight, T* __restrict__ to, int kernel_h, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= count) return;
    const int k = i / depth % filters, product = i / depth / filters;
    const int place = product % group_products * depth + i % depth, row = place / (2 * pairs_of_row);
    const int r = product / group_products * group_rows + row, s = place % (2 * pairs_of_row) - 1;
    to[i] = s >= 0 && r < kernel_h ? weight[(k * kernel_h + r) * kernel_w + s] : T(0.0f);
}

/// Blocks of four warps, or of two where blocks of four would leave SMs idle.
int warps_for(const Conv2d& op) {
    const Shape shape(op, nullptr);
    return op.batch * shape.tiles(4 * warp_positions) * shape.pairs() < 132 * blocks_per_sm ? 2 : 4;
}

template <class T, int warps>
void launch_warps(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                  cudaStream_t stream) {
    const Shape shape(op, pointers.x);
    const int count = shape.groups() * group_bytes / 2;
    conv2d_pairs_of_taps<T><<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, stream>>>(
        static_cast<const T*>(pointers.weight), static_cast<T*>(pointers.workspace), shape.kernel_h, count);
    KBENCH_CUDA_LAUNCHED("conv2d_pairs_of_taps");
    constexpr auto kernel = conv2d_single_channel<T, warps>;
    const int smem = smem_bytes<warps>(shape);
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const Grid grid = whole_grid(shape.pairs(), op.batch * shape.tiles(warps * warp_positions));
    kernel<<<grid.blocks(), warps * 32, smem, stream>>>(
        static_cast<const T*>(pointers.x), static_cast<const unsigned char*>(pointers.workspace),
        static_cast<T*>(pointers.out), shape, grid, Epilogue<T>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_single_channel");
}

template <class T>
void launch_type(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                 cudaStream_t stream) {
    if (warps_for(op) == 2) return launch_warps<T, 2>(op, pointers, epilogue, stream);
    launch_warps<T, 4>(op, pointers, epilogue, stream);
}

/// Refuses kernels so high that the tiles need more than half of an SM's shared memory.
bool takes(const Conv2d& op, Precision precision) {
    return (precision == Precision::fp16 || precision == Precision::bf16) && op.in_channels == 1 &&
           op.out_channels == filters && op.kernel_w == kernel_w && op.stride_h == stride && op.stride_w == stride &&
           (op.pad_w + columns_before) % 8 == 0 && smem_bytes<4>(Shape(op, nullptr)) <= 99 * 1024;
}

}  // namespace

const Kernel single_channel{
    [](const Conv2d& op, Precision) { return "conv2d_single_channel<" + std::to_string(warps_for(op)) + ">"; },
    takes,
    [](const Conv2d& op, Precision) { return static_cast<std::size_t>(Shape(op, nullptr).groups()) * group_bytes; },
    [](const Conv2d& op, Precision precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
       cudaStream_t stream) {
        if (precision == Precision::fp16) return launch_type<__half>(op, pointers, epilogue, stream);
        launch_type<__nv_bfloat16>(op, pointers, epilogue, stream);
    },
};

}  // namespace kbench::cuda::convolution
