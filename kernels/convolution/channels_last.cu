// Convolutions of many channels on tensor cores, stride 1 along the width: all precisions but fp32.
//
// A first kernel lays x out with 64 bytes of channels (a group: 32 in 16 bits, 16 in tf32, 8 in fp64) side by side at
// each position, and the weights as [group][r][s][filter][channel]. A row of x in shared memory then serves all taps s
// of the kernel's width: the fragments of tap s are rows of 64 bytes from row s on, read by ldmatrix. 16-byte chunks
// are swizzled by bits 1 and 2 of the row, so that any eight neighbouring rows lie in different banks.
//
// A warp has 64 positions in two neighbouring output rows. Both read the same row of x, the lower one with the filter
// row that is stride_h further up, so a fragment of x is read once for two products: (64 + 2 x 32) values for 4096
// products. At mma.sync's 1270 multiply-adds per clock and SM, shared memory is busy for 62 % of the time; with one
// output row, 93 %. In fp64 a warp has 32 positions, as sums are twice as wide, and shared memory is busy for 40 %: an
// mma.sync takes 8 clocks there. A block walks over rows of x in steps of stride_h, class by class of r mod stride_h:
// the filter row of one step's upper output row serves the next step's lower one.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/aligned.h"
#include "kernels/convolution/kernel.h"
#include "kernels/convolution/layout.cuh"
#include "kernels/convolution/splits.h"
#include "kernels/convolution/store.cuh"
#include "kernels/cp_async.cuh"
#include "kernels/mma.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::convolution {
namespace {

constexpr int filters = 32;

/// Tuning parameters: warps per block, and the blocks per SM that registers are limited for.
struct Tuning {
    int warps, blocks_per_sm;
};
constexpr Tuning tuning{4, 2};
constexpr int threads = tuning.warps * 32;
template <class T>
inline constexpr int warp_positions = position_blocks<T> * 16;
template <class T>
inline constexpr int block_positions = tuning.warps* warp_positions<T>;

/// Shared memory: two rows of x and the weights of three filter rows.
template <class T, int kernel_w>
struct Layout {
    static constexpr int x_rows = block_positions<T> + kernel_w - 1, x_bytes = x_rows * row_bytes;
    static constexpr int weight_rows = kernel_w * filters, weight_bytes = weight_rows * row_bytes;
    static constexpr int x_stages = 2, weight_stages = 3, bytes = x_stages * x_bytes + weight_stages * weight_bytes;
    static_assert(bytes >= tuning.warps * staging_bytes);
};

struct Shape {
    int groups, height, width, out_height, out_width, kernel_h, stride_h, pad_h, pad_w;
    explicit Shape(const Conv2d& op, int group_size)
        : groups(static_cast<int>(op.in_channels) / group_size),
          height(static_cast<int>(op.height)),
          width(static_cast<int>(op.width)),
          out_height(static_cast<int>(op.out_height())),
          out_width(static_cast<int>(op.out_width())),
          kernel_h(static_cast<int>(op.kernel_h)),
          stride_h(static_cast<int>(op.stride_h)),
          pad_h(static_cast<int>(op.pad_h)),
          pad_w(static_cast<int>(op.pad_w)) {}
    __host__ __device__ int tiles(int positions) const { return (out_width + positions - 1) / positions; }
};

/// A block's steps in order: by group of channels, then class of r, then r. In step r the upper output row multiplies
/// row h = h0 + r of x with filter row r, the lower one with r - stride_h; one of these may not exist. A class whose
/// first r exceeds stride_h is preceded by a step that only fetches the filter row that its lower row needs.
class Walk {
  public:
    /// Walks over part `part` of `parts`, which have about equally many steps.
    __device__ Walk(const Shape& shape, int h0, bool has_lower, int part, int parts)
        : stride_(shape.stride_h),
          first_(max(0, -h0)),
          last_(min(shape.kernel_h - 1 + (has_lower ? shape.stride_h : 0), shape.height - 1 - h0)),
          has_lower_(has_lower) {
        const int all = last_ < first_ ? 0 : (last_ - first_ + 1) * shape.groups;
        const int from = static_cast<int>(std::int64_t{all} * part / parts);
        left_ = static_cast<int>(std::int64_t{all} * (part + 1) / parts) - from;
        if (left_ == 0) return;
        int skipped = from;
        enter();
        while (skipped >= steps_of_class()) {
            skipped -= steps_of_class();
            next_class();
        }
        r_ += skipped * stride_;
        fetch_ahead();
    }
    __device__ bool done() const { return left_ == 0; }
    __device__ bool only_fetches() const { return only_fetches_; }
    __device__ int group() const { return group_; }
    __device__ int r() const { return r_; }

