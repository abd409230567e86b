// The conversions as branch-free integer arithmetic, which vectorises without F16C or AVX512_BF16 intrinsics. fp32 is
// the type in the middle: it holds every fp16 and bf16 exactly. Compiled with -fno-trapping-math, without -ffast-math.
#include "bench/plan/data/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bench/plan/data/vectorise.h"

namespace kbench {
namespace {

// Elements converted at a time: the block stays in the L1 cache between its two passes.
constexpr std::int64_t block = 1024;

constexpr std::uint32_t sign_32 = 0x80000000u, infinity_32 = 0x7f800000u;

inline std::uint16_t to_fp16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & ~sign_32;
    // Exponents move from bias 127 to 15; adding half of the last kept bit, less one where that bit is even, rounds.
    const std::uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Below 2^-14, fp16 counts units of 2^-24, which is the unit of fp32 just above 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
    const std::uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
    const std::uint32_t in_range = finite < 0x7c00u ? finite : 0x7c00u;
    const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    const std::uint32_t any = magnitude >= 0x47800000u ? (magnitude > infinity_32 ? nan : 0x7c00u) : in_range;
    return static_cast<std::uint16_t>(any | (bits & sign_32) >> 16);
}

inline float from_fp16(std::uint16_t half) {
    const std::uint32_t magnitude = half & 0x7fffu;
    const std::uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    const std::uint32_t special = (magnitude << 13) | infinity_32;
    // An integer converts exactly whatever the processor does with subnormal operands.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
    const std::uint32_t finite = magnitude < 0x400u ? subnormal : normal;
    return std::bit_cast<float>((magnitude >= 0x7c00u ? special : finite) | (half & 0x8000u) << 16);
}

inline std::uint16_t to_bf16(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
    return static_cast<std::uint16_t>((bits & ~sign_32) > infinity_32 ? quiet_nan : rounded);
}

inline float from_bf16(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

KBENCH_VECTORISED void fp16_to_fp32(const std::uint16_t* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_fp16(from[i]);
}
KBENCH_VECTORISED void bf16_to_fp32(const std::uint16_t* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
}
KBENCH_VECTORISED void fp64_to_fp32(const double* from, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
KBENCH_VECTORISED void fp32_to_fp16(const float* from, std::uint16_t* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_fp16(from[i]);
}
KBENCH_VECTORISED void fp32_to_bf16(const float* from, std::uint16_t* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
}
KBENCH_VECTORISED void fp32_to_fp64(const float* from, double* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// The source of one block, aligned.
union Block {
    std::uint16_t bits_16[block];
    float fp32[block];
    double fp64[block];
};

void convert_block(DataType from, const void* source, DataType to, void* destination, std::int64_t count) {
    alignas(64) Block aligned;
    alignas(64) float middle[block];
    std::memcpy(&aligned, source, static_cast<std::size_t>(count) * size_of(from));
    const float* values = middle;
    switch (from) {
        case DataType::fp16: fp16_to_fp32(aligned.bits_16, middle, count); break;
        case DataType::bf16: bf16_to_fp32(aligned.bits_16, middle, count); break;
        case DataType::fp64: fp64_to_fp32(aligned.fp64, middle, count); break;
        default: values = aligned.fp32;
    }
    switch (to) {
        case DataType::fp16: fp32_to_fp16(values, static_cast<std::uint16_t*>(destination), count); break;
        case DataType::bf16: fp32_to_bf16(values, static_cast<std::uint16_t*>(destination), count); break;
        case DataType::fp64: fp32_to_fp64(values, static_cast<double*>(destination), count); break;
        default: std::memcpy(destination, values, static_cast<std::size_t>(count) * sizeof(float));
    }
}

}  // namespace

void convert(DataType from, const void* source, DataType to, void* destination, std::int64_t count) {
    if (from == to) {
        // It takes no null pointer, not even for nothing.
        if (count > 0) std::memcpy(destination, source, static_cast<std::size_t>(count) * size_of(from));
        return;
    }
    if (from == DataType::int32 || to == DataType::int32)
        throw std::invalid_argument("no conversion from " + std::string(name(from)) + " to " + std::string(name(to)) +
                                    "; fp16, bf16, fp32 and fp64 convert to each other");
    const auto* in = static_cast<const std::byte*>(source);
    auto* out = static_cast<std::byte*>(destination);
    for (std::int64_t first = 0; first < count; first += block)
        convert_block(from, in + first * size_of(from), to, out + first * size_of(to), std::min(block, count - first));
}

void convert_rows(DataType from, const void* source, std::int64_t rows, std::int64_t columns, DataType to,
                  void* destination, std::int64_t row_stride) {
    if (columns == row_stride) {  // one long row, cut below, so that a vector too is shared by the threads
        columns *= rows;
        row_stride = columns;
        rows = 1;
    }
    constexpr std::int64_t piece = 64 * block;
    const std::int64_t pieces = (columns + piece - 1) / piece;
    convert(from, source, to, destination, 0);  // an impossible pair of types throws here, not on a thread
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t index = 0; index < pieces; ++index) {
            const std::int64_t first = index * piece;
            convert(from, static_cast<const std::byte*>(source) + (row * columns + first) * size_of(from), to,
                    static_cast<std::byte*>(destination) + (row * row_stride + first) * size_of(to),
                    std::min(piece, columns - first));
        }
}

std::optional<BadNumber> first_bad_number(DataType type, const void* numbers, std::int64_t rows, std::int64_t columns,
                                          std::int64_t row_stride, Allowed allowed) {
    if (columns == row_stride) {  // as in convert_rows
        columns *= rows;
        row_stride = columns;
        rows = 1;
    }
    const auto* const bytes = static_cast<const std::byte*>(numbers);
    const auto is_bad = [allowed](double value) {
        return !std::isfinite(value) || (allowed == Allowed::finite_not_negative && value < 0);
    };
    const std::int64_t pieces = (columns + block - 1) / block, none = rows * columns;
    std::int64_t first = none;
#pragma omp parallel for collapse(2) schedule(static) reduction(min : first)
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
            const std::int64_t begin = piece * block, count = std::min(block, columns - begin);
            double values[block];
            convert(type, bytes + (row * row_stride + begin) * size_of(type), DataType::fp64, values, count);
            const double* const bad = std::find_if(values, values + count, is_bad);
            if (bad != values + count) first = std::min(first, row * columns + begin + (bad - values));
        }
    if (first == none) return std::nullopt;
    double value = 0;
    const std::int64_t at = first / columns * row_stride + first % columns;
    convert(type, bytes + at * size_of(type), DataType::fp64, &value, 1);
    return BadNumber{first, value};
}

}  // namespace kbench
