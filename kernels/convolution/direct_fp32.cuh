// Convolutions in fp32 without tensor cores: tiles in registers; one row of x serves all taps of the kernel's width.
//
// A thread has 8 neighbouring positions of a row and 8 filters. For each filter row r it reads once the elements of x
// that its positions meet, and the weights of all taps. With 11 taps that makes 704 multiply-adds for 27 reads of 16
// bytes, 22 of them shared by half a warp: shared memory is busy for a quarter of the time. With 3 taps (192 for 9
// reads, 6 of them shared) it is busy for 38 %. So FFMA is the bottleneck.
// A block has 128 positions of `out_rows` rows and all 32 filters. A step is one channel and up to 11 filter rows;
// copies of the next step's tiles overlap the arithmetic of this one.
#pragma once

#include "kernels/check.h"
#include "kernels/convolution/epilogue.cuh"
#include "kernels/convolution/splits.h"
#include "kernels/cp_async.cuh"

namespace kbench::cuda::convolution::direct {

inline constexpr int filters = 32, positions = 128;
inline constexpr int lane_positions = 8, lane_filters = 8;

/// Tuning parameters: output rows per block (two warps each), filter rows per step, and the blocks per SM that
/// registers are limited for.
struct Tuning {
    int out_rows, step_rows, blocks_per_sm;
};
inline constexpr Tuning tuning{4, 11, 2};
inline constexpr int threads = tuning.out_rows * 2 * 32;

/// A row of x in shared memory, in chunks of 16 bytes. Neighbouring lanes start 2 stride_w chunks apart; without the
/// swizzle eight lanes would use 4 or 2 of the 8 groups of banks. The row starts `columns_before` columns before the
/// first tap of the first position.
template <int kernel_w, int columns_before, int stride_w>
struct Row {
    static constexpr int of_lane = lane_positions * stride_w / 4;
    static constexpr int elements = (positions - 1) * stride_w + kernel_w + columns_before;
    static constexpr int chunks = (elements + of_lane * 4 - 1) / (of_lane * 4) * of_lane, floats = chunks * 4;
    /// Chunks that a lane reads of it.
    static constexpr int window_chunks = ((lane_positions - 1) * stride_w + kernel_w + columns_before + 3) / 4;
    static __device__ int swizzled(int chunk) { return chunk ^ (chunk >> 3 & (of_lane - 1)); }
};

struct Shape {
    int channels, height, width, out_height, out_width, kernel_h, stride_h, pad_h, pad_w;
    bool vectors_in, vectors_out;
    int images_of_weights = 0;  ///< with `several_weights`: images that share one set of weights
    __host__ __device__ int tiles() const { return (out_width + positions - 1) / positions; }
    __host__ __device__ int x_rows() const { return (tuning.out_rows - 1) * stride_h + tuning.step_rows; }
};

/// Floats of a stage: rows of x, then weights.
template <int kernel_w, int columns_before, int stride_w>
__host__ __device__ int stage_floats(const Shape& shape) {
    return shape.x_rows() * Row<kernel_w, columns_before, stride_w>::floats + tuning.step_rows * kernel_w * filters;
}

/// The filter rows that any row of a block needs, and the steps in which the block, or its part, goes through them.
struct Steps {
    int first_r, rows;
    int chunks;  ///< steps of a channel
    int begin, end;

