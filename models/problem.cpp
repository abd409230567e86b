// Parses problems from text and builds their models.
#include "models/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "kbench/error.h"
#include "models/cost.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

bool writes(const OperandSpec& spec) { return spec.use == OperandUse::output || spec.use == OperandUse::in_place; }

/// Shape of the matrix that ops before `head` work on: its first input. `matrix_behind`: its first output.
std::pair<std::int64_t, std::int64_t> matrix_before(const Op& head, Direction direction) {
    const OperandSpec spec = head.operands(direction).front();
    return {spec.rows, spec.columns};
}
std::pair<std::int64_t, std::int64_t> matrix_behind(const Op& head, Direction direction) {
    const std::vector<OperandSpec> specs = head.operands(direction);
    const auto made = std::ranges::find_if(specs, writes);
    return {made->rows, made->columns};
}

/// Shape of the input of `head` that has the name of `kind`'s own first operand.
std::pair<std::int64_t, std::int64_t> matrix_shared(const Op& head, const OpKind& kind, Direction direction) {
    const std::vector<OperandSpec> own = kind.on(1, 1).operands(direction_along(kind, direction)),
                                   specs = head.operands(direction);
    const auto shared = std::ranges::find(specs, own.front().name, &OperandSpec::name);
    if (shared == specs.end())
        throw std::logic_error(fmt::format("{} beside {} shares no {}", kind.name, name(head), own.front().name));
    return {shared->rows, shared->columns};
}

/// Whether ops of all these `kinds` can be made around a head that runs in `direction`.
bool can_stand(const std::vector<std::string_view>& kinds, Direction direction) {
    return std::ranges::all_of(kinds, [&](std::string_view name) {
        const OpKind* kind = find_op_kind(name);
        return kind != nullptr && kind->on != nullptr && kind->has(direction_along(*kind, direction));
    });
}

/// The step of `head` with the ops that `fusion` puts around it.
Step fused(const Op& head, const Fusion& fusion, Direction direction) {
    Step step{{}, fusion.beside.size() + fusion.before.size(), direction};
    step.beside = fusion.beside.size();
    const auto add = [&](std::string_view kind, std::pair<std::int64_t, std::int64_t> matrix) {
        step.ops.push_back(find_op_kind(kind)->on(matrix.first, matrix.second));
    };
    for (const std::string_view kind : fusion.beside) add(kind, matrix_shared(head, *find_op_kind(kind), direction));
    for (const std::string_view kind : fusion.before) add(kind, matrix_before(head, direction));
    step.ops.push_back(head);
    for (const std::string_view kind : fusion.after) add(kind, matrix_behind(head, direction));
    return step;
}

/// Builds the tensors and ops of repeated runs.
class RunsBuilder {
  public:
    RunsBuilder(const Step& problem, std::int64_t sets) : problem_(problem), sets_(sets) {
        model_.name = fmt::format("{} {}", op_name(problem), shape_text(problem));
    }

    Model build(std::int64_t runs) {
        std::vector<std::vector<TensorId>> known(static_cast<std::size_t>(sets_));  // by set, in order of use
        for (std::int64_t run = 0; run < runs; ++run) add_run(run, known[static_cast<std::size_t>(run % sets_)]);
        return std::move(model_);
    }

