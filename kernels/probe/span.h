// How long one thread of a probe ran, in its SM's clock cycles and in time: gives the clock during a measurement.
#pragma once

#include <cstdint>

namespace kbench::cuda::probe {

/// Written by the first thread of a grid. The timer may tick only once a microsecond.
struct Span {
    std::uint64_t cycles = 0, ns = 0;

    /// The SM's clock; 0 where the span is too short for the timer to resolve it within about 1 %.
    double mhz() const { return ns < 200'000 ? 0 : 1e3 * static_cast<double>(cycles) / static_cast<double>(ns); }
};

}  // namespace kbench::cuda::probe
