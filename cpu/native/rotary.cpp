// OpenMP threads share rows; a head is one vectorised call.
#include "cpu/native/rotary.h"

#include <algorithm>
#include <cmath>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Angles whose sines and cosines are kept at a time, for all heads of a row.
constexpr std::int64_t angles_at_once = 128;

template <class T>
void copy_values(std::int64_t count, const T* from, T* to) {
    if (from != to) std::copy_n(from, count, to);
}

template <class T>
void norm_head(std::int64_t size, double epsilon, const T* x, const T* weight, T* to) {
    using C = Compute<T>;
    const C squares = sum_over<C>(size, [x](std::int64_t c) { return load(x[c]) * load(x[c]); });
    const C rstd = 1 / std::sqrt(squares / static_cast<C>(size) + static_cast<C>(epsilon));
#pragma omp simd
    for (std::int64_t c = 0; c < size; ++c) store(to[c], load(x[c]) * rstd * load(weight[c]));
}

/// Angles from `first` on, in fp64: in fp32 the angle of token 100000 would be wrong by a hundredth.
template <class C>
void find_angles(const RotaryEmbedding& op, std::int64_t position, std::int64_t first, std::int64_t count, C* cosines,
                 C* sines) {
    for (std::int64_t i = 0; i < count; ++i) {
        const double angle = static_cast<double>(position) * op.frequencies[static_cast<std::size_t>(first + i)];
        cosines[i] = static_cast<C>(std::cos(angle) * op.factor);
        sines[i] = static_cast<C>(std::sin(angle) * op.factor);
    }
}

}  // namespace

void qk_norm(DataType type, const QkNorm& op, In<"qkv"> qkv, In<"q_weight"> q_weight, In<"k_weight"> k_weight,
             Out<"out"> out) {
    const std::int64_t size = op.head_size, width = op.all_heads() * size;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            const T* from = static_cast<const T*>(qkv) + row * width;
            T* to = static_cast<T*>(out) + row * width;
            const std::int64_t normalised = op.heads + op.kv_heads;
            for (std::int64_t head = 0; head < normalised; ++head) {
                const T* weight = head < op.heads ? static_cast<const T*>(q_weight) : static_cast<const T*>(k_weight);
                vectorised([=, &op] { norm_head(size, op.epsilon, from + head * size, weight, to + head * size); });
            }
            copy_values(op.kv_heads * size, from + normalised * size, to + normalised * size);
        }
    });
}

void rotary_embedding(DataType type, const RotaryEmbedding& op, In<"qkv"> qkv, In<"positions", std::int32_t> positions,
                      Out<"out"> out) {
    const std::int64_t size = op.head_size, half = size / 2, width = op.all_heads() * size;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows(); ++row) {
            const T* from = static_cast<const T*>(qkv) + row * width;
            T* to = static_cast<T*>(out) + row * width;
            const std::int64_t position = positions[row / op.queries] + row % op.queries;
            const std::int64_t rotated = op.heads + op.kv_heads;
            C cosines[angles_at_once], sines[angles_at_once];
            for (std::int64_t first = 0; first < half; first += angles_at_once) {
                const std::int64_t count = std::min(angles_at_once, half - first);
                find_angles(op, position, first, count, cosines, sines);
                const C *cosine = cosines, *sine = sines;
                vectorised([=] {
                    for (std::int64_t head = 0; head < rotated; ++head) {
                        const T *low = from + head * size + first, *high = low + half;
                        T *to_low = to + head * size + first, *to_high = to_low + half;
#pragma omp simd
                        for (std::int64_t i = 0; i < count; ++i) {
                            const C a = load(low[i]), b = load(high[i]);
                            store(to_low[i], a * cosine[i] - b * sine[i]);
                            store(to_high[i], b * cosine[i] + a * sine[i]);
                        }
                    }
                });
            }
            copy_values(op.kv_heads * size, from + rotated * size, to + rotated * size);
        }
    });
}

}  // namespace kbench::cpu