    __device__ void advance() {
        r_ += stride_;
        if (only_fetches_) {
            only_fetches_ = false;
            return;
        }
        if (--left_ == 0 || r_ <= last_) return;
        do next_class();
        while (steps_of_class() == 0);
        fetch_ahead();
    }

  private:
    /// Moves to the first r of the class that is not below first_.
    __device__ void enter() { r_ = first_ + ((class_ - first_) % stride_ + stride_) % stride_; }
    __device__ int steps_of_class() const { return r_ > last_ ? 0 : (last_ - r_) / stride_ + 1; }
    __device__ void next_class() {
        if (++class_ == stride_) class_ = 0, ++group_;
        enter();
    }
    __device__ void fetch_ahead() {
        only_fetches_ = has_lower_ && r_ >= stride_;
        if (only_fetches_) r_ -= stride_;
    }

    int stride_, first_, last_;
    bool has_lower_, only_fetches_ = false;
    int left_, class_ = 0, group_ = 0, r_ = 0;
};

template <class T>
struct Product {
    static __device__ void add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], a, b0, b1);
    }
};
template <>
struct Product<float> {
    static __device__ void add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
        const float x[4] = {__uint_as_float(a[0]), __uint_as_float(a[1]), __uint_as_float(a[2]), __uint_as_float(a[3])};
        mma_16x8x8(c[0], c[1], c[2], c[3], x, __uint_as_float(b0), __uint_as_float(b1));
    }
};

template <>
struct Product<double> {
    static __device__ void add(double (&c)[4], const double (&a)[4], double b0, double b1) {
        mma_16x8x8(c[0], c[1], c[2], c[3], a, b0, b1);
    }
};

/// Fragments for one tap s and `bytes` of channels: of x, and of two filter rows.
template <class T>
struct Fragments {
    static constexpr int bytes = 32;
    unsigned x[4][4], w[2][4][2];

    /// x_tile starts at the warp's first position plus tap s; `first` is that position in the tile.
    __device__ void read_x(const unsigned char* x_tile, int first, int part, int lane) {
        const unsigned char* const rows = x_tile + swizzled(first + lane % 16, part * 2 + lane / 16);
#pragma unroll
        for (int m = 0; m < 4; ++m) ldmatrix_x4(x[m], rows + m * 16 * row_bytes);  // the swizzle repeats every 16 rows
    }
    __device__ void read_w(int row, const unsigned char* w_tile, int part, int lane) {
        const unsigned char* const rows = w_tile + swizzled(lane / 16 * 8 + lane % 8, part * 2 + lane / 8 % 2);
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            unsigned both[4];
            ldmatrix_x4(both, rows + n * 8 * row_bytes);
#pragma unroll
            for (int j = 0; j < 4; ++j) w[row][n + j / 2][j % 2] = both[j];
        }
    }
};
/// The order of channels is free: a lane's two are neighbours, so that one load brings both.
template <>
struct Fragments<double> {
    static constexpr int bytes = 64;
    double x[2][4], w[2][4][2];

    __device__ void read_x(const unsigned char* x_tile, int first, int, int lane) {
        const unsigned char* const rows = x_tile + swizzled(first + lane / 4, lane % 4);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e) {  // the swizzle repeats every 8 rows
                const auto pair = read_pair(rows + (m * 16 + e * 8) * row_bytes);
                x[m][e] = pair.elements[0], x[m][e + 2] = pair.elements[1];
            }
    }
    __device__ void read_w(int row, const unsigned char* w_tile, int, int lane) {
        const unsigned char* const rows = w_tile + swizzled(lane / 4, lane % 4);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const auto pair = read_pair(rows + n * 8 * row_bytes);
            w[row][n][0] = pair.elements[0], w[row][n][1] = pair.elements[1];
        }
    }
    static __device__ Vector<double, 2> read_pair(const unsigned char* at) {
        return Vector<double, 2>::load(reinterpret_cast<const double*>(at));
    }
};

