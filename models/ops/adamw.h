// AdamW over all parameters of a model.
#pragma once

#include "kbench/tensor_sizes.h"

namespace kbench {

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019,
/// algorithm 2), as torch.optim.AdamW has it, over all parameters at once. With g = multiplier * gradient:
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
///     weight = weight (1 - lr weight_decay) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
/// in: schedule [8], fp32 or wider: lr, beta1, beta2, epsilon, weight_decay, 1 - beta1^t, 1 - beta2^t, multiplier
/// (1 / loss_scale). It lies in memory so that one captured graph serves every step t. Then for each tensor: weight (in
/// place), gradient, m, v (both in place). Every weight decays, as in PyTorch without parameter groups.
/// `master`: an array `master` (in place, fp32 or wider) follows v. The update is computed in it, weight is a copy of
/// it, and m and v have its type. Without `master` all arrays have the storage type; arithmetic is wider.
/// `clips`: schedule has a ninth number, max_norm, and is followed by norm [1] of all gradients (GlobalNorm). The
/// multiplier is also scaled by max_norm / (multiplier norm + 1e-6) where that is below 1 and max_norm above 0, as in
/// torch.nn.utils.clip_grad_norm_.
/// Nothing changes where the multiplier is 0 or where it or norm is not finite: a step with too large a loss_scale is
/// skipped.
struct AdamW {
    static constexpr std::string_view kind = "adamw", what = "AdamW over all parameters at once";
    static constexpr std::string_view example = "n1000000t8[m][c]";
    static constexpr Direction directions[] = {Direction::fwd};
    /// Added to the norm before max_norm is divided by it.
    static constexpr double clip_epsilon = 1e-6;

    std::vector<std::int64_t> sizes;  ///< elements of each tensor
    bool master = false, clips = false;
    bool operator==(const AdamW&) const = default;

    static AdamW parse(ShapeText& shape) {
        std::vector<std::int64_t> sizes = parse_tensor_sizes(shape);
        const bool master = shape.flag('m');
        return {std::move(sizes), master, shape.flag('c')};
    }
    std::string text() const { return tensor_sizes_text(sizes) + (master ? "m" : "") + (clips ? "c" : ""); }
    /// Number of operands before the tensors', and per tensor.
    std::size_t first_operand() const { return clips ? 2 : 1; }
    std::size_t operands_each() const { return master ? 5 : 4; }
    std::vector<OperandSpec> operands(Direction) const {
        const ElementType wide = ElementType::at_least_fp32, state = master ? wide : ElementType::storage;
        OperandSpec schedule = input("schedule", 1, clips ? 9 : 8), norm = input("norm", 1, 1);
        schedule.element = norm.element = wide;
        // Values of the third step. max_norm is half of the multiplier times the norm, which is 1, so that it clips.
        schedule.contents = Contents::of({0.01, 0.9, 0.95, 1e-8, 0.1, 0.271, 0.142625, 0.5, 0.25});
        norm.contents = {Contents::Kind::ones};
        std::vector<OperandSpec> specs{schedule};
        if (clips) specs.push_back(norm);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const auto array = [&](std::string_view name, OperandUse use, ElementType element) -> OperandSpec& {
                OperandSpec& spec = specs.emplace_back(input(numbered(name, i), 1, sizes[i]));
                spec.use = use;
                spec.element = element;
                return spec;
            };
            OperandSpec& weight = array("weight", OperandUse::in_place, ElementType::storage);
            if (master) weight.read = Part{0, 0, sizes[i]};
            array("gradient", OperandUse::input, ElementType::storage);
            array("m", OperandUse::in_place, state);
            array("v", OperandUse::in_place, state).contents = Contents::normal(0.1, 1);  // ten deviations from 0
            if (master) array("master", OperandUse::in_place, wide);
        }
        return specs;
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per element: times the multiplier; m: three, v: four; decay; the two corrections; root, plus epsilon, quotient,
    /// times lr, difference.
    Work work(Direction) const { return {16 * static_cast<double>(total_size(sizes))}; }
};

}  // namespace kbench
