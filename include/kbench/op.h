// Op kinds: what is computed, as structs of shapes that answer all that kbench asks of an op. kbench's own kinds
// (models/ops/) and those of a user's program (kernel.h) are written against this header alone.
//
//     struct SwiGlu {
//         static constexpr std::string_view kind = "swiglu", what = "SwiGLU's gate", example = "r4096w11008";
//         static constexpr kbench::Direction directions[] = {kbench::Direction::fwd};
//         std::int64_t rows, width;
//         bool operator==(const SwiGlu&) const = default;
//         static SwiGlu parse(kbench::ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
//         std::string text() const { return kbench::shape_text({{'r', rows}, {'w', width}}); }
//         std::vector<kbench::OperandSpec> operands(kbench::Direction) const {
//             return {kbench::input("gate_up", rows, 2 * width), kbench::output("out", rows, width)};
//         }
//         static kbench::RoofUnit unit(kbench::Direction) { return kbench::RoofUnit::plain; }
//         kbench::Work work(kbench::Direction) const { return {5 * static_cast<double>(rows * width)}; }
//     };
//     static_assert(kbench::OpStruct<SwiGlu>);
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kbench/precision.h"

namespace kbench {

/// What is computed of an op. The backward of a GEMM is dgrad and wgrad; other kinds have one bwd.
enum class Direction { fwd, bwd, dgrad, wgrad };
inline constexpr std::string_view direction_names[] = {"fwd", "bwd", "dgrad", "wgrad"};
constexpr std::string_view name(Direction direction) { return direction_names[static_cast<int>(direction)]; }

/// What an element is stored as: the precision's storage type, a 32-bit integer (tokens), or the storage type but
/// never less than fp32 (scores that are kept exact).
enum class ElementType { storage, int32, at_least_fp32 };
DataType data_type(ElementType element, Precision precision);

/// What an array is filled with where no file gives it: in a single op, in a test of a step, as random weights.
struct Contents {
    enum class Kind {
        normal,  ///< normal numbers around `mean`
        ones,
        zeros,
        below,   ///< whole numbers in [first, bound)
        causal,  ///< normal numbers; row r holds -infinity right of column r % bound
        listed,  ///< `numbers` in each row, from its first column on
    } kind = Kind::normal;
    double deviation = 1;    ///< standard deviation of the normal numbers
    std::int64_t bound = 0;  ///< for `below` and `causal`; listed integers may be replaced by others below it
    std::int64_t first = 0;  ///< for `below`: the smallest number
    double mean = 0;         ///< for `normal`: the mean
    std::array<double, 16> numbers = {};

    static constexpr Contents normal(double deviation = 1, double mean = 0) {
        return {.kind = Kind::normal, .deviation = deviation, .mean = mean};
    }
    static constexpr Contents below(std::int64_t bound, std::int64_t first = 0) {
        return {.kind = Kind::below, .deviation = 0, .bound = bound, .first = first};
    }
    /// Fills every row with these numbers, at most 16.
    static constexpr Contents of(std::initializer_list<double> numbers) {
        Contents contents{.kind = Kind::listed};
        std::copy(numbers.begin(), numbers.end(), contents.numbers.begin());
        return contents;
    }
    bool operator==(const Contents&) const = default;
};

enum class OperandUse { input, weight, output, in_place };

/// The part of an array that an op touches: some rows of a range of columns, less what a causal op skips.
struct Part {
    double rows = 0;
    std::int64_t first_column = 0, last_column = 0;
    double density = 1;
};

/// One array that an op reads or writes: a row-major matrix, a vector being one row.
struct OperandSpec {
    std::string_view name;
    OperandUse use = OperandUse::input;
    std::int64_t rows = 1, columns = 1;
    ElementType element = ElementType::storage;
    Contents contents = {};
    std::optional<Part> read = {};     ///< the part that is read; empty: all of it
    std::optional<Part> written = {};  ///< the part that is written; empty: all of it
    bool scores = false;               ///< an attention score matrix, accounted under Role::scores
    bool cache = false;                ///< kept from token to token, accounted under Role::cache
    bool rows_are_columns = false;     ///< its rows match columns that may be padded; rows of zeros then follow
    bool padded = false;               ///< rows may lie farther apart than their columns need (Step::padded_columns)

