// A step: what is launched as one provider call. It computes one op of the model or several that a provider fuses.
// Shapes and operands only; who computes it is provider.h, where its memory lies is plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/precision.h"
#include "models/model.h"
#include "models/op.h"

namespace kbench {

/// out = epilogue(x · w): + bias, then GELU, then + residual, each optional.
/// operands: x [m, k], w, [bias [n]], [residual [m, n]] -> out [m, n], its rows `padded_n` apart.
/// A plan may put out where residual is, when nobody reads the residual later.
/// w is [k, n], or with gemm.weight_transposed [n, k] followed by padded_n - n rows of zeros.
struct GemmStep {
    Gemm gemm;
    std::int64_t padded_n;  ///< columns computed; over gemm.n only when w is transposed
    bool bias = false, gelu = false, residual = false;
    bool operator==(const GemmStep&) const = default;
};

/// s = x + pre_bias + residual; out = layer norm of s.
/// operands: x, [pre_bias [width]], [residual], weight [width], bias [width] -> [s], out.
struct NormStep {
    LayerNorm norm;
    bool pre_bias = false, residual = false, keep_sum = false;
    bool operator==(const NormStep&) const = default;
};

/// out = x + bias, then GELU; one of the two or both. operands: x, [bias [width]] -> out.
struct BiasGeluStep {
    std::int64_t rows, width;
    bool bias = false, gelu = false;
    bool operator==(const BiasGeluStep&) const = default;
};

/// Kinds without a fused form take the op itself; operands as models/op.h lists them (ScaleMask: in place).
using StepKind = std::variant<Embedding, GemmStep, NormStep, BiasGeluStep, ResidualAdd, Attention, AttentionScores,
                              ScaleMask, Softmax, AttentionContext>;

enum class OperandUse { input, weight, output, in_place };

/// One array that a step reads or writes: a row-major matrix, a vector being one row.
struct Operand {
    std::string_view name;
    OperandUse use;
    DataType type;
    std::int64_t rows, columns;
    std::int64_t stride;          ///< distance of rows in elements
    std::int64_t allocated_rows;  ///< over `rows` where rows are padded
    std::int64_t bytes() const { return allocated_rows * stride * static_cast<std::int64_t>(size_of(type)); }
};

/// The operands of a step in the order in which providers take their pointers.
std::vector<Operand> operands(const StepKind& kind, Precision precision);

/// The op kind that names the step in tables and in `--provider op=name`: "gemm" for a GEMM with its epilogue, and so
/// on.
std::string_view op_name(const StepKind& kind);

/// The problem as one word: "m1024n3840k1280+bias+gelu", "b1h20s1024d64", "r1024w1280+residual".
std::string shape_text(const StepKind& kind);

/// FLOPs executed on padding: beyond what the ops' cost counts.
double padding_flops(const StepKind& kind);

/// FLOPs of the step's matrix products as launched: 2 m padded_n k of a GEMM; of unfused attention's two products over
/// all heads, whose masked half is computed too; 0 for every other kind, fused attention included, which leaves out
/// masked tiles.
double matrix_flops(const StepKind& kind);

/// How scores of unfused attention are stored: as the precision stores, or in fp32 when `upcast` (never in less).
DataType scores_type(bool upcast, Precision precision);

/// One step of a plan: its kind, the ops it absorbs and the tensor behind each operand.
struct Step {
    StepKind kind;
    std::vector<std::size_t> ops;   ///< indices into Model::ops, in order
    std::size_t naming_op = 0;      ///< the one of `ops` whose layer names the step
    std::vector<TensorId> tensors;  ///< parallel to operands(kind)
};

}  // namespace kbench
