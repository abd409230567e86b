// Recurrent layers backward, from the last step to the first. A piece is some units: vectors of columns of weight_hh,
// which are multiplied with the later step's db of all sequences in registers and taken through the cell at once. db is
// double-buffered: one is read, one written.
#include <algorithm>

#include "cpu/native/panels.h"
#include "cpu/native/recurrent.h"
#include "cpu/recurrent_steps.h"

namespace kbench::cpu {
namespace {

/// How a weight_hh is cut: a piece is one panel. Padding units past the last one have weights of 0.
template <class C>
struct Pieces {
    static constexpr std::int64_t vectors = 2, units = vectors * panel_lanes<C>;
    std::int64_t depth, count;

    Pieces(Cell cell, const RecurrentShape& shape)
        : depth(gates_of(cell) * shape.hidden), count(divided_up(shape.hidden, units)) {}
    std::int64_t elements() const { return depth * units; }
};

/// The workspace after the counts of steps, in elements: for each direction db twice and what passes through the cell,
/// then each piece's sums.
template <class C>
struct Parts {
    std::int64_t db_stride, db, carry, sums, of_direction;

    /// Row pitch: a cache line more than the depth, because rows a multiple of 4 KiB apart would compete for L1 lines.
    Parts(const RecurrentShape& shape, const Pieces<C>& pieces)
        : db_stride(divided_up(pieces.depth, panel_lanes<C>) * panel_lanes<C> + panel_lanes<C>),
          db(shape.batch * db_stride),
          carry(divided_up(shape.batch * shape.hidden, panel_lanes<C>) * panel_lanes<C>),
          sums(shape.batch * pieces.units),
          of_direction(2 * db + carry + pieces.count * sums) {}
};

template <class C>
void multiply(const RecurrentShape& shape, const Pieces<C>& pieces, const C* weights, const C* db,
              std::int64_t db_stride, C* sums) {
    const std::int64_t passes = divided_up(shape.batch, panel_rows(pieces.vectors));
    for (std::int64_t pass = 0; pass < passes; ++pass) {
        const std::int64_t first = shape.batch * pass / passes, last = shape.batch * (pass + 1) / passes;
        panel_product<C>(last - first, pieces.vectors)(weights, pieces.depth, db + first * db_stride, db_stride,
                                                       sums + first * pieces.units, pieces.units);
    }
}

template <Cell cell, class T>
void run(const RecurrentShape& shape, const RecurrentGradientDirection& forward,
         const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace) {
    using C = Compute<T>;
    const Pieces<C> pieces(cell, shape);
    const Parts<C> parts(shape, pieces);
    C* const memory = reinterpret_cast<C*>(static_cast<char*>(workspace) + RecurrentSteps::memory_bytes);
    for (int i = 0; i < 2; ++i) std::fill_n(memory + i * parts.of_direction + 2 * parts.db, parts.carry, C(0));
    const std::int64_t longest = longest_of(shape, lengths);
    const RecurrentSteps steps(pieces.count, static_cast<std::size_t>(pieces.count * pieces.elements()) * sizeof(C));
    steps.run(shape.steps, workspace, [&](bool is_reverse, std::int64_t piece, std::int64_t slot, std::int64_t turn) {
        const std::int64_t step = shape.steps - 1 - turn;
        const RecurrentGradientDirection& direction = is_reverse ? reverse : forward;
        C* const own = memory + is_reverse * parts.of_direction;
        C* const carry = own + 2 * parts.db;
        C* const sums = carry + parts.carry + slot * parts.sums;
        C *const behind = own + turn % 2 * parts.db, *const db = own + (turn + 1) % 2 * parts.db;
        if (step + 1 < longest)
            multiply(shape, pieces, static_cast<const C*>(direction.weight_hh) + piece * pieces.elements(), behind,
                     parts.db_stride, sums);
        else
            std::fill_n(sums, parts.sums, C(0));
        const std::int64_t first = piece * pieces.units, count = std::min(pieces.units, shape.hidden - first);
        vectorised([&] {
            retreat<cell, T>(shape, direction, is_reverse, lengths, step, first, count, pieces.units, sums, db,
                             parts.db_stride, carry);
        });
    });
}

}  // namespace

std::size_t recurrent_gradient_packed_bytes(DataType type, Cell cell, const RecurrentShape& shape) {
    std::size_t bytes = 0;
    with_element(type, [&]<class T>(T) {
        const Pieces<Compute<T>> pieces(cell, shape);
        bytes = static_cast<std::size_t>(pieces.count * pieces.elements()) * sizeof(Compute<T>);
    });
    return bytes;
}

void recurrent_gradient_pack(DataType type, Cell cell, const RecurrentShape& shape, const void* plain, void* packed) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const Pieces<C> pieces(cell, shape);
#pragma omp parallel for schedule(static) shared(plain, packed)
        for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
            const std::int64_t first = piece * pieces.units, count = std::min(pieces.units, shape.hidden - first);
            vectorised([=] {
                C* to = static_cast<C*>(packed) + piece * pieces.elements();
                for (std::int64_t k = 0; k < pieces.depth; ++k, to += pieces.units) {
                    const T* const from = static_cast<const T*>(plain) + k * shape.hidden + first;
                    for (std::int64_t u = 0; u < count; ++u) to[u] = load(from[u]);
                    std::fill(to + count, to + pieces.units, C(0));
                }
            });
        }
    });
}

std::size_t recurrent_gradient_workspace(DataType type, Cell cell, const RecurrentShape& shape) {
    std::size_t bytes = RecurrentSteps::memory_bytes;
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        bytes += static_cast<std::size_t>(2 * Parts<C>(shape, Pieces<C>(cell, shape)).of_direction) * sizeof(C);
    });
    return bytes;
}

void recurrent_gradient(DataType type, Cell cell, const RecurrentShape& shape,
                        const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                        const std::int32_t* lengths, void* workspace) {
    with_element(type, [&]<class T>(T) {
        switch (cell) {
            case Cell::lstm: return run<Cell::lstm, T>(shape, forward, reverse, lengths, workspace);
            case Cell::gru: return run<Cell::gru, T>(shape, forward, reverse, lengths, workspace);
            case Cell::rnn: return run<Cell::rnn, T>(shape, forward, reverse, lengths, workspace);
        }
    });
}

}  // namespace kbench::cpu
