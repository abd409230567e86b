// Reference of the element-wise ops: embedding, bias, residual addition, SwiGLU's gate.
#include <cmath>
#include <optional>

#include "cpu/reference/rows.h"

namespace kbench::reference {

double View::operator()(std::int64_t row, std::int64_t column) const {
    return with_elements(*this, [&](const auto* elements) { return decode(elements[row * stride + column]); });
}

std::vector<Expected> added_to(View before, std::span<const Element> elements, std::vector<Expected> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double term = before(elements[i].row, elements[i].column);
        sums[i].value += term;
        sums[i].magnitude += std::abs(term);
        ++sums[i].terms;
    }
    return sums;
}

std::vector<Expected> embedding(const Embedding& op, View tokens, View wte, View wpe,
                                std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double token = wte(static_cast<std::int64_t>(at(tokens, row)), column);
        const double position = wpe(row % op.seq, column);
        expected.push_back({token + position, std::abs(token) + std::abs(position), 2});
    }
    return expected;
}

std::vector<Expected> embedding_at(const EmbeddingAt& op, View tokens, View positions, View wte, View wpe,
                                   std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double token = wte(static_cast<std::int64_t>(at(tokens, row)), column);
        const std::int64_t place = static_cast<std::int64_t>(positions(row / op.seq, 0)) + row % op.seq;
        const double position = wpe(place, column);
        expected.push_back({token + position, std::abs(token) + std::abs(position), 2});
    }
    return expected;
}

std::vector<Expected> token_embedding(const TokenEmbedding&, View tokens, View table,
                                      std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double value = table(static_cast<std::int64_t>(at(tokens, row)), column);
        expected.push_back({value, std::abs(value), 1});
    }
    return expected;
}

std::vector<Expected> swiglu(const SwiGlu& op, View gate_up, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double gate = gate_up(row, column), up = gate_up(row, op.width + column);
        // The silu's error, which is relative to its argument, and the product's own rounding.
        Expected product = activated(Activation::silu, {gate, 0, 1});
        product.value *= up;
        product.magnitude = product.magnitude * std::abs(up) + std::abs(product.value);
        product.inner *= std::abs(up);
        expected.push_back(product);
    }
    return expected;
}

/// Added to the terms of sums that may have few: their roundings may well all have the same sign.
constexpr std::int64_t of_few_terms = 4;

std::vector<Expected> embedding_dwte(const Embedding& op, View tokens, View dout, View before,
                                     std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size(), {0, 0, of_few_terms});
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const auto add = [&](const View& from, std::int64_t row) {
            for (std::size_t i = first; i < last; ++i) {
                const double term = from(row, elements[i].column);
                expected[i].value += term;
                expected[i].magnitude += std::abs(term);
                ++expected[i].terms;
            }
        };
        if (op.accumulates) {
            add(before, elements[first].row);
            for (std::size_t i = first; i < last; ++i) ++expected[i].terms;  // stored between two sums
        }
        for (std::int64_t row = 0; row < op.rows; ++row)
            if (static_cast<std::int64_t>(at(tokens, row)) == elements[first].row) add(dout, row);
    });
    return expected;
}

std::vector<Expected> embedding_dwpe(const Embedding& op, View dout, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [position, column] : elements) {
        Expected& sum = expected.emplace_back(Expected{0, 0, op.rows / op.seq + of_few_terms});
        for (std::int64_t row = position; position < op.seq && row < op.rows; row += op.seq) {
            sum.value += dout(row, column);
            sum.magnitude += std::abs(dout(row, column));
        }
    }
    return expected;
}

std::vector<Expected> bias_gradient(const BiasAdd& op, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const Element& element : elements) {
        Expected& sum = expected.emplace_back(Expected{0, 0, op.rows});
        for (std::int64_t row = 0; row < op.rows; ++row) {
            sum.value += dy(row, element.column);
            sum.magnitude += std::abs(dy(row, element.column));
        }
    }
    return expected;
}

std::vector<Expected> residual_add(View x, View residual, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double a = x(row, column), b = residual(row, column);
        expected.push_back({a + b, std::abs(a) + std::abs(b), 2});
    }
    return expected;
}

std::vector<Expected> expected(const Embedding& op, Question q) {
    if (q.step.direction == Direction::bwd) {
        const View tokens = q.next(), dout = q.next();
        if (q.asks_for_next()) return embedding_dwte(op, tokens, dout, q.next(), q.elements);
        q.next();
        const std::vector<Expected> sums = embedding_dwpe(op, dout, q.elements);
        return op.accumulates_positions ? added_to(q.next(), q.elements, sums) : sums;
    }
    const View tokens = q.next(), wte = q.next(), wpe = q.next();
    return embedding(op, tokens, wte, wpe, q.elements);
}
std::vector<Expected> expected(const EmbeddingAt& op, Question q) {
    const View tokens = q.next(), positions = q.next(), wte = q.next(), wpe = q.next();
    return embedding_at(op, tokens, positions, wte, wpe, q.elements);
}
ElementCost cost(const EmbeddingAt&) { return {}; }
std::vector<Expected> expected(const TokenEmbedding& op, Question q) {
    const View tokens = q.next(), table = q.next();
    return token_embedding(op, tokens, table, q.elements);
}
ElementCost cost(const TokenEmbedding&) { return {}; }
std::vector<Expected> expected(const SwiGlu& op, Question q) { return swiglu(op, q.next(), q.elements); }
ElementCost cost(const SwiGlu&) { return {}; }
std::vector<Expected> expected(const BiasAdd& op, Question q) {
    if (q.step.direction == Direction::bwd) {
        const std::vector<Expected> sums = bias_gradient(op, q.next(), q.elements);
        return op.accumulates ? added_to(q.next(), q.elements, sums) : sums;
    }
    const View x = q.next(), bias = q.next();
    return bias_activation(x, bias, std::nullopt, q.elements);
}
std::vector<Expected> expected(const ResidualAdd&, Question q) {
    const View x = q.next(), residual = q.next();
    return residual_add(x, residual, q.elements);
}
ElementCost cost(const Embedding& op, Direction direction) {
    if (direction == Direction::fwd) return {};
    // Elements of a row share the search for its token. Most tokens of a vocabulary do not occur, so some columns
    // of many rows are asked for: the chance that all those rows are of absent tokens is e^-8.
    constexpr std::int64_t columns = 16, exponent = 8;
    return {1 + static_cast<double>(op.rows) / static_cast<double>(op.width), std::min(op.width, columns),
            exponent * op.vocab / std::min(op.rows, op.vocab)};
}
ElementCost cost(const BiasAdd& op, Direction direction) {
    return {direction == Direction::bwd ? static_cast<double>(op.rows) : 1};
}
ElementCost cost(const ResidualAdd&) { return {}; }

}  // namespace kbench::reference
