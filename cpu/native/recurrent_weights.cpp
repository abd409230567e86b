// Gradients of recurrent layers' weights: one product over all rows, db transposed times h of the step before, and sums
// over columns. h is packed into panels once. A task is some rows of dweight_hh; it transposes db one chunk of rows at
// a time, so that chunk, panel and sums stay in L2.
#include <omp.h>

#include <algorithm>

#include "cpu/native/panels.h"
#include "cpu/native/recurrent.h"

namespace kbench::cpu {
namespace {

/// Rows of dweight_hh per task, in whole groups of what registers hold; and rows of h whose products are summed in
/// registers: 64 KiB of a panel in fp32.
constexpr std::int64_t task_rows = 48, chunk_rows = 256;

/// The workspace in elements: h of both directions in panels, then each thread's transposed db and sums.
template <class C>
struct Parts {
    std::int64_t depth, vectors, columns, panels;
    std::int64_t h, transposed, sums;

    explicit Parts(const RecurrentShape& shape)
        : depth((shape.steps - 1) * shape.batch),
          vectors(vector_isa() == VectorIsa::avx512 ? 4 : 2),
          columns(vectors * panel_lanes<C>),
          panels(divided_up(shape.hidden, columns)),
          h(depth * panels * columns),
          transposed(task_rows * chunk_rows),
          sums(task_rows * panels * columns) {}
    std::int64_t elements(std::int64_t threads) const { return 2 * h + threads * (transposed + sums); }
};

/// db for a gate's value da; `r` for the n of a GRU. 0 wherever da is 0: after the end of a sequence gates may be NaN.
template <class C>
inline C through_reset(C da, C r) {
    return da == C(0) ? C(0) : r * da;
}

/// to [row, chunk_rows] = db for `rows` rows of dweight_hh from `first` on, over `count` rows of dgates from `at` on.
template <class T, class C>
void transpose(Cell cell, std::int64_t hidden, const T* dgates, const T* gates, std::int64_t first, std::int64_t rows,
               std::int64_t at, std::int64_t count, C* to) {
    const std::int64_t width = gates_of(cell) * hidden;
    const std::int64_t plain = cell == Cell::gru ? std::clamp<std::int64_t>(2 * hidden - first, 0, rows) : rows;
    for (std::int64_t k = 0; k < count; ++k) {
        const T* const da = dgates + (at + k) * width + first;
        for (std::int64_t row = 0; row < plain; ++row) to[row * chunk_rows + k] = load(da[row]);
        if (plain == rows) continue;
        const T* const r = gates + (at + k) * saved_gates_of(cell) * hidden + first - 2 * hidden;
        for (std::int64_t row = plain; row < rows; ++row)
            to[row * chunk_rows + k] = through_reset<C>(load(da[row]), load(r[row]));
    }
}

/// Packs h into panels, each [depth, columns], padded with 0 past the last unit.
template <class T, class C>
void pack(const RecurrentShape& shape, const Parts<C>& parts, const T* from, C* to) {
#pragma omp parallel for schedule(static) collapse(2)
    for (std::int64_t panel = 0; panel < parts.panels; ++panel)
        for (std::int64_t chunk = 0; chunk < divided_up(parts.depth, chunk_rows); ++chunk)
            vectorised([=] {
                const std::int64_t first = panel * parts.columns, count = std::min(parts.columns, shape.hidden - first);
                const std::int64_t end = std::min(parts.depth, (chunk + 1) * chunk_rows);
                for (std::int64_t k = chunk * chunk_rows; k < end; ++k) {
                    const T* const h = from + k * shape.hidden + first;
                    C* const packed = to + (panel * parts.depth + k) * parts.columns;
                    for (std::int64_t c = 0; c < count; ++c) packed[c] = load(h[c]);
                    std::fill(packed + count, packed + parts.columns, C(0));
                }
            });
}

/// sums [rows, panels * columns] += db times h, for the chunk's rows from `at` on.
template <class C>
void add_products(const Parts<C>& parts, std::int64_t rows, const C* transposed, const C* h, std::int64_t at,
                  std::int64_t count, C* sums) {
    const std::int64_t at_once = panel_rows(parts.vectors), width = parts.panels * parts.columns;
    for (std::int64_t panel = 0; panel < parts.panels; ++panel)
        for (std::int64_t row = 0; row < rows; row += at_once) {
            const std::int64_t group = std::min(at_once, rows - row);
            alignas(64) C products[8 * 4 * panel_lanes<C>];
            panel_product<C>(group, parts.vectors)(h + (panel * parts.depth + at) * parts.columns, count,
                                                   transposed + row * chunk_rows, chunk_rows, products, parts.columns);
            for (std::int64_t r = 0; r < group; ++r) {
                C* const to = sums + (row + r) * width + panel * parts.columns;
                const C* const from = products + r * parts.columns;
#pragma omp simd
                for (std::int64_t c = 0; c < parts.columns; ++c) to[c] += from[c];
            }
        }
}

}  // namespace

std::size_t recurrent_weights_workspace(DataType type, Cell, const RecurrentShape& shape) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        bytes = static_cast<std::size_t>(Parts<C>(shape).elements(omp_get_max_threads())) * sizeof(C);
    });
    return bytes;
}

