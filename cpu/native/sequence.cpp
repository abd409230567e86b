// The ops around convolutions and recurrent layers. OpenMP threads share rows; each is one vectorised call.
#include "cpu/native/sequence.h"

#include <algorithm>
#include <cmath>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Elements per chunk where rows do not matter.
constexpr std::int64_t chunk = 4096;
/// Rows and columns that share the columns' scales: a root and a division cost as much as a dozen elements.
constexpr std::int64_t rows_at_once = 64, columns_at_once = 64;
/// Side of the squares that a transposition works in: a cache line of 16-bit elements each way.
constexpr std::int64_t side = 32;

template <class T>
Compute<T> scale_of(const T& weight, const T& variance, double epsilon) {
    return load(weight) / std::sqrt(load(variance) + static_cast<Compute<T>>(epsilon));
}

}  // namespace

void batch_norm(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                In<"running_mean"> mean, In<"running_var"> variance, Out<"out"> out) {
    with_element(type, [&]<class T>(T) {
        const T *w = static_cast<const T*>(weight), *b = static_cast<const T*>(bias);
        const T *m = static_cast<const T*>(mean), *v = static_cast<const T*>(variance);
        const std::int64_t width = op.width;
        if (op.channels > 0) {
#pragma omp parallel for schedule(static)
            for (std::int64_t row = 0; row < op.rows; ++row) {
                const std::int64_t c = row / op.height % op.channels;
                const Compute<T> scale = scale_of(w[c], v[c], op.epsilon), center = load(m[c]), shift = load(b[c]);
                const T* from = static_cast<const T*>(x) + row * width;
                T* to = static_cast<T*>(out) + row * width;
                vectorised([=] {
#pragma omp simd
                    for (std::int64_t i = 0; i < width; ++i) store(to[i], (load(from[i]) - center) * scale + shift);
                });
            }
            return;
        }
        const std::int64_t blocks = (op.rows + rows_at_once - 1) / rows_at_once;
        const std::int64_t strips = (width + columns_at_once - 1) / columns_at_once;
#pragma omp parallel for schedule(static)
        for (std::int64_t task = 0; task < blocks * strips; ++task) {
            const std::int64_t first = task % strips * columns_at_once, begin = task / strips * rows_at_once;
            const std::int64_t columns = std::min(columns_at_once, width - first);
            const std::int64_t end = std::min(op.rows, begin + rows_at_once);
            Compute<T> scales[columns_at_once], centers[columns_at_once], shifts[columns_at_once];
            for (std::int64_t i = 0; i < columns; ++i) {
                scales[i] = scale_of(w[first + i], v[first + i], op.epsilon);
                centers[i] = load(m[first + i]);
                shifts[i] = load(b[first + i]);
            }
            vectorised([&] {
                for (std::int64_t row = begin; row < end; ++row) {
                    const T* from = static_cast<const T*>(x) + row * width + first;
                    T* to = static_cast<T*>(out) + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i)
                        store(to[i], (load(from[i]) - centers[i]) * scales[i] + shifts[i]);
                }
            });
        }
    });
}

void hardtanh(DataType type, const Hardtanh& op, const void* x, void* out) {
    const std::int64_t count = op.rows * op.width;
    with_element(type, [&]<class T>(T) {
        const auto low = static_cast<Compute<T>>(op.low), high = static_cast<Compute<T>>(op.high);
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
            const std::int64_t size = std::min(chunk, count - begin);
            const T* from = static_cast<const T*>(x) + begin;
            T* to = static_cast<T*>(out) + begin;
            vectorised([=] {
            // NaN stays NaN, because a comparison with it is false.
#pragma omp simd
                for (std::int64_t i = 0; i < size; ++i) {
                    const Compute<T> value = load(from[i]), above = value < low ? low : value;
                    store(to[i], above > high ? high : above);
                }
            });
        }
    });
}

void time_mask(DataType type, const TimeMask& op, const void* x, const std::int32_t* lengths, void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.batch * op.rows_each; ++row) {
            const std::int64_t steps = steps_of(lengths[row / op.rows_each], op.frames_per_step, op.steps);
            const T* from = static_cast<const T*>(x) + row * op.steps;
            T* to = static_cast<T*>(out) + row * op.steps;
            if (from != to) std::copy_n(from, steps, to);
            std::fill(to + steps, to + op.steps, T{});
        }
    });
}

void to_sequence(DataType type, const ToSequence& op, const void* x, void* out) {
    with_element(type, [&]<class T>(T) {
        const std::int64_t tiles = (op.features + side - 1) / side;
#pragma omp parallel for schedule(static)
        for (std::int64_t task = 0; task < op.batch * tiles; ++task) {
            const std::int64_t n = task / tiles, first = task % tiles * side;
            const std::int64_t last = std::min(op.features, first + side);
            const T* from = static_cast<const T*>(x) + n * op.features * op.steps;
            T* to = static_cast<T*>(out) + n * op.features;
            for (std::int64_t begin = 0; begin < op.steps; begin += side)
                for (std::int64_t t = begin; t < std::min(op.steps, begin + side); ++t)
                    for (std::int64_t f = first; f < last; ++f)
                        to[t * op.batch * op.features + f] = from[f * op.steps + t];
        }
    });
}

void hardtanh_gradient(DataType type, const Hardtanh& op, In<"y"> y, In<"dy"> dy, Out<"dx"> dx) {
    const std::int64_t count = op.rows * op.width;
    with_element(type, [&]<class T>(T) {
        const auto low = static_cast<Compute<T>>(op.low), high = static_cast<Compute<T>>(op.high);
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
            const std::int64_t size = std::min(chunk, count - begin);
            const T *clipped = static_cast<const T*>(y) + begin, *from = static_cast<const T*>(dy) + begin;
            T* to = static_cast<T*>(dx) + begin;
            vectorised([=] {
#pragma omp simd
                for (std::int64_t i = 0; i < size; ++i) {
                    const Compute<T> value = load(clipped[i]), gradient = load(from[i]);
                    const Compute<T> above = value > low ? gradient : 0;
                    store(to[i], value < high ? above : 0);
                }
            });
        }
    });
}

void to_sequence_gradient(DataType type, const ToSequence& op, const void* dy, void* dx) {
    with_element(type, [&]<class T>(T) {
        const std::int64_t tiles = (op.features + side - 1) / side;
#pragma omp parallel for schedule(static)
        for (std::int64_t task = 0; task < op.batch * tiles; ++task) {
            const std::int64_t n = task / tiles, first = task % tiles * side;
            const std::int64_t last = std::min(op.features, first + side);
            const T* from = static_cast<const T*>(dy) + n * op.features;
            T* to = static_cast<T*>(dx) + n * op.features * op.steps;
            for (std::int64_t begin = 0; begin < op.steps; begin += side)
                for (std::int64_t f = first; f < last; ++f)
                    for (std::int64_t t = begin; t < std::min(op.steps, begin + side); ++t)
                        to[f * op.steps + t] = from[t * op.batch * op.features + f];
        }
    });
}

}  // namespace kbench::cpu
