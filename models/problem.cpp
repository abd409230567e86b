// Shapes as text and back, and the model of a problem.
#include "models/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "models/base/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};

template <class T>
bool is(const Op& op) {
    return std::holds_alternative<T>(op);
}

/// "m1024n3840k1280t" as numbers by letter; a letter without a number has 0. Nothing when it is no such text.
std::optional<std::map<char, std::int64_t>> letters_of(std::string_view text) {
    std::map<char, std::int64_t> values;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        const char letter = *at++;
        std::int64_t value = 0;
        if (letter < 'a' || letter > 'z' || values.contains(letter)) return std::nullopt;
        if (at != end && *at >= '0' && *at <= '9') {
            const auto [next, error] = std::from_chars(at, end, value);
            if (error != std::errc{} || value < 1) return std::nullopt;
            at = next;
        }
        values[letter] = value;
    }
    return values;
}

std::vector<std::string_view> parts_of(std::string_view text) {
    std::vector<std::string_view> parts;
    for (std::size_t plus = text.find('+'); plus != text.npos; plus = text.find('+')) {
        parts.push_back(text.substr(0, plus));
        text.remove_prefix(plus + 1);
    }
    parts.push_back(text);
    return parts;
}

/// How the shape of an op kind is written.
struct Syntax {
    std::string_view op;
    std::string_view letters;   ///< each with a number
    std::string_view optional;  ///< letters that may stand behind them
    std::string_view example;
    std::string_view suffixes;  ///< for the error message
};
constexpr Syntax syntaxes[] = {
    {"embedding", "rwv", "s", "r1024w1280v50257", ""},
    {"layernorm", "rw", "", "r1024w1280", "[+bias][+residual]"},
    {"gemm", "mnk", "t", "m1024n3840k1280", "[t][+bias][+gelu or +residual]"},
    {"bias", "rw", "", "r1024w3840", ""},
    {"gelu", "rw", "", "r1024w5120", "[+bias]"},
    {"residual", "rw", "", "r1024w1280", ""},
    {"attention", "bhsd", "", "b1h20s1024d64", ""},
    {"attention_scores", "bhsd", "", "b1h20s1024d64", "[+upcast]"},
    {"scale_mask", "bhsd", "", "b1h20s1024d64", "[+upcast]"},
    {"softmax", "rw", "", "r20480w1024", ""},
    {"attention_context", "bhsd", "", "b1h20s1024d64", ""},
};
static_assert(std::size(syntaxes) == std::size(op_kinds));

const Syntax& syntax_of(std::string_view op) {
    std::string names;
    for (const Syntax& syntax : syntaxes) {
        if (syntax.op == op) return syntax;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", syntax.op);
    }
    throw UsageError(fmt::format("unknown op '{}' ({})", op, names));
}

constexpr double layer_norm_epsilon = 1e-5;  // GPT-2's

class ProblemParser {
  public:
    ProblemParser(std::string_view op, std::string_view shape) : syntax_(syntax_of(op)), shape_(shape) {
        const std::vector<std::string_view> parts = parts_of(shape);
        values_ = letters_of(parts.front()).value_or(std::map<char, std::int64_t>{});
        suffixes_.assign(parts.begin() + 1, parts.end());
        for (const char letter : syntax_.letters)
            if (at(letter) < 1) refuse();
        for (const auto& [letter, value] : values_)
            if (syntax_.letters.find(letter) == std::string_view::npos &&
                syntax_.optional.find(letter) == std::string_view::npos)
                refuse();
    }

