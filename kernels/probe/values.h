// The numbers that probes compute with: random, seeded, never zero, and the same on the host, so that a test can check
// what a probe computed. Callable from device code (nvcc's --expt-relaxed-constexpr).
#pragma once

#include <cstdint>

namespace kbench::cuda::probe {

/// The finaliser of MurmurHash3 (Appleby, 2011): neighbouring numbers give unrelated words.
constexpr std::uint32_t scramble(std::uint32_t x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/// The bits of word `lane` (0 to 3) of 16-byte vector `vector` of a buffer: a float in [1, 2).
constexpr std::uint32_t buffer_word(std::uint32_t seed, std::uint32_t vector, int lane) {
    constexpr std::uint32_t odd[] = {1, 0x9e3779b1u, 0x85ebca77u, 0xc2b2ae3du};
    return 0x3f800000u | (scramble(vector ^ seed) * odd[lane]) >> 9;
}

/// An element of an operand matrix: in (-2, -1] or [1, 2), with a 7-bit mantissa, so that every type represents it
/// exactly and sums of some hundred products are exact in fp32.
constexpr float operand(std::uint32_t matrix, std::uint32_t row, std::uint32_t column) {
    const std::uint32_t random = scramble(scramble(matrix) ^ (row << 16 | column));
    const float magnitude = 1 + static_cast<float>(random & 127) * 0x1p-7f;
    return random >> 31 != 0 ? -magnitude : magnitude;
}

}  // namespace kbench::cuda::probe
