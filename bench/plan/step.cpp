// Operands, names and padding of each step kind.
#include "bench/plan/step.h"

#include <fmt/format.h>

#include "models/problem.h"

namespace kbench {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

Operand matrix(std::string_view name, OperandUse use, DataType type, std::int64_t rows, std::int64_t columns) {
    return {name, use, type, rows, columns, columns, rows};
}
Operand row(std::string_view name, DataType type, std::int64_t columns) {
    return matrix(name, OperandUse::weight, type, 1, columns);
}

}  // namespace

DataType scores_type(bool upcast, Precision precision) {
    return upcast && precision != Precision::fp64 ? DataType::fp32 : storage_type(precision);
}

std::vector<Operand> operands(const StepKind& kind, Precision precision) {
    using enum OperandUse;
    const DataType t = storage_type(precision);
    std::vector<Operand> list;
    const auto add = [&](const Operand& operand) { list.push_back(operand); };
    std::visit(
        Overloaded{
            [&](const Embedding& e) {
                add(matrix("tokens", input, DataType::int32, 1, e.rows));
                add(matrix("wte", weight, t, e.vocab, e.width));
                add(matrix("wpe", weight, t, e.positions, e.width));
                add(matrix("out", output, t, e.rows, e.width));
            },
            [&](const GemmStep& s) {
                const auto& [m, n, k, transposed] = s.gemm;
                add(matrix("x", input, t, m, k));
                Operand w = transposed ? matrix("w", weight, t, n, k) : matrix("w", weight, t, k, n);
                if (transposed) w.allocated_rows = s.padded_n;
                add(w);
                if (s.bias) add(row("bias", t, n));
                if (s.residual) add(matrix("residual", input, t, m, n));
                Operand out = matrix("out", output, t, m, n);
                out.stride = s.padded_n;
                add(out);
            },
            [&](const NormStep& s) {
                const auto& [rows, width, epsilon] = s.norm;
                add(matrix("x", input, t, rows, width));
                if (s.pre_bias) add(row("pre_bias", t, width));
                if (s.residual) add(matrix("residual", input, t, rows, width));
                add(row("weight", t, width));
                add(row("bias", t, width));
                if (s.keep_sum) add(matrix("sum", output, t, rows, width));
                add(matrix("out", output, t, rows, width));
            },
            [&](const BiasGeluStep& s) {
                add(matrix("x", input, t, s.rows, s.width));
                if (s.bias) add(row("bias", t, s.width));
                add(matrix("out", output, t, s.rows, s.width));
            },
            [&](const ResidualAdd& s) {
                add(matrix("x", input, t, s.rows, s.width));
                add(matrix("residual", input, t, s.rows, s.width));
                add(matrix("out", output, t, s.rows, s.width));
            },
            [&](const Attention& a) {
                const auto& [batch, heads, seq, head_size] = a.shape;
                add(matrix("qkv", input, t, batch * seq, 3 * heads * head_size));
                add(matrix("out", output, t, batch * seq, heads * head_size));
            },
            [&](const AttentionScores& a) {
                const auto& [batch, heads, seq, head_size] = a.shape;
                add(matrix("qkv", input, t, batch * seq, 3 * heads * head_size));
                add(matrix("scores", output, scores_type(a.upcast, precision), batch * heads * seq, seq));
            },
            [&](const ScaleMask& a) {
                const auto& s = a.shape;
                add(matrix("scores", in_place, scores_type(a.upcast, precision), s.batch * s.heads * s.seq, s.seq));
            },
            [&](const Softmax& s) {
                add(matrix("scores", input, scores_type(s.upcast, precision), s.rows, s.width));
                add(matrix("probabilities", output, t, s.rows, s.width));
            },
            [&](const AttentionContext& a) {
                const auto& [batch, heads, seq, head_size] = a.shape;
                add(matrix("probabilities", input, t, batch * heads * seq, seq));
                add(matrix("qkv", input, t, batch * seq, 3 * heads * head_size));
                add(matrix("out", output, t, batch * seq, heads * head_size));
            },
        },
        kind);
    return list;
}

std::string_view op_name(const StepKind& kind) {
    return std::visit(Overloaded{
                          [](const GemmStep& s) { return name(Op{s.gemm}); },
                          [](const NormStep& s) { return name(Op{s.norm}); },
                          [](const BiasGeluStep& s) {
                              return s.gelu ? name(Op{Gelu{s.rows, s.width}}) : name(Op{BiasAdd{s.rows, s.width}});
                          },
                          [](const auto& op) { return name(Op{op}); },
                      },
                      kind);
}

std::string shape_text(const StepKind& kind) {
    return std::visit(Overloaded{
                          [](const GemmStep& s) {
                              std::string text = shape_text(Op{s.gemm});
                              if (s.bias) text += "+bias";
                              if (s.gelu) text += "+gelu";
                              if (s.residual) text += "+residual";
                              if (s.padded_n != s.gemm.n) text += fmt::format("+pad{}", s.padded_n - s.gemm.n);
                              return text;
                          },
                          [](const NormStep& s) {
                              std::string text = shape_text(Op{s.norm});
                              if (s.pre_bias) text += "+bias";
                              if (s.residual) text += "+residual";
                              return text;
                          },
                          [](const BiasGeluStep& s) {
                              return fmt::format("r{}w{}{}", s.rows, s.width, s.bias && s.gelu ? "+bias" : "");
                          },
                          [](const auto& op) { return shape_text(Op{op}); },
                      },
                      kind);
}

double padding_flops(const StepKind& kind) {
    const auto* s = std::get_if<GemmStep>(&kind);
    if (s == nullptr) return 0;
    return 2.0 * static_cast<double>(s->gemm.m) * static_cast<double>(s->gemm.k) *
           static_cast<double>(s->padded_n - s->gemm.n);
}

double matrix_flops(const StepKind& kind) {
    if (const auto* s = std::get_if<GemmStep>(&kind))
        return 2.0 * static_cast<double>(s->gemm.m) * static_cast<double>(s->padded_n) * static_cast<double>(s->gemm.k);
    const auto of_all_heads = [](const AttentionShape& a) {
        const auto seq = static_cast<double>(a.seq);
        return 2.0 * static_cast<double>(a.batch * a.heads) * seq * seq * static_cast<double>(a.head_size);
    };
    if (const auto* s = std::get_if<AttentionScores>(&kind)) return of_all_heads(s->shape);
    if (const auto* s = std::get_if<AttentionContext>(&kind)) return of_all_heads(s->shape);
    return 0;
}

}  // namespace kbench