  private:
    void add_run(std::int64_t run, std::vector<TensorId>& known) {
        const bool is_new = known.empty();
        std::size_t next = 0;
        const auto resident = [&](const OperandSpec& spec) {
            if (is_new) known.push_back(add_resident(spec, run % sets_));
            return known[next++];
        };
        model_.outputs.clear();
        TensorId carried = 0;
        std::map<std::string_view, TensorId> shared;  // inputs that ops beside the head have read, by the head's name
        for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
            const bool is_beside = i < problem_.beside, hands_on = !is_beside && i + 1 < problem_.ops.size();
            OpNode node{problem_.ops[i], fmt::format("run.{}", run), {}, {}, problem_.direction_of(i)};
            const std::vector<OperandSpec> specs = node.op.operands(node.direction);
            const bool writes_one = problem_.beside == 0 && std::ranges::count_if(specs, writes) == 1;
            for (const OperandSpec& spec : specs) {
                if (spec.use != OperandUse::output) {
                    const bool is_shared = (is_beside && node.inputs.empty()) || i == problem_.head;
                    if (i > problem_.beside && node.inputs.empty())
                        node.inputs.push_back(carried);
                    else if (spec.element == ElementType::int32)
                        node.inputs.push_back(add_input(spec));
                    else if (const auto read = shared.find(spec.name); is_shared && read != shared.end())
                        node.inputs.push_back(read->second);
                    else
                        node.inputs.push_back(resident(spec));
                    if (is_beside && node.inputs.size() == 1) shared.emplace(spec.name, node.inputs.front());
                }
                if (!writes(spec)) continue;
                const bool handed_on = hands_on && node.outputs.empty();
                node.outputs.push_back(handed_on ? add(spec, fmt::format("between.{}.{}", run, i))
                                                 : resident(made(spec, writes_one)));
                if (!handed_on) model_.outputs.push_back(node.outputs.back());
            }
            carried = node.outputs.front();
            model_.ops.push_back(std::move(node));
        }
    }

    /// A tensor that an op leaves behind. It is overwritten, so nothing fills it; a single output is called "out".
    static OperandSpec made(OperandSpec spec, bool alone) {
        if (alone) spec.name = "out";
        spec.contents = {Contents::Kind::zeros};
        spec.use = OperandUse::output;
        return spec;
    }

    TensorId add(const OperandSpec& spec, std::string name) {
        const Role role = spec.use == OperandUse::weight ? Role::weights
                          : spec.scores                  ? Role::scores
                          : spec.cache                   ? Role::cache
                                                         : Role::activations;
        const bool is_vector = spec.rows == 1;
        model_.tensors.push_back({.name = std::move(name),
                                  .role = role,
                                  .shape = is_vector ? std::vector{spec.columns} : std::vector{spec.rows, spec.columns},
                                  .element = spec.element,
                                  .contents = spec.contents});
        return model_.tensors.size() - 1;
    }

    TensorId add_resident(const OperandSpec& spec, std::int64_t set) {
        const TensorId id = add(spec, fmt::format("{}#{}", spec.name, set));
        model_.tensors[id].resident = true;
        return id;
    }

    TensorId add_input(const OperandSpec& spec) {
        for (const TensorId id : model_.inputs)
            if (model_.tensors[id].name == spec.name) return id;
        model_.inputs.push_back(add(spec, std::string(spec.name)));
        model_.tensors.back().role = Role::tokens;
        return model_.inputs.back();
    }

    const Step& problem_;
    std::int64_t sets_;
    Model model_;
};

}  // namespace

Step parse_problem(std::string_view op, std::string_view shape, Direction direction) {
    const OpKind& kind = require_op_kind(op);
    if (!kind.has(direction)) throw UsageError(fmt::format("{} has no direction {}", op, name(direction)));
    try {
        ShapeText text(shape);
        const Op head = kind.parse(text);
        if (text.letters_left()) throw ShapeText::Wrong();
        std::vector<Fusion> fusions = kind.fusions(direction);
        fusions.push_back({});
        for (const Fusion& fusion : fusions) {
            std::vector<std::string_view> words = fusion.beside;
            words.insert(words.end(), fusion.before.begin(), fusion.before.end());
            words.insert(words.end(), fusion.after.begin(), fusion.after.end());
            if (words == text.suffixes() && can_stand(words, direction)) return fused(head, fusion, direction);
        }
    } catch (const ShapeText::Wrong&) {
    }
    throw UsageError(fmt::format("shape '{}' of {}: must be written like {}", shape, op, kind.example));
}

std::vector<Step> problems_of(const Model& model) {
    std::vector<Step> problems;
    for (const OpNode& node : model.ops) {
        // Parsed from its text, so that every problem can be asked for by name. Scales get lost: they change no cost.
        Step problem = parse_problem(name(node.op), node.op.text(), node.direction);
        if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(std::move(problem));
    }
    return problems;
}

std::string_view example_shape(const OpKind& kind) { return kind.example.substr(0, kind.example.find('[')); }

Model make_problem_model(const Step& problem, std::int64_t sets, std::int64_t runs) {
    return RunsBuilder(problem, sets).build(runs);
}

double problem_bytes(const Step& problem, Precision precision) {
    const Model model = make_problem_model(problem, 1, 1);
    double bytes = 0;
    for (const Tensor& tensor : model.tensors)
        if (tensor.resident) bytes += tensor_bytes(tensor, precision);
    for (const OpNode& node : model.ops)  // what is made in place has no memory of its own
        for (const TensorId id : node.outputs_of(OperandUse::in_place))
            if (model.tensors[id].resident) bytes -= tensor_bytes(model.tensors[id], precision);
    return bytes;
}

}  // namespace kbench