/// One step: all taps s of a row of x. `upper` and `lower` say which output rows it serves, with weights w[0] and w[1].
template <class T, int kernel_w, bool upper, bool lower>
__device__ __forceinline__ void multiply(WarpSums<T> (&sums)[2], const unsigned char* x,
                                         const unsigned char* const (&w)[2], int first_position, int lane) {
    constexpr int parts = row_bytes / Fragments<T>::bytes, steps = kernel_w * parts;
    const auto read = [&](Fragments<T>& f, int step) {
        const int s = step / parts, part = step % parts;
        f.read_x(x, first_position + s, part, lane);
        if (upper) f.read_w(0, w[0] + s * filters * row_bytes, part, lane);
        if (lower) f.read_w(1, w[1] + s * filters * row_bytes, part, lane);
    };
    Fragments<T> fragments[2];
    read(fragments[0], 0);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) read(fragments[(step + 1) % 2], step + 1);
        Fragments<T>& f = fragments[step % 2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            if (row == 0 ? !upper : !lower) continue;
#pragma unroll
            for (int m = 0; m < position_blocks<T>; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n) Product<T>::add(sums[row][m][n], f.x[m], f.w[row][n][0], f.w[row][n][1]);
        }
    }
}

/// x: [batch][groups][height][width][64 bytes], weights: [groups][kernel_h][kernel_w][filters][64 bytes]. Writes out,
/// or the sums of a part to parts [part][elements of out].
template <class T, int kernel_w>
__global__ __launch_bounds__(threads, tuning.blocks_per_sm) void conv2d_channels_last(
    const unsigned char* __restrict__ x, const unsigned char* __restrict__ weights, T* __restrict__ out,
    Arithmetic<T>* __restrict__ parts, std::int64_t part_elements, Shape shape, Grid grid, Epilogue<T> epilogue) {
    using L = Layout<T, kernel_w>;
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ typename Epilogue<T>::Channel channels[filters];
    unsigned char* const x_tiles = smem;
    unsigned char* const w_tiles = smem + L::x_stages * L::x_bytes;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;

    const Grid::Block block = grid.block(static_cast<int>(blockIdx.x));
    const int tiles = shape.tiles(block_positions<T>);
    const int n = block.of_row / tiles, first_column = block.of_row % tiles * block_positions<T>;
    const int p = block.row * 2, h0 = p * shape.stride_h - shape.pad_h;
    const bool has_lower = p + 1 < shape.out_height;
    const auto ends = epilogue.ends(n, shape.out_width);
    if (thread < filters) channels[thread] = epilogue.channel(thread);

    const auto fetch = [&](const Walk& walk, int step) {
        if (!walk.only_fetches()) {
            const unsigned char* const row =
                x + ((std::int64_t{n} * shape.groups + walk.group()) * shape.height + (h0 + walk.r())) * shape.width *
                        row_bytes;
            unsigned char* const to = x_tiles + step % L::x_stages * L::x_bytes;
            for (int i = thread; i < L::x_rows * row_chunks; i += threads) {
                const int at = i / row_chunks, chunk = i % row_chunks, column = first_column - shape.pad_w + at;
                const bool inside = column >= 0 && column < shape.width;
                cp_async_if<16>(to + swizzled(at, chunk), row + (inside ? column * row_bytes + chunk * 16 : 0), inside);
            }
        }
        if (walk.r() < shape.kernel_h) {
            const unsigned char* const from =
                weights + std::int64_t{walk.group() * shape.kernel_h + walk.r()} * L::weight_bytes;
            unsigned char* const to = w_tiles + step % L::weight_stages * L::weight_bytes;
#pragma unroll 4
            for (int i = thread; i < L::weight_rows * row_chunks; i += threads)
                cp_async_16(to + swizzled(i / row_chunks, i % row_chunks), from + i * 16);
        }
        cp_async_commit();
    };

    WarpSums<T> sums[2] = {};
    const int warp_column = warp * warp_positions<T>;
    // Where the last mask makes zeros, nothing needs to be summed.
    const bool in_use = first_column + warp_column < min(shape.out_width, ends.masks[2]);
    if (first_column < ends.masks[2]) {
        Walk walk(shape, h0, has_lower, block.part, block.parts);
        if (!walk.done()) fetch(walk, 0);
        for (int step = 0; !walk.done(); ++step) {
            const Walk now = walk;
            walk.advance();
            cp_async_wait<0>();
            __syncthreads();  // this step's tiles have arrived, and all warps are done with those to be overwritten
            if (!walk.done()) fetch(walk, step + 1);
            if (now.only_fetches() || !in_use) continue;
            const unsigned char* const row = x_tiles + step % L::x_stages * L::x_bytes;
            const unsigned char* const w[2] = {
                w_tiles + step % L::weight_stages * L::weight_bytes,
                w_tiles + (step + L::weight_stages - 1) % L::weight_stages * L::weight_bytes};
            const bool upper = now.r() < shape.kernel_h, lower = has_lower && now.r() >= shape.stride_h;
            if (upper && lower)
                multiply<T, kernel_w, true, true>(sums, row, w, warp_column, lane);
            else if (upper)
                multiply<T, kernel_w, true, false>(sums, row, w, warp_column, lane);
            else
                multiply<T, kernel_w, false, true>(sums, row, w, warp_column, lane);
        }
    }
    __syncthreads();  // from here the tiles' memory stages the output; `channels` is written

    unsigned char* const staging = smem + warp * staging_bytes;
    const std::int64_t plane = std::int64_t{shape.out_height} * shape.out_width;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        if (row == 1 && !has_lower) break;
        const std::int64_t at = std::int64_t{n} * filters * plane + std::int64_t{p + row} * shape.out_width;
        const bool vectors = shape.out_width % 4 == 0;
        if (block.parts > 1)
            store_sums(sums[row], staging, parts + block.part * part_elements + at, plane, first_column + warp_column,
                       shape.out_width, vectors, lane, [](Arithmetic<T> sum, int, int) { return sum; });
        else
            store_sums(sums[row], staging, out + at, plane, first_column + warp_column, shape.out_width,
                       vectors && reinterpret_cast<std::uintptr_t>(out) % 16 == 0, lane,
                       [&](Arithmetic<T> sum, int filter, int column) {
                           return epilogue(sum, channels[filter], ends, column);
                       });
    }
}

