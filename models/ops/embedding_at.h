// The embedding of new tokens, at positions that lie on the device.
#pragma once

#include <algorithm>

#include "kbench/op.h"
#include "kbench/positions.h"

namespace kbench {

/// y[r, :] = wte[tokens[r], :] + wpe[positions[r / seq] + r % seq, :] with `seq` new tokens of each sequence.
/// in: tokens [rows] int32, positions [rows / seq, 1] int32, each from 0 to table - seq, wte [vocab, width],
/// wpe [table, width]; out: y [rows, width].
struct EmbeddingAt {
    static constexpr std::string_view kind = "embedding_at",
                                      what = "token and position embedding at given positions, added";
    static constexpr std::string_view example = "r1w1280v50257p1024[s1]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, seq, width, vocab, table;
    bool operator==(const EmbeddingAt&) const = default;

    /// Without "s" each row is a sequence's only new token.
    static EmbeddingAt parse(ShapeText& shape) {
        const std::int64_t rows = shape.size('r'), seq = shape.size_or('s', 1);
        const EmbeddingAt op{rows, seq, shape.size('w'), shape.size('v'), shape.size('p')};
        if (rows % seq != 0 || op.table < seq) throw ShapeText::Wrong();
        return op;
    }
    std::string text() const {
        const std::string text = shape_text({{'r', rows}, {'w', width}, {'v', vocab}, {'p', table}});
        return seq == 1 ? text : text + shape_text({{'s', seq}});
    }
    /// Tokens are taken to be distinct, which gives the most that can be read of wte. Sequences stand at the same
    /// position unless a file says otherwise.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec tokens = input("tokens", 1, rows), wte = input("wte", vocab, width),
                    wpe = input("wpe", table, width);
        tokens.element = ElementType::int32;
        tokens.contents = Contents::below(vocab);
        wte.use = wpe.use = OperandUse::weight;
        wte.read = Part{static_cast<double>(std::min(rows, vocab)), 0, width};
        wpe.read = Part{static_cast<double>(seq), 0, width};
        return {tokens, positions_operand(rows / seq, table - seq), wte, wpe, output("out", rows, width)};
    }
    /// More sequences.
    Grown<EmbeddingAt> grown(Direction, Scale factor) const {
        EmbeddingAt op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
