// How threads share the steps of recurrent layers, and what a step does after its product. Internal to cpu/.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include "cpu/cell.h"
#include "cpu/recurrent_operands.h"
#include "cpu/threads.h"
#include "models/ops/recurrent.h"

namespace kbench::cpu {

/// Runs steps of both directions, in pieces of some units. A thread has the same pieces in every step, so that their
/// weights stay in its L2 if they fit. It alternates their order from step to step: if the weights are larger than the
/// cache, it finds what it read last. 2.6 MB in an L2 of 2 MiB take 37 us, and 67 in a fixed order.
class RecurrentSteps {
  public:
    /// Most threads.
    static constexpr std::int64_t most_threads = 256;
    /// Size of `run`'s memory, which may hold anything.
    static constexpr std::size_t memory_bytes = most_threads * 64;

    /// `direction_bytes`: size of one direction's weights.
    RecurrentSteps(std::int64_t pieces, std::size_t direction_bytes)
        : pieces_(pieces), threads_(std::min({std::int64_t{omp_get_max_threads()}, pieces, most_threads})) {
        // A quarter of the caches is left to h, sums and the input's products.
        const double caches = 0.75 * static_cast<double>(cpu_info().l2_bytes) * static_cast<double>(threads_);
        at_once_ = threads_ % 2 == 0 && 2 * static_cast<double>(direction_bytes) <= caches;
    }

    /// Calls `task(is_reverse, piece, slot, step)` for all steps, from one parallel region. A step starts when the one
    /// before it is complete in its direction. `slot` (below `pieces`) is the same number in all calls of a thread, and
    /// differs between threads that run at the same time in the same direction.
    template <class Task>
    void run(std::int64_t steps, void* memory, const Task& task) const {
        auto* const done = static_cast<Done*>(memory);
        for (std::int64_t t = 0; t < threads_; ++t) new (done + t) Done{0};
#pragma omp parallel num_threads(static_cast <int>(threads_))
        {
            // If half the caches hold one direction, each half of the threads takes a direction, and no step waits for
            // the other direction. Else the directions run one after another, which gives each twice the cache.
            const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
            const bool at_once = at_once_ && threads % 2 == 0;
            const std::int64_t members = at_once ? threads / 2 : threads, member = thread % members;
            Done* const group = done + (thread - member);
            const std::int64_t first = pieces_ * member / members, last = pieces_ * (member + 1) / members;
            for (std::int64_t i = 0; i < (at_once ? 1 : 2); ++i) {
                const bool is_reverse = at_once ? thread != member : i == 1;
                for (std::int64_t step = 0; step < steps; ++step) {
                    for (std::int64_t p = first; p < last; ++p)
                        task(is_reverse, step % 2 == 0 ? p : first + last - 1 - p, first, step);
                    pass(group, members, member, i * steps + step + 1);
                }
            }
        }
    }

  private:
    /// Steps that a thread has done, in a cache line that it alone writes.
    struct alignas(64) Done {
        std::atomic<std::int64_t> steps;
    };
    static_assert(sizeof(Done) == 64);

    /// A barrier in which threads only read each other's counts: one cache line goes from core to core, where a shared
    /// counter would visit every core in turn.
    static void pass(Done* group, std::int64_t members, std::int64_t member, std::int64_t steps) {
        constexpr int spins = 4096;  // about 100 us, more than a step waits unless other programs have the core
        group[member].steps.store(steps, std::memory_order_release);
        for (std::int64_t other = 0; other < members; ++other)
            for (int spin = 0; group[other].steps.load(std::memory_order_acquire) < steps;)
                if (++spin < spins)
                    __builtin_ia32_pause();
                else
                    std::this_thread::yield();
    }

