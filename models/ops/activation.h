// Activations: functions of one number, each an op kind of its own.
#pragma once

#include "kbench/activation.h"
#include "kbench/op.h"

namespace kbench {

/// fwd: y = f(x). in: x; out: y.
/// bwd: dx = dy f'(x), with slope 0 for relu at 0. in: dy (may come from a product), x; out: dx. All [rows, width].
template <Activation f>
struct ActivationOp {
    static constexpr Activation function = f;
    static constexpr std::string_view kind = facts_of(f).kind, what = facts_of(f).what;
    static constexpr std::string_view example = "r1024w5120[+bias]";
    static constexpr Direction directions[2] = {Direction::fwd, Direction::bwd};  // GCC 13 needs the bound
    static_assert(facts_of(f).function == f, "the table is in the order of the names");

    std::int64_t rows, width;
    bool operator==(const ActivationOp&) const = default;

    static ActivationOp parse(ShapeText& shape) { return on(shape.size('r'), shape.size('w')); }
    static ActivationOp on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd)
            return {input("dy", rows, width), input("x", rows, width), output("dx", rows, width)};
        return {input("x", rows, width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"dout", "x", "dx"}}}}; }
    Grown<ActivationOp> grown(Direction, Scale factor) const { return {{rows * factor, width}, "rows"}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction direction) const {
        constexpr ActivationFacts facts = facts_of(f);
        return {(direction == Direction::bwd ? facts.backward_flops : facts.forward_flops) * static_cast<double>(rows) *
                static_cast<double>(width)};
    }
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction == Direction::bwd) return {};
        return {{.before = {"bias"}}};
    }
};
using Gelu = ActivationOp<Activation::gelu_tanh>;
using GeluFast = ActivationOp<Activation::gelu_fast>;
using GeluErf = ActivationOp<Activation::gelu_erf>;
using QuickGelu = ActivationOp<Activation::quick_gelu>;
using Relu = ActivationOp<Activation::relu>;
using Silu = ActivationOp<Activation::silu>;
using Tanh = ActivationOp<Activation::tanh>;

}  // namespace kbench
