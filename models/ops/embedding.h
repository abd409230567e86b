// The embedding: token embedding plus position embedding.
#pragma once

#include <algorithm>

#include "kbench/op.h"

namespace kbench {

/// y[r, :] = wte[tokens[r], :] + wpe[r % seq, :].
/// fwd: in: tokens [rows] int32, wte [vocab, width], wpe [positions, width]; out: y [rows, width].
/// bwd: dwte[v, :] = sum of dout[r, :] over the rows r with token v; dwpe[p, :] = sum of dout[r, :] over the rows at
/// position p, 0 beyond seq. in: tokens, dout [rows, width]; out: dwte [vocab, width], dwpe [positions, width].
/// `accumulates`: adds in place to what dwte holds, for weights tied to a language model's head, whose gradient is
/// made first. It touches only rows of tokens that occur.
/// `accumulates_positions`: also adds in place to dwpe, and touches only its first seq rows.
struct Embedding {
    static constexpr std::string_view kind = "embedding", what = "token and position embedding, added";
    static constexpr std::string_view example = "r1024w1280v50257[a][p]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, seq, width, vocab, positions;
    bool accumulates = false, accumulates_positions = false;
    bool operator==(const Embedding&) const = default;

    /// Positions are as many as a sequence has; without "s" all rows are one sequence.
    static Embedding parse(ShapeText& shape) {
        const std::int64_t rows = shape.size('r'), seq = shape.size_or('s', rows);
        if (rows % seq != 0) throw ShapeText::Wrong();
        return {rows, seq, shape.size('w'), shape.size('v'), seq, shape.flag('a'), shape.flag('p')};
    }
    std::string text() const {
        std::string text = shape_text({{'r', rows}, {'w', width}, {'v', vocab}});
        if (seq != rows) text += shape_text({{'s', seq}});
        return text + (accumulates ? "a" : "") + (accumulates_positions ? "p" : "");
    }
    /// Tokens are taken to be distinct, which gives the most that can be read of wte.
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec tokens = input("tokens", 1, rows), wte = input("wte", vocab, width),
                    wpe = input("wpe", positions, width);
        tokens.element = ElementType::int32;
        tokens.contents = Contents::below(vocab);
        const Part touched{static_cast<double>(std::min(rows, vocab)), 0, width};
        if (direction == Direction::bwd) {
            OperandSpec dwte = output("dwte", vocab, width), dwpe = output("dwpe", positions, width);
            if (accumulates) {
                dwte.use = OperandUse::in_place;
                dwte.read = dwte.written = touched;
            }
            if (accumulates_positions) {
                dwpe.use = OperandUse::in_place;
                dwpe.read = dwpe.written = Part{static_cast<double>(std::min(seq, positions)), 0, width};
            }
            return {tokens, input("dout", rows, width), dwte, dwpe};
        }
        wte.use = wpe.use = OperandUse::weight;
        wte.read = touched;
        wpe.read = Part{static_cast<double>(std::min({rows, seq, positions})), 0, width};
        return {tokens, wte, wpe, output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"tokens", "dout", "dwte", "dwpe"}}}}; }
    /// Accumulates wte's gradient first, then also wpe's: a tied wte may have a gradient when wpe has none.
    Embedding accumulating() const { return {rows, seq, width, vocab, positions, true, accumulates}; }
    /// More sequences.
    Grown<Embedding> grown(Direction, Scale factor) const {
        Embedding op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// bwd adds each element to two sums.
    Work work(Direction direction) const {
        return {(direction == Direction::bwd ? 2 : 1) * static_cast<double>(rows) * static_cast<double>(width)};
    }
};

}  // namespace kbench
