// Convolutions 11 taps wide in fp32 with fewer multiplications: Winograd's minimal filtering along the width.
//
// The 11 taps are three groups of 4 (the last tap of the last is 0). Four neighbouring outputs of a group need 16
// products, and 7 between transforms: of 7 elements of x, of 4 taps, and back. They are polynomials' values at 0, 1,
// -1, 1/2, -1/2, -2 and infinity, the points that were found to round least: over 3,872 terms the error is 1.7 times
// that of plain sums in fp32. A group's outputs lie 4 elements of x further on than the group's before it, so a
// transformed tile of x serves all three, and each point is a convolution of its own over tiles, 3 taps wide, that
// direct_fp32.cuh computes: 21 multiply-adds for what takes 44. Transforms read and write what memory moves in a tenth
// of the time.
// What is not finite in x spreads to the four outputs of its tiles.
#include <algorithm>

#include "kernels/check.h"
#include "kernels/convolution/direct_fp32.cuh"
#include "kernels/convolution/kernel.h"

namespace kbench::cuda::convolution {
namespace {

using direct::filters;

constexpr int kernel_w = 11, tile = 4, group_taps = 4, groups = 3, points = tile + group_taps - 1;
constexpr int threads = 256;
static_assert(groups * group_taps >= kernel_w && tile == group_taps, "a tile of x serves all groups");

/// Tiles of an output row; what is stored of a row, with the tiles that its last outputs read besides.
std::int64_t tiles_of(const Conv2d& op) { return divide_up(op.out_width(), tile); }
std::int64_t pitch_of(const Conv2d& op) { return divide_up(tiles_of(op) + groups - 1, 4) * 4; }

/// The convolutions over tiles, those of a point behind one another; as wide as their rows are stored.
Conv2d over_tiles(const Conv2d& op) {
    return {points * op.batch, op.in_channels, op.height, pitch_of(op), filters, op.kernel_h, groups, op.stride_h, 1,
            op.pad_h,          groups / 2};
}

/// to[point][row][t] of the elements 4 t - pad_w .. + 6 of each row of x, zeros outside; row: of [batch][channels]
/// [height].
__global__ __launch_bounds__(threads) void conv2d_winograd_input(const float* __restrict__ x, float* __restrict__ to,
                                                                 int width, int pad_w, int pitch,
                                                                 unsigned point_elements) {
    const unsigned i = blockIdx.x * threads + threadIdx.x;
    if (i >= point_elements) return;
    const unsigned row = i / static_cast<unsigned>(pitch);
    const int first = static_cast<int>(i % static_cast<unsigned>(pitch)) * tile - pad_w;
    const float* const from = x + std::int64_t{row} * width;
    float d[points];
#pragma unroll
    for (int j = 0; j < points; ++j) d[j] = first + j >= 0 && first + j < width ? from[first + j] : 0.0f;
    const float v[points] = {
        2 * d[0] + d[1] - 10 * d[2] - 5 * d[3] + 8 * d[4] + 4 * d[5],
        -2 * d[1] - 3 * d[2] + 7 * d[3] + 12 * d[4] + 4 * d[5],
        2 * d[1] - d[2] - 9 * d[3] + 4 * d[4] + 4 * d[5],
        2 * (d[1] - d[5]) + 5 * (d[2] - d[4]),
        -2 * (d[1] + d[5]) + 3 * (d[2] - d[4]) + 4 * d[3],
        5 * d[3] - d[1] - 4 * d[5],
        2 * d[1] + d[2] - 10 * d[3] - 5 * d[4] + 8 * d[5] + 4 * d[6],
    };
#pragma unroll
    for (int p = 0; p < points; ++p) to[std::int64_t{p} * point_elements + i] = v[p];
}

/// weight [filters][lines][kernel_w] to to[point][lines][groups][filters]; lines: channels times filter rows.
__global__ __launch_bounds__(threads) void conv2d_winograd_weights(const float* __restrict__ weight,
                                                                   float* __restrict__ to, int lines) {
    const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
    const int point_elements = lines * groups * filters;
    if (i >= point_elements) return;
    const int k = i % filters, group = i / filters % groups, line = i / filters / groups;
    const float* const from = weight + (std::int64_t{k} * lines + line) * kernel_w;
    float w[group_taps];
#pragma unroll
    for (int j = 0; j < group_taps; ++j) {
        const int s = group * group_taps + j;
        w[j] = s < kernel_w ? from[s] : 0.0f;
    }
    const float u[points] = {
        w[0] / 2,
        (w[0] + w[2] + (w[1] + w[3])) / 18,
        (w[0] + w[2] - (w[1] + w[3])) / 6,
        (8 * w[0] + 2 * w[2] + (4 * w[1] + w[3])) / 15,
        (8 * w[0] + 2 * w[2] - (4 * w[1] + w[3])) / 9,
        (w[0] + 4 * w[2] - (2 * w[1] + 8 * w[3])) / 90,
        w[3] / 4,
    };
#pragma unroll
    for (int p = 0; p < points; ++p) to[std::int64_t{p} * point_elements + i] = u[p];
}

struct Sums {
    const float *whole, *parts;  ///< [points][batch][filters][out_height][pitch], parts behind one another
    std::int64_t point_elements;
    int pitch;
};

/// out = epilogue(the four outputs of each tile). A thread has a tile.
template <bool vectors>
__global__ __launch_bounds__(threads) void conv2d_winograd_output(Sums sums, float* __restrict__ out, int out_height,
                                                                  int out_width, unsigned tiles, unsigned all_tiles,
                                                                  Grid grid, Epilogue<float> epilogue) {
    const unsigned i = blockIdx.x * threads + threadIdx.x;
    if (i >= all_tiles) return;
    const unsigned row = i / tiles, t = i % tiles;
    const unsigned plane = row / static_cast<unsigned>(out_height);
    const int block_row = static_cast<int>(row % static_cast<unsigned>(out_height)) / direct::tuning.out_rows;
    const bool is_whole = block_row >= grid.whole_begin() && block_row < grid.whole_end();
    const float* const from = (is_whole ? sums.whole : sums.parts) + std::int64_t{row} * sums.pitch + t;
    const int parts = is_whole ? 1 : grid.parts;
    float m[points] = {};
    for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int p = 0; p < points; ++p) m[p] += from[(std::int64_t{part} * points + p) * sums.point_elements];

