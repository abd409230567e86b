// OpenMP threads share rows; a row is one vectorised call. Every pass reads the row again, because it stays in L1 and
// no buffer is needed.
#include "cpu/native/softmax.h"

#include <limits>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

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
    // Exponentials are computed twice, because P may be too narrow to hold them and there is no buffer.
    const C inverse = 1 / total;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) store(probabilities[c], static_cast<Compute<P>>(term(c) * inverse));
}

}  // namespace

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

void softmax(DataType scores_type, DataType probabilities_type, const Softmax& op, In<"scores"> scores,
             Out<"probabilities"> probabilities) {
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