    Part part_read() const { return read.value_or(Part{static_cast<double>(rows), 0, columns}); }
    Part part_written() const { return written.value_or(Part{static_cast<double>(rows), 0, columns}); }
};
inline OperandSpec input(std::string_view name, std::int64_t rows, std::int64_t columns) {
    return {.name = name, .use = OperandUse::input, .rows = rows, .columns = columns};
}
/// An int32 operand of one column that says how many: each is `count`, and none is larger.
inline OperandSpec counts(std::string_view name, std::int64_t rows, std::int64_t count) {
    OperandSpec counts = input(name, rows, 1);
    counts.element = ElementType::int32;
    counts.contents = Contents::of({static_cast<double>(count)});
    counts.contents.bound = count + 1;
    return counts;
}
inline OperandSpec weight(std::string_view name, std::int64_t columns) {
    return {.name = name, .use = OperandUse::weight, .columns = columns};
}
inline OperandSpec output(std::string_view name, std::int64_t rows, std::int64_t columns) {
    return {.name = name, .use = OperandUse::output, .rows = rows, .columns = columns};
}

/// The unit whose roof bounds an op's arithmetic: tensor cores (AMX) or plain multiply-adds.
enum class RoofUnit { plain, matrix };

/// FLOPs of an op. An addition, a multiplication, a division, a square root, an exponential and a tanh count as one.
struct Work {
    double flops = 0;  ///< useful FLOPs: those that the result needs
    /// 2 m n k of products: as a library launches them whole, or what is under no mask where kernels skip tiles. 0 for
    /// ops without products.
    double matrix_flops = 0;
    double masked_flops = 0;  ///< executed besides `flops`, for elements that a mask discards
};

/// Op kinds that one call may compute along with its head op, in the head's direction (direction_along) and in order of
/// execution. Each consumes, as its first operand, the first result of the one before it.
struct Fusion {
    std::vector<std::string_view> before = {}, after = {};
    /// Kinds computed in front of all these. As first operand they read what the head reads under the same name, and
    /// none of the others reads what they make.
    std::vector<std::string_view> beside = {};
};

/// One step of an op's backward: its direction, and what each operand of that direction is, in order. An operand of the
/// forward goes by its name, a gradient by "d" and the name ("dout", "dweight").
struct GradientRule {
    Direction direction;
    std::vector<std::string_view> operands;
};

/// How the gradients of an op's inputs follow from the gradients of its outputs.
struct Gradients {
    std::vector<GradientRule> rules = {};       ///< in order of execution
    std::vector<std::string_view> passed = {};  ///< operands whose gradient equals that of `out`: no step is needed
};

/// How many times as large: a whole number, or one part of a whole number of parts, of sizes that it divides.
class Scale {
  public:
    constexpr Scale(std::int64_t times, std::int64_t parts = 1) : times_(times), parts_(parts) {}
    constexpr double value() const { return static_cast<double>(times_) / static_cast<double>(parts_); }
    friend constexpr std::int64_t operator*(std::int64_t size, Scale scale) {
        return size * scale.times_ / scale.parts_;
    }
    friend constexpr std::int64_t& operator*=(std::int64_t& size, Scale scale) { return size = size * scale; }
    bool operator==(const Scale&) const = default;

  private:
    std::int64_t times_, parts_;
};

/// An op (or its struct) with one of its sizes larger or smaller, and which size that is: "k", "seq", "rows",
/// "time_steps", "batch".
template <class T>
struct Grown {
    T op;
    std::string_view axis;
};

/// A shape as people write it, "m1024n3840k1280t+upcast", which an op kind's `parse` takes apart. The shape is wrong
/// when a letter is missing or when letters are left over at the end.
class ShapeText {
  public:
    struct Wrong {};  ///< thrown by the functions below; the user then sees an error with a right shape

    explicit ShapeText(std::string_view text);
    /// The number after `letter`, at least 1.
    std::int64_t size(char letter);
    std::int64_t size_or(char letter, std::int64_t otherwise);
    /// Whether `letter` is there without a number.
    bool flag(char letter);
    /// Whether "+word" comes next.
    bool suffix(std::string_view word);
    /// The words after "+" that no call of suffix() took.
    const std::vector<std::string_view>& suffixes() const { return suffixes_; }
    bool letters_left() const { return !values_.empty(); }

