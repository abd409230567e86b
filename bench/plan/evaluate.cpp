// One call of the reference for each step kind.
#include "bench/plan/evaluate.h"

#include "models/base/error.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;
using Elements = std::span<const Element>;

/// Hands out views in operand order, an empty one for an operand the step does not have.
struct Views {
    std::span<const View> views;
    std::size_t index = 0;
    View next() { return views[index++]; }
    View next_if(bool present) { return present ? next() : View{}; }
};

std::vector<Expected> expected(const Embedding& op, Views in, std::size_t, Elements elements) {
    const View tokens = in.next(), wte = in.next(), wpe = in.next();
    return reference::embedding(op, tokens, wte, wpe, elements);
}

std::vector<Expected> expected(const GemmStep& step, Views in, std::size_t, Elements elements) {
    const View x = in.next(), w = in.next(), bias = in.next_if(step.bias), residual = in.next_if(step.residual);
    return reference::gemm(step.gemm, x, w, bias, step.gelu, residual, elements);
}

std::vector<Expected> expected(const NormStep& step, Views in, std::size_t output, Elements elements) {
    const View x = in.next(), pre_bias = in.next_if(step.pre_bias), residual = in.next_if(step.residual);
    const View weight = in.next(), bias = in.next();
    if (step.keep_sum && output == in.index)
        return reference::layer_norm_sum(step.norm, x, pre_bias, residual, elements);
    return reference::layer_norm(step.norm, x, pre_bias, residual, weight, bias, elements);
}

std::vector<Expected> expected(const BiasGeluStep& step, Views in, std::size_t, Elements elements) {
    const View x = in.next(), bias = in.next_if(step.bias);
    return reference::bias_gelu(x, bias, step.gelu, elements);
}

std::vector<Expected> expected(const ResidualAdd&, Views in, std::size_t, Elements elements) {
    const View x = in.next(), residual = in.next();
    return reference::residual_add(x, residual, elements);
}

std::vector<Expected> expected(const Attention& op, Views in, std::size_t, Elements elements) {
    return reference::attention(op, in.next(), elements);
}

std::vector<Expected> expected(const AttentionScores& op, Views in, std::size_t, Elements elements) {
    return reference::attention_scores(op, in.next(), elements);
}

std::vector<Expected> expected(const ScaleMask& op, Views in, std::size_t, Elements elements) {
    return reference::scale_mask(op, in.next(), elements);
}

std::vector<Expected> expected(const Softmax& op, Views in, std::size_t, Elements elements) {
    return reference::softmax(op, in.next(), elements);
}

std::vector<Expected> expected(const AttentionContext& op, Views in, std::size_t, Elements elements) {
    const View probabilities = in.next(), qkv = in.next();
    return reference::attention_context(op, probabilities, qkv, elements);
}

}  // namespace

std::vector<Expected> evaluate(const StepKind& kind, std::size_t output, std::span<const View> views,
                               Elements elements) {
    return std::visit([&](const auto& step) { return expected(step, Views{views}, output, elements); }, kind);
}

}  // namespace kbench