    const float even = m[1] + m[2], odd = m[1] - m[2], half_even = m[3] + m[4], half_odd = m[3] - m[4];
    const float y[tile] = {m[0] + even + half_even + m[5], odd + half_odd / 2 - 2 * m[5],
                           even + half_even / 4 + 4 * m[5], odd + half_odd / 8 - 8 * m[5] + m[6]};
    const auto channel = epilogue.channel(plane % filters);
    const auto ends = epilogue.ends(plane / filters, out_width);
    const int column = static_cast<int>(t) * tile;
    Vector<float, tile> four;
#pragma unroll
    for (int e = 0; e < tile; ++e) four.elements[e] = epilogue(y[e], channel, ends, column + e);
    float* const to = out + std::int64_t{row} * out_width + column;
    if (vectors)
        four.store(to);
    else
#pragma unroll
        for (int e = 0; e < tile; ++e)
            if (column + e < out_width) to[e] = four.elements[e];
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
std::size_t float_bytes(std::int64_t elements) { return aligned(static_cast<std::size_t>(elements) * sizeof(float)); }

/// Transformed x and weights, then the sums of whole blocks, then the parts'.
struct Workspace {
    Conv2d of_tiles;
    Blocks blocks;
    Grid grid;
    std::int64_t x_elements, sum_elements;  ///< of a point
    std::size_t x, weights, sums, parts;
    explicit Workspace(const Conv2d& op)
        : of_tiles(over_tiles(op)),
          blocks(direct::blocks_of(of_tiles, static_cast<int>(divide_up(of_tiles.out_width(), direct::positions)))),
          grid(best_grid(of_tiles, blocks)),
          x_elements(op.batch * op.in_channels * op.height * of_tiles.width),
          sum_elements(op.batch * filters * op.out_height() * of_tiles.width),
          x(float_bytes(points * x_elements)),
          weights(float_bytes(points * of_tiles.taps() * filters)),
          sums(float_bytes(points * sum_elements)),
          parts(parts_bytes(of_tiles, blocks, grid)) {}
    std::size_t bytes() const { return x + weights + sums + parts; }
};

unsigned blocks_for(std::int64_t elements) { return static_cast<unsigned>(divide_up(elements, threads)); }

/// Images whose transforms take 1 GiB together, so that the largest batch that fits into memory does not suffer.
std::int64_t images_at_once(const Conv2d& op) {
    const std::int64_t of_image =
        points * pitch_of(op) * (op.in_channels * op.height + filters * op.out_height()) * std::int64_t{sizeof(float)};
    return std::clamp<std::int64_t>((std::int64_t{1} << 30) / of_image, 1, op.batch);
}

Conv2d with_batch(Conv2d op, std::int64_t batch) {
    op.batch = batch;
    return op;
}

void launch_images(const Conv2d& op, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
                   cudaStream_t stream) {
    const Workspace space(op);
    const Conv2d& of_tiles = space.of_tiles;
    auto* const memory = static_cast<char*>(pointers.workspace);
    auto* const x = reinterpret_cast<float*>(memory);
    auto* const weights = reinterpret_cast<float*>(memory + space.x);
    auto* const sums = reinterpret_cast<float*>(memory + space.x + space.weights);
    auto* const parts = reinterpret_cast<float*>(memory + space.x + space.weights + space.sums);

    const std::int64_t weight_elements = of_tiles.taps() * filters;
    conv2d_winograd_weights<<<blocks_for(weight_elements), threads, 0, stream>>>(
        static_cast<const float*>(pointers.weight), weights, static_cast<int>(op.in_channels * op.kernel_h));
    KBENCH_CUDA_LAUNCHED("conv2d_winograd_weights");
    conv2d_winograd_input<<<blocks_for(space.x_elements), threads, 0, stream>>>(
        static_cast<const float*>(pointers.x), x, static_cast<int>(op.width), static_cast<int>(op.pad_w),
        static_cast<int>(of_tiles.width), static_cast<unsigned>(space.x_elements));
    KBENCH_CUDA_LAUNCHED("conv2d_winograd_input");

    const Conv2dMask& last = epilogue.masks[2];
    const direct::Shape shape{
        .channels = static_cast<int>(op.in_channels),
        .height = static_cast<int>(op.height),
        .width = static_cast<int>(of_tiles.width),
        .out_height = static_cast<int>(op.out_height()),
        .out_width = static_cast<int>(of_tiles.width),
        .kernel_h = static_cast<int>(op.kernel_h),
        .stride_h = static_cast<int>(op.stride_h),
        .pad_h = static_cast<int>(op.pad_h),
        .pad_w = 0,  // tiles of x begin where a row's padding does
        .vectors_in = true,
        .vectors_out = true,
        .images_of_weights = static_cast<int>(op.batch),
        .needed = epilogue.chain ? Conv2dMask{last.lengths, last.frames_per_step * tile} : Conv2dMask{}};
    direct::launch<groups, 0, 1, true>(x, weights, sums, parts, points * space.sum_elements, shape, space.grid, {},
                                       stream);

    const auto tiles = static_cast<unsigned>(tiles_of(op));
    const std::int64_t all_tiles = op.batch * filters * op.out_height() * tiles;
    const bool vectors = op.out_width() % tile == 0 && reinterpret_cast<std::uintptr_t>(pointers.out) % 16 == 0;
    (vectors ? conv2d_winograd_output<true>
             : conv2d_winograd_output<false>)<<<blocks_for(all_tiles), threads, 0, stream>>>(
        {sums, parts, space.sum_elements, static_cast<int>(of_tiles.width)}, static_cast<float*>(pointers.out),
        static_cast<int>(op.out_height()), static_cast<int>(op.out_width()), tiles, static_cast<unsigned>(all_tiles),
        space.grid, Epilogue<float>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_winograd_output");
}

void launch(const Conv2d& op, Precision, const Conv2dPointers& pointers, const Conv2dEpilogue& epilogue,
            cudaStream_t stream) {
    const std::int64_t at_once = images_at_once(op);
    for (std::int64_t first = 0; first < op.batch; first += at_once) {
        Conv2dPointers at = pointers;
        at.x = static_cast<const float*>(at.x) + first * op.in_channels * op.height * op.width;
        at.out = static_cast<float*>(at.out) + first * filters * op.out_height() * op.out_width();
        Conv2dEpilogue epilogue_at = epilogue;
        if (epilogue.chain)
            for (Conv2dMask& mask : epilogue_at.masks) mask.lengths += first;
        launch_images(with_batch(op, std::min(at_once, op.batch - first)), at, epilogue_at, stream);
    }
}

/// Of the largest of the calls that launch makes: the last may have fewer images, cut into more parts.
std::size_t workspace(const Conv2d& op, Precision) {
    const std::int64_t at_once = images_at_once(op), rest = op.batch % at_once;
    const std::size_t bytes = Workspace(with_batch(op, at_once)).bytes();
    return rest == 0 ? bytes : std::max(bytes, Workspace(with_batch(op, rest)).bytes());
}

/// Where its blocks, which have 128 tiles of a row, multiply a fifth less at least than blocks of 128 positions would:
/// a short row leaves most of them empty. Few channels would not pay for the transforms. Elements of a point are
/// counted in 32 bits.
bool takes(const Conv2d& op, Precision precision) {
    if (precision != Precision::fp32 || op.out_channels != filters || op.kernel_w != kernel_w || op.stride_w != 1 ||
        op.stride_h > 2 || op.in_channels < 16)
        return false;
    // An image alone may take more than what images take at once.
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (std::max(op.in_channels * op.height, filters * op.out_height()) >= most / pitch_of(op)) return false;
    const auto products = [](std::int64_t columns, int taps) {
        return divide_up(columns, direct::positions) * direct::positions * taps;
    };
    return products(pitch_of(op), points * groups) * 5 <= products(op.out_width(), kernel_w) * 4;
}

}  // namespace

const Kernel winograd_fp32{
    [](const Conv2d& op, Precision) {
        return "conv2d_winograd<4, 4>" + of_parts(Workspace(with_batch(op, images_at_once(op))).grid);
    },
    takes,
    workspace,
    launch,
    [](const Conv2d& op) { return over_tiles(op).work(Direction::fwd).matrix_flops; },
};

}  // namespace kbench::cuda::convolution