  private:
    std::map<char, std::int64_t> values_;  ///< 0: a letter without a number
    std::vector<std::string_view> suffixes_;
};

/// The sizes as text: {{'r', 1024}, {'w', 1280}} is "r1024w1280".
std::string shape_text(std::initializer_list<std::pair<char, std::int64_t>> sizes);

/// What a struct needs to be an op kind. Its functions are called only with directions that `directions` lists.
///   kind, what   its name in results and on the command line, and one line for `kbench list ops`
///   example      a right shape, with what may follow it
///   text, parse  the shape as text, and back
///   operands     what it reads, then what it writes; an op node of a model names its tensors in this order
///   work, unit   its FLOPs, and the unit that does most of them
/// It may also have
///   fusions(direction)   op kinds that may be computed along with it
///   on(rows, columns)    the op on a matrix of that shape: kinds that have it can stand in a fusion
///   pads_columns()       whether its output may be computed with more columns than it has
///   time_steps()    the length of its serial chain: how often it must wait for a result of its own, as a
///                        recurrent layer does in each time step, on any number of units. Left out: 1
///   loss                 a LossInfo: it is what training makes smaller
///   gradients()          its backward; a kind without it has none
///   in_training()        the op that a training forward runs: it also saves what the backward reads
///   accumulating()       the op whose backward adds to existing gradients, in place
///   grown(direction, factor)  the op with one of its sizes so many times as large, as a Grown: a size that makes the
///   same
///                        kernel work longer, so that what does not grow with it is a fixed time of the kernel. Left
///                        out: its time against size is not measured
template <class T>
concept OpStruct = requires {
    T::kind;
}
&&requires(const T& op, Direction direction, ShapeText& shape) {
    { op == op } -> std::convertible_to<bool>;
    { T::kind } -> std::convertible_to<std::string_view>;
    { T::what } -> std::convertible_to<std::string_view>;
    { T::example } -> std::convertible_to<std::string_view>;
    {std::span<const Direction>(T::directions)};
    { op.text() } -> std::same_as<std::string>;
    { T::parse(shape) } -> std::same_as<T>;
    { op.operands(direction) } -> std::same_as<std::vector<OperandSpec>>;
    { op.work(direction) } -> std::same_as<Work>;
    { T::unit(direction) } -> std::same_as<RoofUnit>;
};

/// What training needs to know of a loss beside its op.
struct LossInfo {
    std::string_view examples;  ///< what is learnt from: "tokens", "utterances"
    /// There is a loss for each example. Otherwise the last token of each sequence, which has no target, has none.
    bool one_per_example;
    /// By which gradients of its mean over a batch are multiplied in fp16, where small numbers become 0.
    double fp16_scale;
};

class Op;

/// An op kind whose type is erased: a table of functions, all of which a kind needs to compile.
struct OpKind {
    std::string_view name, what, example;
    std::span<const Direction> directions;
    std::string (*text)(const void*);
    Op (*parse)(ShapeText&);
    std::vector<OperandSpec> (*operands)(const void*, Direction);
    Work (*work)(const void*, Direction);
    RoofUnit (*unit)(Direction);
    bool (*equal)(const void*, const void*);
    std::vector<Fusion> (*fusions)(Direction);
    bool (*pads_columns)(const void*);
    std::int64_t (*time_steps)(const void*);
    const LossInfo* loss;                                      ///< null where the kind is none
    Op (*on)(std::int64_t rows, std::int64_t columns);         ///< null where the kind has none
    Gradients (*gradients)();                                  ///< null where the kind has none
    Op (*in_training)(const void*);                            ///< the op itself where the kind has none
    Op (*accumulating)(const void*);                           ///< null where the kind has none
    Grown<Op> (*grown)(const void*, Direction, Scale factor);  ///< null where the kind has none

    bool has(Direction direction) const;
};

/// The direction of an op that is computed along with a head in `of_head`: the same direction, but bwd when the head
/// runs dgrad or wgrad and the kind has neither.
Direction direction_along(const OpKind& kind, Direction of_head);

/// The kind's table of functions. Each kind has exactly one, so that addresses compare.
template <OpStruct T>
const OpKind& op_kind();

/// An op of any kind. Copies are cheap.
class Op {
  public:
    template <OpStruct T>
    Op(T op) : kind_(&op_kind<T>()), value_(std::make_shared<const T>(std::move(op))) {}

