// OpenMP threads share rows; a row is one vectorised call. Every pass reads the row again, because 100 KB of it stay in
// L2 and no buffer is needed.
#include "cpu/native/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

template <class C>
struct Exponentials {
    C largest, sum;  ///< sum: of exponentials relative to the largest
};

template <class C>
C exponential(C logit, C largest) {
    return exp2_vector((logit - largest) * log2_e<C>);
}

template <class T, class C = Compute<T>>
Exponentials<C> exponentials(std::int64_t vocab, const T* logits) {
    C largest = -std::numeric_limits<C>::infinity();
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < vocab; ++c) largest = larger(load(logits[c]), largest);
    return {largest, sum_over<C>(vocab, [=](std::int64_t c) { return exponential(load(logits[c]), largest); })};
}

/// Returns the loss of a row. With `gradient`, its gradient times `scale` replaces the row.
template <bool gradient, class T, class C = Compute<T>>
C cross_entropy_row(std::int64_t vocab, std::conditional_t<gradient, T*, const T*> logits, std::int32_t target,
                    [[maybe_unused]] C scale) {
    const C at_target = load(logits[target]);
    const Exponentials<C> of = exponentials<T>(vocab, logits);
    if constexpr (gradient) {
        const C times = scale / of.sum, largest = of.largest;
#pragma omp simd
        for (std::int64_t c = 0; c < vocab; ++c) store(logits[c], exponential(load(logits[c]), largest) * times);
        store(logits[target], exponential(at_target, largest) * times - scale);
    }
    return std::log(of.sum) + (of.largest - at_target);
}

/// False for the last row of a sequence: the next row belongs to another sequence.
bool has_target(const CrossEntropy& op, std::int64_t row) { return row % op.seq + 1 < op.seq; }

}  // namespace

void cross_entropy(DataType type, const CrossEntropy& op, Stride<"logits"> stride, In<"logits"> logits,
                   In<"tokens", std::int32_t> tokens, Out<"losses"> losses) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
#pragma omp parallel for schedule(static) shared(tokens)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            C loss = 0;
            const T* from = static_cast<const T*>(logits) + row * stride;
            if (has_target(op, row))
                vectorised([=, &loss, vocab = op.vocab] {
                    loss = cross_entropy_row<false, T>(vocab, from, tokens[row + 1], C(0));
                });
            static_cast<C*>(losses)[row] = loss;
        }
    });
}

void cross_entropy_gradient(DataType type, const CrossEntropy& op, Stride<"logits"> stride, Out<"logits"> logits,
                            In<"tokens", std::int32_t> tokens, In<"loss_scale"> loss_scale, Out<"losses"> losses) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const C scale = *static_cast<const C*>(loss_scale) / static_cast<C>(op.targets());
#pragma omp parallel for schedule(static) shared(tokens)
        for (std::int64_t row = 0; row < op.rows; ++row) {
            C loss = 0;
            T* line = static_cast<T*>(logits) + row * stride;
            const bool targeted = has_target(op, row);
            if (targeted)
                vectorised([=, &loss, vocab = op.vocab] {
                    loss = cross_entropy_row<true, T>(vocab, line, tokens[row + 1], scale);
                });
            std::fill(line + (targeted ? op.vocab : 0), line + stride, T{});
            static_cast<C*>(losses)[row] = loss;
        }
    });
}

}  // namespace kbench::cpu
