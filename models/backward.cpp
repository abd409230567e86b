// Derives a model's backward: walks the forward's ops in reverse and adds the steps that each op's kind asks for.
#include "models/backward.h"

#include <fmt/format.h>

#include <algorithm>

#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/recompute.h"

namespace kbench {
namespace {

bool is_made(const OperandSpec& spec) { return spec.use == OperandUse::output || spec.use == OperandUse::in_place; }
bool is_read(const OperandSpec& spec) { return spec.use != OperandUse::output; }

class Backward {
  public:
    explicit Backward(Model forward) : model_(std::move(forward)) {
        if (!model_.loss) throw Unsupported(fmt::format("{} has no loss to train with", model_.name));
        forward_ops_ = model_.ops.size();
    }

    Model build(const TrainingOptions& options) {
        for (std::size_t i = 0; i < forward_ops_; ++i) leave_more(model_.ops[i]);
        find_chain();
        if (options.accumulate) add_sums();
        add_loss(options.loss_scale);
        const std::size_t with_loss = model_.ops.size();
        for (std::size_t i = forward_ops_; i-- > 0;) add_backward_of(i);
        for (TensorId id = 0; id < gradient_.size(); ++id)
            if (model_.tensors[id].role == Role::weights && gradient_[id] && !is_only_a_sum(id))
                model_.gradients.emplace_back(id, *gradient_[id]);
        if (options.adamw) add_adamw(options);
        if (options.recompute && updates_running_)
            throw Unsupported(
                fmt::format("{} cannot compute its forward again: running statistics would move twice", model_.name));
        if (options.recompute) recompute_blocks(model_, forward_ops_, with_loss);
        name_saved(with_loss);
        model_.untimed_ops = with_loss;
        return std::move(model_);
    }

  private:
    TensorId add(Tensor tensor) {
        model_.tensors.push_back(std::move(tensor));
        return model_.tensors.size() - 1;
    }

    /// Replaces the op by its training variant. Its extra outputs get new tensors, placed before the outputs it had.
    void leave_more(OpNode& node) {
        node.op = node.op.in_training();
        const std::vector<OperandSpec> specs = node.op.operands(node.direction);
        std::size_t input = 0, left = static_cast<std::size_t>(std::ranges::count_if(specs, is_made));
        std::vector<TensorId> outputs;
        for (const OperandSpec& spec : specs) {
            if (left == node.outputs.size()) break;
            left -= is_made(spec);
            if (spec.use == OperandUse::in_place) {  // a running statistic
                Tensor tensor = model_.tensors[node.inputs.at(input)];
                tensor.name += ".updated";
                tensor.role = Role::activations;
                outputs.push_back(add(std::move(tensor)));
                updates_running_ = true;
            } else if (is_made(spec)) {
                outputs.push_back(add({.name = fmt::format("{}.{}", node.layer, spec.name),
                                       .role = Role::activations,
                                       .shape = {spec.rows, spec.columns},
                                       .element = spec.element}));
            }
            input += is_read(spec);
        }
        node.outputs.insert(node.outputs.begin(), outputs.begin(), outputs.end());
    }

    /// Finds the tensors that have a gradient: weights, and whatever is computed from a tensor that has one.
    void find_chain() {
        depends_.resize(model_.tensors.size());
        for (TensorId id = 0; id < depends_.size(); ++id) depends_[id] = model_.tensors[id].role == Role::weights;
        for (std::size_t i = 0; i < forward_ops_; ++i) {
            const OpNode& node = model_.ops[i];
            if (std::ranges::any_of(node.inputs, [&](TensorId id) { return depends_[id]; }))
                for (const TensorId id : node.outputs) depends_[id] = true;
        }
        gradient_.resize(depends_.size());
    }

    TensorId gradient_tensor(TensorId of) {
        Tensor tensor = model_.tensors[of];
        tensor.resident = tensor.role == Role::weights;
        tensor.name += ".grad";
        tensor.role = Role::gradients;
        tensor.contents = {Contents::Kind::zeros};
        return add(std::move(tensor));
    }

    /// Gives every weight a gradient from the start, for its ops to add to.
    void add_sums() {
        sums_.resize(depends_.size());
        for (TensorId id = 0; id < depends_.size(); ++id)
            if (model_.tensors[id].role == Role::weights) sums_[id] = gradient_[id] = gradient_tensor(id);
    }
    /// Whether no op has added to the gradient yet.
    bool is_only_a_sum(TensorId weight) const { return !sums_.empty() && sums_[weight] == gradient_[weight]; }