    Problem parse() {
        Problem problem;
        const std::string_view op = syntax_.op;
        const std::int64_t rows = at('r'), width = at('w');
        const AttentionShape heads{at('b'), at('h'), at('s'), at('d')};
        if (op == "gemm") {
            if (values_.contains('t') && at('t') != 0) refuse();
            problem.ops.push_back(Gemm{at('m'), at('n'), at('k'), values_.contains('t')});
            if (take("bias")) problem.ops.push_back(BiasAdd{at('m'), at('n')});
            const bool gelu = take("gelu");
            if (gelu) problem.ops.push_back(Gelu{at('m'), at('n')});
            if (!gelu && take("residual")) problem.ops.push_back(ResidualAdd{at('m'), at('n')});
        } else if (op == "layernorm") {
            if (take("bias")) problem.ops.push_back(BiasAdd{rows, width});
            const bool residual = take("residual");
            if (!residual && !problem.ops.empty()) refuse();
            if (residual) problem.ops.push_back(ResidualAdd{rows, width});
            problem.ops.push_back(LayerNorm{rows, width, layer_norm_epsilon});
        } else if (op == "gelu") {
            if (take("bias")) problem.ops.push_back(BiasAdd{rows, width});
            problem.ops.push_back(Gelu{rows, width});
        } else if (op == "embedding") {
            const std::int64_t seq = values_.contains('s') ? at('s') : rows;
            if (seq < 1 || rows % seq != 0) refuse();
            problem.ops.push_back(Embedding{rows, seq, width, at('v'), seq});
        } else if (op == "attention") {
            problem.ops.push_back(Attention{heads, 1.0 / std::sqrt(static_cast<double>(heads.head_size))});
        } else if (op == "attention_scores") {
            problem.ops.push_back(AttentionScores{heads, take("upcast")});
        } else if (op == "scale_mask") {
            problem.ops.push_back(ScaleMask{heads, -1, take("upcast")});
        } else if (op == "attention_context") {
            problem.ops.push_back(AttentionContext{heads});
        } else if (op == "softmax") {
            problem.ops.push_back(Softmax{rows, width, false});
        } else if (op == "bias") {
            problem.ops.push_back(BiasAdd{rows, width});
        } else {
            problem.ops.push_back(ResidualAdd{rows, width});
        }
        if (!suffixes_.empty()) refuse();
        return problem;
    }

  private:
    std::int64_t at(char letter) const {
        const auto found = values_.find(letter);
        return found == values_.end() ? 0 : found->second;
    }

    /// Whether `suffix` comes next; suffixes have one order.
    bool take(std::string_view suffix) {
        if (suffixes_.empty() || suffixes_.front() != suffix) return false;
        suffixes_.erase(suffixes_.begin());
        return true;
    }

    [[noreturn]] void refuse() const {
        throw UsageError(fmt::format("shape '{}' of {}: must be written like {}{}", shape_, syntax_.op, syntax_.example,
                                     syntax_.suffixes));
    }

    const Syntax& syntax_;
    std::string_view shape_;
    std::map<char, std::int64_t> values_;
    std::vector<std::string_view> suffixes_;
};

/// Tensors and ops of repeated runs.
class RunsBuilder {
  public:
    RunsBuilder(const Problem& problem, std::int64_t sets) : problem_(problem), sets_(sets) {
        model_.name = fmt::format("{} {}", op_name(problem), shape_text(problem));
        model_.tokens = tensor("tokens", Role::tokens, 1, 1, 0);
        if (const auto* e = std::get_if<Embedding>(&problem.ops.front())) {
            model_.tensors[model_.tokens].columns = e->rows;
            model_.batch = e->rows / e->seq;
            model_.seq = e->seq;
            model_.vocab = e->vocab;
        }
    }

