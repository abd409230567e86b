// The row-wise softmax of unfused attention.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// Row-wise softmax of masked scores. in: scores [rows, width] (fp32 when `upcast`); out: probabilities [rows, width].
struct Softmax {
    static constexpr std::string_view kind = "softmax", what = "row-wise softmax (unfused attention)";
    static constexpr std::string_view example = "r20480w1024";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    bool upcast;
    bool operator==(const Softmax&) const = default;

    static Softmax parse(ShapeText& shape) { return {shape.size('r'), shape.size('w'), false}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec scores = input("scores", rows, width), probabilities = output("probabilities", rows, width);
        scores.scores = probabilities.scores = true;
        scores.contents = {Contents::Kind::causal, 1, width};
        if (upcast) scores.element = ElementType::at_least_fp32;
        return {scores, probabilities};
    }
    Grown<Softmax> grown(Direction, Scale factor) const {
        Softmax op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Minus the maximum, exp, add to the sum, divide; also for masked scores, whose probability is 0.
    static constexpr double score_flops = 4;
    Work work(Direction) const {
        const double all = static_cast<double>(rows) * static_cast<double>(width);
        return {.flops = score_flops * unmasked(), .masked_flops = score_flops * (all - unmasked())};
    }
    /// Number of scores that the mask leaves: row r has r % width + 1.
    double unmasked() const {
        const auto triangle = [](std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; };
        return static_cast<double>(rows / width) * triangle(width) + triangle(rows % width);
    }
};

}  // namespace kbench
