// Op kinds: what is computed, as structs of shapes that answer all that kbench asks of an op. kbench's own kinds
// (models/ops/) and those that a program brings along (kernel.h) are written against this header alone.
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

/// A GEMM's backward is dgrad and wgrad, that of other kinds bwd.
enum class Direction { fwd, bwd, dgrad, wgrad };
inline constexpr std::string_view direction_names[] = {"fwd", "bwd", "dgrad", "wgrad"};
constexpr std::string_view name(Direction direction) { return direction_names[static_cast<int>(direction)]; }

/// What an element is stored as: as the precision stores, a 32-bit integer (tokens), or as the precision stores but
/// never in less than fp32 (scores that are kept exact).
enum class ElementType { storage, int32, at_least_fp32 };
DataType data_type(ElementType element, Precision precision);

/// What an array is filled with where no file says so: in single ops, in tests of steps, as a model's weights.
struct Contents {
    enum class Kind {
        normal,  ///< normal numbers around `mean`
        ones,
        zeros,
        below,   ///< whole numbers in [first, bound)
        causal,  ///< normal numbers; row r holds -infinity right of column r % bound
        listed,  ///< `numbers`, in each row from its first column on
    } kind = Kind::normal;
    double deviation = 1;    ///< of normal numbers
    std::int64_t bound = 0;  ///< of `below` and `causal`; of listed integers: others below it may stand in their place
    std::int64_t first = 0;  ///< of `below`
    double mean = 0;         ///< of `normal`
    std::array<double, 16> numbers = {};

    static constexpr Contents normal(double deviation = 1, double mean = 0) {
        return {.kind = Kind::normal, .deviation = deviation, .mean = mean};
    }
    static constexpr Contents below(std::int64_t bound, std::int64_t first = 0) {
        return {.kind = Kind::below, .deviation = 0, .bound = bound, .first = first};
    }
    /// For rows of up to 16 columns.
    static constexpr Contents of(std::initializer_list<double> numbers) {
        Contents contents{.kind = Kind::listed};
        std::copy(numbers.begin(), numbers.end(), contents.numbers.begin());
        return contents;
    }
    bool operator==(const Contents&) const = default;
};

enum class OperandUse { input, weight, output, in_place };

/// What of an array an op touches: some rows of a range of columns, of which a causal op skips a part.
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
    std::optional<Part> read = {};     ///< all of it where nothing stands here
    std::optional<Part> written = {};  ///< likewise
    bool scores = false;               ///< of the square kind that attention makes: accounted as such
    bool rows_are_columns = false;     ///< its rows are columns that may be padded: rows of zeros follow it then
    bool padded = false;               ///< its rows may be farther apart than it has columns (Step::padded_columns)

    Part part_read() const { return read.value_or(Part{static_cast<double>(rows), 0, columns}); }
    Part part_written() const { return written.value_or(Part{static_cast<double>(rows), 0, columns}); }
};
inline OperandSpec input(std::string_view name, std::int64_t rows, std::int64_t columns) {
    return {.name = name, .use = OperandUse::input, .rows = rows, .columns = columns};
}
inline OperandSpec weight(std::string_view name, std::int64_t columns) {
    return {.name = name, .use = OperandUse::weight, .columns = columns};
}
inline OperandSpec output(std::string_view name, std::int64_t rows, std::int64_t columns) {
    return {.name = name, .use = OperandUse::output, .rows = rows, .columns = columns};
}

/// The unit whose roof bounds an op's arithmetic: tensor cores (AMX) or plain multiply-adds.
enum class RoofUnit { plain, matrix };

/// FLOPs of an op: an addition, a multiplication, a division, a square root, an exponential or a tanh is one.
struct Work {
    double flops = 0;  ///< useful ones: those that its result needs
    /// Of products that a library launches whole, 2 m n k; 0 of ops that have none, or leave tiles out.
    double matrix_flops = 0;
    double masked_flops = 0;  ///< executed besides `flops`, for elements that a mask discards
};

/// Kinds that one call may compute along with the op that names it, in its direction (direction_along) and in order of
/// execution; each consumes, in its first place, what the one before it makes first.
struct Fusion {
    std::vector<std::string_view> before = {}, after = {};
    /// In front of all these: kinds that read, in their first place, what the head reads under the same name. Nothing
    /// of what they make is read by the others.
    std::vector<std::string_view> beside = {};
};