/// The first blocks lay out weights, the others x: `layout_positions` positions of a row and group each.
template <class T, int vector>
__global__ __launch_bounds__(layout_threads) void conv2d_layout(const T* __restrict__ x, const T* __restrict__ weight,
                                                                T* __restrict__ x_out, T* __restrict__ weight_out,
                                                                Shape shape, int kernel_w, unsigned weight_blocks) {
    const int thread = threadIdx.x;
    if (blockIdx.x < weight_blocks) {
        const int i = static_cast<int>(blockIdx.x) * layout_threads + thread;
        const int c = i % group<T>, k = i / group<T> % filters, tap = i / group<T> / filters;
        const int s = tap % kernel_w, r = tap / kernel_w % shape.kernel_h, g = tap / kernel_w / shape.kernel_h;
        if (g >= shape.groups) return;
        weight_out[i] =
            weight[((std::int64_t{k} * shape.groups * group<T> + g * group<T> + c) * shape.kernel_h + r) * kernel_w +
                   s];
        return;
    }
    lay_out_positions<T, vector>(x, x_out, shape.height, shape.width, blockIdx.x - weight_blocks);
}

constexpr int kernel_width = 11;

template <class T>
Blocks blocks_of(const Conv2d& op) {
    const Shape shape(op, group<T>);
    // A block has two rows of 32 filters. Two blocks on an SM share this many multiply-adds per clock, at 1.7 GHz.
    constexpr double of_clock = sizeof(T) == 2 ? 1000 : sizeof(T) == 4 ? 470 : 100;
    const double products = 2.0 * block_positions<T> * filters * static_cast<double>(op.taps());
    return {.out_rows = 2,
            .of_row = op.batch * shape.tiles(block_positions<T>),
            .resident = 132 * tuning.blocks_per_sm,
            .us = products / (of_clock * 1700) * tuning.blocks_per_sm,
            .most_parts = static_cast<int>(std::min<std::int64_t>(8, op.kernel_h * shape.groups)),
            .sum_bytes = sizeof(Arithmetic<T>)};
}

