// How large anything may be that a shape, an option or a file asks for: one bound, below which no product of sizes and
// no number of bytes leaves int64. What is beyond it fits no memory that there is.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kbench {

/// Of one array, and of all arrays of a model together: with 8 bytes each and a factor of 16 for what is added to it
/// (gradients, optimizer, padding) that is still below 2^63 bytes.
inline constexpr double most_elements = 0x1p56;

/// Of a model: more would be planned and verified for days.
inline constexpr std::int64_t most_layers = 10'000;

/// Of one sweep: each has a file.
inline constexpr std::int64_t most_points = 100'000;

/// The product of `sizes`, each at least 1, without overflow.
double product_of(std::span<const std::int64_t> sizes);

/// Throws UsageError, one line that begins with `what`, where `elements` are too many.
void require_countable(double elements, const std::string& what);

}  // namespace kbench
