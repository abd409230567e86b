// A step: what one provider call computes. It is one op of a model, or several that a provider fuses.
//
//     const kbench::Step step{{kbench::ResidualAdd{1024, 1280}, kbench::LayerNorm{1024, 1280}}, 1};  // head: op 1
//     kbench::shape_text(step);  // "r1024w1280+residual"
//     for (const kbench::Operand& operand : kbench::operands(step, kbench::Precision::fp16))
//         std::cout << operand.name << ": " << operand.bytes() << " bytes\n";
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/op.h"

namespace kbench {

struct Step {
    std::vector<Op> ops;   ///< in order of execution; each consumes what the one before it makes, but for `beside`
    std::size_t head = 0;  ///< index of the op that names the step
    Direction direction = Direction::fwd;  ///< direction of the head
    /// Row stride, in elements, of operands whose specs say `padded`; 0: their number of columns. A forward product
    /// computes this many columns; those beyond its own are scratch, made from rows of zeros.
    std::int64_t padded_columns = 0;
    /// Whether an op of the same model updates weights; then no repacked copy of them may be kept.
    bool weights_change = false;
    /// Indices into `ops`, except the last: ops whose output is also read outside, so that the step must store it.
    std::vector<std::size_t> kept = {};
    /// This many of the first ops pass nothing on: as first operand each reads what the head reads under that name.
    std::size_t beside = 0;

    /// A step of one op alone.
    static Step of(Op op, Direction direction = Direction::fwd) { return {{std::move(op)}, 0, direction}; }

    const Op& head_op() const { return ops[head]; }
    Direction direction_of(std::size_t op) const {
        return op == head ? direction : direction_along(ops[op].kind(), direction);
    }
    /// The head op as a T; it must be of that kind.
    template <OpStruct T>
    const T& as() const {
        return *head_op().get_if<T>();
    }
    /// Whether the step also computes an op of that kind along with its head.
    bool absorbs(std::string_view kind) const;
    template <OpStruct T>
    bool absorbs() const {
        return absorbs(T::kind);
    }
    bool keeps_intermediates() const { return !kept.empty(); }
    /// Whether the step stores a result of the head or of an op after it, not only one that the head itself reads.
    bool keeps_results() const { return !kept.empty() && kept.back() >= head; }

    bool operator==(const Step&) const = default;
};

/// An array of a step as it lies in memory: row-major, with rows `stride` elements apart.
struct Operand {
    std::string name;
    OperandUse use;
    DataType type;
    std::int64_t rows, columns;
    std::int64_t stride;          ///< distance of rows in elements
    std::int64_t allocated_rows;  ///< more than `rows` where rows of zeros follow
    Contents contents;
    std::int64_t bytes() const { return allocated_rows * stride * static_cast<std::int64_t>(size_of(type)); }
};

/// The operands of a step in the order in which providers take their pointers. First, op by op, come inputs that are
/// not made within the step. Then, op by op, come outputs: everything the last op makes; of the ops before it all but
/// their first result, which they pass on, and that one too when it is kept. An op of `beside` passes nothing on, so
/// all its results are outputs; the input that it shares with the head appears once, at the head's place. An operand
/// of an op in front of the head is prefixed "pre_" when one of the head's has the same name.
std::vector<Operand> operands(const Step& step, Precision precision);

/// The head's shape, then what it absorbs: "m1024n3840k1280+bias+gelu", "b1h20s1024d64", "r1024w1280+residual"; then
/// "+pad47" where columns are padded.
std::string shape_text(const Step& step);
inline std::string_view op_name(const Step& step) { return name(step.head_op()); }

/// FLOPs executed on padding and on masked elements, beyond those in the ops' cost.
double padding_flops(const Step& step);

/// FLOPs of the step's matrix products as launched, 2 m n k with padding; of fused attention those of the pairs that
/// its mask leaves, as its kernels skip tiles. 0 where it has none.
double matrix_flops(const Step& step);

/// Total of the time steps of its ops (OpStruct); 1 where no op has several.
std::int64_t time_steps(const Step& step);

/// Takes the pointers of a step's operands one after another; next_if(false) stands for one that the step does not
/// have. Call `next` once per statement: C++ may evaluate a call's arguments in any order.
class OperandCursor {
  public:
    explicit OperandCursor(std::span<void* const> pointers) : pointers_(pointers) {}
    template <class T = void>
    T* next() {
        return static_cast<T*>(pointers_[index_++]);
    }
    void* next_if(bool present) { return present ? next() : nullptr; }

  private:
    std::span<void* const> pointers_;
    std::size_t index_ = 0;
};

}  // namespace kbench
