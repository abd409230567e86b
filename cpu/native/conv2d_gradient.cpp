// The convolution's gradients: products in registers of pieces that each thread gathers.
//
// dgrad multiplies columns of dy, for positions of a row of x, with the weight stored filters innermost. In wgrad one
// thread has a line (the taps of one row and channel of the kernel) for all images, so that sums have one order.
#include <omp.h>

#include <algorithm>

#include "cpu/native/conv2d.h"
#include "cpu/native/products.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

constexpr std::int64_t whole_lines(std::int64_t count) { return (count + 63) / 64 * 64; }
std::size_t compute_bytes(DataType type) { return std::max<std::size_t>(size_of(type), sizeof(float)); }

/// Positions of dx per piece, and products per position: 64 KiB in fp32.
constexpr std::int64_t dx_at_once = 32, products_at_once = 512;

struct DgradPieces {
    std::int64_t filters, weight, columns, tile;  ///< filters at once; the others in elements

    explicit DgradPieces(const Conv2d& op)
        : filters(std::clamp<std::int64_t>(products_at_once / op.kernel_w, 1, op.out_channels)),
          weight(whole_lines(op.out_channels * op.taps())),
          columns(whole_lines(dx_at_once * filters * op.kernel_w)),
          tile(whole_lines(op.in_channels * dx_at_once)) {}
    std::int64_t elements() const { return weight + omp_get_max_threads() * (columns + tile); }
};

/// to[i, k, s] = line[k][(first + i + pad_w - s) / stride_w], and 0 where that is not a position.
template <class T, class C>
void gather_dy(const Conv2d& op, const T* lines, std::int64_t filters, std::int64_t first, std::int64_t count, C* to) {
    const std::int64_t plane = op.out_height() * op.out_width(), out_width = op.out_width();
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t k = 0; k < filters; ++k, to += op.kernel_w) {
            const T* line = lines + k * plane;
            for (std::int64_t s = 0; s < op.kernel_w; ++s) {
                const std::int64_t behind = first + i + op.pad_w - s;
                const std::int64_t q = op.stride_w == 1 ? behind : behind / op.stride_w;
                const bool meets = behind >= 0 && q < out_width && q * op.stride_w == behind;
                to[s] = meets ? load(line[q]) : C(0);
            }
        }
}

constexpr std::int64_t positions_at_once = 512;

struct WgradPieces {
    std::int64_t positions, gradients, columns, tile;  ///< positions at once; the others in elements

    explicit WgradPieces(const Conv2d& op)
        : positions(std::min(positions_at_once, op.out_width())),
          gradients(whole_lines(op.out_channels * positions)),
          columns(whole_lines(op.kernel_w * positions)),
          tile(whole_lines(op.out_channels * op.kernel_w)) {}
    std::int64_t elements() const { return omp_get_max_threads() * (gradients + columns + tile); }
};

/// to[s, i] = line[(first + i) stride_w - pad_w + s], and 0 outside the line.
template <class T, class C>
void gather_x(const Conv2d& op, const T* line, std::int64_t first, std::int64_t count, C* to) {
    for (std::int64_t s = 0; s < op.kernel_w; ++s, to += count) {
        const std::int64_t begin = first * op.stride_w - op.pad_w + s;
        if (op.stride_w == 1) {
            const std::int64_t from = std::clamp<std::int64_t>(-begin, 0, count);
            const std::int64_t end = std::clamp<std::int64_t>(op.width - begin, from, count);
            std::fill(to, to + from, C(0));
#pragma omp simd
            for (std::int64_t i = from; i < end; ++i) to[i] = load(line[begin + i]);
            std::fill(to + end, to + count, C(0));
            continue;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t w = begin + i * op.stride_w;
            to[i] = w >= 0 && w < op.width ? load(line[w]) : C(0);
        }
    }
}

template <class T, class C = Compute<T>>
void bias_gradient(const Conv2d& op, const T* dy, T* db) {
    const std::int64_t plane = op.out_height() * op.out_width();
#pragma omp parallel for schedule(static)
    for (std::int64_t k = 0; k < op.out_channels; ++k)
        vectorised([=, &op] {
            C sum = op.accumulates ? load(db[k]) : C(0);
            for (std::int64_t image = 0; image < op.batch; ++image) {
                const T* from = dy + (image * op.out_channels + k) * plane;
                C of_image = 0;
#pragma omp simd reduction(+ : of_image)
                for (std::int64_t i = 0; i < plane; ++i) of_image += load(from[i]);
                sum += of_image;
            }
            store(db[k], sum);
        });
}

}  // namespace

std::size_t conv2d_dgrad_workspace(DataType type, const Conv2d& op) {
    return static_cast<std::size_t>(DgradPieces(op).elements()) * compute_bytes(type);
}

