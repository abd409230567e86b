// Conversion of host arrays between stored types, rounding to nearest even. One thread; callers split the work.
#pragma once

#include <cstdint>
#include <optional>

#include "kbench/precision.h"

namespace kbench {

/// Converts between floating-point types; equal types are copied bit by bit (int32 too). Infinities, NaN and subnormals
/// are kept; values beyond the destination's range become infinite. fp64 goes to a 16-bit type by way of fp32, so it is
/// rounded twice. `source` may be unaligned. Throws std::invalid_argument for int32 to or from another type.
void convert(DataType from, const void* source, DataType to, void* destination, std::int64_t count);

/// The same for a matrix whose source rows are contiguous and whose destination rows are `row_stride` elements apart,
/// on all OpenMP threads. What lies between the destination's rows is left alone.
void convert_rows(DataType from, const void* source, std::int64_t rows, std::int64_t columns, DataType to,
                  void* destination, std::int64_t row_stride);

/// What a number of weights or of an optimizer's state may be.
enum class Allowed { finite, finite_not_negative };
struct BadNumber {
    std::int64_t index;  ///< row-major, padding apart
    double value;
};
/// The first number that is not allowed, of rows `row_stride` elements apart. On all OpenMP threads.
std::optional<BadNumber> first_bad_number(DataType type, const void* numbers, std::int64_t rows, std::int64_t columns,
                                          std::int64_t row_stride, Allowed allowed);

}  // namespace kbench
