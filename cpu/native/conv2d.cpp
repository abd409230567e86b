// The convolution by im2col, with products in registers.
#include "cpu/native/conv2d.h"

#include <algorithm>

#include "cpu/im2col.h"
#include "cpu/native/products.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Positions per piece. With 512 fp32 taps each they take 64 KiB, and the taps of 32 filters as much.
constexpr std::int64_t positions_at_once = 32;

Im2col cut(DataType type, const Conv2d& op) {
    return {op, positions_at_once, size_of(type) == 2 ? op.out_channels * op.taps() : 0};
}

/// `values` in the computing type: themselves, or widened into `memory`.
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
    return static_cast<std::size_t>(cut(type, op).elements()) * std::max<std::size_t>(size_of(type), sizeof(float));
}

void conv2d(DataType type, const Conv2d& op, In<"x"> x, In<"weight"> weight, In<"bias?"> bias, Out<"out"> out,
            void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const Im2col pieces = cut(type, op);
        C* const memory = static_cast<C*>(workspace);
        const C* const filters = widened(op.out_channels * op.taps(), static_cast<const T*>(weight), memory);
        pieces.for_each_piece(memory, [&](std::int64_t image, std::int64_t p, std::int64_t first, std::int64_t count,
                                          C* columns, C* tile) {
            vectorised([&] {
                pieces.convolve(
                    static_cast<const T*>(x), filters, static_cast<const T*>(bias), image, p, first, count, columns,
                    tile, static_cast<T*>(out), [&](std::int64_t depth, const C* part, const C* taps, C* sums) {
                        add_products(op.out_channels, count, depth, part, op.taps(), taps, depth, sums, count);
                    });
            });
        });
    });
}

}  // namespace kbench::cpu
