// OpenMP threads share rows, or chunks where rows do not matter. Each is one vectorised call.
#include "cpu/native/elementwise.h"

#include <algorithm>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Elements per chunk where rows do not matter: enough to amortise the call, few enough to share among threads.
constexpr std::int64_t chunk = 4096;
/// Columns that a thread sums side by side: their sums stay in registers and L1.
constexpr std::int64_t columns_at_once = 64;

}  // namespace

void bias_gradient(DataType type, const BiasAdd& op, In<"dy"> dy, Out<"db"> db) {
    const std::int64_t rows = op.rows, width = op.width;
    const bool accumulates = op.accumulates;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static) shared(rows, accumulates)
        for (std::int64_t first = 0; first < width; first += columns_at_once) {
            const std::int64_t columns = std::min(columns_at_once, width - first);
            const T* from = static_cast<const T*>(dy) + first;
            T* to = static_cast<T*>(db) + first;
            vectorised([=] {
                Compute<T> sums[columns_at_once] = {};
                for (std::int64_t row = 0; row < rows; ++row) {
                    const T* values = from + row * width;
#pragma omp simd
                    for (std::int64_t c = 0; c < columns; ++c) sums[c] += load(values[c]);
                }
                if (accumulates)
                    for (std::int64_t c = 0; c < columns; ++c) sums[c] += load(to[c]);
                for (std::int64_t c = 0; c < columns; ++c) store(to[c], sums[c]);
            });
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

}  // namespace kbench::cpu
