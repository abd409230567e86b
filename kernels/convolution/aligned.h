// Places the arrays of a workspace one after another. Internal to kernels/convolution/.
#pragma once

#include <cstddef>

namespace kbench::cuda::convolution {

/// The offset of the next array after one of this many bytes.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace kbench::cuda::convolution
