// Decides which blocks are cut into parts, and adds up the sums of the parts.
#include "kernels/convolution/splits.h"

#include <algorithm>
#include <vector>

#include "kernels/check.h"
#include "kernels/convolution/epilogue.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int threads = 256;

std::int64_t elements_of(const Conv2d& op) { return op.batch * op.out_channels * op.out_height() * op.out_width(); }

/// Rows of each plane before `begin` and from `end` on.
struct Rows {
    int begin, end, height;
    __host__ __device__ int count() const { return begin + height - end; }
};

/// A block handles vectors of one plane.
template <class T, int vector>
__global__ __launch_bounds__(threads) void conv2d_combine(const Arithmetic<T>* __restrict__ sums, int parts,
                                                          T* __restrict__ out, std::int64_t part_elements, int width,
                                                          int channels, Rows rows, unsigned plane_blocks,
                                                          Epilogue<T> epilogue) {
    using A = Arithmetic<T>;
    const unsigned plane = blockIdx.x / plane_blocks;
    const int i = static_cast<int>((blockIdx.x % plane_blocks * threads + threadIdx.x) * vector);
    if (i >= rows.count() * width) return;
    int row = i / width;
    const int column = i - row * width;
    if (row >= rows.begin) row += rows.end - rows.begin;
    const std::int64_t at = (std::int64_t{plane} * rows.height + row) * width + column;
    A sum[vector] = {};
    for (int part = 0; part < parts; ++part) {
        const auto more = Vector<A, vector>::load_once(sums + part * part_elements + at);
#pragma unroll
        for (int e = 0; e < vector; ++e) sum[e] += more.elements[e];
    }
    const auto channel = epilogue.channel(static_cast<int>(plane) % channels);
    const auto ends = epilogue.ends(static_cast<int>(plane) / channels, width);
    Vector<T, vector> result;
#pragma unroll
    for (int e = 0; e < vector; ++e) result.elements[e] = static_cast<T>(epilogue(sum[e], channel, ends, column + e));
    result.store(out + at);
}

/// Time of a block in each row of blocks, in grid order: proportional to its rows of x that are in the image.
std::vector<double> times(const Conv2d& op, const Blocks& blocks, const Grid& grid) {
    std::vector<double> result;
    const std::int64_t all = (blocks.out_rows - 1) * op.stride_h + op.kernel_h;
    for (int order = 0; order < grid.rows; ++order) {
        const std::int64_t first =
            std::int64_t{grid.block(order * grid.of_row).row} * blocks.out_rows * op.stride_h - op.pad_h;
        const std::int64_t inside = std::min(first + all, op.height) - std::max<std::int64_t>(first, 0);
        result.push_back(blocks.us * static_cast<double>(std::max<std::int64_t>(inside, 0)) / static_cast<double>(all));
    }
    return result;
}

/// Simulates when the last block of a grid ends. Each block starts in turn when one of the `resident` ones has ended.
double end_us(const std::vector<double>& times, const Grid& grid, int resident) {
    constexpr double start_us = 2;  // loading the first tiles from memory
    struct Free {
        double at;
        std::int64_t count;
    };
    std::vector<Free> free{{0, resident}};  // sorted, the soonest last
    for (int order = 0; order < grid.rows; ++order) {
        const int parts = order < grid.whole ? 1 : grid.parts;
        const double us = times[static_cast<std::size_t>(order)] / parts + start_us;
        for (std::int64_t left = std::int64_t{grid.of_row} * parts; left > 0;) {
            Free& soonest = free.back();
            const Free then{soonest.at + us, std::min(left, soonest.count)};
            left -= then.count;
            if ((soonest.count -= then.count) == 0) free.pop_back();
            free.insert(std::find_if(free.begin(), free.end(), [&](const Free& f) { return f.at <= then.at; }), then);
        }
    }
    return free.front().at;
}

}  // namespace

Grid whole_grid(int rows, std::int64_t of_row) { return {rows, static_cast<int>(of_row), rows, 1}; }

Grid best_grid(const Conv2d& op, const Blocks& blocks) {
    // Parts are written and read once, at about 3 TB/s because L2 holds some; one more launch takes 3 us.
    constexpr double bytes_per_us = 3e6, launch_us = 3;
    const auto rows = static_cast<int>(divide_up(op.out_height(), blocks.out_rows));
    Grid best = whole_grid(rows, blocks.of_row);
    const std::vector<double> row_us = times(op, blocks, best);
    double least = 0.98 * end_us(row_us, best, blocks.resident);  // a smaller gain is not worth a launch
    // Cuts may begin at the last full wave, or a row or two before it; all rows up to there stay whole.
    const std::int64_t waves = rows * blocks.of_row / blocks.resident;
    if (waves > 30) return best;
    const auto full = static_cast<int>(std::min<std::int64_t>(rows - 1, waves * blocks.resident / blocks.of_row));
    for (const int whole : {0, full - 3, full - 2, full - 1, full, full + 1, full + 2}) {
        if (whole < 0 || whole >= rows || (waves > 3 && whole == 0)) continue;
        for (int parts = 2; parts <= blocks.most_parts; ++parts) {
            const Grid grid{rows, best.of_row, whole, parts};
            const double bytes = 2.0 * static_cast<double>(parts) * static_cast<double>(blocks.sum_bytes) *
                                 static_cast<double>(elements_of(op)) * (rows - whole) / rows;
            const double us = end_us(row_us, grid, blocks.resident) + launch_us + bytes / bytes_per_us;
            if (us < least) least = us, best = grid;
        }
    }
    return best;
}

std::string of_parts(const Grid& grid) {
    if (!grid.is_cut()) return "";
    return " in " + std::to_string(grid.parts) + " parts" +
           (grid.whole > 0 ? " behind " + std::to_string(grid.whole) + " rows" : "");
}

std::size_t parts_bytes(const Conv2d& op, const Blocks& blocks, const Grid& grid) {
    if (!grid.is_cut()) return 0;
    return static_cast<std::size_t>(grid.parts) * static_cast<std::size_t>(elements_of(op)) * blocks.sum_bytes;
}

void combine_parts(const Conv2d& op, DataType type, const Grid& grid, int out_rows, const void* sums, void* out,
                   const Conv2dEpilogue& epilogue, cudaStream_t stream) {
    const auto height = static_cast<int>(op.out_height()), width = static_cast<int>(op.out_width());
    const Rows rows{grid.whole_begin() * out_rows, std::min(grid.whole_end() * out_rows, height), height};
    dispatch(type, [&]<typename T>() {
        dispatch_vector<4>(width, {sums, out}, [&]<int vector>() {
            const auto plane_blocks =
                static_cast<unsigned>(divide_up(std::int64_t{rows.count()} * width, threads * vector));
            conv2d_combine<T, vector>
                <<<static_cast<unsigned>(op.batch * op.out_channels) * plane_blocks, threads, 0, stream>>>(
                    static_cast<const Arithmetic<T>*>(sums), grid.parts, static_cast<T*>(out), elements_of(op), width,
                    static_cast<int>(op.out_channels), rows, plane_blocks, Epilogue<T>(epilogue));
        });
    });
    KBENCH_CUDA_LAUNCHED("conv2d_combine");
}

}  // namespace kbench::cuda::convolution
