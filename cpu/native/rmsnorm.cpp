// Each OpenMP thread normalises one contiguous part of the rows. A row is read twice, the second time out of the
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

/// A quarter of the most: with more requests for the next row at once, the loads of this one wait behind them.
constexpr std::int64_t half_chunk_bytes = chunk_bytes / 4;

/// Rows of x [rows, width] into `out`, a Stored or a Streamed.
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
            prefetch(count, next + begin);  // a chunk at a time: memory is then read while it is written
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

}  // namespace

void rms_norm(DataType type, const RmsNorm& op, const void* x, const void* weight, void* out) {
    rms_norm(type, op, x, weight, out, last_level_cache_bytes());
}

void rms_norm(DataType type, const RmsNorm& op, const void* x, const void* weight, void* out,
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

}  // namespace kbench::cpu
