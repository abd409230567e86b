// Matches what the op kinds say may be fused, longest first, against what the providers take.
#include "bench/plan/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

/// Op kinds that may become one step. `head` is the position of the one that names it; the first `beside` of them only
/// read what it reads.
struct Pattern {
    std::vector<const OpKind*> kinds;
    std::size_t head, beside;
    Direction direction;  ///< the head's
};

Pattern pattern_of(const OpKind& head, const Fusion& fusion, Direction direction) {
    Pattern pattern{{}, fusion.beside.size() + fusion.before.size(), fusion.beside.size(), direction};
    const auto add = [&](const std::vector<std::string_view>& names) {
        for (const std::string_view name : names) pattern.kinds.push_back(find_op_kind(name));
    };
    add(fusion.beside);
    add(fusion.before);
    pattern.kinds.push_back(&head);
    add(fusion.after);
    return pattern;
}

/// All patterns, longest first: the first that some provider takes wins. A program may add kinds, so none are kept.
std::vector<Pattern> all_patterns() {
    std::vector<Pattern> list;
    for (const OpKind* kind : op_kinds())
        for (const Direction direction : kind->directions) {
            list.push_back(pattern_of(*kind, {}, direction));
            for (const Fusion& fusion : kind->fusions(direction)) {
                Pattern pattern = pattern_of(*kind, fusion, direction);
                if (!std::ranges::count(pattern.kinds, nullptr)) list.push_back(std::move(pattern));
            }
        }
    std::ranges::stable_sort(list, std::ranges::greater(), [](const Pattern& p) { return p.kinds.size(); });
    return list;
}

/// How often each tensor is read by ops. What is made twice counts as one, read by whoever reads either, so that an op
/// that is computed again becomes the same step as before: the same kernels run, and the same bits come out.
std::vector<int> count_readers(const Model& model) {
    std::vector<int> readers(model.tensors.size(), 0);
    for (const OpNode& node : model.ops)
        if (!node.is_recomputed())
            for (const TensorId id : node.inputs) ++readers[id];
    for (const OpNode& node : model.ops)
        for (std::size_t i = 0; node.is_recomputed() && i < node.outputs.size(); ++i) {
            int &before = readers[model.ops[*node.forward].outputs[i]], &again = readers[node.outputs[i]];
            before = again = before + again;
        }
    return readers;
}

class Matcher {
  public:
    Matcher(const Model& model, std::int64_t column_multiple) : model_(model), readers_(count_readers(model)) {
        for (const TensorId id : model.outputs) ++readers_[id];  // whoever wants them
        padded_.resize(model.tensors.size());
        for (const OpNode& node : model.ops)
            if (const std::int64_t columns = padded_columns(node.op, node.direction, column_multiple); columns > 0)
                if (all_take_padding(node.outputs.front())) pad(node.outputs.front(), columns);
    }

    /// The step of `pattern` at op `first`, or nothing when the ops there are others or feed anyone else.
    std::optional<StepOfModel> match(const Pattern& pattern, std::size_t first) const {
        const std::size_t count = pattern.kinds.size();
        if (first + count > model_.ops.size()) return std::nullopt;
        for (std::size_t i = 0; i < count; ++i) {
            const OpNode& node = model_.ops[first + i];
            const OpKind& kind = *pattern.kinds[i];
            if (&node.op.kind() != &kind || node.direction != direction_along(kind, pattern.direction))
                return std::nullopt;
            if (i < pattern.beside && !reads_with(node, model_.ops[first + pattern.head])) return std::nullopt;
            if (i > pattern.beside && !continues(model_.ops[first + i - 1], node, i >= pattern.head))
                return std::nullopt;
            for (std::size_t before = 0; before < i; ++before)
                if (reads_a_side_product(node, model_.ops[first + before], before < pattern.beside))
                    return std::nullopt;
            if (count > 1 && std::ranges::any_of(node.inputs, [&](TensorId id) { return padded_[id] > 0; }))
                return std::nullopt;
        }
        return build(pattern, first);
    }

