// What one SM's clocks say at a moment: two readings of the same SM give its clock in between.
#pragma once

#include <cstdint>

namespace kbench::cuda::probe {

/// clock64 and %globaltimer, read one after the other. An SM's cycle counter starts when it likes, so that only
/// readings of the same SM may be subtracted. Both are 0 where nothing was read.
struct alignas(16) ClockReading {
    std::uint64_t cycles = 0, ns = 0;

    bool is_taken() const { return ns != 0; }
};

}  // namespace kbench::cuda::probe