    const OpKind& kind() const { return *kind_; }
    template <OpStruct T>
    const T* get_if() const {
        return kind_ == &op_kind<T>() ? static_cast<const T*>(value_.get()) : nullptr;
    }
    template <OpStruct T>
    bool is() const {
        return kind_ == &op_kind<T>();
    }
    std::string text() const { return kind_->text(value_.get()); }
    bool pads_columns() const { return kind_->pads_columns(value_.get()); }
    std::int64_t time_steps() const { return kind_->time_steps(value_.get()); }
    Op in_training() const { return kind_->in_training(value_.get()); }
    /// The op whose backward adds to existing gradients; nothing where it cannot.
    std::optional<Op> accumulating() const {
        return kind_->accumulating ? std::optional(kind_->accumulating(value_.get())) : std::nullopt;
    }
    /// The op with one of its sizes as many times as large; nothing where its kind names no such size.
    std::optional<Grown<Op>> grown(Direction direction, Scale factor) const;
    /// These throw Unsupported where the kind lacks the direction: no other direction's figures stand in.
    std::vector<OperandSpec> operands(Direction direction) const;
    Work work(Direction direction) const;

    friend bool operator==(const Op& a, const Op& b) {
        return a.kind_ == b.kind_ && (a.value_ == b.value_ || a.kind_->equal(a.value_.get(), b.value_.get()));
    }

  private:
    const OpKind* kind_;
    std::shared_ptr<const void> value_;
};
inline std::string_view name(const Op& op) { return op.kind().name; }
inline std::optional<Grown<Op>> Op::grown(Direction direction, Scale factor) const {
    return kind_->grown ? std::optional(kind_->grown(value_.get(), direction, factor)) : std::nullopt;
}

template <OpStruct T>
const OpKind& op_kind() {
    static constexpr OpKind row = {
        .name = T::kind,
        .what = T::what,
        .example = T::example,
        .directions = T::directions,
        .text = [](const void* op) { return static_cast<const T*>(op)->text(); },
        .parse = [](ShapeText& shape) { return Op(T::parse(shape)); },
        .operands = [](const void* op, Direction direction) { return static_cast<const T*>(op)->operands(direction); },
        .work = [](const void* op, Direction direction) { return static_cast<const T*>(op)->work(direction); },
        .unit = [](Direction direction) { return T::unit(direction); },
        .equal = [](const void* a, const void* b) { return *static_cast<const T*>(a) == *static_cast<const T*>(b); },
        .fusions = [](Direction direction) -> std::vector<Fusion> {
            static_assert(
                !requires { T::fusions(); }, "fusions take the direction that they are of");
            if constexpr (requires { T::fusions(direction); })
                return T::fusions(direction);
            else
                return {};
        },
        .pads_columns =
            [](const void* op) {
                if constexpr (requires(const T& t) { t.pads_columns(); })
                    return static_cast<const T*>(op)->pads_columns();
                else
                    return false;
            },
        .time_steps =
            [](const void* op) {
                if constexpr (requires(const T& t) { t.time_steps(); })
                    return std::int64_t{static_cast<const T*>(op)->time_steps()};
                else
                    return std::int64_t{1};
            },
        .loss =
            [] {
                const LossInfo* info = nullptr;
                if constexpr (requires { T::loss; }) info = &T::loss;
                return info;
            }(),
        .on =
            [] {
                Op (*function)(std::int64_t, std::int64_t) = nullptr;
                if constexpr (requires { T::on(std::int64_t{}, std::int64_t{}); })
                    function = [](std::int64_t rows, std::int64_t columns) { return Op(T::on(rows, columns)); };
                return function;
            }(),
        .gradients =
            [] {
                Gradients (*function)() = nullptr;
                if constexpr (requires { T::gradients(); }) function = [] { return T::gradients(); };
                return function;
            }(),
        .in_training =
            [](const void* op) {
                if constexpr (requires(const T& t) { t.in_training(); })
                    return Op(static_cast<const T*>(op)->in_training());
                else
                    return Op(*static_cast<const T*>(op));
            },
        .accumulating =
            [] {
                Op (*function)(const void*) = nullptr;
                if constexpr (requires(const T& t) { t.accumulating(); })
                    function = [](const void* op) { return Op(static_cast<const T*>(op)->accumulating()); };
                return function;
            }(),
        .grown =
            [] {
                Grown<Op> (*function)(const void*, Direction, Scale) = nullptr;
                if constexpr (requires(const T& t) { t.grown(Direction{}, Scale{1}); })
                    function = [](const void* op, Direction direction, Scale factor) {
                        const Grown<T> larger = static_cast<const T*>(op)->grown(direction, factor);
                        return Grown<Op>{larger.op, larger.axis};
                    };
                return function;
            }()};
    return row;
}

}  // namespace kbench