    Model build(std::int64_t runs) {
        std::vector<std::vector<TensorId>> inputs(static_cast<std::size_t>(sets_));  // of each set, in order of use
        for (std::int64_t run = 0; run < runs; ++run) {
            const std::int64_t set = run % sets_;
            std::vector<TensorId>& known = inputs[static_cast<std::size_t>(set)];
            const bool is_new = known.empty();
            std::size_t next = 0;
            const auto input = [&](std::string_view name, Role role, std::int64_t rows, std::int64_t columns,
                                   double deviation = 1) {
                if (is_new) known.push_back(resident(name, set, role, rows, columns, deviation));
                return known[next++];
            };
            TensorId carried = 0;
            for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
                const bool first = i == 0, last = i + 1 == problem_.ops.size();
                OpNode node{problem_.ops[i], fmt::format("run.{}", run), {}, {}};
                const auto [rows, columns, role, fp32] = output_of(node.op);
                add_inputs(node, first, carried, input);
                if (last && is_new) known.push_back(resident("out", set, role, rows, columns, 0));
                carried = last ? known[next++] : tensor(fmt::format("between.{}.{}", run, i), role, rows, columns, 1);
                model_.tensors[carried].always_fp32 = fp32;
                node.outputs = {carried};
                model_.ops.push_back(std::move(node));
            }
            model_.logits = carried;
        }
        return std::move(model_);
    }

  private:
    struct Output {
        std::int64_t rows, columns;
        Role role;
        bool always_fp32;
    };
    static Output output_of(const Op& op) {
        const auto scores = [](const AttentionShape& s, bool fp32) {
            return Output{s.batch * s.heads * s.seq, s.seq, Role::scores, fp32};
        };
        const auto heads = [](const AttentionShape& s) {
            return Output{s.batch * s.seq, s.heads * s.head_size, Role::activations, false};
        };
        return std::visit(Overloaded{
                              [](const Gemm& g) {
                                  return Output{g.m, g.n, Role::activations, false};
                              },
                              [&](const Attention& a) { return heads(a.shape); },
                              [&](const AttentionScores& a) { return scores(a.shape, a.upcast); },
                              [&](const ScaleMask& a) { return scores(a.shape, a.upcast); },
                              [](const Softmax& s) {
                                  return Output{s.rows, s.width, Role::scores, false};
                              },
                              [&](const AttentionContext& a) { return heads(a.shape); },
                              [](const auto& o) {
                                  return Output{o.rows, o.width, Role::activations, false};
                              },
                          },
                          op);
    }

    /// What `node` reads besides `carried`, which takes the place of its first input unless it is the first op.
    template <class Input>
    void add_inputs(OpNode& node, bool first, TensorId carried, const Input& input) {
        const auto stream = [&](std::int64_t rows, std::int64_t columns, Role role = Role::activations) {
            node.inputs.push_back(first ? input("x", role, rows, columns) : carried);
        };
        const auto qkv = [&](const AttentionShape& s) {
            node.inputs.push_back(input("qkv", Role::activations, s.batch * s.seq, 3 * s.heads * s.head_size));
        };
        std::visit(Overloaded{
                       [&](const Embedding& e) {
                           node.inputs.push_back(model_.tokens);
                           node.inputs.push_back(input("wte", Role::weights, e.vocab, e.width));
                           node.inputs.push_back(input("wpe", Role::weights, e.positions, e.width));
                       },
                       [&](const LayerNorm& l) {
                           stream(l.rows, l.width);
                           node.inputs.push_back(input("weight", Role::weights, 1, l.width));
                           node.inputs.push_back(input("bias", Role::weights, 1, l.width));
                       },
                       [&](const Gemm& g) {
                           stream(g.m, g.k);
                           const double deviation = 1 / std::sqrt(static_cast<double>(g.k));  // outputs of size 1
                           const auto [rows, columns] = g.weight_transposed ? std::pair{g.n, g.k} : std::pair{g.k, g.n};
                           node.inputs.push_back(input("w", Role::weights, rows, columns, deviation));
                       },
                       [&](const BiasAdd& b) {
                           stream(b.rows, b.width);
                           node.inputs.push_back(input("bias", Role::weights, 1, b.width));
                       },
                       [&](const Gelu& g) { stream(g.rows, g.width); },
                       [&](const ResidualAdd& r) {
                           stream(r.rows, r.width);
                           node.inputs.push_back(input("residual", Role::activations, r.rows, r.width));
                       },
                       [&](const Attention& a) { qkv(a.shape); },
                       [&](const AttentionScores& a) { qkv(a.shape); },
                       [&](const ScaleMask& a) {
                           const auto [rows, columns, role, fp32] = output_of(Op{a});
                           stream(rows, columns, role);
                           model_.tensors[node.inputs.back()].always_fp32 = fp32;
                       },
                       [&](const Softmax& s) {
                           stream(s.rows, s.width, Role::scores);
                           model_.tensors[node.inputs.back()].always_fp32 = s.upcast;
                       },
                       [&](const AttentionContext& a) {
                           stream(a.shape.batch * a.shape.heads * a.shape.seq, a.shape.seq, Role::scores);
                           qkv(a.shape);
                       },
                   },
                   node.op);
    }

    TensorId tensor(std::string name, Role role, std::int64_t rows, std::int64_t columns, double deviation) {
        const Initialisation init =
            deviation > 0 ? Initialisation{Initialisation::Kind::normal, deviation} : Initialisation{};
        model_.tensors.push_back({.name = std::move(name),
                                  .role = role,
                                  .rows = rows,
                                  .columns = columns,
                                  .is_vector = rows == 1,
                                  .init = init});
        return model_.tensors.size() - 1;
    }

    TensorId resident(std::string_view name, std::int64_t set, Role role, std::int64_t rows, std::int64_t columns,
                      double deviation) {
        const TensorId id = tensor(fmt::format("{}#{}", name, set), role, rows, columns, deviation);
        model_.tensors[id].resident = true;
        return id;
    }

    const Problem& problem_;
    std::int64_t sets_;
    Model model_;
};

}  // namespace

