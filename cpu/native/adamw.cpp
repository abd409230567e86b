// Tensors are updated one after another. OpenMP threads share a tensor's chunks; a chunk is one vectorised call.
#include "cpu/native/adamw.h"

#include <algorithm>
#include <cmath>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Elements per chunk: enough to amortise the call, few enough to share among threads.
constexpr std::int64_t chunk = 4096;

/// Factors of one step, the same for every element.
template <class C>
struct Factors {
    C multiplier;  ///< 0: the step is skipped
    C beta1, beta2, keep;
    C step;         ///< lr / (1 - beta1^t)
    C root_factor;  ///< 1 / sqrt(1 - beta2^t)
    C epsilon;

    Factors(const AdamW& op, const C* schedule, const C* norm)
        : multiplier(schedule[7]),
          beta1(schedule[1]),
          beta2(schedule[2]),
          keep(1 - schedule[0] * schedule[4]),
          step(schedule[0] / schedule[5]),
          root_factor(1 / std::sqrt(schedule[6])),
          epsilon(schedule[3]) {
        if (op.clips && schedule[8] > 0)
            multiplier *= std::min(C(1), schedule[8] / (std::abs(multiplier) * *norm + C(AdamW::clip_epsilon)));
        if (!std::isfinite(multiplier) || (op.clips && !std::isfinite(*norm))) multiplier = 0;
    }
};

/// S is the type of m and v, and of the master copy where there is one.
template <bool has_master, class T, class S, class C = Compute<T>>
void update(const Factors<C>& factors, std::int64_t count, T* weight, const T* gradient, S* m, S* v, S* master) {
    const Factors<C> f = factors;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = f.multiplier * load(gradient[i]);
        const C first = f.beta1 * load(m[i]) + (1 - f.beta1) * g;
        const C second = f.beta2 * load(v[i]) + (1 - f.beta2) * g * g;
        C w;
        if constexpr (has_master)
            w = load(master[i]);
        else
            w = load(weight[i]);
        w = w * f.keep - f.step * first / (std::sqrt(second) * f.root_factor + f.epsilon);
        store(m[i], first);
        store(v[i], second);
        if constexpr (has_master) store(master[i], w);
        store(weight[i], w);
    }
}

template <bool has_master, class T, class S>
void adamw_of(const AdamW& op, std::span<void* const> operands) {
    using C = Compute<T>;
    const Factors<C> factors(op, static_cast<const C*>(operands[0]), static_cast<const C*>(operands[1]));
    if (factors.multiplier == 0) return;
    for (std::size_t tensor = 0; tensor < op.sizes.size(); ++tensor) {
        void* const* const of = operands.data() + op.first_operand() + tensor * op.operands_each();
        const std::int64_t size = op.sizes[tensor];
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < size; begin += chunk) {
            T* weight = static_cast<T*>(of[0]) + begin;
            const T* gradient = static_cast<const T*>(of[1]) + begin;
            S *m = static_cast<S*>(of[2]) + begin, *v = static_cast<S*>(of[3]) + begin, *master = nullptr;
            if constexpr (has_master) master = static_cast<S*>(of[4]) + begin;
            const std::int64_t count = std::min(chunk, size - begin);
            vectorised([=, &factors] { update<has_master>(factors, count, weight, gradient, m, v, master); });
        }
    }
}

}  // namespace

void adamw(DataType type, const AdamW& op, std::span<void* const> operands) {
    with_element(type, [&]<class T>(T) {
        if (op.master)
            adamw_of<true, T, Compute<T>>(op, operands);
        else
            adamw_of<false, T, T>(op, operands);
    });
}

}  // namespace kbench::cpu
