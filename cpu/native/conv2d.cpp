// im2col piece by piece: so many taps of so many positions of an output row that both they and the filters' part lie in
// L2, multiplied and added to a tile of all filters.
#include "cpu/native/conv2d.h"

#include <omp.h>

#include <algorithm>

#include "cpu/native/products.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

constexpr std::int64_t positions_at_once = 32, taps_at_once = 512, cache_line = 64;

/// Kernel rows, (c, r) pairs, whose taps are multiplied at once.
std::int64_t lines_at_once(const Conv2d& op) {
    return std::clamp<std::int64_t>(taps_at_once / op.kernel_w, 1, op.in_channels * op.kernel_h);
}

/// The parts of the workspace, in elements: filters, widened where they are stored in 16 bits, and of each thread its
/// columns and its tile.
struct Parts {
    std::int64_t filters, columns, tile;

    explicit Parts(const Conv2d& op, bool widened)
        : filters(widened ? rounded(op.out_channels * op.taps()) : 0),
          columns(rounded(positions_at_once * lines_at_once(op) * op.kernel_w)),
          tile(rounded(op.out_channels * positions_at_once)) {}
    static std::int64_t rounded(std::int64_t count) { return (count + cache_line - 1) / cache_line * cache_line; }
};

/// One row of positions of one line of taps: columns[i, s] = x[(first + i) stride - pad + s], 0 outside.
template <class T, class C>
void fill_line(const Conv2d& op, const T* line, std::int64_t first, std::int64_t count, C* columns, std::int64_t ld) {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t begin = (first + i) * op.stride_w - op.pad_w;
        C* to = columns + i * ld;
        for (std::int64_t s = 0; s < op.kernel_w; ++s) {
            const std::int64_t at = begin + s;
            to[s] = line != nullptr && at >= 0 && at < op.width ? load(line[at]) : C(0);
        }
    }
}

/// Positions [first, first + count) of row p of an image: all filters.
template <class T, class C>
void convolve(const Conv2d& op, const T* image, const C* filters, const T* bias, std::int64_t p, std::int64_t first,
              std::int64_t count, T* out, C* columns, C* tile) {
    const std::int64_t lines = op.in_channels * op.kernel_h, at_once = lines_at_once(op);
    std::fill(tile, tile + op.out_channels * count, C(0));
    for (std::int64_t begin = 0; begin < lines; begin += at_once) {
        const std::int64_t size = std::min(at_once, lines - begin), depth = size * op.kernel_w;
        for (std::int64_t i = 0; i < size; ++i) {
            const std::int64_t c = (begin + i) / op.kernel_h, r = (begin + i) % op.kernel_h;
            const std::int64_t h = p * op.stride_h - op.pad_h + r;
            const bool inside = h >= 0 && h < op.height;
            fill_line(op, inside ? image + (c * op.height + h) * op.width : nullptr, first, count,
                      columns + i * op.kernel_w, depth);
        }
        add_products(op.out_channels, count, depth, filters + begin * op.kernel_w, op.taps(), columns, depth, tile,
                     count);
    }
    const std::int64_t plane = op.out_height() * op.out_width();
    for (std::int64_t k = 0; k < op.out_channels; ++k) {
        const C shift = bias != nullptr ? load(bias[k]) : C(0);
        T* to = out + k * plane + p * op.out_width() + first;
        for (std::int64_t i = 0; i < count; ++i) store(to[i], tile[k * count + i] + shift);
    }
}

/// `values` in what arithmetic is done in: themselves, or widened to `memory`.
template <class T>
const Compute<T>* widened(std::int64_t count, const T* values, Compute<T>* memory) {
    if constexpr (std::is_same_v<T, Compute<T>>) {
        return values;
    } else {
        constexpr std::int64_t chunk = 4096;
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
            const std::int64_t size = std::min(chunk, count - begin);
            vectorised([=, from = values + begin, to = memory + begin] {
#pragma omp simd
                for (std::int64_t i = 0; i < size; ++i) to[i] = load(from[i]);
            });
        }
        return memory;
    }
}

}  // namespace

std::size_t conv2d_workspace(DataType type, const Conv2d& op) {
    const Parts parts(op, size_of(type) == 2);
    const std::int64_t elements = parts.filters + omp_get_max_threads() * (parts.columns + parts.tile);
    return static_cast<std::size_t>(elements) * std::max<std::size_t>(size_of(type), sizeof(float));
}

void conv2d(DataType type, const Conv2d& op, const void* x, const void* weight, const void* bias, void* out,
            void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const Parts parts(op, !std::is_same_v<T, C>);
        C* const memory = static_cast<C*>(workspace);
        const C* const filters = widened(op.out_channels * op.taps(), static_cast<const T*>(weight), memory);
        const std::int64_t blocks = (op.out_width() + positions_at_once - 1) / positions_at_once;
        const std::int64_t rows = op.out_height();
#pragma omp parallel for schedule(dynamic)
        for (std::int64_t task = 0; task < op.batch * rows * blocks; ++task) {
            const std::int64_t n = task / (rows * blocks), p = task / blocks % rows;
            const std::int64_t first = task % blocks * positions_at_once;
            const std::int64_t count = std::min(positions_at_once, op.out_width() - first);
            const T* image = static_cast<const T*>(x) + n * op.in_channels * op.height * op.width;
            T* to = static_cast<T*>(out) + n * op.out_channels * rows * op.out_width();
            C* own = memory + parts.filters + omp_get_thread_num() * (parts.columns + parts.tile);
            vectorised([=, &op] {
                convolve(op, image, filters, static_cast<const T*>(bias), p, first, count, to, own,
                         own + parts.columns);
            });
        }
    });
}

}  // namespace kbench::cpu
