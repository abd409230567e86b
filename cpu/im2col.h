// Convolution as a product of filters with columns of taps (im2col; Chellapilla et al., 2006), piece by piece. A piece
// is some taps of some positions of an output row, so few that they and the matching part of the filters stay in L2.
// Its products are added to a tile of all filters. Internal to cpu/.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "cpu/vector.h"
#include "models/ops/conv2d.h"

namespace kbench::cpu {

/// How a convolution is cut, and the parts of its workspace in elements: first `shared` (filters that had to be
/// widened), then each thread's columns and tile.
struct Im2col {
    static constexpr std::int64_t taps_at_once = 512;
    const Conv2d& op;
    std::int64_t positions_at_once, lines_at_once;  ///< a line: the taps of one row and channel of the kernel
    std::int64_t shared, columns, tile;

    Im2col(const Conv2d& of, std::int64_t positions, std::int64_t shared_elements)
        : op(of),
          positions_at_once(positions),
          lines_at_once(std::clamp<std::int64_t>(taps_at_once / op.kernel_w, 1, op.in_channels * op.kernel_h)),
          shared(whole_lines(shared_elements)),
          columns(whole_lines(positions * lines_at_once * op.kernel_w)),
          tile(whole_lines(op.out_channels * positions)) {}

    std::int64_t elements() const { return shared + omp_get_max_threads() * (columns + tile); }

    /// Calls f(image, p, first, count, columns, tile) in parallel for pieces of all output rows: positions
    /// [first, first + count) of row p. columns and tile are the thread's own memory in `workspace`.
    template <class C, class F>
    void for_each_piece(C* workspace, const F& f) const {
        const std::int64_t blocks = (op.out_width() + positions_at_once - 1) / positions_at_once;
        const std::int64_t rows = op.out_height();
#pragma omp parallel for schedule(dynamic)
        for (std::int64_t task = 0; task < op.batch * rows * blocks; ++task) {
            const std::int64_t first = task % blocks * positions_at_once;
            C* const own = workspace + shared + omp_get_thread_num() * (columns + tile);
            f(task / (rows * blocks), task / blocks % rows, first, std::min(positions_at_once, op.out_width() - first),
              own, own + columns);
        }
    }

    /// Computes one piece of the images in x. multiply(depth, filters, columns, tile) adds to tile [out_channels,
    /// count] the products of filters' rows, taps() apart, with the rows of columns [count, depth].
    template <class T, class C, class Multiply>
    void convolve(const T* x, const C* filters, const T* bias, std::int64_t image, std::int64_t p, std::int64_t first,
                  std::int64_t count, C* columns_of_taps, C* sums, T* out, const Multiply& multiply) const {
        const std::int64_t lines = op.in_channels * op.kernel_h;
        std::fill(sums, sums + op.out_channels * count, C(0));
        for (std::int64_t begin = 0; begin < lines; begin += lines_at_once) {
            const std::int64_t size = std::min(lines_at_once, lines - begin), depth = size * op.kernel_w;
            for (std::int64_t i = 0; i < size; ++i) {
                const std::int64_t c = (begin + i) / op.kernel_h, r = (begin + i) % op.kernel_h;
                const std::int64_t h = p * op.stride_h - op.pad_h + r;
                const bool inside = h >= 0 && h < op.height;
                const T* line = x + ((image * op.in_channels + c) * op.height + h) * op.width;
                fill_line(inside ? line : nullptr, first, count, columns_of_taps + i * op.kernel_w, depth);
            }
            multiply(depth, filters + begin * op.kernel_w, columns_of_taps, sums);
        }
        for (std::int64_t k = 0; k < op.out_channels; ++k) {
            const C shift = bias != nullptr ? load(bias[k]) : C(0);
            T* to = out + ((image * op.out_channels + k) * op.out_height() + p) * op.out_width() + first;
            for (std::int64_t i = 0; i < count; ++i) store(to[i], sums[k * count + i] + shift);
        }
    }

  private:
    static std::int64_t whole_lines(std::int64_t count) { return (count + 63) / 64 * 64; }

    /// columns[i, s] = line[(first + i) stride_w - pad_w + s], and 0 outside the line or where there is no line.
    template <class T, class C>
    void fill_line(const T* line, std::int64_t first, std::int64_t count, C* to, std::int64_t stride) const {
        for (std::int64_t i = 0; i < count; ++i, to += stride) {
            const std::int64_t begin = (first + i) * op.stride_w - op.pad_w;
            if (line != nullptr && begin >= 0 && begin + op.kernel_w <= op.width) {
                for (std::int64_t s = 0; s < op.kernel_w; ++s) to[s] = load(line[begin + s]);
                continue;
            }
            for (std::int64_t s = 0; s < op.kernel_w; ++s) {
                const std::int64_t at = begin + s;
                to[s] = line != nullptr && at >= 0 && at < op.width ? load(line[at]) : C(0);
            }
        }
    }
};

}  // namespace kbench::cpu
