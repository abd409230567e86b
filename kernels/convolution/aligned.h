// How the arrays of a workspace lie behind one another. Internal to kernels/convolution/.
#pragma once

#include <cstddef>

namespace kbench::cuda::convolution {

/// Where the next of a workspace's arrays begins behind one of so many bytes.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace kbench::cuda::convolution
