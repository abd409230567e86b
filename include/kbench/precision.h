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

/// The arithmetic that a step is asked to use; its row in `precision_rows` says what it is.
enum class Precision { fp16, bf16, tf32, fp32, fp64 };

/// How an element lies in memory.
enum class DataType { fp16, bf16, fp32, fp64, int32 };

/// What a precision is. tf32 multiplies on tensor cores with 10-bit mantissas; fp32 uses no tensor cores.
struct PrecisionRow {
    Precision precision;
    std::string_view name;
    DataType storage;  ///< what weights and activations lie in memory as
    /// Unit roundoff of multiplications: half the distance from 1 to the next number of the multiplier's input format
    /// (IEEE 754-2019, table 3.5; tf32 and bf16: NVIDIA A100 whitepaper, 2020, p. 27).
    double multiplier_roundoff;
    double sum_roundoff;  ///< unit roundoff of accumulators
};

/// In the order of the enumeration.
inline constexpr std::array precision_rows{
    PrecisionRow{Precision::fp16, "fp16", DataType::fp16, 0x1p-11, 0x1p-24},
    PrecisionRow{Precision::bf16, "bf16", DataType::bf16, 0x1p-8, 0x1p-24},
    PrecisionRow{Precision::tf32, "tf32", DataType::fp32, 0x1p-11, 0x1p-24},
    PrecisionRow{Precision::fp32, "fp32", DataType::fp32, 0x1p-24, 0x1p-24},
    PrecisionRow{Precision::fp64, "fp64", DataType::fp64, 0x1p-53, 0x1p-53},
};

inline constexpr std::array all_precisions = [] {
    std::array<Precision, precision_rows.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = precision_rows[i].precision;
    return all;
}();
static_assert([] {
    for (std::size_t i = 0; i < all_precisions.size(); ++i)
        if (static_cast<std::size_t>(all_precisions[i]) != i) return false;
    return true;
}());

constexpr const PrecisionRow& precision_row(Precision precision) {
    return precision_rows[static_cast<std::size_t>(precision)];
}

constexpr std::string_view name(Precision precision) { return precision_row(precision).name; }

constexpr std::string_view name(DataType type) {
    constexpr std::string_view names[] = {"fp16", "bf16", "fp32", "fp64", "int32"};
    return names[static_cast<int>(type)];
}

/// The precision called `text`, or nothing.
constexpr std::optional<Precision> parse_precision(std::string_view text) {
    for (const PrecisionRow& row : precision_rows)
        if (row.name == text) return row.precision;
    return std::nullopt;
}

/// The type that weights and activations of `precision` are stored in.
constexpr DataType storage_type(Precision precision) { return precision_row(precision).storage; }

/// Bytes of one element.
constexpr std::size_t size_of(DataType type) {
    constexpr std::size_t sizes[] = {2, 2, 4, 8, 4};
    return sizes[static_cast<int>(type)];
}

/// Unit roundoff of multiplications.
constexpr double unit_roundoff(Precision precision) { return precision_row(precision).multiplier_roundoff; }

/// Unit roundoff of a stored element; 0 for integers.
constexpr double unit_roundoff(DataType type) {
    constexpr double roundoff[] = {0x1p-11, 0x1p-8, 0x1p-24, 0x1p-53, 0.0};
    return roundoff[static_cast<int>(type)];
}

/// Unit roundoff of sums.
constexpr double accumulator_roundoff(Precision precision) { return precision_row(precision).sum_roundoff; }

}  // namespace kbench