std::string shape_text(const Op& op) {
    const auto heads = [](const AttentionShape& s) {
        return fmt::format("b{}h{}s{}d{}", s.batch, s.heads, s.seq, s.head_size);
    };
    return std::visit(
        Overloaded{
            [](const Embedding& e) {
                return fmt::format("r{}w{}v{}{}", e.rows, e.width, e.vocab,
                                   e.seq == e.rows ? "" : fmt::format("s{}", e.seq));
            },
            [](const Gemm& g) { return fmt::format("m{}n{}k{}{}", g.m, g.n, g.k, g.weight_transposed ? "t" : ""); },
            [&](const Attention& a) { return heads(a.shape); },
            [&](const AttentionContext& a) { return heads(a.shape); },
            [&](const AttentionScores& a) { return heads(a.shape) + (a.upcast ? "+upcast" : ""); },
            [&](const ScaleMask& a) { return heads(a.shape) + (a.upcast ? "+upcast" : ""); },
            [](const auto& o) { return fmt::format("r{}w{}", o.rows, o.width); },
        },
        op);
}

std::string_view op_name(const Problem& problem) {
    const Op& first = problem.ops.front();
    return name(is<Gemm>(first) ? first : problem.ops.back());
}

std::string shape_text(const Problem& problem) {
    std::string text = shape_text(problem.ops.front());
    const bool is_gemm = is<Gemm>(problem.ops.front());
    for (std::size_t i = is_gemm ? 1 : 0; i + (is_gemm ? 0 : 1) < problem.ops.size(); ++i)
        text += fmt::format("+{}", name(problem.ops[i]));
    return text;
}

Problem parse_problem(std::string_view op, std::string_view shape) { return ProblemParser(op, shape).parse(); }

std::vector<Problem> problems_of(const Model& model) {
    std::vector<Problem> problems;
    for (const OpNode& node : model.ops) {
        Problem problem{{node.op}};
        // Parsed from its text, so that what a result names can be asked for again: scales aside, which change no cost.
        problem = parse_problem(op_name(problem), shape_text(problem));
        if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(std::move(problem));
    }
    return problems;
}

Model make_problem_model(const Problem& problem, std::int64_t sets, std::int64_t runs) {
    return RunsBuilder(problem, sets).build(runs);
}

double problem_bytes(const Problem& problem, Precision precision) {
    double bytes = 0;
    for (const Tensor& tensor : make_problem_model(problem, 1, 1).tensors)
        if (tensor.resident) bytes += tensor_bytes(tensor, precision);
    return bytes;
}

}  // namespace kbench
