// Matches patterns of op kinds, longest first, against what the providers take.
#include "bench/plan/fuse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "models/base/error.h"

namespace kbench {
namespace {

enum Kind : std::size_t {
    embedding,
    layernorm,
    gemm,
    bias,
    gelu,
    residual,
    attention,
    attention_scores,
    scale_mask,
    softmax,
    attention_context
};

/// Op kinds that may become one step; `naming` is the position of the op that names it.
struct Pattern {
    std::vector<Kind> kinds;
    std::size_t naming;
};

/// Longest first: the first that some provider takes wins.
const std::vector<Pattern>& patterns() {
    static const std::vector<Pattern> list = {
        {{gemm, bias, residual}, 0},
        {{gemm, bias, gelu}, 0},
        {{bias, residual, layernorm}, 2},
        {{gemm, bias}, 0},
        {{bias, gelu}, 1},
        {{residual, layernorm}, 1},
        {{embedding}, 0},
        {{layernorm}, 0},
        {{gemm}, 0},
        {{bias}, 0},
        {{gelu}, 0},
        {{residual}, 0},
        {{attention}, 0},
        {{attention_scores}, 0},
        {{scale_mask}, 0},
        {{softmax}, 0},
        {{attention_context}, 0},
    };
    return list;
}

/// How often each tensor is read, the logits once more by whoever wants them.
std::vector<int> count_readers(const Model& model) {
    std::vector<int> readers(model.tensors.size(), 0);
    for (const OpNode& node : model.ops)
        for (const TensorId id : node.inputs) ++readers[id];
    ++readers[model.logits];
    return readers;
}

class Matcher {
  public:
    Matcher(const Model& model, std::vector<int> readers, std::int64_t column_multiple)
        : model_(model), readers_(std::move(readers)), column_multiple_(column_multiple) {}

    /// The step of `pattern` at op `first`, or nothing when the ops there are others or feed anyone else.
    std::optional<Step> match(const Pattern& pattern, std::size_t first) const {
        const std::size_t count = pattern.kinds.size();
        if (first + count > model_.ops.size()) return std::nullopt;
        for (std::size_t i = 0; i < count; ++i) {
            const OpNode& node = model_.ops[first + i];
            if (node.op.index() != pattern.kinds[i]) return std::nullopt;
            if (i > 0 && !continues(model_.ops[first + i - 1], node)) return std::nullopt;
        }
        Step step = build(pattern, first);
        for (std::size_t i = 0; i < count; ++i) step.ops.push_back(first + i);
        step.naming_op = first + pattern.naming;
        return step;
    }

  private:
    /// `next` consumes what `node` makes; only the sum before a layer norm may have other readers.
    bool continues(const OpNode& node, const OpNode& next) const {
        const TensorId out = node.outputs[0];
        if (std::find(next.inputs.begin(), next.inputs.end(), out) == next.inputs.end()) return false;
        return readers_[out] == 1 || next.op.index() == layernorm;
    }

    TensorId other_input(const OpNode& node, TensorId one) const {
        return node.inputs[0] == one ? node.inputs[1] : node.inputs[0];
    }

    Step build(const Pattern& pattern, std::size_t first) const {
        const OpNode& head = model_.ops[first];
        const auto has = [&](Kind kind) {
            return std::find(pattern.kinds.begin(), pattern.kinds.end(), kind) != pattern.kinds.end();
        };
        Step step;
        if (head.op.index() == gemm) {
            const Gemm& product = std::get<Gemm>(head.op);
            step.kind =
                GemmStep{product, padded_columns(product, column_multiple_), has(bias), has(gelu), has(residual)};
            step.tensors = head.inputs;
        } else if (has(layernorm)) {
            const OpNode& norm = model_.ops[first + pattern.kinds.size() - 1];
            NormStep kind{std::get<LayerNorm>(norm.op), has(bias), has(residual), false};
            kind.keep_sum = kind.residual && readers_[norm.inputs[0]] > 1;
            step.kind = kind;
            step.tensors = {head.inputs[0]};
        } else if (has(bias) || has(gelu)) {
            const auto [rows, width] = std::visit(
                [](const auto& op) -> std::pair<std::int64_t, std::int64_t> {
                    if constexpr (requires { op.rows, op.width; })
                        return {op.rows, op.width};
                    else
                        return {0, 0};
                },
                head.op);
            step.kind = BiasGeluStep{rows, width, has(bias), has(gelu)};
            step.tensors = {head.inputs[0]};
        } else {
            std::visit(
                [&](const auto& op) {
                    if constexpr (requires { StepKind{op}; }) step.kind = op;
                },
                head.op);
            step.tensors = head.inputs;
            if (head.op.index() != scale_mask) step.tensors.push_back(head.outputs[0]);
            return step;
        }
        // Biases, residuals and norm weights in the order of the ops, then what the step leaves behind.
        TensorId carried = head.outputs[0];
        if (head.op.index() == bias) step.tensors.push_back(head.inputs[1]);
        if (head.op.index() == residual) step.tensors.push_back(head.inputs[1]);
        if (head.op.index() == layernorm) step.tensors.insert(step.tensors.end(), {head.inputs[1], head.inputs[2]});
        for (std::size_t i = 1; i < pattern.kinds.size(); ++i) {
            const OpNode& node = model_.ops[first + i];
            if (node.op.index() == bias || node.op.index() == residual)
                step.tensors.push_back(other_input(node, carried));
            if (node.op.index() == layernorm) {
                step.tensors.insert(step.tensors.end(), {node.inputs[1], node.inputs[2]});
                if (std::get<NormStep>(step.kind).keep_sum) step.tensors.push_back(carried);
            }
            carried = node.outputs[0];
        }
        step.tensors.push_back(carried);
        return step;
    }

