// The embedding: token and position, added.
#pragma once

#include <algorithm>

#include "kbench/op.h"

namespace kbench {

/// y[r, :] = wte[tokens[r], :] + wpe[r % seq, :].
/// fwd: in: tokens [rows] int32, wte [vocab, width], wpe [positions, width]; out: y [rows, width].
/// bwd: dwte[v, :] = sum of dout[r, :] over the rows r with token v; dwpe[p, :] = sum of dout[r, :] over the rows at
/// position p, 0 beyond seq. in: tokens, dout [rows, width]; out: dwte [vocab, width], dwpe [positions, width].
/// `accumulates`: dwte is worked on in place, the sums being added to what is there: of weights tied with a language
/// model's head, whose gradient is made first. Only rows of tokens that occur are touched then.
/// `accumulates_positions`: dwpe is, too, of which only the first seq rows are touched then.
struct Embedding {
    static constexpr std::string_view kind = "embedding", what = "token and position embedding, added";
    static constexpr std::string_view example = "r1024w1280v50257[a][p]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, seq, width, vocab, positions;
    bool accumulates = false, accumulates_positions = false;
    bool operator==(const Embedding&) const = default;

    /// As many positions as a sequence has; it is all rows where no "s" stands.
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
    /// Tokens are taken as distinct, so what is read of wte is the most that can be needed.
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
    /// First wte's gradient, then wpe's, too: a tied wte may have one when wpe has none.
    Embedding accumulating() const { return {rows, seq, width, vocab, positions, true, accumulates}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// bwd: each element is added to two sums.
    Work work(Direction direction) const {
        return {(direction == Direction::bwd ? 2 : 1) * static_cast<double>(rows) * static_cast<double>(width)};
    }
};

}  // namespace kbench
