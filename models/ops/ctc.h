// The loss of speech recognition: connectionist temporal classification (CTC).
#pragma once

#include <string>

#include "kbench/error.h"
#include "kbench/lengths.h"

namespace kbench {

/// losses[n] = -log of the sum, over all alignments of sequence n's first target_lengths[n] targets with its steps, of
/// the product of softmax(logits)'s probabilities along the alignment, in nats (Graves et al., "Connectionist Temporal
/// Classification", ICML 2006, eq. 3 and 8). Label 0 is the blank. A sequence has steps_of(lengths[n], frames_per_step)
/// steps. With fewer steps than targets plus blanks between equal neighbours there is no alignment: loss is infinite
/// and the gradient 0, like PyTorch's zero_infinity. fwd: in: logits [steps * batch, labels], rows t * batch + n,
/// lengths [batch, 1], targets [batch, target], each in [1, labels), target_lengths [batch, 1], in [0, target], all
/// int32; out: losses [1, batch], fp32 or wider. bwd: forward and backward in one call. It overwrites logits with the
/// gradient of loss_scale times the mean loss, loss_scale / batch (softmax - occupancy); occupancy[t, k] is the
/// probability that the alignment has label k at step t (eq. 16). Rows after a sequence's end become 0. Without
/// loss_scale, fp16 may lose small gradients. in: logits (in place), lengths, targets, target_lengths, loss_scale [1],
/// fp32 or wider; out: losses.
struct Ctc {
    static constexpr std::string_view kind = "ctc", what = "connectionist temporal classification loss";
    static constexpr std::string_view example = "t500n8v29s150[f2]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};
    /// It is a sum over an utterance's steps: where its mean is over few of them, its gradients are so much larger than
    /// those of a mean over thousands of tokens.
    static constexpr LossInfo loss{.examples = "utterances", .one_per_example = true, .fp16_scale = 64};

    std::int64_t steps, batch, labels, target;  ///< target: most labels that a sequence may have, at least 1
    std::int64_t frames_per_step = 1;
    bool operator==(const Ctc&) const = default;

    static Ctc parse(ShapeText& shape) {
        const Ctc op{shape.size('t'), shape.size('n'), shape.size('v'), shape.size('s'), shape.size_or('f', 1)};
        if (op.labels < 2) throw UsageError("ctc with 1 label: must be 2 or more, as label 0 is the blank");
        return op;
    }
    std::string text() const {
        std::string text = shape_text({{'t', steps}, {'n', batch}, {'v', labels}, {'s', target}});
        if (frames_per_step != 1) text += shape_text({{'f', frames_per_step}});
        return text;
    }
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec logits = input("logits", steps * batch, labels), targets = input("targets", batch, target),
                    target_lengths = input("target_lengths", batch, 1), loss_scale = input("loss_scale", 1, 1),
                    losses = output("losses", 1, batch);
        logits.padded = true;
        targets.element = target_lengths.element = ElementType::int32;
        targets.contents = Contents::below(labels, 1);
        target_lengths.contents = Contents::of({static_cast<double>(target)});
        target_lengths.contents.bound = target + 1;
        loss_scale.contents = Contents::of({static_cast<double>(batch)});
        loss_scale.element = losses.element = ElementType::at_least_fp32;
        const OperandSpec lengths = lengths_operand(batch, steps * frames_per_step);
        if (direction == Direction::fwd) return {logits, lengths, targets, target_lengths, losses};
        logits.use = OperandUse::in_place;
        return {logits, lengths, targets, target_lengths, loss_scale, losses};
    }
    Grown<Ctc> grown(Direction, Scale factor) const {
        Ctc op = *this;
        op.steps *= factor;
        return {op, "time_steps"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Each step's forward variable needs the one before it. Backward runs two such chains at the same time.
    std::int64_t time_steps() const { return steps; }
    /// For sequences of `steps` steps with `target` targets each. Per logit: minus the maximum, exponential, add to the
    /// sum, minus its logarithm. Per forward variable, 2 target + 1 a step: the sum of three in log space, which is two
    /// maxima, three differences, three exponentials, two additions, a logarithm and an addition, and one more for the
    /// label. Backward does the same for backward variables, and each needs its sum with the other one, an exponential
    /// and an addition to its label's; per logit: times a common factor, less the occupancy.
    Work work(Direction direction) const {
        const auto rows = static_cast<double>(steps) * static_cast<double>(batch);
        const double variables = rows * (2 * static_cast<double>(target) + 1);
        const double logits = rows * static_cast<double>(labels);
        return {direction == Direction::bwd ? 6 * logits + 29 * variables : 4 * logits + 13 * variables};
    }
};

}  // namespace kbench