    /// `unmasked`: whether masks leave any position of the block; otherwise it has no steps.
    __device__ __forceinline__ Steps(const Shape& shape, const Grid::Block& block, int h0, bool unmasked) {
        first_r = max(0, -h0 - (tuning.out_rows - 1) * shape.stride_h);
        rows = min(shape.kernel_h, shape.height - h0) - first_r;
        chunks = rows <= 0 ? 0 : (rows + tuning.step_rows - 1) / tuning.step_rows;
        const auto all = unmasked ? std::int64_t{chunks} * shape.channels : 0;
        begin = static_cast<int>(all * block.part / block.parts);
        end = static_cast<int>(all * (block.part + 1) / block.parts);
    }
};

/// Starts to copy the weights of a step: filter rows [r, r + step_rows) of channel c, in the set of image n.
template <int kernel_w, bool several_weights>
__device__ __forceinline__ void copy_weights(float* w_tile, const float* weights, int n, int c, int r, int step_rows,
                                             const Shape& shape, int thread) {
    std::int64_t line = std::int64_t{c} * shape.kernel_h + r;
    if constexpr (several_weights) line += std::int64_t{n / shape.images_of_weights} * shape.channels * shape.kernel_h;
    const float* const from = weights + line * (kernel_w * filters);
    for (int i = thread; i < step_rows * (kernel_w * filters / 4); i += threads)
        cp_async_16(w_tile + i * 4, from + i * 4);
}

/// weights: [channels][kernel_h][kernel_w][filters]. With `several_weights` there are several such arrays, one after
/// another, and sums are stored without epilogue. x is copied by 16 bytes: pad_w + columns_before is a multiple of 4.
template <int kernel_w, int columns_before, int stride_w, bool several_weights>
__global__ __launch_bounds__(threads, tuning.blocks_per_sm) void conv2d_direct_fp32(
    const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ out, float* __restrict__ parts,
    std::int64_t part_elements, Shape shape, Grid grid, Epilogue<float> epilogue) {
    using R = Row<kernel_w, columns_before, stride_w>;
    extern __shared__ __align__(128) float stages[];
    __shared__ Epilogue<float>::Channel channels[filters];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;

    const Grid::Block block = grid.block(static_cast<int>(blockIdx.x));
    const int n = block.of_row / shape.tiles(), first_column = block.of_row % shape.tiles() * positions;
    const int first_p = block.row * tuning.out_rows, h0 = first_p * shape.stride_h - shape.pad_h;
    const auto ends = epilogue.ends(n, shape.out_width);
    if (thread < filters) channels[thread] = epilogue.channel(thread);

    const Steps steps(shape, block, h0, first_column < ends.masks[2]);

    const auto fetch = [&](int step) {
        float* const x_tile =
            stages + (step - steps.begin) % 2 * stage_floats<kernel_w, columns_before, stride_w>(shape);
        float* const w_tile = x_tile + shape.x_rows() * R::floats;
        const int c = step / steps.chunks, done = step % steps.chunks * tuning.step_rows, r = steps.first_r + done;
        const int step_rows = min(tuning.step_rows, steps.rows - done);
        const int x_rows = (tuning.out_rows - 1) * shape.stride_h + step_rows;
        const std::int64_t plane = (std::int64_t{n} * shape.channels + c) * shape.height;
        for (int i = thread; i < x_rows * R::chunks; i += threads) {
            const int row = i / R::chunks, chunk = i % R::chunks, h = h0 + r + row;
            if (h < 0 || h >= shape.height) continue;  // no one reads it
            const int column = first_column * stride_w - shape.pad_w - columns_before + chunk * 4;
            float* const to = x_tile + row * R::floats + R::swizzled(chunk) * 4;
            const float* const from = x + (plane + h) * shape.width;
            if (shape.vectors_in) {
                const bool inside = column >= 0 && column < shape.width;
                cp_async_if<16>(to, from + (inside ? column : 0), inside);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    to[e] = column + e >= 0 && column + e < shape.width ? from[column + e] : 0.0f;
            }
        }
        copy_weights<kernel_w, several_weights>(w_tile, weights, n, c, r, step_rows, shape, thread);
        cp_async_commit();
    };

    const int row = warp / 2, p = first_p + row;
    const int first_filter = warp % 2 * 16 + lane / 16 * lane_filters, of_lane = lane % 16;
    int window[R::window_chunks];  // where the lane's chunks lie in a row
#pragma unroll
    for (int i = 0; i < R::window_chunks; ++i) window[i] = R::swizzled(of_lane * R::of_lane + i) * 4;
    float sums[lane_filters][lane_positions] = {};

    if (steps.begin < steps.end) fetch(steps.begin);
    for (int step = steps.begin; step < steps.end; ++step) {
        cp_async_wait<0>();
        __syncthreads();  // this step's tiles have arrived, and all warps are done with those to be overwritten
        if (step + 1 < steps.end) fetch(step + 1);
        if (p >= shape.out_height) continue;
        const float* const x_tile =
            stages + (step - steps.begin) % 2 * stage_floats<kernel_w, columns_before, stride_w>(shape);
        const float* const w_tile = x_tile + shape.x_rows() * R::floats + first_filter;
        const int done = step % steps.chunks * tuning.step_rows, h = h0 + row * shape.stride_h + steps.first_r + done;
        const int begin = max(0, -h), end = min(min(tuning.step_rows, steps.rows - done), shape.height - h);
#pragma unroll 1
        for (int r = begin; r < end; ++r) {
            const float* const from = x_tile + (row * shape.stride_h + r) * R::floats;
            float near[R::window_chunks * 4];
#pragma unroll
            for (int i = 0; i < R::window_chunks; ++i) {
                const auto four = *reinterpret_cast<const float4*>(from + window[i]);
                near[i * 4] = four.x, near[i * 4 + 1] = four.y, near[i * 4 + 2] = four.z, near[i * 4 + 3] = four.w;
            }
#pragma unroll
            for (int s = 0; s < kernel_w; ++s) {
                const float* const at = w_tile + (r * kernel_w + s) * filters;
                const auto low = *reinterpret_cast<const float4*>(at), high = *reinterpret_cast<const float4*>(at + 4);
                const float w[lane_filters] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int k = 0; k < lane_filters; ++k)
#pragma unroll
                    for (int q = 0; q < lane_positions; ++q)
                        sums[k][q] += near[q * stride_w + s + columns_before] * w[k];
            }
        }
    }
    __syncthreads();  // `channels` is written

