// The loss of a language model: softmax with cross-entropy against the next token.
#pragma once

#include <string>

#include "kbench/error.h"
#include "kbench/op.h"

namespace kbench {

/// losses[r] = log(sum of exp(logits[r, :])) - logits[r, tokens[r + 1]], in nats. A row's target is the next token of
/// its sequence, as in transformers' language models with labels = tokens. The last row of each sequence has none: its
/// loss and its gradient are 0. The loss of a batch is the mean over the batch * (seq - 1) rows that have a target;
/// the reader of the losses computes that mean.
/// fwd: in: logits [rows, vocab], tokens [rows] int32; out: losses [rows], fp32 or wider.
/// bwd: forward and backward in one pass, so that no probabilities are stored. Logits become the gradient of
/// loss_scale times the mean loss, loss_scale (softmax - onehot) / (batch * (seq - 1)). Without loss_scale such numbers
/// can be below fp16's smallest one (Micikevicius et al., 2018, section 3.2).
/// in: logits (in place), tokens, loss_scale [1], fp32 or wider; out: losses.
struct CrossEntropy {
    static constexpr std::string_view kind = "cross_entropy", what = "softmax with cross-entropy of the next token";
    static constexpr std::string_view example = "r1024v50257";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};
    /// Gradients of the logits are about 4e-5 with it at a vocabulary of 50257 and 4092 targets. fp16 keeps ten bits of
    /// those, and one target alone is no overflow yet.
    static constexpr LossInfo loss{.examples = "tokens", .one_per_example = false, .fp16_scale = 8192};

    std::int64_t rows, seq, vocab;  ///< seq >= 2
    bool operator==(const CrossEntropy&) const = default;

    /// The rows are one sequence where the shape has no "s".
    static CrossEntropy parse(ShapeText& shape) {
        const std::int64_t rows = shape.size('r'), seq = shape.size_or('s', rows);
        if (rows % seq != 0) throw ShapeText::Wrong();
        if (seq < 2)
            throw UsageError("cross_entropy with sequences of 1 row: must be 2 or more, as the last has no target");
        return {rows, seq, shape.size('v')};
    }
    std::string text() const {
        const std::string text = shape_text({{'r', rows}, {'v', vocab}});
        return seq == rows ? text : text + shape_text({{'s', seq}});
    }
    /// Number of rows that have a target.
    std::int64_t targets() const { return rows / seq * (seq - 1); }
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec logits = input("logits", rows, vocab), tokens = input("tokens", 1, rows),
                    loss_scale = input("loss_scale", 1, 1), losses = output("losses", 1, rows);
        logits.read = Part{static_cast<double>(targets()), 0, vocab};
        logits.padded = true;
        tokens.element = ElementType::int32;
        tokens.contents = Contents::below(vocab);
        // Gradients become 16 times a row's softmax: then 1 / 50257 is a normal number in fp16.
        loss_scale.contents = Contents::of({16 * static_cast<double>(targets())});
        loss_scale.element = losses.element = ElementType::at_least_fp32;
        if (direction == Direction::fwd) return {logits, tokens, losses};
        logits.use = OperandUse::in_place;
        return {logits, tokens, loss_scale, losses};
    }
    /// More sequences.
    Grown<CrossEntropy> grown(Direction, Scale factor) const {
        CrossEntropy op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per logit: minus the maximum, exponential, add to the sum. Per row: logarithm, plus the maximum, minus target.
    /// Backward, per logit: times a factor of its row. Per row: two more divisions, and the subtraction of onehot.
    Work work(Direction direction) const { return work_of(direction, targets(), vocab); }
    static Work work_of(Direction direction, std::int64_t targets, std::int64_t vocab) {
        const int logit = direction == Direction::bwd ? 4 : 3, row = direction == Direction::bwd ? 6 : 3;
        return {static_cast<double>(targets) * (logit * static_cast<double>(vocab) + row)};
    }
};

}  // namespace kbench