    void add_loss(double scale) {
        OpNode node = *model_.loss;
        const TensorId predicted = node.inputs.front();
        const std::vector<OperandSpec> forward = node.op.operands(Direction::fwd);
        const auto is_of_forward = [&](const OperandSpec& spec) {
            return std::ranges::find(forward, spec.name, &OperandSpec::name) != forward.end();
        };
        std::vector<TensorId> inputs = std::exchange(node.inputs, {});
        std::size_t next = 0;
        node.direction = Direction::bwd;
        model_.outputs.clear();
        for (const OperandSpec& spec : node.op.operands(Direction::bwd)) {
            const std::string name(spec.name);
            if (is_read(spec) && is_of_forward(spec)) {
                node.inputs.push_back(inputs.at(next++));
                const TensorId id = node.inputs.back();  // a target that the forward does not read becomes an input
                if (model_.tensors[id].role == Role::tokens && std::ranges::count(model_.inputs, id) == 0)
                    model_.inputs.push_back(id);
            } else if (is_read(spec)) {
                node.inputs.push_back(add({.name = name,
                                           .role = Role::workspace,
                                           .shape = {spec.columns},
                                           .element = spec.element,
                                           .contents = Contents::of({scale})}));
                model_.inputs.push_back(node.inputs.back());
            }
            if (spec.use == OperandUse::in_place) {
                node.outputs.push_back(gradient_tensor(predicted));
                gradient_[predicted] = node.outputs.back();
            } else if (spec.use == OperandUse::output) {
                node.outputs.push_back(
                    add({.name = name, .role = Role::activations, .shape = {spec.columns}, .element = spec.element}));
                model_.outputs.push_back(node.outputs.back());
            }
        }
        model_.ops.push_back(std::move(node));
    }

    /// The tensor that the forward op reads or makes as operand `name`.
    static std::optional<TensorId> operand(const OpNode& node, std::string_view name) {
        std::size_t input = 0, output = 0;
        for (const OperandSpec& spec : node.op.operands(Direction::fwd)) {
            const TensorId id = is_read(spec) ? node.inputs.at(input) : node.outputs.at(output);
            if (spec.name == name) return id;
            input += is_read(spec);
            output += is_made(spec);
        }
        return std::nullopt;
    }

    static TensorId required(const OpNode& node, std::string_view name) {
        if (const auto id = operand(node, name)) return *id;
        throw std::logic_error(
            fmt::format("{}: its backward names {}, which its forward has not", kbench::name(node.op), name));
    }

    void add_backward_of(std::size_t index) {
        const OpNode node = model_.ops[index];
        if (std::ranges::none_of(node.outputs, [&](TensorId id) { return gradient_[id].has_value(); })) return;
        if (node.op.kind().gradients == nullptr)
            throw Unsupported(fmt::format("{} of {} has no backward", name(node.op), node.layer));
        const Gradients gradients = node.op.kind().gradients();
        for (const GradientRule& rule : gradients.rules) add_step(node, index, rule);
        for (const std::string_view name : gradients.passed) {
            const TensorId of = required(node, name);
            if (depends_[of]) contribute(node, index, of, gradient_[required(node, "out")].value());
        }
    }

    void add_step(const OpNode& node, std::size_t index, const GradientRule& rule) {
        // "dout" is the gradient of the forward's `out`: returns that tensor, or nothing for an operand of the forward.
        const auto gradient_of = [&](std::string_view name) -> std::optional<TensorId> {
            if (operand(node, name) || !name.starts_with('d')) return std::nullopt;
            return required(node, name.substr(1));
        };
        const std::vector<OperandSpec> specs = node.op.operands(rule.direction);
        bool wanted = false;
        for (std::size_t i = 0; i < specs.size(); ++i) {
            const auto of = gradient_of(rule.operands.at(i));
            if (of && is_made(specs[i])) wanted |= depends_[*of];
        }
        if (!wanted) return;

        OpNode step{node.op, node.layer, {}, {}, rule.direction, index};
        // How many existing gradients the op would add to in place; nothing where one of them does not exist yet.
        const auto in_place = [&](const Op& op) -> std::optional<int> {
            int count = 0;
            const std::vector<OperandSpec> of_op = op.operands(rule.direction);
            for (std::size_t i = 0; i < of_op.size(); ++i) {
                const auto of = gradient_of(rule.operands.at(i));
                if (of_op[i].use != OperandUse::in_place || !of) continue;
                if (!gradient_[*of]) return std::nullopt;
                ++count;
            }
            return count;
        };
        while (const std::optional<Op> adds = step.op.accumulating()) {
            if (in_place(*adds).value_or(0) <= in_place(step.op).value_or(0)) break;
            step.op = *adds;
        }
        std::vector<std::pair<TensorId, TensorId>> made;  // tensor of the forward, its gradient
        const std::vector<OperandSpec> operands = step.op.operands(rule.direction);
        for (std::size_t i = 0; i < operands.size(); ++i) {
            const std::string_view name = rule.operands.at(i);
            const auto of = gradient_of(name);
            if (is_read(operands[i])) step.inputs.push_back(of ? gradient_[*of].value() : required(node, name));
            if (!is_made(operands[i])) continue;
            step.outputs.push_back(gradient_tensor(of.value()));
            if (operands[i].use == OperandUse::in_place)
                gradient_[*of] = step.outputs.back();
            else
                made.emplace_back(*of, step.outputs.back());
        }
        model_.ops.push_back(std::move(step));
        for (const auto& [of, gradient] : made)
            if (depends_[of]) contribute(node, index, of, gradient);
    }