    const int column = first_column + of_lane * lane_positions;
    if (p >= shape.out_height) return;
    const std::int64_t plane = std::int64_t{shape.out_height} * shape.out_width;
    const std::int64_t at =
        (std::int64_t{n} * filters + first_filter) * plane + std::int64_t{p} * shape.out_width + column;
    const bool is_part = block.parts > 1, is_sum = is_part || several_weights;
    float* const to = is_part ? parts + block.part * part_elements + at : out + at;
#pragma unroll
    for (int k = 0; k < lane_filters; ++k) {
        const auto channel = channels[first_filter + k];
#pragma unroll
        for (int first = 0; first < lane_positions; first += 4) {
            Vector<float, 4> four;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                four.elements[e] =
                    is_sum ? sums[k][first + e] : epilogue(sums[k][first + e], channel, ends, column + first + e);
            if (shape.vectors_out && column + first + 4 <= shape.out_width)
                four.store(to + k * plane + first);
            else
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (column + first + e < shape.out_width) to[k * plane + first + e] = four.elements[e];
        }
    }
}

template <int kernel_w, int columns_before, int stride_w, bool several_weights>
void launch(const float* x, const float* weights, float* out, float* parts, std::int64_t part_elements,
            const Shape& shape, const Grid& grid, const Conv2dEpilogue& epilogue, cudaStream_t stream) {
    constexpr auto kernel = conv2d_direct_fp32<kernel_w, columns_before, stride_w, several_weights>;
    const int smem = 2 * stage_floats<kernel_w, columns_before, stride_w>(shape) * static_cast<int>(sizeof(float));
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    kernel<<<grid.blocks(), threads, smem, stream>>>(x, weights, out, parts, part_elements, shape, grid,
                                                     Epilogue<float>(epilogue));
    KBENCH_CUDA_LAUNCHED("conv2d_direct_fp32");
}

/// The time of a block, at 115 of 128 multiply-adds per clock and SM and 1.7 GHz; `op` has the kernel's width.
inline Blocks blocks_of(const Conv2d& op, int tiles) {
    const double products = static_cast<double>(positions * tuning.out_rows * filters * op.taps());
    return {.out_rows = tuning.out_rows,
            .of_row = op.batch * tiles,
            .resident = 132 * tuning.blocks_per_sm,
            .us = products / (115 * 1700) * tuning.blocks_per_sm,
            .most_parts = 8,
            .sum_bytes = sizeof(float)};
}

}  // namespace kbench::cuda::convolution::direct
