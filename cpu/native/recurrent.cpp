// One parallel region for all steps, with a barrier behind each: a thread has some units of a direction, multiplies all
// their gates' weights with h and advances them at once. h has two places, one that is read and one that is written.
#include "cpu/native/recurrent.h"

#include <algorithm>

#include "cpu/cell.h"
#include "cpu/native/products.h"

namespace kbench::cpu {
namespace {

/// Units that a thread takes at a time: 4 gates of 8 rows of 1024 fp32 are 128 KiB.
constexpr std::int64_t units_at_once = 8;

/// The workspace's parts, in elements: W of both directions, widened where it is stored in 16 bits; h twice and c of
/// both; sums, of both, gates * hidden for each sequence.
struct Parts {
    std::int64_t weights, state, sums;

    Parts(Cell cell, const RecurrentShape& shape, bool widened)
        : weights(widened ? gates_of(cell) * shape.hidden * shape.hidden : 0),
          state(shape.batch * shape.hidden),
          sums(gates_of(cell) * state) {}
    std::int64_t of_direction() const { return weights + 3 * state + sums; }
};

/// One direction while it runs.
template <class T>
struct Running {
    using C = Compute<T>;
    const T *gates_x, *bias_ih, *bias_hh;
    T* out;
    const C* weights;
    C *h[2], *c, *sums;
    bool reverse;
};

/// Units [first, last) after `step` of their direction.
template <Cell cell, class T>
void advance(const RecurrentShape& shape, const Running<T>& d, const std::int32_t* lengths, std::int64_t step,
             std::int64_t first, std::int64_t last) {
    using C = Compute<T>;
    constexpr std::int64_t gates = gates_of(cell);
    const std::int64_t hidden = shape.hidden, batch = shape.batch, count = last - first;
    const C* before = d.h[step % 2];
    C* after = d.h[(step + 1) % 2];
    // Of this thread alone: gate by gate, unit by unit, sequence by sequence.
    C* const sums = d.sums + first * gates * batch;
    std::fill(sums, sums + count * gates * batch, C(0));
    if (step > 0)
        for (std::int64_t g = 0; g < gates; ++g)
            add_products(count, batch, hidden, d.weights + (g * hidden + first) * hidden, hidden, before, hidden,
                         sums + g * count * batch, batch);
    for (std::int64_t n = 0; n < batch; ++n) {
        const std::int64_t steps = steps_of(lengths[n], shape.frames_per_step, shape.steps);
        const std::int64_t t = d.reverse && step < steps ? steps - 1 - step : step;
        T* out = d.out + (t * batch + n) * hidden;
        if (step >= steps) {
            std::fill(out + first, out + last, T{});
            continue;
        }
        const T* x = d.gates_x + (t * batch + n) * gates * hidden;
        for (std::int64_t unit = first; unit < last; ++unit) {
            const auto input = [&](std::int64_t g) {
                return load(x[g * hidden + unit]) + load(d.bias_ih[g * hidden + unit]);
            };
            const auto recurrent = [&](std::int64_t g) {
                return sums[(g * count + unit - first) * batch + n] + load(d.bias_hh[g * hidden + unit]);
            };
            const std::int64_t at = n * hidden + unit;
            const C h = next_h<cell>(input, recurrent, before[at], d.c[at]);
            after[at] = h;
            store(out[unit], h);
        }
    }
}

template <Cell cell, class T>
void run(const RecurrentShape& shape, const RecurrentDirection& forward, const RecurrentDirection& reverse,
         const std::int32_t* lengths, void* workspace) {
    using C = Compute<T>;
    const Parts parts(cell, shape, !std::is_same_v<T, C>);
    const std::int64_t blocks = (shape.hidden + units_at_once - 1) / units_at_once;
    Running<T> running[2];
    for (int i = 0; i < 2; ++i) {
        const RecurrentDirection& from = i == 0 ? forward : reverse;
        C* memory = static_cast<C*>(workspace) + i * parts.of_direction();
        const T* stored = static_cast<const T*>(from.weight_hh);
        const C* weights = memory;
        if constexpr (std::is_same_v<T, C>) weights = stored;
        C* h = memory + parts.weights;
        running[i] = {static_cast<const T*>(from.gates_x),
                      static_cast<const T*>(from.bias_ih),
                      static_cast<const T*>(from.bias_hh),
                      static_cast<T*>(from.out),
                      weights,
                      {h, h + parts.state},
                      h + 2 * parts.state,
                      h + 3 * parts.state,
                      i == 1};
        std::fill(h, h + 3 * parts.state, C(0));  // of both h and c: those of ended sequences are multiplied on
        if constexpr (!std::is_same_v<T, C>) {
            const std::int64_t rows = gates_of(cell) * shape.hidden, width = shape.hidden;
#pragma omp parallel for schedule(static)
            for (std::int64_t row = 0; row < rows; ++row)
                vectorised([=, from_row = stored + row * width, to = memory + row * width] {
#pragma omp simd
                    for (std::int64_t k = 0; k < width; ++k) to[k] = load(from_row[k]);
                });
        }
    }
#pragma omp parallel
    for (std::int64_t step = 0; step < shape.steps; ++step) {
#pragma omp for schedule(static)
        for (std::int64_t task = 0; task < 2 * blocks; ++task) {
            const std::int64_t first = task % blocks * units_at_once;
            const std::int64_t last = std::min(shape.hidden, first + units_at_once);
            const Running<T>& direction = running[task / blocks];
            vectorised([&] { advance<cell>(shape, direction, lengths, step, first, last); });
        }
    }
}

}  // namespace

std::size_t recurrent_workspace(DataType type, Cell cell, const RecurrentShape& shape) {
    const Parts parts(cell, shape, size_of(type) == 2);
    return static_cast<std::size_t>(2 * parts.of_direction()) * std::max<std::size_t>(size_of(type), sizeof(float));
}

void recurrent(DataType type, Cell cell, const RecurrentShape& shape, const RecurrentDirection& forward,
               const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace) {
    with_element(type, [&]<class T>(T) {
        switch (cell) {
            case Cell::lstm: return run<Cell::lstm, T>(shape, forward, reverse, lengths, workspace);
            case Cell::gru: return run<Cell::gru, T>(shape, forward, reverse, lengths, workspace);
            case Cell::rnn: return run<Cell::rnn, T>(shape, forward, reverse, lengths, workspace);
        }
    });
}

}  // namespace kbench::cpu
