// Upper bounds for sizes that a shape, an option or a file asks for. Below them no product of sizes and no number of
// bytes overflows int64; anything larger fits in no memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kbench {

/// Most elements of one array, and of all arrays of a model together. With 8 bytes each and a factor of 16 for
/// gradients, optimizer state and padding this is still below 2^63 bytes.
inline constexpr double most_elements = 0x1p56;

/// Most layers of a model: planning and verifying more would take days.
inline constexpr std::int64_t most_layers = 10'000;

/// Most points of one sweep: each has a file of its own.
inline constexpr std::int64_t most_points = 100'000;

/// The product of `sizes`, each at least 1. It is a double, so it cannot overflow.
double product_of(std::span<const std::int64_t> sizes);

/// Throws UsageError, one line that begins with `what`, where there are too many `elements`.
void require_countable(double elements, const std::string& what);

}  // namespace kbench
