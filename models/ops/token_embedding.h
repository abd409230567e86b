// The embedding of tokens alone, for models whose positions are rotations.
#pragma once

#include <algorithm>

#include "kbench/op.h"

namespace kbench {

/// y[r, :] = table[tokens[r], :]. in: tokens [rows] int32, table [vocab, width]; out: y [rows, width].
struct TokenEmbedding {
    static constexpr std::string_view kind = "token_embedding", what = "token embedding: rows of a table";
    static constexpr std::string_view example = "r1w2048v128256";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width, vocab;
    bool operator==(const TokenEmbedding&) const = default;

    static TokenEmbedding parse(ShapeText& shape) { return {shape.size('r'), shape.size('w'), shape.size('v')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}, {'v', vocab}}); }
    /// Tokens are taken to be distinct, which gives the most that can be read of the table.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec tokens = input("tokens", 1, rows), table = input("table", vocab, width);
        tokens.element = ElementType::int32;
        tokens.contents = Contents::below(vocab);
        table.use = OperandUse::weight;
        table.read = Part{static_cast<double>(std::min(rows, vocab)), 0, width};
        return {tokens, table, output("out", rows, width)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {}; }
};

}  // namespace kbench
