// Seeded random numbers for weights, test operands and tokens. Counter-based (Philox4x32-10; Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011): element i of a stream depends on the seed, the stream's name and i
// alone, not on threads, order, layout or vector width, and is the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/model.h"

namespace kbench {

/// Philox4x32-10: 128 random bits for a counter and a key.
std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// `count` normal numbers with mean 0. The numbers are drawn in fp32 and then rounded to `type`, so every precision of
/// one seed gets the same ones; fp64 gets more bits, chosen so that rounding to fp32 gives the fp32 number again. The
/// largest magnitude that can occur is 6.6 standard deviations. On all OpenMP threads. Throws std::invalid_argument
/// when `type` is int32.
void fill_normal(std::uint64_t seed, std::string_view stream_name, double standard_deviation, DataType type,
                 void* destination, std::int64_t count);

/// A matrix filled as `contents` says, from the stream called `stream_name`; whole numbers, which want int32, have one
/// stream of their own. Rows lie `row_stride` elements apart; what lies between them is left alone.
void fill_contents(const Contents& contents, std::uint64_t seed, std::string_view stream_name, DataType type,
                   std::int64_t rows, std::int64_t columns, void* destination, std::int64_t row_stride);
/// A tensor as its contents say, with its name as the stream.
void fill_random(const Tensor& tensor, std::uint64_t seed, DataType type, void* destination, std::int64_t row_stride);

}  // namespace kbench
