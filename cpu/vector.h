// Vector loops without intrinsics: element types, branch-free scalar functions that `#pragma omp simd` turns into
// vector code, and `vectorised`, which compiles a loop for AVX-512, AVX2 and plain x86-64 and picks one at run time.
// Internal to cpu/. Only what must be inlined into such loops belongs here.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kbench/error.h"
#include "kbench/precision.h"

namespace kbench::cpu {

/// Stored 16-bit elements, as bits. The compiler's own types would call a library function for each conversion on CPUs
/// without F16C, and gcc 12 does not vectorise them.
struct BFloat16 {
    std::uint16_t bits;
};
struct Float16 {
    std::uint16_t bits;
};

/// The type that stored elements of type T are computed in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline float load(float x) { return x; }
inline double load(double x) { return x; }
inline float load(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline float load(Float16 x) {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(x.bits & 0x7fff) << 13;
    // Multiplying by 2^(127 - 15) moves the exponent to fp32's bias and also normalises subnormal numbers.
    const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const std::uint32_t special = magnitude | 0x7f800000u;  // infinity or NaN
    const std::uint32_t bits = magnitude >= 0x0f800000u ? special : finite;
    return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(x.bits & 0x8000) << 16));
}

/// Rounds to nearest, ties to even. NaN stays NaN, and fp16 overflows to infinity.
inline void store(float& to, float x) { to = x; }
inline void store(double& to, double x) { to = x; }
inline void store(BFloat16& to, float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const std::uint32_t quiet_nan = bits >> 16 | 0x40;
    to.bits = static_cast<std::uint16_t>(x != x ? quiet_nan : rounded);
}
inline void store(Float16& to, float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    // Below 2^-14 the spacing is 2^-24, fp32's spacing in [0.5, 1): adding 0.5 makes the FPU round to it.
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - (126u << 23);
    const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const std::uint32_t finite = magnitude < 113u << 23 ? subnormal : normal;
    const std::uint32_t half = magnitude >= 0x477ff000u ? special : finite;  // 65520 rounds to infinity
    to.bits = static_cast<std::uint16_t>(half | (bits >> 16 & 0x8000u));
}

/// The larger of two numbers; b when a is NaN.
template <class T>
inline T larger(T a, T b) {
    return a > b ? a : b;
}

template <class T>
inline constexpr T log2_e = T(1.44269504088896340735992468100189214);

/// The range of x for which exp2_vector's result is a normal number.
template <class T>
inline constexpr T exp2_lowest = std::is_same_v<T, double> ? T(-1022) : T(-126);
template <class T>
inline constexpr T exp2_highest = std::is_same_v<T, double> ? T(1023) : T(127);

/// 2^x for x in [exp2_lowest, exp2_highest]. The nearest integer becomes the exponent. The rest r, at most 1/2, goes
/// into the Taylor series of e^(r ln 2), cut where the next term is below half an ulp (degree 7 for fp32, 13 for fp64).
template <class T>
inline T exp2_in_range(T x) {
    using Bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
    constexpr int mantissa_bits = std::is_same_v<T, double> ? 52 : 23;
    constexpr int degree = std::is_same_v<T, double> ? 13 : 7;
    constexpr T round_to_integer = T(1.5) * T(Bits(1) << mantissa_bits);  // leaves the integer in the low bits
    constexpr auto coefficient = [](std::size_t n) {
        double product = 1;
        for (std::size_t f = 1; f <= n; ++f) product *= 0.693147180559945309417232121458176568 / static_cast<double>(f);
        return T(product);
    };
    const T shifted = x + round_to_integer;
    const T rest = x - (shifted - round_to_integer);
    const T series = [ rest, coefficient ]<std::size_t... i>(std::index_sequence<i...>) {
        T sum = coefficient(degree);  // Horner's scheme
        ((sum = sum * rest + coefficient(degree - 1 - i)), ...);
        return sum;
    }
    (std::make_index_sequence<degree>{});
    return std::bit_cast<T>(std::bit_cast<Bits>(series) + (std::bit_cast<Bits>(shifted) << mantissa_bits));
}

/// 2^x for any x: 0 below the normal numbers, and at most 2^exp2_highest.
template <class T>
inline T exp2_vector(T x) {
    const T power = exp2_in_range(-larger(-exp2_highest<T>, -larger(exp2_lowest<T>, x)));  // NaN stays NaN
    return x < exp2_lowest<T> ? T(0) : power;
}

/// The widest instruction set that loops are compiled for and that this CPU and its system support.
enum class VectorIsa { x86_64, avx2, avx512 };
inline VectorIsa vector_isa() {
    static const VectorIsa isa = [] {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            return VectorIsa::avx512;
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? VectorIsa::avx2 : VectorIsa::x86_64;
    }();
    return isa;
}

// Function attributes instead of source files compiled with -m options: inline functions of headers that such a file
// shares with others could otherwise end up in the program in their AVX-512 version.
#define KBENCH_AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#ifdef __clang__  // takes 512 bits where it may, and refuses to be told so
#define KBENCH_AVX512_LOOP KBENCH_AVX512
#else
#define KBENCH_AVX512_LOOP KBENCH_AVX512 ",prefer-vector-width=512"
#endif
template <class Loop>
[[gnu::target(KBENCH_AVX512_LOOP), gnu::flatten]] void run_avx512(const Loop& loop) {
    loop();
}
template <class Loop>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_avx2(const Loop& loop) {
    loop();
}
template <class Loop>
[[gnu::flatten]] void run_x86_64(const Loop& loop) {
    loop();
}

/// Runs `loop` in the widest version. Use it for some hundreds of elements or more: the call costs a few
/// nanoseconds.
/// In an OpenMP region of a generic lambda, clang 19 does not see what only this loop uses ("reference to local
/// variable declared in enclosing function"): such a region names it in `shared`.
template <class Loop>
void vectorised(const Loop& loop) {
    switch (vector_isa()) {
        case VectorIsa::avx512: return run_avx512(loop);
        case VectorIsa::avx2: return run_avx2(loop);
        case VectorIsa::x86_64: return run_x86_64(loop);
    }
}

/// Calls `function` with a value of the element type that stores `type`.
template <class Function>
void with_element(DataType type, const Function& function) {
    switch (type) {
        case DataType::fp16: return function(Float16{});
        case DataType::bf16: return function(BFloat16{});
        case DataType::fp32: return function(float{});
        case DataType::fp64: return function(double{});
        case DataType::int32: break;
    }
    throw Unsupported("the CPU's vector loops compute in fp16, bf16, fp32 and fp64, not in int32");
}

}  // namespace kbench::cpu
