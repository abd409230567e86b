// A step: what is launched as one provider call. It computes one op of a model, or several that a provider fuses.
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
    std::size_t head = 0;  ///< the one of `ops` that names the step
    Direction direction = Direction::fwd;  ///< of the head
    /// How far apart, in elements, the rows of operands are whose specs say `padded`; 0: as many as they have columns.
    /// A forward's product computes so many columns; what is beyond its own is scratch, made from rows of zeros.
    std::int64_t padded_columns = 0;
    /// Whether an op of the same model updates weights: no copy of them in another layout may be kept.
    bool weights_change = false;
    /// Of `ops` but the last, those whose output others read too, so that the step leaves it behind.
    std::vector<std::size_t> kept = {};
    /// So many of the first ops hand nothing on: each reads, in its first place, what the head reads under that name.
    std::size_t beside = 0;

    /// An op alone.
    static Step of(Op op, Direction direction = Direction::fwd) { return {{std::move(op)}, 0, direction}; }

    const Op& head_op() const { return ops[head]; }
    Direction direction_of(std::size_t op) const {
        return op == head ? direction : direction_along(ops[op].kind(), direction);
    }
    /// The head, which must be of that kind.
    template <OpStruct T>
    const T& as() const {
        return *head_op().get_if<T>();
    }
    /// Whether an op of that kind is computed along with the head.
    bool absorbs(std::string_view kind) const;
    template <OpStruct T>
    bool absorbs() const {
        return absorbs(T::kind);
    }
    bool keeps_intermediates() const { return !kept.empty(); }
    /// What the head makes, or an op behind it; not only what the head itself takes.
    bool keeps_results() const { return !kept.empty() && kept.back() >= head; }

    bool operator==(const Step&) const = default;
};

/// An array of a step as it lies in memory: row-major, rows `stride` elements apart.
struct Operand {
    std::string name;
    OperandUse use;
    DataType type;
    std::int64_t rows, columns;
    std::int64_t stride;          ///< distance of rows in elements
    std::int64_t allocated_rows;  ///< over `rows` where rows of zeros follow
    Contents contents;
    std::int64_t bytes() const { return allocated_rows * stride * static_cast<std::int64_t>(size_of(type)); }
};

/// The operands of a step in the order in which providers take their pointers: op by op what is read and not made
/// within the step, then op by op what is left: of an op but the last what it makes besides the first, which it hands
/// on, and that too where it is kept; all that the last op makes. What an op beside the head reads with it stands at
/// the head's place, and all that it makes is left. An op in front of the head whose operand has the name of one of the
/// head's has "pre_" before it.
std::vector<Operand> operands(const Step& step, Precision precision);

/// "m1024n3840k1280+bias+gelu", "b1h20s1024d64", "r1024w1280+residual": the head's shape, then what it absorbs, then
/// "+pad47" where columns are padded.
std::string shape_text(const Step& step);
inline std::string_view op_name(const Step& step) { return name(step.head_op()); }

/// FLOPs executed on padding and on masked elements: beyond what the ops' cost counts.
double padding_flops(const Step& step);

/// FLOPs of the step's matrix products as launched, 2 m n k with padding; 0 where it has none.
double matrix_flops(const Step& step);

/// Dependent steps of its ops that have several (OpStruct), one op after another; 1 where none has.
std::int64_t dependent_steps(const Step& step);

/// Takes the pointers of a step's operands one after another, skipping those the step does not have. One `next` a
/// statement: C++ may evaluate the arguments of a call in any order.
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