void conv2d_dgrad(DataType type, const Conv2d& op, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const DgradPieces pieces(op);
        const std::int64_t depth_of_row = op.out_channels * op.kernel_w, depth_of_channel = op.kernel_h * depth_of_row;
        C* const turned = static_cast<C*>(workspace);  // weight [c, r, k, s]
#pragma omp parallel for schedule(static)
        for (std::int64_t line = 0; line < op.in_channels * op.kernel_h; ++line)
            for (std::int64_t k = 0; k < op.out_channels; ++k)
                for (std::int64_t s = 0; s < op.kernel_w; ++s)
                    turned[line * depth_of_row + k * op.kernel_w + s] =
                        load(static_cast<const T*>(weight)[k * op.taps() + line * op.kernel_w + s]);
        const std::int64_t blocks = (op.width + dx_at_once - 1) / dx_at_once;
#pragma omp parallel for schedule(dynamic) shared(dy, dx)
        for (std::int64_t task = 0; task < op.batch * op.height * blocks; ++task) {
            const std::int64_t image = task / (op.height * blocks), h = task / blocks % op.height;
            const std::int64_t first = task % blocks * dx_at_once, count = std::min(dx_at_once, op.width - first);
            C* const columns = turned + pieces.weight + omp_get_thread_num() * (pieces.columns + pieces.tile);
            C* const sums = columns + pieces.columns;
            vectorised([=, &op] {
                std::fill(sums, sums + op.in_channels * count, C(0));
                for (std::int64_t r = 0; r < op.kernel_h; ++r) {
                    const std::int64_t below = h + op.pad_h - r, p = below / op.stride_h;
                    if (below < 0 || below % op.stride_h != 0 || p >= op.out_height()) continue;
                    for (std::int64_t k = 0; k < op.out_channels; k += pieces.filters) {
                        const std::int64_t filters = std::min(pieces.filters, op.out_channels - k);
                        const std::int64_t depth = filters * op.kernel_w;
                        const T* lines = static_cast<const T*>(dy) +
                                         ((image * op.out_channels + k) * op.out_height() + p) * op.out_width();
                        gather_dy(op, lines, filters, first, count, columns);
                        add_products(op.in_channels, count, depth, turned + r * depth_of_row + k * op.kernel_w,
                                     depth_of_channel, columns, depth, sums, count);
                    }
                }
                for (std::int64_t c = 0; c < op.in_channels; ++c) {
                    T* to = static_cast<T*>(dx) + ((image * op.in_channels + c) * op.height + h) * op.width + first;
                    for (std::int64_t i = 0; i < count; ++i) store(to[i], sums[c * count + i]);
                }
            });
        }
    });
}

std::size_t conv2d_wgrad_workspace(DataType type, const Conv2d& op) {
    return static_cast<std::size_t>(WgradPieces(op).elements()) * compute_bytes(type);
}

void conv2d_wgrad(DataType type, const Conv2d& op, In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db,
                  void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const WgradPieces pieces(op);
        const std::int64_t plane = op.out_height() * op.out_width();
#pragma omp parallel for schedule(dynamic) shared(x, dw)
        for (std::int64_t line = 0; line < op.in_channels * op.kernel_h; ++line) {
            const std::int64_t c = line / op.kernel_h, r = line % op.kernel_h;
            C* const gradients =
                static_cast<C*>(workspace) + omp_get_thread_num() * (pieces.gradients + pieces.columns + pieces.tile);
            C* const columns = gradients + pieces.gradients;
            C* const sums = columns + pieces.columns;
            vectorised([=, &op] {
                std::fill(sums, sums + op.out_channels * op.kernel_w, C(0));
                for (std::int64_t row = 0; row < op.batch * op.out_height(); ++row) {
                    const std::int64_t image = row / op.out_height(), p = row % op.out_height();
                    const std::int64_t h = p * op.stride_h - op.pad_h + r;
                    if (h < 0 || h >= op.height) continue;
                    for (std::int64_t first = 0; first < op.out_width(); first += pieces.positions) {
                        const std::int64_t count = std::min(pieces.positions, op.out_width() - first);
                        const T* from =
                            static_cast<const T*>(dy) + image * op.out_channels * plane + p * op.out_width() + first;
                        for (std::int64_t k = 0; k < op.out_channels; ++k)
#pragma omp simd
                            for (std::int64_t i = 0; i < count; ++i)
                                gradients[k * count + i] = load(from[k * plane + i]);
                        gather_x(op,
                                 static_cast<const T*>(x) + ((image * op.in_channels + c) * op.height + h) * op.width,
                                 first, count, columns);
                        add_products(op.out_channels, op.kernel_w, count, gradients, count, columns, count, sums,
                                     op.kernel_w);
                    }
                }
                for (std::int64_t k = 0; k < op.out_channels; ++k) {
                    T* to = static_cast<T*>(dw) + k * op.taps() + line * op.kernel_w;
                    for (std::int64_t s = 0; s < op.kernel_w; ++s)
                        store(to[s], sums[k * op.kernel_w + s] + (op.accumulates ? load(to[s]) : C(0)));
                }
            });
        }
        if (db != nullptr) bias_gradient(op, static_cast<const T*>(dy), static_cast<T*>(db));
    });
}

}  // namespace kbench::cpu
