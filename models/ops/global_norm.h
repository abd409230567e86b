// The norm of all gradients, taken as one vector.
#pragma once

#include "kbench/tensor_sizes.h"

namespace kbench {

/// norm = sqrt(sum of g^2 over all gradients), by which gradients are clipped (Pascanu et al., "On the difficulty of
/// training recurrent neural networks", ICML 2013, algorithm 1). It is not finite where a gradient is not.
/// in: gradients of any number and size; out: norm [1], fp32 or wider.
struct GlobalNorm {
    static constexpr std::string_view kind = "global_norm", what = "norm of all gradients together";
    static constexpr std::string_view example = "n1000000t8";
    static constexpr Direction directions[] = {Direction::fwd};

    std::vector<std::int64_t> sizes;  ///< elements of each gradient
    bool operator==(const GlobalNorm&) const = default;

    static GlobalNorm parse(ShapeText& shape) { return {parse_tensor_sizes(shape)}; }
    std::string text() const { return tensor_sizes_text(sizes); }
    std::vector<OperandSpec> operands(Direction) const {
        std::vector<OperandSpec> specs;
        for (std::size_t i = 0; i < sizes.size(); ++i) specs.push_back(input(numbered("gradient", i), 1, sizes[i]));
        specs.push_back(output("norm", 1, 1));
        specs.back().element = ElementType::at_least_fp32;
        return specs;
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per element: square, add. Once: the root.
    Work work(Direction) const { return {2 * static_cast<double>(total_size(sizes)) + 1}; }
};

}  // namespace kbench