  private:
    /// Calls `visit` with every op that reads `id`, the operand as which it does, and what the op makes of it in place.
    void for_each_reader(TensorId id, const auto& visit) const {
        for (const OpNode& node : model_.ops) {
            std::size_t input = 0, output = 0;
            for (const OperandSpec& spec : node.op.operands(node.direction)) {
                const bool is_made = spec.use == OperandUse::output || spec.use == OperandUse::in_place;
                const std::optional<TensorId> made = is_made ? std::optional(node.outputs.at(output++)) : std::nullopt;
                if (spec.use == OperandUse::output || node.inputs.at(input++) != id) continue;
                visit(spec, spec.use == OperandUse::in_place ? made : std::nullopt);
            }
        }
    }

    /// Whether all that read it, and what is made of it in place, know rows that are farther apart than they are long.
    bool all_take_padding(TensorId id) const {
        bool all = true;
        for_each_reader(id, [&](const OperandSpec& spec, std::optional<TensorId> made) {
            all &= spec.padded && (!made || all_take_padding(*made));
        });
        return all;
    }

    void pad(TensorId id, std::int64_t columns) {
        padded_[id] = columns;
        for_each_reader(id, [&](const OperandSpec&, std::optional<TensorId> made) {
            if (made) pad(*made, columns);
        });
    }

    /// `node` reads in its first place what `head` reads under the same name.
    static bool reads_with(const OpNode& node, const OpNode& head) {
        const OperandSpec first = node.op.operands(node.direction).front();
        std::size_t input = 0;
        for (const OperandSpec& spec : head.op.operands(head.direction)) {
            if (spec.use == OperandUse::output) continue;
            const TensorId id = head.inputs.at(input++);
            if (spec.name == first.name) return spec.use == OperandUse::input && node.inputs.front() == id;
        }
        return false;
    }

    /// `next` takes what `node` makes first in its first place and nowhere else. What the head takes, or an op behind
    /// it (`may_be_kept`), may have other readers, for whom the step leaves it behind.
    bool continues(const OpNode& node, const OpNode& next, bool may_be_kept) const {
        const TensorId out = node.outputs.at(0);
        const bool consumes =
            !next.inputs.empty() && next.inputs.front() == out && std::ranges::count(next.inputs, out) == 1;
        return consumes && (readers_[out] == 1 || may_be_kept);
    }

    /// Whether `node` reads an output of `maker` other than the one that it hands on (one beside a head hands on none).
    /// The step writes such an output, and cannot read it.
    static bool reads_a_side_product(const OpNode& node, const OpNode& maker, bool is_beside) {
        return std::any_of(maker.outputs.begin() + (is_beside ? 0 : 1), maker.outputs.end(),
                           [&](TensorId id) { return std::ranges::count(node.inputs, id) > 0; });
    }

    StepOfModel build(const Pattern& pattern, std::size_t first) const {
        const std::size_t count = pattern.kinds.size();
        StepOfModel made;
        made.naming_op = first + pattern.head;
        made.step.head = pattern.head;
        made.step.beside = pattern.beside;
        made.step.direction = model_.ops[made.naming_op].direction;
        made.step.weights_change = model_.weights_change;
        std::vector<TensorId> left;
        for (std::size_t i = 0; i < count; ++i) {
            const OpNode& node = model_.ops[first + i];
            made.ops.push_back(first + i);
            made.step.ops.push_back(node.op);
            // Takes what is read and not made within the step. The first input of an op behind another is that one's
            // result; the first input of one beside the head is what the head reads.
            const bool is_beside = i < pattern.beside, hands_on = !is_beside && i + 1 < count;
            made.tensors.insert(made.tensors.end(), node.inputs.begin() + (is_beside || i > pattern.beside ? 1 : 0),
                                node.inputs.end());
            if (hands_on && readers_[node.outputs[0]] > 1) {
                made.step.kept.push_back(i);
                left.push_back(node.outputs[0]);
            }
            for (const TensorId id : node.outputs_of(OperandUse::output))
                if (!hands_on || id != node.outputs.front()) left.push_back(id);
        }
        made.tensors.insert(made.tensors.end(), left.begin(), left.end());
        if (count == 1)
            for (const TensorId id : made.tensors)
                made.step.padded_columns = std::max(made.step.padded_columns, padded_[id]);
        return made;
    }

    const Model& model_;
    std::vector<int> readers_;
    std::vector<std::int64_t> padded_;  ///< by tensor: the distance of its rows where it is not its columns, else 0
};

