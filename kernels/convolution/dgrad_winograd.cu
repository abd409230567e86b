// dx of convolutions 11 taps wide in fp32 with fewer multiplications: Winograd's minimal filtering along the width.
//
// The 11 taps form three groups of 4 (the very last tap is 0). Four neighbouring elements of dx need 16 products per
// group directly, but only 7 between three transforms: of 7 elements of dy, of 4 taps, and back. These are values of
// polynomials at 0, 1, -1, 1/2, -1/2, -2 and infinity. Over 3,872 terms they err 2.0 times as much as plain fp32 sums;
// the best of 11 choices errs 1.9 times (scripts/verification/winograd_points.py). Each group's tiles lie 4 elements of
// dy after those of the group before, so one transformed tile of dy serves all three groups. Each point is then a
// convolution over tiles, 3 taps wide, which direct_fp32.cuh computes: 21 multiply-adds instead of 44.
//
// The error is relative to the largest of four neighbours, not to the element itself: where dy is 0 but its neighbours
// are not, dx gets their rounding. So the kernel refuses paddings that leave an element less than half of the taps. The
// forward keeps plain sums, because its errors decide which elements a Hardtanh clips.
#include <algorithm>
#include "kernels/convolution/aligned.h"

#include "kernels/check.h"
#include "kernels/convolution/dgrad_classes.h"
#include "kernels/convolution/dgrad_kernel.h"
#include "kernels/convolution/direct_fp32.cuh"

