// Operands by name: types that say in a function's signature which array of a step it takes, so that two of them
// cannot be swapped.
//
//     void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out);
//     rms_norm(type, op, weight, x, out);  // does not compile where these are In<"weight"> and In<"x">
//
// Plain pointers convert to them, for callers that have arrays and no step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kbench {

/// A string literal as a template's argument.
template <std::size_t size>
struct Literal {
    char text[size] = {};
    constexpr Literal(const char (&literal)[size]) { std::copy_n(literal, size, text); }
    constexpr std::string_view view() const { return {text, size - 1}; }
};

/// The array that a step reads under that name, as operands(step) has it. A name that ends in "?" is of an operand that
/// not every step has: null where it is missing. T: void where the elements' type depends on the precision.
template <Literal name, class T = void>
class In {
  public:
    constexpr In(const T* data) : data_(data) {}
    /// From an operand that every such step has.
    template <Literal certain>
    requires(name.view().ends_with('?') &&
             name.view().substr(0, name.view().size() - 1) == certain.view()) constexpr In(In<certain, T> other)
        : data_(other.data()) {}

    constexpr const T* data() const { return data_; }
    template <class Element>
    requires(std::is_void_v<T> || std::is_same_v<T, Element>) operator const Element*() const {
        return static_cast<const Element*>(data_);
    }
    explicit operator bool() const { return data_ != nullptr; }
    decltype(auto) operator[](std::int64_t at) const requires(!std::is_void_v<T>) { return data_[at]; }
    friend bool operator==(In one, std::nullptr_t) { return one.data_ == nullptr; }

  private:
    const T* data_;
};

/// The array that a step writes, or works on in place, under that name.
template <Literal name>
class Out {
  public:
    constexpr Out(void* data) : data_(data) {}

    constexpr void* data() const { return data_; }
    template <class Element>
    operator Element*() const {
        return static_cast<Element*>(data_);
    }
    explicit operator bool() const { return data_ != nullptr; }
    friend bool operator==(Out one, std::nullptr_t) { return one.data_ == nullptr; }

  private:
    void* data_;
};

/// How far apart the rows of that operand lie, in elements.
template <Literal name>
struct Stride {
    std::int64_t elements;
    constexpr Stride(std::int64_t in_elements) : elements(in_elements) {}
    constexpr operator std::int64_t() const { return elements; }
};

}  // namespace kbench