/// A step of an op's backward: one of its directions, and what each of that direction's operands is, in their order: an
/// operand of the forward by its name, or the gradient of one, "d" before the name ("dout", "dweight").
struct GradientRule {
    Direction direction;
    std::vector<std::string_view> operands;
};

/// How the gradients of what an op reads come from those of what it makes.
struct Gradients {
    std::vector<GradientRule> rules = {};       ///< in order of execution
    std::vector<std::string_view> passed = {};  ///< operands whose gradient is that of `out` itself: no step is needed
};

/// A shape as people write it, "m1024n3840k1280t+upcast", taken apart by an op kind's `parse`. What is left over in the
/// end, and whatever is missing, makes the shape a wrong one.
class ShapeText {
  public:
    struct Wrong {};  ///< thrown; becomes an error that shows a right shape

    explicit ShapeText(std::string_view text);
    /// The number behind `letter`, at least 1.
    std::int64_t size(char letter);
    std::int64_t size_or(char letter, std::int64_t otherwise);
    /// Whether `letter` stands there, without a number.
    bool flag(char letter);
    /// Whether "+word" comes next.
    bool suffix(std::string_view word);
    /// The words behind "+" that nobody took.
    const std::vector<std::string_view>& suffixes() const { return suffixes_; }
    bool letters_left() const { return !values_.empty(); }

  private:
    std::map<char, std::int64_t> values_;  ///< 0: a letter without a number
    std::vector<std::string_view> suffixes_;
};

/// "r1024w1280" of {{'r', 1024}, {'w', 1280}}.
std::string shape_text(std::initializer_list<std::pair<char, std::int64_t>> sizes);

/// What a struct needs to be an op kind. `directions`: those that it has; the functions are called with no other.
///   kind, what   its name in results and on the command line, and one line for `kbench list ops`
///   example      a right shape, with what may follow it
///   text, parse  the shape as text, and back
///   operands     what it reads, then what it writes; what a model's op node names stands in the same order
///   work, unit   its FLOPs, and the unit that does most of them
/// It may also have
///   fusions(direction)   what may be computed along with it
///   on(rows, columns)    the op on a matrix of that shape: kinds that have it can stand in a fusion
///   pads_columns()       whether its output may be computed with more columns than it has
///   dependent_steps()    how many times at least it must wait for a result of its own before it can go on: the time
///                        steps of a recurrent layer, one after another however many units there are. Else 1
///   gradients()          its backward; a kind without it has none
///   in_training()        the op as its backward needs it: it leaves more behind
///   accumulating()       the op whose backward adds to gradients that are there, in place
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

class Op;

/// An op kind without its type: a row of functions, every one of which a kind must have to compile.
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
    std::int64_t (*dependent_steps)(const void*);
    Op (*on)(std::int64_t rows, std::int64_t columns);  ///< null where the kind has none
    Gradients (*gradients)();                           ///< likewise
    Op (*in_training)(const void*);                     ///< the op itself where the kind has none
    Op (*accumulating)(const void*);                    ///< null where the kind has none

    bool has(Direction direction) const;
};

/// The direction of a kind that is computed along with a head in `of_head`: the same, but that a GEMM's dgrad and wgrad
/// are the backward of kinds that have neither.
Direction direction_along(const OpKind& kind, Direction of_head);

/// The row of a kind; one address for each.
template <OpStruct T>
const OpKind& op_kind();

/// An op of any kind. Cheap to copy.
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
    std::int64_t dependent_steps() const { return kind_->dependent_steps(value_.get()); }
    Op in_training() const { return kind_->in_training(value_.get()); }
    /// Nothing where its backward cannot add to gradients that are there.
    std::optional<Op> accumulating() const {
        return kind_->accumulating ? std::optional(kind_->accumulating(value_.get())) : std::nullopt;
    }
    /// Throw Unsupported where the kind has no such direction: a forward's figures never stand for another's.
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
        .dependent_steps =
            [](const void* op) {
                if constexpr (requires(const T& t) { t.dependent_steps(); })
                    return std::int64_t{static_cast<const T*>(op)->dependent_steps()};
                else
                    return std::int64_t{1};
            },
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
            }()};
    return row;
}

}  // namespace kbench
