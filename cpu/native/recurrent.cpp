// Recurrent layers step by step. A piece is 64 bytes of units with all their gates: a few vectors of columns, which are
// multiplied with h of all sequences in registers and advanced at once. h is double-buffered: one is read, one written.
#include "cpu/native/recurrent.h"

#include <algorithm>

#include "cpu/native/panels.h"
#include "cpu/recurrent_steps.h"

namespace kbench::cpu {
namespace {

/// How a weight_hh is cut. Padding units past the last one have weights of 0.
template <class C>
struct Pieces {
    std::int64_t hidden, gates, units, count;  ///< units: per piece
    std::int64_t vectors;                      ///< vectors per panel; a piece has one panel, or two for an LSTM

    Pieces(Cell cell, const RecurrentShape& shape)
        : hidden(shape.hidden),
          gates(gates_of(cell)),
          units(panel_lanes<C> * (cell == Cell::rnn ? 2 : 1)),
          count(divided_up(hidden, units)),
          // With an LSTM's four vectors, the sums of 6 rows fit into registers.
          vectors(cell == Cell::lstm && shape.batch <= panel_rows(4) ? 4
                  : cell == Cell::gru                                ? 3
                                                                     : 2) {}

    std::int64_t columns() const { return gates * units; }
    std::int64_t elements() const { return columns() * hidden; }
    std::int64_t panel_columns() const { return vectors * panel_lanes<C>; }
    /// The index in a piece of the weight that multiplies h[k] for one of its columns.
    std::int64_t at(std::int64_t column, std::int64_t k) const {
        return (column / panel_columns() * hidden + k) * panel_columns() + column % panel_columns();
    }
};

/// The workspace after the counts of steps, in elements: for each direction h twice and c, then each piece's sums.
template <class C>
struct Parts {
    std::int64_t state, sums, of_direction;

    Parts(const RecurrentShape& shape, const Pieces<C>& pieces)
        : state(divided_up(shape.batch * shape.hidden, panel_lanes<C>) * panel_lanes<C>),
          sums(shape.batch * pieces.columns()),
          of_direction(3 * state + pieces.count * sums) {}
};

/// sums [batch, columns] = h times a piece's weights.
template <class C>
void multiply(const RecurrentShape& shape, const Pieces<C>& pieces, const C* weights, const C* h, C* sums) {
    const std::int64_t passes = divided_up(shape.batch, panel_rows(pieces.vectors));
    for (std::int64_t column = 0; column < pieces.columns(); column += pieces.panel_columns())
        for (std::int64_t pass = 0; pass < passes; ++pass) {
            const std::int64_t first = shape.batch * pass / passes, last = shape.batch * (pass + 1) / passes;
            panel_product<C>(last - first, pieces.vectors)(weights + column * shape.hidden, shape.hidden,
                                                           h + first * shape.hidden, shape.hidden,
                                                           sums + first * pieces.columns() + column, pieces.columns());
        }
}

template <Cell cell, class T>
void run(const RecurrentShape& shape, const RecurrentDirection& forward, const RecurrentDirection& reverse,
         const std::int32_t* lengths, void* workspace) {
    using C = Compute<T>;
    const Pieces<C> pieces(cell, shape);
    const Parts<C> parts(shape, pieces);
    C* const memory = reinterpret_cast<C*>(static_cast<char*>(workspace) + RecurrentSteps::memory_bytes);
    // h and c start as 0. h of sequences that have ended is still multiplied, and the result dropped.
    for (int i = 0; i < 2; ++i) std::fill_n(memory + i * parts.of_direction, 3 * parts.state, C(0));
    const std::int64_t longest = longest_of(shape, lengths);
    const RecurrentSteps steps(pieces.count, static_cast<std::size_t>(pieces.count * pieces.elements()) * sizeof(C));
    steps.run(shape.steps, workspace, [&](bool is_reverse, std::int64_t piece, std::int64_t slot, std::int64_t step) {
        const RecurrentDirection& direction = is_reverse ? reverse : forward;
        C* const state = memory + is_reverse * parts.of_direction;
        C* const sums = state + 3 * parts.state + slot * parts.sums;
        C *const before = state + step % 2 * parts.state, *const after = state + (step + 1) % 2 * parts.state;
        if (step == 0)
            std::fill_n(sums, parts.sums, C(0));
        else if (step < longest)
            multiply(shape, pieces, static_cast<const C*>(direction.weight_hh) + piece * pieces.elements(), before,
                     sums);
        const std::int64_t first = piece * pieces.units, count = std::min(pieces.units, shape.hidden - first);
        vectorised([&] {
            advance<cell, T>(shape, direction, is_reverse, lengths, step, first, count, pieces.units, sums, before,
                             after, state + 2 * parts.state);
        });
    });
}

}  // namespace

std::size_t recurrent_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) {
        const Pieces<Compute<T>> pieces(cell, shape);
        bytes = static_cast<std::size_t>(pieces.count * pieces.elements()) * sizeof(Compute<T>);
    });
    return bytes;
}

void recurrent_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const Pieces<C> pieces(cell, shape);
#pragma omp parallel for schedule(static)
        for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
            C* const to = static_cast<C*>(packed) + piece * pieces.elements();
            // Copies whole cache lines of all columns in turn, so that the target lines stay in L1 until they are full.
            constexpr std::int64_t at_once = 32;
            for (std::int64_t k = 0; k < shape.hidden; k += at_once)
                for (std::int64_t column = 0; column < pieces.columns(); ++column) {
                    const std::int64_t unit = piece * pieces.units + column % pieces.units;
                    const std::int64_t row = column / pieces.units * shape.hidden + unit;
                    const T* const from = static_cast<const T*>(plain) + row * shape.hidden;
                    for (std::int64_t i = k; i < std::min(k + at_once, shape.hidden); ++i)
                        to[pieces.at(column, i)] = unit < shape.hidden ? load(from[i]) : C(0);
                }
        }
    });
}

std::size_t recurrent_workspace(DataType type, Cell cell, const RecurrentShape& shape) {
    std::size_t bytes = RecurrentSteps::memory_bytes;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        bytes += static_cast<std::size_t>(2 * Parts<C>(shape, Pieces<C>(cell, shape)).of_direction) * sizeof(C);
    });
    return bytes;
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