    std::int64_t pieces_, threads_;
    bool at_once_;
};

/// The steps of the longest sequence.
inline std::int64_t longest_of(const RecurrentShape& shape, const std::int32_t* lengths) {
    std::int64_t longest = 0;
    for (std::int64_t n = 0; n < shape.batch; ++n)
        longest = std::max(longest, steps_of(lengths[n], shape.frames_per_step, shape.steps));
    return longest;
}

/// Advances units [first, first + count) of all sequences after the product of `step`. sums is [batch, gates *
/// gate_stride], gate after gate. h [batch, hidden] has type H, `before` the step and `after` it; h and c start with
/// the first unit of all. T is the stored type.
template <Cell of, class T, class H, class C>
void advance(const RecurrentShape& shape, const RecurrentDirection& direction, bool reverse,
             const std::int32_t* lengths, std::int64_t step, std::int64_t first, std::int64_t count,
             std::int64_t gate_stride, const C* sums, const H* before, H* after, C* c) {
    const std::int64_t hidden = shape.hidden;
    const T* const bias_ih = static_cast<const T*>(direction.bias_ih) + first;
    const T* const bias_hh = static_cast<const T*>(direction.bias_hh) + first;
    for (std::int64_t n = 0; n < shape.batch; ++n) {
        const std::int64_t steps = steps_of(lengths[n], shape.frames_per_step, shape.steps);
        const std::int64_t t = reverse && step < steps ? steps - 1 - step : step, row = t * shape.batch + n;
        T* const out = static_cast<T*>(direction.out) + row * hidden + first;
        const bool saves = saved_gates_of(of) > 0 && direction.gates != nullptr;
        T* const gates = saves ? static_cast<T*>(direction.gates) + row * saved_gates_of(of) * hidden + first : nullptr;
        T* const cells = saves && of == Cell::lstm ? static_cast<T*>(direction.cells) + row * hidden + first : nullptr;
        if (step >= steps) {
            std::fill(out, out + count, T{});
            for (std::int64_t g = 0; saves && g < saved_gates_of(of); ++g) std::fill_n(gates + g * hidden, count, T{});
            if (cells != nullptr) std::fill(cells, cells + count, T{});
            continue;
        }
        const T* const x = static_cast<const T*>(direction.gates_x) + row * gates_of(of) * hidden + first;
        const C* const sum = sums + n * gates_of(of) * gate_stride;
        const H* const h_before = before + n * hidden + first;
        H* const h_after = after + n * hidden + first;
        C* const own_c = c + n * hidden + first;
        const auto advance_units = [=](const auto& save) {
#pragma omp simd
            for (std::int64_t u = 0; u < count; ++u) {
                const auto input = [x, bias_ih, hidden, u](std::int64_t g) {
                    return load(x[g * hidden + u]) + load(bias_ih[g * hidden + u]);
                };
                const auto recurrent = [sum, bias_hh, gate_stride, hidden, u](std::int64_t g) {
                    return sum[g * gate_stride + u] + load(bias_hh[g * hidden + u]);
                };
                const auto save_gate = [&save, hidden, u](std::int64_t g, C value) { save(g * hidden + u, value); };
                const C h = next_h<of>(input, recurrent, static_cast<C>(load(h_before[u])), own_c[u], save_gate);
                store(h_after[u], h);
                store(out[u], h);
            }
        };
        if (saves)
            advance_units([=](std::int64_t at, C value) { store(gates[at], value); });
        else
            advance_units([](std::int64_t, C) {});
        if (cells == nullptr) continue;
#pragma omp simd
        for (std::int64_t u = 0; u < count; ++u) store(cells[u], own_c[u]);
    }
}

/// Takes the same units' step backward, after its product: sums [batch, sum_stride] and carry (from the first unit of
/// all on) are in C. Writes db [batch, db_stride] in H, with 0 for sequences that do not run in `step`.
template <Cell of, class T, class H, class C>
void retreat(const RecurrentShape& shape, const RecurrentGradientDirection& direction, bool reverse,
             const std::int32_t* lengths, std::int64_t step, std::int64_t first, std::int64_t count,
             std::int64_t sum_stride, const C* sums, H* db, std::int64_t db_stride, C* carry) {
    const std::int64_t hidden = shape.hidden, width = gates_of(of) * hidden;
    for (std::int64_t n = 0; n < shape.batch; ++n) {
        const std::int64_t steps = steps_of(lengths[n], shape.frames_per_step, shape.steps);
        const std::int64_t t = reverse && step < steps ? steps - 1 - step : step, row = t * shape.batch + n;
        T* const da = static_cast<T*>(direction.dgates_x) + row * width + first;
        H* const own_db = db + n * db_stride + first;
        if (step >= steps) {
            for (std::int64_t g = 0; g < gates_of(of); ++g) {
                std::fill_n(da + g * hidden, count, T{});
                std::fill_n(own_db + g * hidden, count, H{});
            }
            continue;
        }
        const bool is_first = step == 0;
        const std::int64_t before = is_first ? 0 : (reverse ? shape.batch : -shape.batch) * hidden;
        const T* const dout = static_cast<const T*>(direction.dout) + row * hidden + first;
        const T* const states =
            static_cast<const T*>(of == Cell::lstm ? direction.cells : direction.out) + row * hidden + first;
        const T* const gates =
            static_cast<const T*>(direction.gates) + (of == Cell::rnn ? 0 : row * saved_gates_of(of) * hidden + first);
        const C* const sum = sums + n * sum_stride;
        C* const own_carry = carry + n * hidden + first;
#pragma omp simd
        for (std::int64_t u = 0; u < count; ++u) {
            const auto saved = [=](std::int64_t g) { return static_cast<C>(load(gates[g * hidden + u])); };
            const auto put = [=](std::int64_t g, C of_a, C of_b) {
                store(da[g * hidden + u], of_a);
                store(own_db[g * hidden + u], of_b);
            };
            const C state_before = is_first ? C(0) : static_cast<C>(load(states[u + before]));
            const C passed = of == Cell::gru ? own_carry[u] : C(0), dh = load(dout[u]) + (sum[u] + passed);
            step_back<of>(saved, static_cast<C>(load(states[u])), state_before, dh, own_carry[u], put);
        }
    }
}

}  // namespace kbench::cpu
