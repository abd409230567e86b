// Rows are shared among OpenMP threads, one row is one vectorised call. A row is read again for every pass over it:
// it stays in L1, and no buffer is needed.
#include "cpu/native/layernorm.h"

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
    // Memory works while the passes below find this row in L1.
    prefetch(width, next);

    // Squares of differences, not the difference of squares, which cancels when |mean| is large.
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

}  // namespace

void layer_norm(DataType type, const LayerNorm& op, const void* x, const void* residual, const void* weight,
                const void* bias, void* sum_out, void* out) {
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

}  // namespace kbench::cpu