    /// Takes `gradient` as the gradient of `of`, or adds it where `of` already has one.
    void contribute(const OpNode& node, std::size_t index, TensorId of, TensorId gradient) {
        if (!gradient_[of]) {
            gradient_[of] = gradient;
            return;
        }
        if (!sums_.empty() && model_.tensors[of].role == Role::weights)
            throw Unsupported(fmt::format("{} of {} cannot add to the gradient of {} that another batch has left",
                                          name(node.op), node.layer, model_.tensors[of].name));
        const TensorId sum = gradient_tensor(of);
        const Tensor& tensor = model_.tensors[of];
        model_.ops.push_back({ResidualAdd{tensor.rows(), tensor.columns()},
                              node.layer,
                              {gradient, *gradient_[of]},
                              {sum},
                              Direction::bwd,
                              index});
        gradient_[of] = sum;
    }

    TensorId add_norm(const std::vector<std::int64_t>& sizes) {
        OpNode node{GlobalNorm{sizes}, "optimizer", {}, {}};
        for (const auto& [weight, gradient] : model_.gradients) node.inputs.push_back(gradient);
        const TensorId norm =
            add({.name = "norm", .role = Role::workspace, .shape = {1}, .element = ElementType::at_least_fp32});
        node.outputs = {norm};
        model_.outputs.push_back(norm);
        model_.ops.push_back(std::move(node));
        return norm;
    }

    void add_adamw(const TrainingOptions& options) {
        const bool master = options.master, clips = options.norm;
        AdamW op{.sizes = {}, .master = master, .clips = clips};
        for (const auto& [weight, gradient] : model_.gradients) op.sizes.push_back(model_.tensors[weight].elements());
        OpNode node{op, "optimizer", {}, {}};
        const TensorId schedule =
            add({.name = "schedule",
                 .role = Role::workspace,
                 .shape = {clips ? 9 : 8},
                 .element = ElementType::at_least_fp32,
                 .contents = Contents::of({0, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, 1 / options.loss_scale})});
        model_.inputs.push_back(schedule);
        node.inputs.push_back(schedule);
        if (clips) node.inputs.push_back(add_norm(op.sizes));
        const auto updated = [&](TensorId id) {
            Tensor tensor = model_.tensors[id];
            tensor.name += ".updated";
            tensor.role = Role::optimizer;
            node.inputs.push_back(id);
            node.outputs.push_back(add(std::move(tensor)));
        };
        for (const auto& [weight, gradient] : model_.gradients) {
            const auto state = [&, of = weight](const char* name, bool wide) {
                return add({.name = model_.tensors[of].name + name,
                            .role = Role::optimizer,
                            .shape = {model_.tensors[of].elements()},
                            .element = wide ? ElementType::at_least_fp32 : ElementType::storage,
                            .contents = {Contents::Kind::zeros},
                            .resident = true});
            };
            updated(weight);
            node.inputs.push_back(gradient);
            updated(state(".m", master));
            updated(state(".v", master));
            if (!master) continue;
            const TensorId copy = state(".master", true);
            model_.tensors[copy].starts_as = weight;
            updated(copy);
        }
        model_.weights_change = true;
        model_.ops.push_back(std::move(node));
    }

    /// Gives tensors that the forward makes and the backward reads the role of saved activations.
    void name_saved(std::size_t first_backward) {
        std::vector<bool> made(model_.tensors.size(), false);
        for (std::size_t i = 0; i < forward_ops_; ++i)
            for (const TensorId id : model_.ops[i].outputs) made[id] = true;
        for (std::size_t i = first_backward; i < model_.ops.size(); ++i)
            for (const TensorId id : model_.ops[i].inputs) {
                Role& role = model_.tensors[id].role;
                if (made[id] && (role == Role::activations || role == Role::scores)) role = Role::saved_activations;
            }
    }

    Model model_;
    std::size_t forward_ops_ = 0;
    bool updates_running_ = false;                   ///< whether the forward in training changes tensors that it reads
    std::vector<bool> depends_;                      ///< by tensor of the forward: whether it has a gradient
    std::vector<std::optional<TensorId>> gradient_;  ///< by tensor: its gradient so far
    std::vector<std::optional<TensorId>> sums_;      ///< by tensor: the sum that a weight's ops add to; may be empty
};

}  // namespace

Model with_backward(Model forward, const TrainingOptions& options) {
    Model model = Backward(std::move(forward)).build(options);
    model.untimed_ops = 0;
    return model;
}

Model backward_alone(Model forward, const TrainingOptions& options) {
    return Backward(std::move(forward)).build(options);
}

}  // namespace kbench
