// Precisions and the data types that store them. Every folder may include this header; it knows no device.
//
//     const auto precision = kbench::parse_precision("bf16");  // nothing for a word that is no precision
//     kbench::size_of(kbench::storage_type(*precision));       // 2 bytes
//     kbench::unit_roundoff(kbench::Precision::tf32);          // 2^-11
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace kbench {

/// The arithmetic that a step is asked to use.
/// fp16 and bf16 store 16 bits and accumulate in fp32; tf32 stores fp32 and multiplies on tensor cores with 10-bit
/// mantissas; fp32 uses no tensor cores; fp64 is fp64 throughout.
enum class Precision { fp16, bf16, tf32, fp32, fp64 };

/// How an element lies in memory.
enum class DataType { fp16, bf16, fp32, fp64, int32 };

inline constexpr std::array<Precision, 5> all_precisions{Precision::fp16, Precision::bf16, Precision::tf32,
                                                         Precision::fp32, Precision::fp64};

constexpr std::string_view name(Precision precision) {
    constexpr std::string_view names[] = {"fp16", "bf16", "tf32", "fp32", "fp64"};
    return names[static_cast<int>(precision)];
}

constexpr std::string_view name(DataType type) {
    constexpr std::string_view names[] = {"fp16", "bf16", "fp32", "fp64", "int32"};
    return names[static_cast<int>(type)];
}

/// The precision called `text`, or nothing.
constexpr std::optional<Precision> parse_precision(std::string_view text) {
    for (Precision precision : all_precisions)
        if (name(precision) == text) return precision;
    return std::nullopt;
}

/// The type that weights and activations of `precision` are stored in.
constexpr DataType storage_type(Precision precision) {
    constexpr DataType types[] = {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp32, DataType::fp64};
    return types[static_cast<int>(precision)];
}

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    constexpr std::size_t sizes[] = {2, 2, 4, 8, 4};
    return sizes[static_cast<int>(type)];
}

/// Unit roundoff of multiplications: half the distance from 1 to the next number of the multiplier's input format
/// (IEEE 754-2019, table 3.5; tf32 and bf16: NVIDIA A100 whitepaper, 2020, p. 27).
constexpr double unit_roundoff(Precision precision) {
    constexpr double roundoff[] = {0x1p-11, 0x1p-8, 0x1p-11, 0x1p-24, 0x1p-53};
    return roundoff[static_cast<int>(precision)];
}

/// Unit roundoff of a stored element; 0 for integers.
constexpr double unit_roundoff(DataType type) {
    constexpr double roundoff[] = {0x1p-11, 0x1p-8, 0x1p-24, 0x1p-53, 0.0};
    return roundoff[static_cast<int>(type)];
}

/// Unit roundoff of sums: fp32 accumulators for everything but fp64.
constexpr double accumulator_roundoff(Precision precision) { return precision == Precision::fp64 ? 0x1p-53 : 0x1p-24; }

}  // namespace kbench