void recurrent_weights_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                                const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse,
                                void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const Parts<C> parts(shape);
        const std::int64_t hidden = shape.hidden, width = gates_of(cell) * hidden;
        C* const h = static_cast<C*>(workspace);
        // Pairs h[t - 1] (h[t + 1] in the reverse direction) with db[t].
        pack(shape, parts, static_cast<const T*>(forward.out), h);
        pack(shape, parts, static_cast<const T*>(reverse.out) + shape.batch * hidden, h + parts.h);
        const std::int64_t tasks = divided_up(width, task_rows);
#pragma omp parallel for schedule(dynamic) shared(accumulates)
        for (std::int64_t task = 0; task < 2 * tasks; ++task) {
            const bool is_reverse = task >= tasks;
            const RecurrentWeightDirection& direction = is_reverse ? reverse : forward;
            const std::int64_t first = task % tasks * task_rows, rows = std::min(task_rows, width - first);
            const std::int64_t skipped = is_reverse ? 0 : shape.batch, padded = parts.panels * parts.columns;
            C* const transposed = h + 2 * parts.h + omp_get_thread_num() * (parts.transposed + parts.sums);
            C* const sums = transposed + parts.transposed;
            std::fill_n(sums, rows * padded, C(0));
            vectorised([&] {
                for (std::int64_t at = 0; at < parts.depth; at += chunk_rows) {
                    const std::int64_t count = std::min(chunk_rows, parts.depth - at);
                    transpose(cell, hidden, static_cast<const T*>(direction.dgates_x),
                              static_cast<const T*>(direction.gates), first, rows, skipped + at, count, transposed);
                    add_products(parts, rows, transposed, h + is_reverse * parts.h, at, count, sums);
                }
                for (std::int64_t row = 0; row < rows; ++row) {
                    T* const to = static_cast<T*>(direction.dweight_hh) + (first + row) * hidden;
                    const C* const from = sums + row * padded;
                    if (accumulates)
                        for (std::int64_t c = 0; c < hidden; ++c) store(to[c], load(to[c]) + from[c]);
                    else
                        for (std::int64_t c = 0; c < hidden; ++c) store(to[c], from[c]);
                }
            });
        }
    });
    for (const RecurrentWeightDirection* direction : {&forward, &reverse})
        recurrent_biases_gradient(type, cell, shape, accumulates, *direction);
}

void recurrent_biases_gradient(DataType type, Cell cell, const RecurrentShape& shape, bool accumulates,
                               const RecurrentWeightDirection& direction) {
    constexpr std::int64_t columns_at_once = 128;
    const std::int64_t rows = shape.steps * shape.batch, hidden = shape.hidden;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const std::int64_t blocks = divided_up(hidden, columns_at_once);
#pragma omp parallel for schedule(static) shared(rows, accumulates, direction)
        for (std::int64_t task = 0; task < gates_of(cell) * blocks; ++task) {
            const std::int64_t gate = task / blocks, unit = task % blocks * columns_at_once;
            const std::int64_t columns = std::min(columns_at_once, hidden - unit), first = gate * hidden + unit;
            const bool has_reset = cell == Cell::gru && gate == 2;
            vectorised([=] {
                C of_a[columns_at_once] = {}, of_b[columns_at_once] = {};
                for (std::int64_t row = 0; row < rows; ++row) {
                    const T* const da =
                        static_cast<const T*>(direction.dgates_x) + row * gates_of(cell) * hidden + first;
#pragma omp simd
                    for (std::int64_t c = 0; c < columns; ++c) of_a[c] += load(da[c]);
                    if (!has_reset) continue;
                    const T* const r =
                        static_cast<const T*>(direction.gates) + row * saved_gates_of(cell) * hidden + unit;
#pragma omp simd
                    for (std::int64_t c = 0; c < columns; ++c) of_b[c] += through_reset<C>(load(da[c]), load(r[c]));
                }
                const auto put = [=](const C* sums, void* to) {
                    T* const out = static_cast<T*>(to) + first;
                    for (std::int64_t c = 0; c < columns; ++c)
                        store(out[c], accumulates ? load(out[c]) + sums[c] : sums[c]);
                };
                put(of_a, direction.dbias_ih);
                put(has_reset ? of_b : of_a, direction.dbias_hh);
            });
        }
    });
}

void gru_hidden_gradient(DataType type, const RecurrentShape& shape, const void* dgates_x, const void* gates,
                         void* db) {
    const std::int64_t hidden = shape.hidden;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static) shared(hidden, dgates_x, gates, db)
        for (std::int64_t row = 0; row < shape.steps * shape.batch; ++row)
            vectorised([=] {
                const T* const da = static_cast<const T*>(dgates_x) + row * 3 * hidden;
                const T* const r = static_cast<const T*>(gates) + row * 4 * hidden;
                T* const to = static_cast<T*>(db) + row * 3 * hidden;
                std::copy_n(da, 2 * hidden, to);
#pragma omp simd
                for (std::int64_t u = 0; u < hidden; ++u)
                    store(to[2 * hidden + u], through_reset<Compute<T>>(load(da[2 * hidden + u]), load(r[u])));
            });
    });
}

}  // namespace kbench::cpu
