// A provider's row from a function whose parameters name the operands that they take:
//
//     void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out);
//     provider.ops.push_back(row("cpu::rms_norm", cpu::rms_norm));
//
// A parameter is the op (const T&), the storage type (DataType), the Precision, an operand (In, Out), the distance of
// its rows (Stride), all operands in their order (std::span<void* const>), the workspace (void*) or the stream
// (cudaStream_t).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kbench/operand.h"
#include "kbench/provider.h"

struct CUstream_st;

namespace kbench {

/// Where an operand stands among those of a step.
class Slot {
  public:
    /// Stands for an operand that the step lacks.
    Slot() = default;
    /// The first of that name that is not `taken`. A name that ends in "?" may be missing. Throws std::logic_error
    /// where another one is.
    Slot(const std::vector<Operand>& operands, std::string_view name, const std::vector<bool>& taken = {});
    Slot(const Step& step, Precision precision, std::string_view name) : Slot(operands(step, precision), name) {}

    bool is(std::size_t index) const { return index == index_; }
    bool is_missing() const { return index_ == missing; }
    std::size_t index() const { return index_; }
    /// Null where it is missing.
    void* of(const Call& call) const { return is_missing() ? nullptr : call.operands[index_]; }

  private:
    static constexpr std::size_t missing = static_cast<std::size_t>(-1);
    std::size_t index_ = missing;
};

/// What the arguments of a call are made from.
struct Binding {
    const Step& step;
    Precision precision;
    std::vector<Operand> operands;
    std::vector<bool> taken;

    Binding(const Step& step, Precision precision);
    /// Marks the operand as taken: of several with one name the next, as several ops of a step may have one. Throws
    /// std::logic_error where it is written and should be read, or the reverse.
    Slot take(std::string_view name, bool is_written);
    /// Throws std::logic_error where an operand was not taken.
    void expect_all_taken() const;
};

/// The value of a parameter: what is known when the computation is made, and how a call has it.
template <class Parameter>
struct Argument;

template <OpStruct T>
struct Argument<const T&> {
    T op;
    explicit Argument(Binding& binding) : op(binding.step.as<T>()) {}
    const T& in(const Call&) const { return op; }
};
template <>
struct Argument<DataType> {
    DataType type;
    explicit Argument(Binding& binding) : type(storage_type(binding.precision)) {}
    DataType in(const Call&) const { return type; }
};
template <>
struct Argument<Precision> {
    Precision precision;
    explicit Argument(Binding& binding) : precision(binding.precision) {}
    Precision in(const Call&) const { return precision; }
};
template <Literal name, class T>
struct Argument<In<name, T>> {
    Slot slot;
    explicit Argument(Binding& binding) : slot(binding.take(name.view(), false)) {}
    In<name, T> in(const Call& call) const { return static_cast<const T*>(slot.of(call)); }
};
template <Literal name>
struct Argument<Out<name>> {
    Slot slot;
    explicit Argument(Binding& binding) : slot(binding.take(name.view(), true)) {}
    Out<name> in(const Call& call) const { return slot.of(call); }
};
template <Literal name>
struct Argument<Stride<name>> {
    std::int64_t elements;
    explicit Argument(Binding& binding)
        : elements(binding.operands[Slot(binding.operands, name.view()).index()].stride) {}
    Stride<name> in(const Call&) const { return elements; }
};
template <>
struct Argument<std::span<void* const>> {
    explicit Argument(Binding& binding) { binding.taken.assign(binding.taken.size(), true); }
    std::span<void* const> in(const Call& call) const { return call.operands; }
};
template <>
struct Argument<void*> {
    explicit Argument(Binding&) {}
    void* in(const Call& call) const { return call.workspace; }
};
template <>
struct Argument<CUstream_st*> {
    explicit Argument(Binding&) {}
    CUstream_st* in(const Call& call) const { return static_cast<CUstream_st*>(call.stream); }
};

/// The op among the parameters of a function.
template <class... Parameters>
struct OpOf;
template <OpStruct T, class... Others>
struct OpOf<const T&, Others...> : std::type_identity<T> {};
template <class Other, class... Others>
struct OpOf<Other, Others...> : OpOf<Others...> {};

/// The arguments of functions with these parameters. Throws std::logic_error where the step has an operand that none of
/// them takes, or lacks one.
template <class... Parameters>
class BoundArguments {
  public:
    BoundArguments(const Step& step, Precision precision) : BoundArguments(Binding(step, precision)) {}

    /// Calls `function` with `first` before the arguments.
    template <class Function, class... First>
    void call(const Function& function, const Call& call, const First&... first) const {
        std::apply([&](const auto&... arguments) { std::invoke(function, first..., arguments.in(call)...); },
                   arguments_);
    }

  private:
    explicit BoundArguments(Binding binding) : arguments_{Argument<Parameters>(binding)...} {
        binding.expect_all_taken();
    }
    std::tuple<Argument<Parameters>...> arguments_;
};

template <class... Parameters>
class BoundComputation final : public Computation {
  public:
    BoundComputation(std::string implementation, void (*function)(Parameters...), const Step& step, Precision precision,
                     std::size_t workspace_bytes, double spared_flops)
        : implementation_(std::move(implementation)),
          function_(function),
          arguments_(step, precision),
          workspace_bytes_(workspace_bytes),
          spared_flops_(spared_flops) {}
    std::string implementation() const override { return implementation_; }
    std::size_t workspace_bytes() const override { return workspace_bytes_; }
    double spared_flops() const override { return spared_flops_; }
    void run(const Call& call) const override { arguments_.call(function_, call); }

  private:
    std::string implementation_;
    void (*function_)(Parameters...);
    BoundArguments<Parameters...> arguments_;
    std::size_t workspace_bytes_;
    double spared_flops_;
};

template <class... Parameters>
std::unique_ptr<Computation> bound(std::string implementation, void (*function)(Parameters...), const Step& step,
                                   Precision precision, std::size_t workspace_bytes = 0, double spared_flops = 0) {
    return std::make_unique<BoundComputation<Parameters...>>(std::move(implementation), function, step, precision,
                                                             workspace_bytes, spared_flops);
}

/// What a row may have besides its function.
template <OpStruct T>
struct RowOptions {
    std::vector<Absorbed> absorbs = {};
    std::vector<Direction> directions = {Direction::fwd};
    std::vector<Precision> precisions = {all_precisions.begin(), all_precisions.end()};
    std::size_t (*workspace_bytes)(DataType, const T&) = nullptr;
    std::function<std::string(const T& op, const Step& step, Precision precision)> why_not = {};
};

template <class... Parameters>
ProviderOp row(const char* implementation, void (*function)(Parameters...),
               RowOptions<typename OpOf<Parameters...>::type> options = {}) {
    using T = typename OpOf<Parameters...>::type;
    return Computes<T>{.directions = std::move(options.directions),
                       .precisions = std::move(options.precisions),
                       .absorbs = std::move(options.absorbs),
                       .why_not = std::move(options.why_not),
                       .make = [implementation, function, bytes = options.workspace_bytes](
                                   const T& op, const Step& step, Precision precision) {
                           return bound(implementation, function, step, precision,
                                        bytes != nullptr ? bytes(storage_type(precision), op) : 0);
                       }};
}

}  // namespace kbench
