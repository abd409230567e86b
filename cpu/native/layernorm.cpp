// OpenMP threads share rows; a row is one vectorised call. Every pass reads the row again, because it stays in L1 and
// no buffer is needed.
#include "cpu/native/layernorm.h"

#include <algorithm>
#include <cmath>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// `next` is the row of x that comes after this one.
template <bool has_residual, class T>
void layer_norm_row(std::int64_t width, double epsilon, const T* x, const T* next, const T* residual, const T* weight,
                    const T* bias, T* sum_out, T* out) {
    using C = Compute<T>;
    const auto sum_at = [=](std::int64_t c) {
        if constexpr (has_residual)
            return load(x[c]) + load(residual[c]);
        else
            return load(x[c]);
    };
    const C mean = sum_over<C>(width, sum_at) / static_cast<C>(width);
    // Memory loads the next row while the passes below find this one in L1.
    prefetch(width, next);

    // Squares of differences; a difference of squares would cancel when |mean| is large.
    const C squares = sum_over<C>(width, [=](std::int64_t c) { return (sum_at(c) - mean) * (sum_at(c) - mean); });
    const C rstd = 1 / std::sqrt(squares / static_cast<C>(width) + static_cast<C>(epsilon));

    // The sum is stored only now, so that sum_out may be x or residual.
    const auto normalised = [=](C s, std::int64_t c) { return (s - mean) * rstd * load(weight[c]) + load(bias[c]); };
    if (sum_out) {
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) {
            const C s = sum_at(c);
            store(sum_out[c], s);
            store(out[c], normalised(s, c));
        }
    } else {
#pragma omp simd
        for (std::int64_t c = 0; c < width; ++c) store(out[c], normalised(sum_at(c), c));
    }
}

/// Adds the row's dy n to `dw` and its dy to `db`.
template <bool has_past, class T, class C = Compute<T>>
void layer_norm_gradient_row(std::int64_t width, double epsilon, const T* x, const T* dy, const T* weight,
                             const T* past, T* dx, C* dw, C* db) {
    const C count = static_cast<C>(width);
    const C mean = sum_over<C>(width, [=](std::int64_t c) { return load(x[c]); }) / count;
    const C squares = sum_over<C>(width, [=](std::int64_t c) { return (load(x[c]) - mean) * (load(x[c]) - mean); });
    const C rstd = 1 / std::sqrt(squares / count + static_cast<C>(epsilon));
    const auto g_at = [=](std::int64_t c) { return load(dy[c]) * load(weight[c]); };
    const C mean_g = sum_over<C>(width, g_at) / count;
    const C mean_gn =
        sum_over<C>(width, [=](std::int64_t c) { return g_at(c) * ((load(x[c]) - mean) * rstd); }) / count;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
        const C n = (load(x[c]) - mean) * rstd, gradient = load(dy[c]);
        dw[c] += gradient * n;
        db[c] += gradient;
        const C through = rstd * (gradient * load(weight[c]) - mean_g - n * mean_gn);
        if constexpr (has_past)
            store(dx[c], through + load(past[c]));
        else
            store(dx[c], through);
    }
}

}  // namespace

void layer_norm(DataType type, const LayerNorm& op, In<"x"> x, In<"residual?"> residual, In<"weight"> weight,
                In<"bias"> bias, Out<"sum?"> sum_out, Out<"out"> out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            const std::int64_t offset = row * op.width;
            const T* from = static_cast<const T*>(x) + offset;
            const T* next = from + (row + 1 < op.rows ? op.width : 0);
            const T* added = residual ? static_cast<const T*>(residual) + offset : nullptr;
            T* sum = sum_out ? static_cast<T*>(sum_out) + offset : nullptr;
            T* to = static_cast<T*>(out) + offset;
            const T* w = static_cast<const T*>(weight);
            const T* b = static_cast<const T*>(bias);
            if (added)
                vectorised([=, &op] { layer_norm_row<true>(op.width, op.epsilon, from, next, added, w, b, sum, to); });
            else
                vectorised([=, &op] { layer_norm_row<false>(op.width, op.epsilon, from, next, added, w, b, sum, to); });
        }
    });
}

std::size_t layer_norm_gradient_workspace(DataType type, const LayerNorm& op) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) { bytes = sizeof(Compute<T>); });
    return bytes * static_cast<std::size_t>(2 * RowBlocks(op.rows).count * op.width);
}

void layer_norm_gradient(DataType type, const LayerNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"dy_residual?"> past, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        C* partial = static_cast<C*>(workspace);  // for each block dw, then db
        const std::int64_t width = op.width;
        const RowBlocks blocks(op.rows);
#pragma omp parallel for schedule(static)
        for (std::int64_t block = 0; block < blocks.count; ++block) {
            C* sums = partial + 2 * block * width;
            std::fill(sums, sums + 2 * width, C(0));
            for (std::int64_t row = blocks.begin(block); row < blocks.begin(block + 1); ++row) {
                const T* in = static_cast<const T*>(x) + row * width;
                const T* gradient = static_cast<const T*>(dy) + row * width;
                T* to = static_cast<T*>(dx) + row * width;
                const T* w = static_cast<const T*>(weight);
                const T* added = past ? static_cast<const T*>(past) + row * width : nullptr;
                vectorised([=, &op] {
                    if (added)
                        layer_norm_gradient_row<true, T>(width, op.epsilon, in, gradient, w, added, to, sums,
                                                         sums + width);
                    else
                        layer_norm_gradient_row<false, T>(width, op.epsilon, in, gradient, w, added, to, sums,
                                                          sums + width);
                });
            }
        }
        T* sums_of[] = {static_cast<T*>(dw), static_cast<T*>(db)};
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < 2 * width; ++i) {
            C sum = 0;
            for (std::int64_t block = 0; block < blocks.count; ++block) sum += partial[2 * block * width + i];
            T& to = sums_of[i / width][i % width];
            store(to, op.accumulates ? sum + load(to) : sum);
        }
    });
}

}  // namespace kbench::cpu
