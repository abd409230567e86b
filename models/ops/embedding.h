// The embedding: token and position, added.
#pragma once

#include <algorithm>

#include "kbench/op.h"

namespace kbench {

/// y[r, :] = wte[tokens[r], :] + wpe[r % seq, :].
/// in: tokens [rows] int32, wte [vocab, width], wpe [positions, width]; out: y [rows, width].
struct Embedding {
    static constexpr std::string_view kind = "embedding", what = "token and position embedding, added";
    static constexpr std::string_view example = "r1024w1280v50257";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, seq, width, vocab, positions;
    bool operator==(const Embedding&) const = default;

    /// As many positions as a sequence has; it is all rows where no "s" stands.
    static Embedding parse(ShapeText& shape) {
        const std::int64_t rows = shape.size('r'), seq = shape.size_or('s', rows);
        if (rows % seq != 0) throw ShapeText::Wrong();
        return {rows, seq, shape.size('w'), shape.size('v'), seq};
    }
    std::string text() const {
        const std::string text = shape_text({{'r', rows}, {'w', width}, {'v', vocab}});
        return seq == rows ? text : text + shape_text({{'s', seq}});
    }
    /// Tokens are taken as distinct, so what is read of wte is the most that can be needed.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec tokens = input("tokens", 1, rows), wte = input("wte", vocab, width),
                    wpe = input("wpe", positions, width);
        tokens.element = ElementType::int32;
        tokens.contents = Contents::below(vocab);
        wte.use = wpe.use = OperandUse::weight;
        wte.read = Part{static_cast<double>(std::min(rows, vocab)), 0, width};
        wpe.read = Part{static_cast<double>(std::min({rows, seq, positions})), 0, width};
        return {tokens, wte, wpe, output("out", rows, width)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
