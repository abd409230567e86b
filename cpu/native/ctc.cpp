// OpenMP threads share sequences. Forward and backward variables are logarithms to base 2. The places of a step do not
// depend on each other and are computed in vectors. After each step the largest variable is subtracted from all and
// summed in fp64. Otherwise those of 500 steps are near -2000, where fp32 has a resolution of 1e-4.
#include "cpu/native/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Stands for log2(0), because -infinity minus itself is NaN. It vanishes when added to anything reachable, and one per
/// step over 1e8 steps still sums to a finite fp32.
template <class C>
constexpr C never = C(-1e30);
template <class C>
constexpr C unreached = C(-1e29);  ///< variables below this belong to places that cannot be reached

/// log2(x) for x in [1, 3]: x = m 2^e with m within a factor of sqrt(2) of 1, and log(m) = 2 artanh((m - 1) / (m + 1))
/// by its series, cut where the next term is below half an ulp.
template <class C>
C log2_vector(C x) {
    constexpr int terms = std::is_same_v<C, double> ? 11 : 5;
    const bool above_1 = x > C(1.41421356237309505), above_2 = x > C(2.82842712474619010);
    const C m = x * (above_2 ? C(0.25) : above_1 ? C(0.5) : C(1)), exponent = above_2 ? C(2) : above_1 ? C(1) : C(0);
    const C z = (m - 1) / (m + 1), square = z * z;
    C series = 0;
    for (int i = terms - 1; i >= 0; --i) series = series * square + C(1) / static_cast<C>(2 * i + 1);
    return exponent + C(2) * log2_e<C> * z * series;
}

/// log2 of a sum of three powers of 2, given their exponents; NaN where one is NaN.
template <class C>
C log2_sum(C a, C b, C c) {
    const C largest = larger(larger(a, b), c);
    return largest + log2_vector(exp2_vector(a - largest) + exp2_vector(b - largest) + exp2_vector(c - largest));
}

/// Memory of one sequence, in elements. Rows of places have two extra ones at each end, which are never reached.
struct Layout {
    static constexpr std::int64_t edge = 2;
    std::int64_t places, labels, rows, log_sums, total;

    Layout(const Ctc& op, bool gradient)
        : places(2 * op.target + 1),
          labels(op.labels),
          rows(gradient ? op.steps : 2),
          log_sums(op.steps),
          total(rows * row() + 2 * log_sums + 5 * row() + 2 * labels) {}
    std::int64_t row() const { return places + 2 * edge; }
};

template <class T, bool gradient, class C = Compute<T>>
class Sequence {
  public:
    using Logits = std::conditional_t<gradient, T*, const T*>;

    Sequence(const Ctc& op, std::int64_t stride, Logits logits, std::int64_t steps, const std::int32_t* targets,
             std::int64_t count, C* memory)
        : op_(op),
          stride_(stride),
          logits_(logits),
          steps_(steps),
          targets_(targets),
          places_(2 * count + 1),
          layout_(op, gradient) {
        const auto take = [&](std::int64_t size) { return std::exchange(memory, memory + size); };
        alpha_ = take(layout_.rows * layout_.row()) + Layout::edge;
        emitted_ = take(layout_.row()) + Layout::edge;
        skip_ = take(layout_.row()) + Layout::edge;
        next_ = take(layout_.row()) + Layout::edge;
        beta_ = take(layout_.row()) + Layout::edge;
        shares_ = take(layout_.row());
        log_sums_ = take(layout_.log_sums);
        taken_off_ = take(layout_.log_sums);
        log_p_ = take(layout_.labels);
        occupancy_ = take(layout_.labels);
    }