    const Model& model_;
    std::vector<int> readers_;
    std::int64_t column_multiple_;
};

void check_choice(const ProviderChoice& choice, const std::vector<std::unique_ptr<Provider>>& providers) {
    for (const auto& [op, provider] : choice) {
        const auto is_op = [&op_name = op](const OpKind& row) { return row.name == op_name; };
        if (op != "*" && std::none_of(std::begin(op_kinds), std::end(op_kinds), is_op)) {
            std::vector<std::string_view> names;
            for (const OpKind& row : op_kinds) names.push_back(row.name);
            throw UsageError(
                fmt::format("--provider {}={}: unknown op '{}' ({})", op, provider, op, fmt::join(names, ", ")));
        }
        std::vector<std::string_view> names;
        for (const auto& p : providers) names.push_back(p->name());
        if (std::find(names.begin(), names.end(), provider) == names.end())
            throw UsageError(fmt::format("--provider {}={}: this backend has no provider '{}' ({})", op, provider,
                                         provider, fmt::join(names, ", ")));
    }
}

}  // namespace

std::int64_t padded_columns(const Gemm& product, std::int64_t multiple) {
    return product.weight_transposed ? (product.n + multiple - 1) / multiple * multiple : product.n;
}

std::vector<Step> steps_of(const Model& model, std::size_t ops, std::int64_t column_multiple) {
    const Matcher matcher(model, count_readers(model), column_multiple);
    std::vector<Step> steps;
    for (std::size_t op = 0; op < model.ops.size(); op += ops) {
        std::optional<Step> step;
        for (const Pattern& pattern : patterns())
            if (pattern.kinds.size() == ops && !step) step = matcher.match(pattern, op);
        if (!step)
            throw Unsupported(fmt::format("{} with {} further ops is no single step", name(model.ops[op].op), ops - 1));
        steps.push_back(std::move(*step));
    }
    return steps;
}

std::vector<AssignedStep> assign_steps(const Model& model, Precision precision,
                                       const std::vector<std::unique_ptr<Provider>>& providers,
                                       const ProviderChoice& choice, std::int64_t column_multiple) {
    check_choice(choice, providers);
    const Matcher matcher(model, count_readers(model), column_multiple);
    std::vector<AssignedStep> assigned;
    for (std::size_t op = 0; op < model.ops.size();) {
        std::optional<AssignedStep> found;
        std::string refusals;
        for (const Pattern& pattern : patterns()) {
            std::optional<Step> step = matcher.match(pattern, op);
            if (!step) continue;
            const auto chosen = choice.find(op_name(step->kind));
            const auto any = choice.find("*");
            for (const auto& provider : providers) {
                if (chosen != choice.end() && provider->name() != chosen->second) continue;
                if (chosen == choice.end() && any != choice.end() && provider->name() != any->second) continue;
                if (chosen == choice.end() && any == choice.end() && provider->on_request_only()) continue;
                const std::string reason = provider->unsupported(step->kind, precision);
                if (reason.empty()) {
                    found = AssignedStep{std::move(*step), provider.get()};
                    break;
                }
                if (pattern.kinds.size() == 1)
                    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", provider->name(), reason);
            }
            if (found) break;
        }
        if (!found)
            throw Unsupported(fmt::format("no provider computes {} of {} in {} ({})", name(model.ops[op].op),
                                          model.ops[op].layer, name(precision), refusals));
        op += found->step.ops.size();
        assigned.push_back(std::move(*found));
    }
    return assigned;
}

}  // namespace kbench