void check_choice(const ProviderChoice& choice, const Providers& providers) {
    for (const auto& [op, provider] : choice) {
        if (op != "*") require_op_kind(op, fmt::format("--provider {}={}: ", op, provider));
        std::vector<std::string_view> names;
        for (const auto& p : providers) names.push_back(p->name);
        if (std::ranges::find(names, provider) == names.end())
            throw UsageError(fmt::format("--provider {}={}: this backend has no provider '{}'; {}", op, provider,
                                         provider, nearest_name(provider, names)));
    }
}

/// Whether `choice` leaves the step to `provider`: its head does, and no fused op goes to another by name.
bool is_allowed(const ProviderChoice& choice, const Step& step, Precision precision, const Provider& provider) {
    for (const Op& op : step.ops)
        if (const auto named = choice.find(name(op)); named != choice.end() && named->second != provider.name)
            return false;
    const auto chosen = choice.find(op_name(step)), any = choice.find("*");
    if (chosen != choice.end()) return provider.name == chosen->second;
    if (any != choice.end()) return provider.name == any->second;
    return !provider.takes_on_request_only(step, precision);
}

}  // namespace

std::int64_t padded_columns(const Op& op, Direction direction, std::int64_t multiple) {
    const std::vector<OperandSpec> operands = op.operands(direction);
    if (!op.pads_columns() || !operands.back().padded) return 0;
    const std::int64_t columns = operands.back().columns;
    const std::int64_t padded = (columns + multiple - 1) / multiple * multiple;
    return padded == columns ? 0 : padded;
}

std::vector<StepOfModel> steps_of(const Model& model, std::size_t ops, std::int64_t column_multiple) {
    const Matcher matcher(model, column_multiple);
    const std::vector<Pattern> patterns = all_patterns();
    std::vector<StepOfModel> steps;
    for (std::size_t op = 0; op < model.ops.size(); op += ops) {
        std::optional<StepOfModel> step;
        for (const Pattern& pattern : patterns)
            if (pattern.kinds.size() == ops && !step) step = matcher.match(pattern, op);
        if (!step)
            throw Unsupported(fmt::format("{} with {} further ops is no single step", name(model.ops[op].op), ops - 1));
        steps.push_back(std::move(*step));
    }
    return steps;
}

std::vector<AssignedStep> assign_steps(const Model& model, Precision precision, const Providers& providers,
                                       const ProviderChoice& choice, std::int64_t column_multiple) {
    check_choice(choice, providers);
    const Matcher matcher(model, column_multiple);
    const std::vector<Pattern> patterns = all_patterns();
    std::vector<AssignedStep> assigned;
    std::vector<const Provider*> computes(model.ops.size(), nullptr);  // each op
    std::vector<Provider*> in_turn;
    for (const auto& provider : providers) in_turn.push_back(provider.get());
    for (std::size_t op = 0; op < model.ops.size();) {
        std::optional<AssignedStep> found;
        std::string refusals;
        // An op that is computed again goes first to its earlier provider, as others may round otherwise.
        std::vector<Provider*> asked = in_turn;
        if (model.ops[op].is_recomputed())
            std::ranges::stable_partition(
                asked, [&, before = computes[*model.ops[op].forward]](const Provider* p) { return p == before; });
        for (const Pattern& pattern : patterns) {
            std::optional<StepOfModel> step = matcher.match(pattern, op);
            if (!step) continue;
            for (Provider* const provider : asked) {
                if (!is_allowed(choice, step->step, precision, *provider)) continue;
                const std::string reason = provider->unsupported(step->step, precision);
                if (reason.empty()) {
                    found = AssignedStep{std::move(*step), provider};
                    break;
                }
                if (pattern.kinds.size() == 1)
                    refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", provider->name, reason);
            }
            if (found) break;
        }
        if (!found)
            throw Unsupported(fmt::format("no provider computes {} of {} in {} ({})", name(model.ops[op].op),
                                          model.ops[op].layer, name(precision), refusals));
        for (const std::size_t of_step : found->ops) computes[of_step] = found->provider;
        op += found->ops.size();
        assigned.push_back(std::move(*found));
    }
    return assigned;
}

}  // namespace kbench