    /// Returns the loss in nats, and keeps the forward variables of all steps.
    C forward() {
        double offset = 0;
        for (std::int64_t place = -Layout::edge; place < places_ + Layout::edge; ++place)
            skip_[place] =
                place >= 3 && place < places_ && place % 2 == 1 && targets_[place / 2] != targets_[place / 2 - 1]
                    ? C(0)
                    : never<C>;
        for (std::int64_t step = 0; step < std::min(layout_.rows, steps_); ++step) surround(alpha(step));
        for (std::int64_t step = 0; step < steps_; ++step) {
            find_log_sum(step);
            find_emitted(step);
            C* const to = alpha(step);
            if (step == 0) {
                for (std::int64_t place = 0; place < places_; ++place)
                    to[place] = place < 2 ? emitted_[place] : never<C>;
                offset += taken_off_[step] = take_off(to);
                continue;
            }
            const C *const from = alpha(step - 1), *const skip = skip_, *const emitted = emitted_;
#pragma omp simd
            for (std::int64_t place = 0; place < places_; ++place)
                to[place] = log2_sum(from[place], from[place - 1], from[place - 2] + skip[place]) + emitted[place];
            offset += taken_off_[step] = take_off(to);
        }
        if (steps_ == 0) {
            total_ = places_ == 1 ? 0 : never<double>;
        } else {
            const C* const last = alpha(steps_ - 1);
            total_ = log2_sum(last[places_ - 1], last[places_ - 2], never<C>) + offset;
        }
        offset_ = offset;
        return total_ < unreached<double> ? std::numeric_limits<C>::infinity()
                                          : static_cast<C>(-total_ / log2_e<double>);
    }

    /// Call after forward: each row of logits becomes `scale` times its gradient.
    void backward(C scale) {
        const bool reached = !(total_ < unreached<double>);  // a NaN must not count as unreached
        for (std::int64_t step = reached ? steps_ : 0; step < op_.steps; ++step)
            std::fill(row(step), row(step) + stride_, T{});
        if (!reached) return;
        surround(next_);
        surround(beta_);
        double offset = offset_ - total_;  // for a step's forward and backward variables together
        for (std::int64_t step = steps_ - 1; step >= 0; --step) {
            find_emitted(step);
            C *const beta = beta_, *const next = next_, *const shares = shares_;
            const C *const skip = skip_, *const from = alpha(step), *const emitted = emitted_;
            const auto shift = static_cast<C>(offset);
            if (step == steps_ - 1) {
                for (std::int64_t place = 0; place < places_; ++place)
                    beta[place] = place >= places_ - 2 ? C(0) : never<C>;
            } else {
#pragma omp simd
                for (std::int64_t place = 0; place < places_; ++place)
                    beta[place] = log2_sum(next[place], next[place + 1], next[place + 2] + skip[place + 2]);
            }
#pragma omp simd
            for (std::int64_t place = 0; place < places_; ++place) {
                shares[place] = exp2_vector(from[place] + beta[place] + shift);
                next[place] = beta[place] + emitted[place];
            }
            offset += take_off(next) - taken_off_[step];
            std::fill(occupancy_, occupancy_ + op_.labels, C(0));
            C blanks = shares[0];
            for (std::int64_t place = 1; place < places_; place += 2) {
                occupancy_[targets_[place / 2]] += shares[place];
                blanks += shares[place + 1];
            }
            occupancy_[0] = blanks;
            T* const to = row(step);
            const C *const log_p = log_p_, *const occupancy = occupancy_;
#pragma omp simd
            for (std::int64_t label = 0; label < op_.labels; ++label)
                store(to[label], scale * (exp2_vector(log_p[label]) - occupancy[label]));
            std::fill(to + op_.labels, to + stride_, T{});
        }
    }

