// RMS norm. Each OpenMP thread has one contiguous part of the rows. A row is read twice, the second time from the
// caches.
#include "cpu/native/rmsnorm.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "cpu/native/half.h"
#include "cpu/native/rows.h"
#include "cpu/native/streamed.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// A quarter of the maximum: with more requests for the next row in flight, this row's loads would wait behind them.
constexpr std::int64_t half_chunk_bytes = chunk_bytes / 4;

/// Normalises rows of x [rows, width] into `out`, a Stored or a Streamed.
template <class T, class Out>
void rms_norm_rows(std::int64_t rows, std::int64_t width, double epsilon, const T* x, const T* weight, Out& out) {
    using C = Compute<T>;
    constexpr std::int64_t chunk = chunk_bytes / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t row = 0; row < rows; ++row, x += width) {
        const T* next = row + 1 < rows ? x + width : x;
        const C squares = sum_over<C>(width, [x](std::int64_t c) { return load(x[c]) * load(x[c]); });
        const C rstd = 1 / std::sqrt(squares / static_cast<C>(width) + static_cast<C>(epsilon));
        for (std::int64_t begin = 0; begin < width; begin += chunk) {
            const std::int64_t count = std::min(chunk, width - begin);
            prefetch(count, next + begin);  // prefetches one chunk at a time, so that memory reads overlap its writes
            const T *from = x + begin, *scale = weight + begin;
            T* to = out.template room<T>();
#pragma omp simd
            for (std::int64_t c = 0; c < count; ++c) store(to[c], load(from[c]) * rstd * load(scale[c]));
            out.written(count * static_cast<std::int64_t>(sizeof(T)));
        }
    }
}

/// The same for stored 16-bit elements.
template <class T, class Out>
void rms_norm_half_rows(std::int64_t rows, std::int64_t width, double epsilon, const T* x, const T* weight, Out& out) {
    constexpr std::int64_t chunk = half_chunk_bytes / 2;
    for (std::int64_t row = 0; row < rows; ++row, x += width) {
        const T* next = row + 1 < rows ? x + width : x;
        const float squares = sum_of_squares(width, x);
        const float rstd = 1 / std::sqrt(squares / static_cast<float>(width) + static_cast<float>(epsilon));
        for (std::int64_t begin = 0; begin < width; begin += chunk) {
            const std::int64_t count = std::min(chunk, width - begin);
            prefetch(count, next + begin);
            scale(count, x + begin, rstd, weight + begin, out.template room<T>());
            out.written(count * 2);
        }
    }
}

template <class Out, class T>
void rms_norm_part(std::int64_t rows, std::int64_t width, double epsilon, const T* x, const T* weight, T* to) {
    Out out(to);
    if constexpr (sizeof(T) == 2)
        rms_norm_half_rows(rows, width, epsilon, x, weight, out);
    else
        vectorised([=, &out] { rms_norm_rows(rows, width, epsilon, x, weight, out); });
}

/// Adds the row's dy n to `dw`.
template <class T, class C = Compute<T>>
void rms_norm_gradient_row(std::int64_t width, double epsilon, const T* x, const T* dy, const T* weight, T* dx, C* dw) {
    const C count = static_cast<C>(width);
    const C squares = sum_over<C>(width, [=](std::int64_t c) { return load(x[c]) * load(x[c]); });
    const C rstd = 1 / std::sqrt(squares / count + static_cast<C>(epsilon));
    const C products =
        sum_over<C>(width, [=](std::int64_t c) { return load(dy[c]) * load(weight[c]) * (load(x[c]) * rstd); });
    const C mean_gn = products / count;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
        const C n = load(x[c]) * rstd, gradient = load(dy[c]);
        dw[c] += gradient * n;
        store(dx[c], rstd * (gradient * load(weight[c]) - n * mean_gn));
    }
}

}  // namespace

void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out) {
    rms_norm(type, op, x, weight, out, last_level_cache_bytes());
}

void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out,
              std::int64_t stream_above_bytes) {
    const bool streamed = op.rows * op.width * static_cast<std::int64_t>(size_of(type)) > stream_above_bytes;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel
        {
            const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
            const std::int64_t first = op.rows * thread / threads, count = op.rows * (thread + 1) / threads - first;
            const T* from = static_cast<const T*>(x) + first * op.width;
            const T* w = static_cast<const T*>(weight);
            T* to = static_cast<T*>(out) + first * op.width;
            if (streamed)
                rms_norm_part<Streamed>(count, op.width, op.epsilon, from, w, to);
            else
                rms_norm_part<Stored>(count, op.width, op.epsilon, from, w, to);
        }
    });
}

std::size_t rms_norm_gradient_workspace(DataType type, const RmsNorm& op) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) { bytes = sizeof(Compute<T>); });
    return bytes * static_cast<std::size_t>(RowBlocks(op.rows).count * op.width);
}

void rms_norm_gradient(DataType type, const RmsNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                       Out<"dw"> dw, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        C* partial = static_cast<C*>(workspace);
        const std::int64_t width = op.width;
        const RowBlocks blocks(op.rows);
#pragma omp parallel for schedule(static)
        for (std::int64_t block = 0; block < blocks.count; ++block) {
            C* sums = partial + block * width;
            std::fill(sums, sums + width, C(0));
            for (std::int64_t row = blocks.begin(block); row < blocks.begin(block + 1); ++row) {
                const T* in = static_cast<const T*>(x) + row * width;
                const T* gradient = static_cast<const T*>(dy) + row * width;
                T* to = static_cast<T*>(dx) + row * width;
                const T* w = static_cast<const T*>(weight);
                vectorised([=, &op] { rms_norm_gradient_row<T>(width, op.epsilon, in, gradient, w, to, sums); });
            }
        }
        T* out = static_cast<T*>(dw);
#pragma omp parallel for schedule(static)
        for (std::int64_t c = 0; c < width; ++c) {
            C sum = 0;
            for (std::int64_t block = 0; block < blocks.count; ++block) sum += partial[block * width + c];
            store(out[c], op.accumulates ? sum + load(out[c]) : sum);
        }
    });
}

}  // namespace kbench::cpu
