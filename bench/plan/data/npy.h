// NumPy's .npy files, format 1.0 and 2.0 (NEP 1): outputs are written, inputs are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/precision.h"

namespace kbench {

/// Integers of any shape, flattened in C order.
struct IntegerArray {
    std::vector<std::int64_t> shape, values;
};

struct FloatArray {
    std::vector<std::int64_t> shape;
    std::vector<double> values;
};

/// Writes an array whose last dimension is rows of `shape.back()` elements, `row_stride` elements apart in `data`. fp16
/// becomes '<f2', bf16 is widened to '<f4' since NumPy has no bf16, fp32 '<f4', fp64 '<f8', int32 '<i4'.
/// Streams to a temporary file beside `path`, flushes it and renames: `path` is whole or as before. Throws UsageError
/// when the file cannot be written, MeasurementError when the disk fails or is full on the way.
void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape, DataType type, const void* data,
               std::int64_t row_stride);

/// Whether it begins as a .npy file does.
bool is_npy(std::string_view content);
/// Reads an array of integers of 8 to 64 bits, with a sign or without, of either byte order, C order; `path` names it
/// in errors. Throws UsageError, one line with the file, what was found and what would be right.
IntegerArray parse_npy_integers(std::string content, const std::filesystem::path& path);
IntegerArray read_npy_integers(const std::filesystem::path& path);
/// The same of fp16, fp32 or fp64, little-endian.
FloatArray read_npy_floats(const std::filesystem::path& path);

}  // namespace kbench