/// Workspace: x and the weights as laid out, then the sums of the parts.
template <class T>
struct Workspace {
    Grid grid;
    std::size_t x, weights, parts;
    explicit Workspace(const Conv2d& op)
        : grid(best_grid(op, blocks_of<T>(op))),
          x(aligned(static_cast<std::size_t>(op.batch * op.in_channels * op.height * op.width) * sizeof(T))),
          weights(aligned(static_cast<std::size_t>(op.out_channels * op.taps()) * sizeof(T))),
          parts(parts_bytes(op, blocks_of<T>(op), grid)) {}
    std::size_t bytes() const { return x + weights + parts; }
};

template <class T>
void launch_type(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                 cudaStream_t stream) {
    const Shape shape(op, group<T>);
    const Workspace<T> space(op);
    auto* const x = static_cast<unsigned char*>(pointers.workspace);
    unsigned char* const weights = x + space.x;
    auto* const parts = reinterpret_cast<Arithmetic<T>*>(weights + space.weights);

    const auto weight_blocks = static_cast<unsigned>(divide_up(op.out_channels * op.taps(), layout_threads));
    const std::int64_t rows = op.batch * shape.groups * op.height;
    const auto blocks = static_cast<unsigned>(weight_blocks + rows * divide_up(op.width, layout_positions));
    const bool vectors = op.width % 4 == 0 && reinterpret_cast<std::uintptr_t>(pointers.x) % 16 == 0;
    (vectors ? conv2d_layout<T, 4> : conv2d_layout<T, 1>)<<<blocks, layout_threads, 0, stream>>>(
        static_cast<const T*>(pointers.x), static_cast<const T*>(pointers.weight), reinterpret_cast<T*>(x),
        reinterpret_cast<T*>(weights), shape, kernel_width, weight_blocks);
    KBENCH_CUDA_LAUNCHED("conv2d_layout");

    constexpr auto kernel = conv2d_channels_last<T, kernel_width>;
    constexpr int smem = Layout<T, kernel_width>::bytes;
    allow_shared_memory(kernel, smem);
    const std::int64_t elements = op.batch * op.out_channels * op.out_height() * op.out_width();
    kernel<<<space.grid.blocks(), threads, smem, stream>>>(x, weights, static_cast<T*>(pointers.out), parts, elements,
                                                           shape, space.grid, Epilogue<T>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_channels_last");
    constexpr DataType type = std::is_same_v<T, __half>          ? DataType::fp16
                              : std::is_same_v<T, __nv_bfloat16> ? DataType::bf16
                              : std::is_same_v<T, float>         ? DataType::fp32
                                                                 : DataType::fp64;
    if (space.grid.is_cut()) combine_parts(op, type, space.grid, 2, parts, pointers.out, epilogue, stream);
}

/// The kernel's static shared memory comes on top.
int smem_bytes(Precision precision) {
    int bytes = 0;
    dispatch(storage_type(precision), [&]<class T>() {
        bytes = Layout<T, kernel_width>::bytes + filters * static_cast<int>(sizeof(typename Epilogue<T>::Channel));
    });
    return bytes;
}

/// Each row of x that a block walks over must belong to one of its output rows; strides larger than the kernel's height
/// leave gaps.
bool takes(const Conv2d& op, Precision precision) {
    if (precision == Precision::fp32) return false;
    const auto channels = static_cast<std::int64_t>(row_bytes / size_of(storage_type(precision)));
    return op.in_channels % channels == 0 && op.out_channels == filters && op.kernel_w == kernel_width &&
           op.stride_w == 1 && op.stride_h <= op.kernel_h && smem_bytes(precision) <= shared_bytes_of_block();
}

}  // namespace

const Kernel channels_last{
    [](const Conv2d& op, Precision precision) {
        std::string parts;
        dispatch(storage_type(precision), [&]<class T>() { parts = of_parts(Workspace<T>(op).grid); });
        return "conv2d_channels_last<" + std::to_string(tuning.warps) + ">" + parts;
    },
    takes,
    [](const Conv2d& op, Precision precision) {
        std::size_t bytes = 0;
        dispatch(storage_type(precision), [&]<class T>() { bytes = Workspace<T>(op).bytes(); });
        return bytes;
    },
    [](const Conv2d& op, Precision precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
       cudaStream_t stream) {
        dispatch(storage_type(precision), [&]<class T>() { launch_type<T>(op, pointers, epilogue, stream); });
    },
};

}  // namespace kbench::cuda::convolution