  private:
    Logits row(std::int64_t step) const { return logits_ + step * op_.batch * stride_; }
    C* alpha(std::int64_t step) const { return alpha_ + step % layout_.rows * layout_.row(); }
    void surround(C* places) const {
        std::fill(places - Layout::edge, places, never<C>);
        std::fill(places + places_, places + places_ + Layout::edge, never<C>);
    }
    /// Subtracts the largest of a step's variables from all of them, where one can be reached.
    C take_off(C* places) const {
        C largest = never<C>;
#pragma omp simd reduction(max : largest)
        for (std::int64_t place = 0; place < places_; ++place) largest = larger(places[place], largest);
        if (largest < unreached<C>) return 0;
#pragma omp simd
        for (std::int64_t place = 0; place < places_; ++place) places[place] -= largest;
        return largest;
    }
    /// log2 of the sum of the exponentials of a row of logits.
    void find_log_sum(std::int64_t step) {
        const T* const from = row(step);
        C largest = -std::numeric_limits<C>::infinity();
#pragma omp simd reduction(max : largest)
        for (std::int64_t label = 0; label < op_.labels; ++label) largest = larger(load(from[label]), largest);
        const C sum = sum_over<C>(
            op_.labels, [=](std::int64_t label) { return exp2_vector((load(from[label]) - largest) * log2_e<C>); });
        log_sums_[step] = largest * log2_e<C> + std::log2(sum);
    }
    /// log2 of the probabilities of all labels, and of the labels at the places.
    void find_emitted(std::int64_t step) {
        const T* const from = row(step);
        const C log_sum = log_sums_[step];
        C *const log_p = log_p_, *const emitted = emitted_;
#pragma omp simd
        for (std::int64_t label = 0; label < op_.labels; ++label)
            log_p[label] = larger(never<C>, load(from[label]) * log2_e<C> - log_sum);
        emitted[0] = log_p[0];
        for (std::int64_t place = 1; place < places_; place += 2) {
            emitted[place] = log_p[targets_[place / 2]];
            emitted[place + 1] = log_p[0];
        }
    }

    const Ctc& op_;
    std::int64_t stride_;
    Logits logits_;
    std::int64_t steps_;
    const std::int32_t* targets_;
    std::int64_t places_;
    Layout layout_;
    C *alpha_, *emitted_, *skip_, *next_, *beta_, *shares_, *log_sums_, *taken_off_, *log_p_, *occupancy_;
    double total_ = 0, offset_ = 0;
};

template <bool gradient, class Logits>
void for_each_sequence(DataType type, const Ctc& op, std::int64_t stride, Logits logits, const std::int32_t* lengths,
                       const std::int32_t* targets, const std::int32_t* target_lengths, const void* loss_scale,
                       void* losses, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        using Element = std::conditional_t<gradient, T, const T>;
        const C scale = gradient ? *static_cast<const C*>(loss_scale) / static_cast<C>(op.batch) : C(0);
        const std::int64_t each = Layout(op, gradient).total;
#pragma omp parallel for schedule(dynamic)
        for (std::int64_t n = 0; n < op.batch; ++n) {
            Sequence<T, gradient> sequence(op, stride, static_cast<Element*>(logits) + n * stride,
                                           steps_of(lengths[n], op.frames_per_step, op.steps), targets + n * op.target,
                                           std::clamp<std::int64_t>(target_lengths[n], 0, op.target),
                                           static_cast<C*>(workspace) + n * each);
            C loss = 0;
            vectorised([&] {
                loss = sequence.forward();
                if constexpr (gradient) sequence.backward(scale);
            });
            static_cast<C*>(losses)[n] = loss;
        }
    });
}

std::size_t bytes_of(DataType type, const Ctc& op, bool gradient) {
    const std::size_t each = type == DataType::fp64 ? sizeof(double) : sizeof(float);
    return each * static_cast<std::size_t>(op.batch * Layout(op, gradient).total);
}

}  // namespace

std::size_t ctc_workspace(DataType type, const Ctc& op) { return bytes_of(type, op, false); }
std::size_t ctc_gradient_workspace(DataType type, const Ctc& op) { return bytes_of(type, op, true); }

void ctc(DataType type, const Ctc& op, Stride<"logits"> stride, In<"logits"> logits,
         In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
         In<"target_lengths", std::int32_t> target_lengths, Out<"losses"> losses, void* workspace) {
    for_each_sequence<false>(type, op, stride, logits, lengths, targets, target_lengths, nullptr, losses, workspace);
}

void ctc_gradient(DataType type, const Ctc& op, Stride<"logits"> stride, Out<"logits"> logits,
                  In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                  In<"target_lengths", std::int32_t> target_lengths, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                  void* workspace) {
    for_each_sequence<true>(type, op, stride, logits, lengths, targets, target_lengths, loss_scale, losses, workspace);
}

}  // namespace kbench::cpu