namespace kbench::cuda::convolution {
namespace {

using direct::filters;

constexpr int kernel_w = 11, tile = 4, group_taps = 4, groups = 3, points = tile + group_taps - 1;
constexpr int threads = 256;
static_assert(groups * group_taps >= kernel_w && tile == group_taps, "a tile of dy serves all groups");

/// Tiles per row of dx. `pitch_of`: tiles stored per row, which includes the tiles of dy that the last ones also need.
std::int64_t tiles_of(const Conv2d& op) { return divide_up(op.width, tile); }
std::int64_t pitch_of(const Conv2d& op) { return divide_up(tiles_of(op) + groups - 1, 4) * 4; }

/// The convolution over tiles that makes one class of rows, all points together. Rows of results are as wide as rows
/// of tiles.
Conv2d over_tiles(const Conv2d& op, std::int64_t index) {
    Conv2d tiles = forward_of(op, index);
    tiles.batch *= points;
    tiles.width = pitch_of(op);
    tiles.kernel_w = groups;
    tiles.pad_w = groups / 2;
    return tiles;
}

/// Writes to[point][row][t] for elements 4 t - pad to 4 t - pad + 6 of each row of dy, zeros outside. Rows are
/// [batch][filters][height].
__global__ __launch_bounds__(threads) void conv2d_winograd_input(const float* __restrict__ dy, float* __restrict__ to,
                                                                 int width, int pad, unsigned pitch,
                                                                 unsigned point_elements) {
    const unsigned i = blockIdx.x * threads + threadIdx.x;
    if (i >= point_elements) return;
    const int first = static_cast<int>(i % pitch) * tile - pad;
    const float* const from = dy + std::int64_t{i / pitch} * width;
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

/// Transforms a class's taps of weight [depth][filters][kernel_h][kernel_w], reversed, to
/// to[point][depth][row of taps][groups][filters].
__global__ __launch_bounds__(threads) void conv2d_winograd_weights(const float* __restrict__ weight,
                                                                   float* __restrict__ to, int depth, int kernel_h,
                                                                   int stride_h, Class of_h) {
    const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
    const int point_elements = depth * of_h.taps * groups * filters;
    if (i >= point_elements) return;
    const int c = i % filters, group = i / filters % groups, line = i / filters / groups;
    const int k = line / of_h.taps, r = of_h.first_tap + stride_h * (of_h.taps - 1 - line % of_h.taps);
    const float* const from = weight + ((std::int64_t{k} * filters + c) * kernel_h + r) * kernel_w;
    float w[group_taps];
#pragma unroll
    for (int j = 0; j < group_taps; ++j) {
        const int s = kernel_w - 1 - (group * group_taps + j);
        w[j] = s >= 0 ? from[s] : 0.0f;
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

/// Sums of a class, [points][batch][filters][rows of the class][pitch], one such array per part.
struct Sums {
    const float *whole, *parts;
    std::int64_t point_elements;
    int pitch;
};

/// Writes the four elements of each tile to row index + stride_h p of dx (p: the tile's row). One thread per tile.
template <bool vectors>
__global__ __launch_bounds__(threads) void conv2d_winograd_output(Sums sums, float* __restrict__ dx, int height,
                                                                  int width, int stride_h, Class of_h, unsigned tiles,
                                                                  unsigned all_tiles, Grid grid) {
    const unsigned i = blockIdx.x * threads + threadIdx.x;
    if (i >= all_tiles) return;
    const unsigned row = i / tiles, t = i % tiles, rows = static_cast<unsigned>(of_h.count);
    const int p = static_cast<int>(row % rows), block_row = p / direct::tuning.out_rows;
    const bool is_whole = block_row >= grid.whole_begin() && block_row < grid.whole_end();
    const float* const from = (is_whole ? sums.whole : sums.parts) + std::int64_t{row} * sums.pitch + t;
    const int parts = is_whole ? 1 : grid.parts;
    float m[points] = {};
    for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int point = 0; point < points; ++point)
            m[point] += from[(std::int64_t{part} * points + point) * sums.point_elements];

    const float even = m[1] + m[2], odd = m[1] - m[2], half_even = m[3] + m[4], half_odd = m[3] - m[4];
    Vector<float, tile> four;
    four.elements[0] = m[0] + even + half_even + m[5];
    four.elements[1] = odd + half_odd / 2 - 2 * m[5];
    four.elements[2] = even + half_even / 4 + 4 * m[5];
    four.elements[3] = odd + half_odd / 8 - 8 * m[5] + m[6];
    const int column = static_cast<int>(t) * tile;
    float* const to = dx + (std::int64_t{row / rows} * height + of_h.index + stride_h * p) * width + column;
    if (vectors)
        four.store(to);
    else
#pragma unroll
        for (int e = 0; e < tile; ++e)
            if (column + e < width) to[e] = four.elements[e];
}

std::size_t float_bytes(std::int64_t elements) { return aligned(static_cast<std::size_t>(elements) * sizeof(float)); }

/// What one class needs in memory after the transformed dy: transformed weights, sums of whole blocks, sums of parts.
struct OfClass {
    Conv2d tiles;
    Blocks blocks;
    Grid grid;
    std::int64_t sum_elements;  ///< per point
    std::size_t weights, sums, parts;

    OfClass(const Conv2d& op, std::int64_t index)
        : tiles(over_tiles(op, index)),
          blocks(direct::blocks_of(tiles, static_cast<int>(divide_up(tiles.out_width(), direct::positions)))),
          grid(best_grid(tiles, blocks)),
          sum_elements(op.batch * filters * tiles.out_height() * tiles.width),
          weights(float_bytes(points * tiles.taps() * filters)),
          sums(float_bytes(points * sum_elements)),
          parts(parts_bytes(tiles, blocks, grid)) {}
    std::size_t bytes() const { return weights + sums + parts; }
};

std::int64_t dy_elements(const Conv2d& op) { return op.batch * op.out_channels * op.out_height() * pitch_of(op); }

/// Images per pass: their transforms take at most 1 GiB, so that the largest batch that fits does not shrink.
std::int64_t images_at_once(const Conv2d& op) {
    std::int64_t rows = op.out_channels * op.out_height();
    rows += filters * rows_class(op, 0).count;  // class 0 has the most rows
    const std::int64_t of_image = points * pitch_of(op) * rows * std::int64_t{sizeof(float)};
    return std::clamp<std::int64_t>((std::int64_t{1} << 30) / of_image, 1, op.batch);
}

Conv2d with_batch(Conv2d op, std::int64_t batch) {
    op.batch = batch;
    return op;
}

std::size_t bytes_of(const Conv2d& op) {
    std::size_t most = 0;
    for (std::int64_t index = 0; index < op.stride_h; ++index) most = std::max(most, OfClass(op, index).bytes());
    return float_bytes(points * dy_elements(op)) + most;
}

unsigned blocks_for(std::int64_t elements) { return static_cast<unsigned>(divide_up(elements, threads)); }

void launch_class(const Conv2d& op, std::int64_t index, const float* dy, const float* weight, float* dx, char* memory,
                  cudaStream_t stream) {
    const OfClass of(op, index);
    const Class rows = rows_class(op, index);
    const auto depth = static_cast<int>(op.out_channels), pitch = static_cast<int>(of.tiles.width);
    auto* const weights = reinterpret_cast<float*>(memory);
    auto* const sums = reinterpret_cast<float*>(memory + of.weights);
    auto* const parts = reinterpret_cast<float*>(memory + of.weights + of.sums);
    conv2d_winograd_weights<<<blocks_for(of.tiles.taps() * filters), threads, 0, stream>>>(
        weight, weights, depth, static_cast<int>(op.kernel_h), static_cast<int>(op.stride_h), rows);
    KBENCH_CUDA_LAUNCHED("conv2d_winograd_weights");

    const direct::Shape shape{.channels = depth,
                              .height = static_cast<int>(of.tiles.height),
                              .width = pitch,
                              .out_height = rows.count,
                              .out_width = pitch,
                              .kernel_h = rows.taps,
                              .stride_h = 1,
                              .pad_h = static_cast<int>(of.tiles.pad_h),
                              .pad_w = 0,  // tiles of dy start at the row's padding
                              .vectors_in = true,
                              .vectors_out = true,
                              .images_of_weights = static_cast<int>(op.batch)};
    direct::launch<groups, 0, 1, true>(dy, weights, sums, parts, points * of.sum_elements, shape, of.grid, {}, stream);

    const auto tiles = static_cast<unsigned>(tiles_of(op));
    const std::int64_t all_tiles = op.batch * filters * rows.count * tiles;
    const bool vectors = op.width % tile == 0 && reinterpret_cast<std::uintptr_t>(dx) % 16 == 0;
    (vectors ? conv2d_winograd_output<true>
             : conv2d_winograd_output<false>)<<<blocks_for(all_tiles), threads, 0, stream>>>(
        {sums, parts, of.sum_elements, pitch}, dx, static_cast<int>(op.height), static_cast<int>(op.width),
        static_cast<int>(op.stride_h), rows, tiles, static_cast<unsigned>(all_tiles), of.grid);
    KBENCH_CUDA_LAUNCHED("conv2d_winograd_output");
}

/// Taken where blocks of 128 tiles of a row multiply at least a fifth less than blocks of 128 positions would: in short
/// rows most of them are empty. With fewer than 16 filters the transforms do not pay. Elements of a point are counted
/// in 32 bits, and one image may already exceed that.
bool takes(const Conv2d& op, Precision precision) {
    if (precision != Precision::fp32 || op.in_channels != filters || op.kernel_w != kernel_w || op.out_channels < 16 ||
        !has_forwards(op) || 2 * forward_of(op, 0).pad_w >= kernel_w)
        return false;
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (std::max(op.out_channels * op.out_height(), filters * op.height) >= most / pitch_of(op)) return false;
    const auto products = [](std::int64_t columns, int taps) {
        return divide_up(columns, direct::positions) * direct::positions * taps;
    };
    return products(pitch_of(op), points * groups) * 5 <= products(op.width, kernel_w) * 4;
}

std::string name(const Conv2d& op, Precision) {
    return "conv2d_winograd<4, 4>" + of_parts(OfClass(with_batch(op, images_at_once(op)), 0).grid) + " of " +
           std::to_string(op.stride_h) + (op.stride_h == 1 ? " class" : " classes") + " of rows";
}

/// The larger need of two kinds of calls: the last one may have fewer images, cut into more parts.
std::size_t workspace_of(const Conv2d& op, Precision) {
    const std::int64_t at_once = images_at_once(op), rest = op.batch % at_once;
    const std::size_t bytes = bytes_of(with_batch(op, at_once));
    return rest == 0 ? bytes : std::max(bytes, bytes_of(with_batch(op, rest)));
}

double flops_of(const Conv2d& op) {
    double flops = 0;
    for (std::int64_t index = 0; index < op.stride_h; ++index)
        flops += over_tiles(op, index).work(Direction::fwd).flops;
    return flops;
}

void launch(const Conv2d& op, const float* dy, const float* weight, float* dx, void* workspace, cudaStream_t stream) {
    const std::int64_t at_once = images_at_once(op), dy_image = op.out_channels * op.out_height() * op.out_width();
    for (std::int64_t first = 0; first < op.batch; first += at_once) {
        const Conv2d images = with_batch(op, std::min(at_once, op.batch - first));
        const std::int64_t elements = dy_elements(images);
        auto* const transformed = static_cast<float*>(workspace);
        conv2d_winograd_input<<<blocks_for(elements), threads, 0, stream>>>(
            dy + first * dy_image, transformed, static_cast<int>(op.out_width()),
            static_cast<int>(forward_of(op, 0).pad_w), static_cast<unsigned>(pitch_of(op)),
            static_cast<unsigned>(elements));
        KBENCH_CUDA_LAUNCHED("conv2d_winograd_input");
        char* const memory = static_cast<char*>(workspace) + float_bytes(points * elements);
        for (std::int64_t index = 0; index < op.stride_h; ++index)
            launch_class(images, index, transformed, weight, dx + first * filters * op.height * op.width, memory,
                         stream);
    }
}

}  // namespace

const DgradKernel dgrad_winograd{
    name,
    takes,
    workspace_of,
    [](const Conv2d& op, Precision, const void* dy, const void* weight, void* dx, void* workspace,
       cudaStream_t stream) {
        launch(op, static_cast<const float*>(dy), static_cast<const float*>(weight), static_cast<float*>(dx), workspace,
               stream);
    },
    flops_of,
};

}  // namespace kbench::cuda::convolution
