// The memory-bound steps as vector loops: rows are shared among OpenMP threads, one row is one vectorised call.
// Each row is read again for every pass over it: it stays in L1, and no step needs a buffer.
#include "cpu/native.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Elements a thread takes at a time where rows do not matter: long enough for the call, short enough to share.
constexpr std::int64_t chunk = 4096;

/// Asks for a row before its turn; into L2, as L1 is full of the current row.
template <class T>
void prefetch(std::int64_t width, const T* row) {
    constexpr std::int64_t cache_line = 64 / sizeof(T);
    for (std::int64_t c = 0; c < width; c += cache_line) __builtin_prefetch(row + c, 0, 2);
}

/// The sum of term(c) for c in [0, width), in 256 bytes of partial sums (AVX2: eight registers) that are added
/// pairwise. A plain reduction has one register, each addition of which waits for the last, and adds its lanes up one
/// by one.
template <class C, class Term>
C sum_over(std::int64_t width, const Term& term) {
    constexpr std::int64_t lanes = 256 / sizeof(C);
    C sums[lanes] = {};
    const std::int64_t whole = width / lanes * lanes;
    for (std::int64_t begin = 0; begin < whole; begin += lanes) {
#pragma omp simd
        for (std::int64_t i = 0; i < lanes; ++i) sums[i] += term(begin + i);
    }
#pragma omp simd
    for (std::int64_t c = whole; c < width; ++c) sums[c - whole] += term(c);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
#pragma omp simd
        for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
}

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

template <bool has_bias, bool has_gelu, class T>
void bias_gelu_row(std::int64_t width, const T* x, const T* bias, T* out) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
        Compute<T> value = load(x[c]);
        if constexpr (has_bias) value += load(bias[c]);
        if constexpr (has_gelu) value = gelu_vector(value);
        store(out[c], value);
    }
}

template <class S, class P>
void softmax_row(std::int64_t width, const S* scores, P* probabilities) {
    using C = Compute<S>;
    C largest = -std::numeric_limits<C>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < width; ++c) largest = larger(load(scores[c]), largest);

    const auto term = [=](std::int64_t c) { return exp2_vector((load(scores[c]) - largest) * log2_e<C>); };
    C total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t c = 0; c < width; ++c) total += term(c);
    // The exponentials are computed twice: P may be narrower than what they need, and there is no buffer.
    const C inverse = 1 / total;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) store(probabilities[c], static_cast<Compute<P>>(term(c) * inverse));
}

}  // namespace

void embedding(DataType type, const Embedding& op, const std::int32_t* tokens, const void* wte, const void* wpe,
               void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            const T* token = static_cast<const T*>(wte) + tokens[row] * op.width;
            const T* position = static_cast<const T*>(wpe) + row % op.seq * op.width;
            T* to = static_cast<T*>(out) + row * op.width;
            vectorised([=, width = op.width] {
#pragma omp simd
                for (std::int64_t c = 0; c < width; ++c) store(to[c], load(token[c]) + load(position[c]));
            });
        }
    });
}

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

void bias_gelu(DataType type, std::int64_t rows, std::int64_t width, const void* x, const void* bias, bool gelu,
               void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            const T* from = static_cast<const T*>(x) + row * width;
            const T* b = static_cast<const T*>(bias);
            T* to = static_cast<T*>(out) + row * width;
            if (b && gelu) vectorised([=] { bias_gelu_row<true, true>(width, from, b, to); });
            if (b && !gelu) vectorised([=] { bias_gelu_row<true, false>(width, from, b, to); });
            if (!b && gelu) vectorised([=] { bias_gelu_row<false, true>(width, from, b, to); });
            if (!b && !gelu) vectorised([=] { bias_gelu_row<false, false>(width, from, b, to); });
        }
    });
}

void residual_add(DataType type, std::int64_t count, const void* x, const void* residual, void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
            const std::int64_t size = std::min(chunk, count - begin);
            const T* a = static_cast<const T*>(x) + begin;
            const T* b = static_cast<const T*>(residual) + begin;
            T* to = static_cast<T*>(out) + begin;
            vectorised([=] {
#pragma omp simd
                for (std::int64_t i = 0; i < size; ++i) store(to[i], load(a[i]) + load(b[i]));
            });
        }
    });
}

void scale_mask(DataType type, const ScaleMask& op, void* scores) {
    const AttentionShape& shape = op.shape;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < shape.batch * shape.heads * shape.seq; ++row) {
            T* line = static_cast<T*>(scores) + row * shape.seq;
            const std::int64_t seen = row % shape.seq + 1, seq = shape.seq;
            const auto scale = static_cast<Compute<T>>(op.scale);
            vectorised([=] {
#pragma omp simd
                for (std::int64_t c = 0; c < seen; ++c) store(line[c], load(line[c]) * scale);
#pragma omp simd
                for (std::int64_t c = seen; c < seq; ++c) store(line[c], -std::numeric_limits<Compute<T>>::infinity());
            });
        }
    });
}

void softmax(DataType scores_type, DataType probabilities_type, const Softmax& op, const void* scores,
             void* probabilities) {
    with_element(scores_type, [&]<class S>(S) {
        with_element(probabilities_type, [&]<class P>(P) {
#pragma omp parallel for schedule(static)
            for (std::int64_t row = 0; row < op.rows; ++row) {
                const S* from = static_cast<const S*>(scores) + row * op.width;
                P* to = static_cast<P*>(probabilities) + row * op.width;
                vectorised([=, width = op.width] { softmax_row(width, from, to); });
            }
        });
    });
}

}  // namespace kbench::cpu
