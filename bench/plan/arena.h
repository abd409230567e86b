// Offsets for tensors that live for part of a plan only, so that the peak is small.
// Greedy by size (Pisarchyk and Lee, 2020, "Efficient Memory Management for Deep Neural Net Inference", section 4.2).
#pragma once

#include <cstdint>
#include <vector>

namespace kbench {

/// A tensor's bytes and the first and last step that touch it, both inclusive.
struct Lifetime {
    std::int64_t bytes;
    std::size_t first, last;
};

struct ArenaLayout {
    std::vector<std::int64_t> offsets;  ///< parallel to the lifetimes
    std::int64_t bytes = 0;             ///< the whole arena
};

/// No two tensors whose lifetimes meet overlap. `alignment` is a power of two.
ArenaLayout lay_out_arena(const std::vector<Lifetime>& lifetimes, std::int64_t alignment);

}  // namespace kbench
