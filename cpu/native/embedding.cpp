// OpenMP threads share the rows of the output; a row is one vectorised call.
#include "cpu/native/embedding.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Columns that a thread sums side by side: their sums stay in registers and L1.
constexpr std::int64_t columns_at_once = 64;

/// to[c] = sum of from[row_of(i), c] for i < count, plus the old to[c] when it `accumulates`.
template <class T, class RowOf>
void add_rows(std::int64_t width, const T* from, std::int64_t count, const RowOf& row_of, bool accumulates, T* to) {
    for (std::int64_t first = 0; first < width; first += columns_at_once) {
        const std::int64_t columns = std::min(columns_at_once, width - first);
        vectorised([=] {
            Compute<T> sums[columns_at_once] = {};
            for (std::int64_t i = 0; i < count; ++i) {
                const T* row = from + row_of(i) * width + first;
#pragma omp simd
                for (std::int64_t c = 0; c < columns; ++c) sums[c] += load(row[c]);
            }
            T* out = to + first;
            if (accumulates)
                for (std::int64_t c = 0; c < columns; ++c) sums[c] += load(out[c]);
#pragma omp simd
            for (std::int64_t c = 0; c < columns; ++c) store(out[c], sums[c]);
        });
    }
}

/// out[row, :] = wte[tokens[row], :] + wpe[position_of(row), :].
template <class PositionOf>
void add_embeddings(DataType type, std::int64_t rows, std::int64_t width, const std::int32_t* tokens, const void* wte,
                    const void* wpe, const PositionOf& position_of, void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            const T* token = static_cast<const T*>(wte) + tokens[row] * width;
            const T* position = static_cast<const T*>(wpe) + position_of(row) * width;
            T* to = static_cast<T*>(out) + row * width;
            vectorised([=] {
#pragma omp simd
                for (std::int64_t c = 0; c < width; ++c) store(to[c], load(token[c]) + load(position[c]));
            });
        }
    });
}

}  // namespace

void embedding(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"wte"> wte, In<"wpe"> wpe,
               Out<"out"> out) {
    add_embeddings(
        type, op.rows, op.width, tokens, wte, wpe, [&](std::int64_t row) { return row % op.seq; }, out);
}

void embedding_at(DataType type, const EmbeddingAt& op, In<"tokens", std::int32_t> tokens,
                  In<"positions", std::int32_t> positions, In<"wte"> wte, In<"wpe"> wpe, Out<"out"> out) {
    add_embeddings(
        type, op.rows, op.width, tokens, wte, wpe,
        [&](std::int64_t row) { return positions[row / op.seq] + row % op.seq; }, out);
}

void token_embedding(DataType type, const TokenEmbedding& op, In<"tokens", std::int32_t> tokens, In<"table"> table,
                     Out<"out"> out) {
    const auto row_bytes = static_cast<std::int64_t>(size_of(type)) * op.width;
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < op.rows; ++row)
        std::memcpy(static_cast<std::byte*>(out.data()) + row * row_bytes,
                    static_cast<const std::byte*>(table.data()) + tokens[row] * row_bytes,
                    static_cast<std::size_t>(row_bytes));
}

std::size_t embedding_gradient_workspace(const Embedding& op) {
    return static_cast<std::size_t>(op.vocab + 1 + op.rows) * sizeof(std::int64_t);
}

void embedding_gradient(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"dout"> dout,
                        Out<"dwte"> dwte, Out<"dwpe"> dwpe, void* workspace) {
    // Rows sorted by token, in order within a token: token v has rows[begins[v]] up to rows[begins[v + 1]].
    auto* const begins = static_cast<std::int64_t*>(workspace);
    std::int64_t* const rows = begins + op.vocab + 1;
    std::fill(begins, rows, 0);
    for (std::int64_t row = 0; row < op.rows; ++row) ++begins[tokens[row]];
    std::partial_sum(begins, rows, begins);
    for (std::int64_t row = op.rows - 1; row >= 0; --row) rows[--begins[tokens[row]]] = row;

    with_element(type, [&]<class T>(T) {
        const T* from = static_cast<const T*>(dout);
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 64) nowait
            for (std::int64_t token = 0; token < op.vocab; ++token) {
                const std::int64_t* list = rows + begins[token];
                const std::int64_t count = begins[token + 1] - begins[token];
                T* to = static_cast<T*>(dwte) + token * op.width;
                if (count == 0 && op.accumulates) continue;
                add_rows(
                    op.width, from, count, [=](std::int64_t i) { return list[i]; }, op.accumulates, to);
            }
#pragma omp for schedule(static)
            for (std::int64_t position = 0; position < op.positions; ++position) {
                const std::int64_t seq = op.seq, count = position < seq ? op.rows / seq : 0;
                T* to = static_cast<T*>(dwpe) + position * op.width;
                if (count == 0 && op.accumulates_positions) continue;
                add_rows(
                    op.width, from, count, [=](std::int64_t i) { return i * seq + position; }, op.accumulates_positions,
                    to);
            }
        }
    });
}

}  // namespace kbench::cpu
